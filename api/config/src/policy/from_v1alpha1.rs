//! From `descheduler/v1alpha1`: each strategy that is on becomes a profile, as kubernetes-sigs/descheduler itself did it from version 0.27 on.

use koord_configuration::{Step, nearest};
use serde_json::{Value, json};

use super::{
    Consequence,
    arguments::Arguments,
    builder::{Builder, of_strategy, path},
    evictor::is_unset,
    v1alpha1::{PolicyV1alpha1, Strategy},
};
use crate::descheduler::set_of;

/// Parameters of a strategy by their names, and the arguments that they become.
type Moved = &'static [(&'static [&'static str], &'static str)];

const NAMESPACES: (&[&str], &str) = (&["namespaces"], "namespaces");
const EVICTABLE_NAMESPACES: (&[&str], &str) = (&["namespaces"], "evictableNamespaces");
const LABEL_SELECTOR: (&[&str], &str) = (&["labelSelector"], "labelSelector");
const THRESHOLDS: (&[&str], &str) = (&["nodeResourceUtilizationThresholds", "thresholds"], "thresholds");
const NUMBER_OF_NODES: (&[&str], &str) = (&["nodeResourceUtilizationThresholds", "numberOfNodes"], "numberOfNodes");

/// The strategies, each with what it reads.
const STRATEGIES: [(&str, Moved); 10] = [
    ("HighNodeUtilization", &[EVICTABLE_NAMESPACES, THRESHOLDS, NUMBER_OF_NODES]),
    (
        "LowNodeUtilization",
        &[
            EVICTABLE_NAMESPACES,
            THRESHOLDS,
            NUMBER_OF_NODES,
            (&["nodeResourceUtilizationThresholds", "targetThresholds"], "targetThresholds"),
            (&["nodeResourceUtilizationThresholds", "useDeviationThresholds"], "useDeviationThresholds"),
        ],
    ),
    (
        "PodLifeTime",
        &[
            NAMESPACES,
            LABEL_SELECTOR,
            (&["podLifeTime", "maxPodLifeTimeSeconds"], "maxPodLifeTimeSeconds"),
            (&["podLifeTime", "podStatusPhases"], "states"),
            (&["podLifeTime", "states"], "states"),
        ],
    ),
    ("RemoveDuplicates", &[NAMESPACES, (&["removeDuplicates", "excludeOwnerKinds"], "excludeOwnerKinds")]),
    (
        "RemoveFailedPods",
        &[
            NAMESPACES,
            LABEL_SELECTOR,
            (&["failedPods", "excludeOwnerKinds"], "excludeOwnerKinds"),
            (&["failedPods", "minPodLifetimeSeconds"], "minPodLifetimeSeconds"),
            (&["failedPods", "reasons"], "reasons"),
            (&["failedPods", "includingInitContainers"], "includingInitContainers"),
        ],
    ),
    (
        "RemovePodsHavingTooManyRestarts",
        &[
            NAMESPACES,
            LABEL_SELECTOR,
            (&["podsHavingTooManyRestarts", "podRestartThreshold"], "podRestartThreshold"),
            (&["podsHavingTooManyRestarts", "includingInitContainers"], "includingInitContainers"),
        ],
    ),
    ("RemovePodsViolatingInterPodAntiAffinity", &[NAMESPACES, LABEL_SELECTOR]),
    ("RemovePodsViolatingNodeAffinity", &[NAMESPACES, LABEL_SELECTOR, (&["nodeAffinityType"], "nodeAffinityType")]),
    (
        "RemovePodsViolatingNodeTaints",
        &[
            NAMESPACES,
            LABEL_SELECTOR,
            (&["includePreferNoSchedule"], "includePreferNoSchedule"),
            (&["excludedTaints"], "excludedTaints"),
            (&["includedTaints"], "includedTaints"),
        ],
    ),
    (
        "RemovePodsViolatingTopologySpreadConstraint",
        &[NAMESPACES, LABEL_SELECTOR, (&["includeSoftConstraints"], "constraints")],
    ),
];

/// Parameters of every strategy, which become arguments of the evictor.
const OF_EVICTOR: [&str; 3] = ["nodeFit", "thresholdPriority", "thresholdPriorityClassName"];

pub(super) fn translate(policy: &PolicyV1alpha1, document: &Value, builder: &mut Builder) {
    builder.node_selector(policy.node_selector.as_deref());
    builder.copy("maxNoOfPodsToEvictPerNode", policy.max_no_of_pods_to_evict_per_node);
    builder.copy("maxNoOfPodsToEvictPerNamespace", policy.max_no_of_pods_to_evict_per_namespace);
    for (name, strategy) in &policy.strategies {
        let Some((_, moved)) = STRATEGIES.iter().find(|(known, _)| known == name) else {
            let suggestion = nearest(name, STRATEGIES.iter().map(|(known, _)| *known));
            builder.problem(of_strategy(name, &[]), format!("there is no strategy {name:?}"), suggestion);
            continue;
        };
        if strategy.enabled {
            let params = &document["strategies"][name]["params"];
            translate_strategy((name, strategy, params), moved, policy, builder);
        }
    }
    if policy.strategies.is_empty() {
        let remedy = "write strategies, each with enabled: true".to_owned();
        let message = "the DeschedulerPolicy has no strategy: nothing would be done";
        builder.problem(path(&["strategies"]), message, Some(remedy));
    } else if !builder.has_profiles() {
        let message = "no strategy is enabled: nothing is descheduled";
        builder.note(Consequence::Unused, path(&["strategies"]), message, Some("set enabled: true of one"));
        builder.profile("default", path(&["strategies"])).end();
    }
}

fn translate_strategy(
    (name, strategy, params): (&str, &Strategy, &Value),
    moved: Moved,
    policy: &PolicyV1alpha1,
    builder: &mut Builder,
) {
    let at = of_strategy(name, &[]);
    if strategy.weight != 0 {
        let message = "weight has no effect, in kubernetes-sigs/descheduler neither";
        builder.note(Consequence::Unused, of_strategy(name, &["weight"]), message, Some("take it out"));
    }
    note_unread(name, params, moved, builder);
    let args = args_of_strategy(name, strategy, params, moved, builder);
    let evictor = builder.evictor;
    let of_evictor = args_of_evictor(name, strategy, policy, builder);
    let of_evictor = evictor.args(of_evictor, builder);
    let mut profile = builder.profile(&format!("strategy-{name}-profile"), at.clone());
    profile.enable(set_of(name).unwrap_or_default(), name, at.clone());
    if !of_evictor.is_empty() {
        profile.configure(evictor.name(), of_evictor, at.clone());
    }
    if !args.is_empty() {
        profile.configure(name, args, at);
    }
    profile.end();
}

/// The arguments of a strategy.
fn args_of_strategy(name: &str, strategy: &Strategy, params: &Value, moved: Moved, builder: &mut Builder) -> Arguments {
    let source = |keys: &[&str]| of_strategy(name, &[&["params"], keys].concat());
    let mut args = Arguments::none();
    for (keys, arg) in moved {
        let value = keys.iter().fold(params, |value, key| &value[*key]);
        match (value, *arg) {
            (Value::Null, _) => {}
            (_, "constraints") => {
                if strategy.params.include_soft_constraints {
                    args.set(&[arg], json!(["DoNotSchedule", "ScheduleAnyway"]), source(keys), false);
                }
            }
            (value, "states") => {
                let before = args.value[*arg].as_array().into_iter().flatten();
                let states: Vec<Value> = before.chain(value.as_array().into_iter().flatten()).cloned().collect();
                args.set(&[arg], states.into(), source(keys), false);
            }
            (value, _) => args.set(&[arg], value.clone(), source(keys), true),
        }
    }
    if name == "RemoveFailedPods" && args.value["minPodLifetimeSeconds"].is_null() {
        builder.note(
            Consequence::Changed,
            source(&["failedPods"]),
            "without minPodLifetimeSeconds pods are removed when they are an hour old, as from version 0.27 on; older versions removed them at once",
            Some("set minPodLifetimeSeconds: 0 to remove them at once"),
        );
    }
    args
}

/// The arguments of DefaultEvictor for a strategy.
fn args_of_evictor(name: &str, strategy: &Strategy, policy: &PolicyV1alpha1, builder: &mut Builder) -> Arguments {
    let mut args = Arguments::none();
    for (key, is_set) in [
        ("evictDaemonSetPods", policy.evict_daemon_set_pods),
        ("evictFailedBarePods", policy.evict_failed_bare_pods),
        ("evictLocalStoragePods", policy.evict_local_storage_pods),
        ("evictSystemCriticalPods", policy.evict_system_critical_pods),
        ("ignorePvcPods", policy.ignore_pvc_pods),
    ] {
        if is_set {
            args.set(&[key], json!(true), path(&[key]), false);
        }
    }
    let source = |key: &str| of_strategy(name, &["params", key]);
    let params = &strategy.params;
    if params.node_fit && name == "PodLifeTime" {
        let message = "PodLifeTime does not look at nodeFit, in kubernetes-sigs/descheduler neither";
        builder.note(Consequence::Unused, source("nodeFit"), message, Some("take it out"));
    } else if params.node_fit {
        args.set(&["nodeFit"], json!(true), source("nodeFit"), false);
    }
    let class = params.threshold_priority_class_name.as_str();
    match (params.threshold_priority, class) {
        (Some(_), class) if !class.is_empty() => {
            let message = "cannot be set together with thresholdPriorityClassName";
            builder.problem(source("thresholdPriority"), message, Some("keep one of them".to_owned()));
        }
        (Some(value), _) => {
            args.set(&["priorityThreshold"], json!({"value": value}), source("thresholdPriority"), false);
        }
        (None, "") => {}
        (None, class) => {
            args.set(&["priorityThreshold"], json!({"name": class}), source("thresholdPriorityClassName"), false);
        }
    }
    args
}

/// Notes parameters that a strategy does not read.
fn note_unread(name: &str, params: &Value, moved: Moved, builder: &mut Builder) {
    let is_read = |keys: &[&str]| moved.iter().any(|(read, _)| read.starts_with(keys) || keys.starts_with(read));
    let mut note = |at: Vec<Step>, key: &str| {
        let message = format!("{name} does not read {key}, in kubernetes-sigs/descheduler neither");
        builder.note(Consequence::Unused, at, message, Some("take it out"));
    };
    for (key, value) in params.as_object().into_iter().flatten() {
        let key = key.as_str();
        if OF_EVICTOR.contains(&key) || is_unset(value) {
            continue;
        }
        if !is_read(&[key]) {
            note(of_strategy(name, &["params", key]), key);
            continue;
        }
        for (field, value) in value.as_object().into_iter().flatten() {
            if !is_read(&[key, field]) && !is_unset(value) {
                note(of_strategy(name, &["params", key, field]), field);
            }
        }
    }
}
