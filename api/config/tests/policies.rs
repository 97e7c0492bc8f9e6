//! Policies of kubernetes-sigs/descheduler: what configurations they become, what is different, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic)]

use koord_config::{
    Kind,
    descheduler::{COMMUNITY_PLUGINS, PLUGINS},
    policy::{Consequence, Evictor, Translation, election_note, interval_note, translate},
};
use koord_configuration::{Origin, Problem, path_text};
use serde_json::{Value, json};

fn sample(name: &str) -> Value {
    let file = format!("{}/tests/policies/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    koord_resource::yaml::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[track_caller]
fn translated(policy: &Value, evictor: Evictor) -> Translation {
    translate(policy, evictor).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn lines(problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| match &problem.suggestion {
        Some(suggestion) => format!("{problem} ({suggestion})"),
        None => problem.to_string(),
    };
    problems.iter().map(line).collect()
}

#[track_caller]
fn refused(policy: &Value) -> Vec<String> {
    lines(&translate(policy, Evictor::default()).unwrap_err())
}

/// Consequence and message of each note, without its remedy.
fn notes(translation: &Translation) -> Vec<String> {
    translation.notes.iter().map(|note| format!("{} {}", note.consequence.name(), note.problem)).collect()
}

fn v1alpha1(members: Value) -> Value {
    with_head("descheduler/v1alpha1", members)
}

fn v1alpha2(members: Value) -> Value {
    with_head("descheduler/v1alpha2", members)
}

fn with_head(api_version: &str, mut members: Value) -> Value {
    members["apiVersion"] = api_version.into();
    members["kind"] = "DeschedulerPolicy".into();
    members
}

/// A profile of v1alpha2 with one strategy.
fn profile(set: &str, plugin: &str, args: &Value) -> Value {
    json!({
        "name": "p", "plugins": {set: {"enabled": [plugin]}}, "pluginConfig": [{"name": plugin, "args": args}],
    })
}

/// What both spellings of one policy become.
fn node_taints(profile: &str) -> Value {
    let evictor = json!({"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultEvictor"}]});
    json!({
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerConfiguration",
        "nodeSelector": {"matchLabels": {"node": "node1"}},
        "maxNoOfPodsToEvictPerNode": 10,
        "maxNoOfPodsToEvictPerNamespace": 10,
        "profiles": [{
            "name": profile,
            "plugins": {
                "deschedule": {"enabled": [{"name": "RemovePodsViolatingNodeTaints"}]},
                "evict": evictor,
                "filter": evictor,
            },
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"evictLocalStoragePods": true, "evictSystemCriticalPods": true, "nodeFit": true}},
                {"name": "RemovePodsViolatingNodeTaints", "args": {"excludedTaints": ["deschedule=not-allow"]}},
            ],
        }],
    })
}

#[test]
fn both_versions_of_a_policy_become_the_same_configuration() {
    let old = translated(&sample("node-taints-v1alpha1"), Evictor::default());
    assert_eq!(old.document, node_taints("strategy-RemovePodsViolatingNodeTaints-profile"));
    assert_eq!(notes(&old), [""; 0], "a strategy that is off leaves nothing behind");
    let new = translated(&sample("node-taints-v1alpha2"), Evictor::default());
    assert_eq!(new.document, node_taints("ProfileName"));
    assert_eq!(notes(&new), [""; 0]);
}

#[test]
fn every_strategy_that_is_on_becomes_a_profile_with_the_evictor_of_the_policy() {
    let translation = translated(&sample("evictor-v1alpha1"), Evictor::default());
    let profiles = translation.document["profiles"].as_array().unwrap();
    let args = |profile: usize, plugin: &str| {
        let configs = profiles[profile]["pluginConfig"].as_array().unwrap();
        configs.iter().find(|config| config["name"] == plugin).map(|config| config["args"].clone()).unwrap_or_default()
    };
    let names: Vec<&str> = profiles.iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "strategy-LowNodeUtilization-profile",
            "strategy-PodLifeTime-profile",
            "strategy-RemoveFailedPods-profile",
            "strategy-RemovePodsViolatingTopologySpreadConstraint-profile",
        ]
    );
    let evictor = json!({
        "evictDaemonSetPods": true, "evictLocalStoragePods": true, "evictSystemCriticalPods": true, "ignorePvcPods": true,
    });
    let mut with_threshold = evictor.clone();
    with_threshold["priorityThreshold"] = json!({"value": 1000});
    assert_eq!(args(0, "DefaultEvictor"), with_threshold);
    assert_eq!(args(1, "DefaultEvictor"), evictor, "PodLifeTime does not look at nodeFit");
    assert_eq!(
        args(0, "LowNodeUtilization"),
        json!({"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 50, "memory": 50}, "numberOfNodes": 3})
    );
    assert_eq!(profiles[0]["plugins"]["balance"]["enabled"], json!([{"name": "LowNodeUtilization"}]));
    assert_eq!(
        args(1, "PodLifeTime"),
        json!({"maxPodLifeTimeSeconds": 86400, "states": ["Pending", "PodInitializing"], "namespaces": {"exclude": ["kube-system"]}})
    );
    assert_eq!(profiles[1]["plugins"]["deschedule"]["enabled"], json!([{"name": "PodLifeTime"}]));
    assert_eq!(
        args(2, "RemoveFailedPods"),
        json!({"reasons": ["NodeAffinity"], "includingInitContainers": true, "excludeOwnerKinds": ["Job"]})
    );
    assert_eq!(
        args(3, "RemovePodsViolatingTopologySpreadConstraint"),
        json!({"constraints": ["DoNotSchedule", "ScheduleAnyway"]})
    );
    assert_eq!(
        notes(&translation),
        [
            "unused strategies.LowNodeUtilization.params.labelSelector: LowNodeUtilization does not read labelSelector, in kubernetes-sigs/descheduler neither",
            "unused strategies.PodLifeTime.weight: weight has no effect, in kubernetes-sigs/descheduler neither",
            "unused strategies.PodLifeTime.params.nodeFit: PodLifeTime does not look at nodeFit, in kubernetes-sigs/descheduler neither",
            "changed strategies.RemoveFailedPods.params.failedPods: without minPodLifetimeSeconds pods are removed when they are an hour old, as from version 0.27 on; older versions removed them at once",
        ]
    );
}

#[test]
fn profiles_keep_their_plugins_and_arguments_and_get_the_evictor_that_they_have_without_naming_it() {
    let translation = translated(&sample("evictor-v1alpha2"), Evictor::default());
    let evictor = json!({"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultEvictor"}]});
    assert_eq!(
        translation.document["profiles"],
        json!([{
            "name": "default",
            "plugins": {
                "balance": {"enabled": [{"name": "RemoveDuplicates"}]},
                "deschedule": {"enabled": [{"name": "RemovePodsHavingTooManyRestarts"}, {"name": "RemovePodsViolatingInterPodAntiAffinity"}]},
                "evict": evictor,
                "filter": evictor,
            },
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {
                    "evictDaemonSetPods": false, "evictFailedBarePods": true, "evictLocalStoragePods": true,
                    "evictSystemCriticalPods": true, "ignorePvcPods": true, "nodeFit": true, "minReplicas": 2,
                }},
                {"name": "RemoveDuplicates", "args": {}},
                {"name": "RemovePodsHavingTooManyRestarts", "args": {"podRestartThreshold": 100, "includingInitContainers": true}},
            ],
        }])
    );
    assert_eq!(notes(&translation), [""; 0]);
}

#[test]
fn what_a_configuration_does_not_have_is_a_note() {
    let translation = translated(&sample("utilization-v1alpha2"), Evictor::default());
    let document = &translation.document;
    assert_eq!(
        document["nodeSelector"],
        json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}, {"key": "spot", "operator": "DoesNotExist"}]})
    );
    assert_eq!(document["maxNoOfPodsToEvictTotal"], 20);
    assert_eq!(document["metricsProviders"][0]["source"], "KubernetesMetrics");
    assert_eq!(document["profiles"][1]["name"], "utilization-2");
    assert_eq!(document["profiles"][0]["plugins"]["balance"], json!({"enabled": [{"name": "LowNodeUtilization"}]}));
    assert_eq!(
        notes(&translation),
        [
            "changed evictionFailureEventNotification: evictions that fail are always reported in events",
            "lost gracePeriodSeconds: DefaultEvictor leaves pods their own grace period",
            "lost profiles[0].plugins.sort.enabled: there are no plugins that sort",
            "unused profiles[0].plugins.balance.disabled: disabled has no effect, in kubernetes-sigs/descheduler neither",
            "unused profiles[0].plugins.balance.enabled[1]: LowNodeUtilization stands twice, and runs once",
            "changed profiles[1].name: the profile is called utilization-2: in a DeschedulerConfiguration every profile has a name of its own",
        ]
    );
    let remedies = translation.notes.iter().filter(|note| note.problem.suggestion.is_some()).count();
    assert_eq!(remedies, 3, "what is lost, or can be taken out, has a remedy");
}

#[test]
fn what_flags_say_in_kubernetes_sigs_descheduler_is_noted_unless_it_is_set() {
    let mut configuration = translated(&sample("node-taints-v1alpha2"), Evictor::default()).document;
    assert!(interval_note(&configuration).is_some() && election_note(&configuration).is_some());
    configuration["deschedulingInterval"] = "5m".into();
    configuration["leaderElection"] = json!({"leaderElect": false});
    assert!(interval_note(&configuration).is_none() && election_note(&configuration).is_none());
}

#[test]
fn migration_controller_takes_the_arguments_of_the_evictor_that_it_has() {
    let mut policy = sample("utilization-v1alpha2");
    policy["profiles"].as_array_mut().unwrap().truncate(1);
    let args = &mut policy["profiles"][0]["pluginConfig"][0]["args"];
    args["podProtections"] = json!({
        "defaultDisabled": ["PodsWithLocalStorage", "DaemonSetPods"], "extraEnabled": ["PodsWithPVC", "PodsWithoutPDB"],
        "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "local"}]}},
    });
    args["nodeFit"] = true.into();
    args["minPodAge"] = "5m".into();
    args["priorityThreshold"] = json!({"value": 7});
    let translation = translated(&policy, Evictor::MigrationController);
    let profile = &translation.document["profiles"][0];
    let evicts = json!({"disabled": [{"name": "*"}], "enabled": [{"name": "MigrationController"}]});
    assert_eq!((&profile["plugins"]["evict"], &profile["plugins"]["filter"]), (&evicts, &evicts));
    assert_eq!(
        profile["pluginConfig"][0],
        json!({"name": "MigrationController", "args": {
            "evictLocalStoragePods": true, "ignorePvcPods": true, "nodeFit": true, "priorityThreshold": {"value": 7},
            "defaultDeleteOptions": {"gracePeriodSeconds": 60},
        }})
    );
    let notes = notes(&translation);
    let of_evictor: Vec<&String> = notes.iter().filter(|note| note.contains("MigrationController")).collect();
    assert_eq!(
        of_evictor,
        [
            "lost profiles[0].pluginConfig[0].args.minPodAge: MigrationController has no such argument",
            "lost profiles[0].pluginConfig[0].args.podProtections.defaultDisabled[1]: MigrationController never evicts pods of DaemonSets",
            "changed profiles[0].pluginConfig[0].args.podProtections.extraEnabled[0]: MigrationController protects all pods with a PersistentVolumeClaim, whatever its StorageClass",
            "lost profiles[0].pluginConfig[0].args.podProtections.extraEnabled[1]: MigrationController does not protect PodsWithoutPDB",
        ]
    );
}

#[test]
fn profiles_that_would_migrate_pods_in_different_ways_are_refused() {
    let policy = v1alpha1(json!({"strategies": {
        "RemoveDuplicates": {"enabled": true, "params": {"nodeFit": true}},
        "RemovePodsViolatingNodeTaints": {"enabled": true},
    }}));
    let wrong = lines(&translate(&policy, Evictor::MigrationController).unwrap_err());
    assert_eq!(
        wrong,
        [
            "strategies.RemovePodsViolatingNodeTaints: evicts in another way than strategy-RemoveDuplicates-profile, and the jobs of a cluster have one MigrationController (give both the same arguments of DefaultEvictor, or evict by DefaultEvictor)"
        ]
    );
    assert!(translate(&policy, Evictor::DefaultEvictor).is_ok());
}

#[test]
fn a_mistake_is_reported_at_its_place_in_the_policy() {
    for (policy, wanted) in [
        (
            v1alpha2(json!({"profiles": [{"name": "p", "plugins": {"deschedule": {"enabled": ["PodLifetime"]}}}]})),
            "profiles[0].plugins.deschedule.enabled[0]: kubernetes-sigs/descheduler has no plugin \"PodLifetime\" (did you mean PodLifeTime?)",
        ),
        (
            v1alpha2(json!({"profiles": [{"name": "p", "plugins": {"balance": {"enabled": ["LowNodeLoad"]}}}]})),
            "profiles[0].plugins.balance.enabled[0]: kubernetes-sigs/descheduler has no plugin \"LowNodeLoad\" (LowNodeLoad is a plugin of Koordinator: take it out, let koordctl convert make a DeschedulerConfiguration, and enable it there)",
        ),
        (
            v1alpha2(json!({"profiles": [{"name": "p", "pluginConfig": [{"name": "Pod"}]}]})),
            "profiles[0].pluginConfig[0].name: kubernetes-sigs/descheduler has no plugin \"Pod\"",
        ),
        (
            v1alpha2(json!({"profiles": [profile("balance", "PodLifeTime", &json!({"maxPodLifeTimeSeconds": 5}))]})),
            "profiles[0].plugins.balance.enabled[0]: PodLifeTime is no plugin of this set (enable it in deschedule)",
        ),
        (
            v1alpha2(
                json!({"profiles": [profile("deschedule", "PodLifeTime", &json!({"maxPodLifeTimeSecond": 5, "states": ["Running"]}))]}),
            ),
            "profiles[0].pluginConfig[0].args.maxPodLifeTimeSecond: PodLifeTime: unknown field (did you mean maxPodLifeTimeSeconds?)",
        ),
        (
            v1alpha2(
                json!({"profiles": [profile("deschedule", "PodLifeTime", &json!({"maxPodLifeTimeSeconds": "5"}))]}),
            ),
            "profiles[0].pluginConfig[0].args.maxPodLifeTimeSeconds: PodLifeTime: must be a whole number, not a text",
        ),
        (
            v1alpha2(
                json!({"profiles": [profile("deschedule", "PodLifeTime", &json!({"kind": "PodArgs", "maxPodLifeTimeSeconds": 5}))]}),
            ),
            "profiles[0].pluginConfig[0].args.kind: must be \"PodLifeTimeArgs\"",
        ),
        (
            v1alpha2(
                json!({"profiles": [{"name": "p", "plugins": {"deschedule": {"enabled": [{"name": "PodLifeTime"}]}}}]}),
            ),
            "profiles[0].plugins.deschedule.enabled[0]: must be a text, not an object",
        ),
        (
            v1alpha2(json!({"profiles": [{"name": "p", "pluginConfig": [{"name": "DefaultEvictor", "args": {
                "evictLocalStoragePods": true, "podProtections": {"extraEnabled": ["PodsWithPVC"]}}}]}]})),
            "profiles[0].pluginConfig[0].args.evictLocalStoragePods: cannot stand beside podProtections, which says the same by PodsWithLocalStorage in defaultDisabled (take evictLocalStoragePods out, and add PodsWithLocalStorage in defaultDisabled)",
        ),
        (
            v1alpha2(json!({"nodeSelector": "rank>3", "profiles": [{"name": "p"}]})),
            "nodeSelector: \"rank>3\" compares numbers, which the selector of a DeschedulerConfiguration cannot (select the nodes by another label, or by the list of its values: key in (a,b))",
        ),
        (
            v1alpha2(json!({"profiles": [{"name": "p"}], "maxNoOfPodsToEvictPerNode": -1})),
            "maxNoOfPodsToEvictPerNode: must be 0 or greater",
        ),
        (
            v1alpha1(json!({"strategies": {"RemoveDuplicate": {"enabled": false}}})),
            "strategies.RemoveDuplicate: there is no strategy \"RemoveDuplicate\" (did you mean RemoveDuplicates?)",
        ),
        (
            v1alpha1(json!({"strategies": {"LowNodeUtilization": {"enabled": true, "params": {
                "namespaces": {"include": ["a"]},
                "nodeResourceUtilizationThresholds": {"thresholds": {"cpu": 5}, "targetThresholds": {"cpu": 50}}}}}})),
            "strategies.LowNodeUtilization.params.namespaces.include: LowNodeUtilization: cannot be set: name the others in exclude",
        ),
        (
            v1alpha1(json!({"strategies": {"LowNodeUtilization": {"enabled": true, "params": {
                "nodeResourceUtilizationThresholds": {"thresholds": {"cpu": 500}, "targetThresholds": {"cpu": 501}}}}}})),
            "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds.thresholds.cpu: LowNodeUtilization: must be from 0 to 100",
        ),
        (
            v1alpha1(json!({"strategies": {"RemoveDuplicates": {"enabled": true, "params": {
                "thresholdPriority": 5, "thresholdPriorityClassName": "low"}}}})),
            "strategies.RemoveDuplicates.params.thresholdPriority: cannot be set together with thresholdPriorityClassName (keep one of them)",
        ),
        (
            v1alpha1(json!({"strategies": {"RemovePodsHavingTooManyRestarts": {"enabled": true}}})),
            "strategies.RemovePodsHavingTooManyRestarts: RemovePodsHavingTooManyRestarts has no arguments, and needs some: podRestartThreshold: must be 1 or greater",
        ),
        (
            v1alpha1(json!({"strategies": {"RemoveDuplicates": true}})),
            "strategies.RemoveDuplicates: must be an object, not true or false",
        ),
    ] {
        let found = refused(&policy);
        assert!(found.iter().any(|line| line == wanted), "{wanted}\n{found:#?}");
    }
}

#[test]
fn a_policy_of_both_versions_is_refused_with_the_version_of_each_field() {
    let strategies = json!({"RemoveDuplicates": {"enabled": true}});
    assert_eq!(
        refused(&v1alpha2(json!({"profiles": [{"name": "p"}], "strategies": strategies}))),
        [
            "strategies: unknown field (strategies is a field of descheduler/v1alpha1, and this is descheduler/v1alpha2: a policy is of one version; write all of it in descheduler/v1alpha1)"
        ]
    );
    assert_eq!(
        refused(&v1alpha1(json!({"strategies": strategies, "profiles": []}))),
        [
            "profiles: unknown field (profiles is a field of descheduler/v1alpha2, and this is descheduler/v1alpha1: a policy is of one version; write all of it in descheduler/v1alpha2)"
        ]
    );
    assert_eq!(
        refused(&v1alpha2(json!({"profiles": [{"name": "p"}], "deschedulingInterval": "5m"}))),
        [
            "deschedulingInterval: unknown field (a policy has no deschedulingInterval; a DeschedulerConfiguration has: koordctl convert -f FILE makes one of the policy)"
        ]
    );
}

#[test]
fn a_policy_with_nothing_in_it_is_refused_and_one_with_nothing_enabled_does_nothing() {
    let remedy = "write profiles with the plugins that are to run";
    assert_eq!(
        refused(&v1alpha2(json!({}))),
        [format!("profiles: the DeschedulerPolicy has no profile: nothing would be done ({remedy})")]
    );
    assert_eq!(
        refused(&v1alpha1(json!({}))),
        [
            "strategies: the DeschedulerPolicy has no strategy: nothing would be done (write strategies, each with enabled: true)"
        ]
    );
    let off =
        translated(&v1alpha1(json!({"strategies": {"RemoveDuplicates": {"enabled": false}}})), Evictor::default());
    assert_eq!(off.document["profiles"][0]["plugins"]["evict"]["enabled"], json!([{"name": "DefaultEvictor"}]));
    assert_eq!(off.document["profiles"][0]["plugins"].get("deschedule"), None);
    assert_eq!(off.notes[0].consequence, Consequence::Unused);
}

#[test]
fn values_that_are_in_force_come_from_their_lines_of_the_policy() {
    let from = |name: &str, path: &str| {
        let policy = sample(name);
        let effective = Kind::of(&policy).unwrap().effective(&policy).unwrap();
        assert_eq!(effective.value["kind"], "DeschedulerConfiguration");
        let leaf = effective.leaves.iter().find(|(leaf, _)| path_text(leaf) == path);
        match &leaf.unwrap_or_else(|| panic!("{path}: {:#?}", effective.leaves)).1 {
            Origin::Default => "default".to_owned(),
            Origin::Document(path) => path_text(path),
        }
    };
    for (name, path, wanted) in [
        ("node-taints-v1alpha2", "nodeSelector.matchLabels.node", "nodeSelector"),
        ("node-taints-v1alpha2", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNode"),
        (
            "node-taints-v1alpha2",
            "profiles[0].plugins.deschedule.enabled[0].name",
            "profiles[0].plugins.deschedule.enabled[0]",
        ),
        (
            "node-taints-v1alpha2",
            "profiles[0].pluginConfig[1].args.excludedTaints[0]",
            "profiles[0].pluginConfig[1].args.excludedTaints[0]",
        ),
        ("node-taints-v1alpha2", "deschedulingInterval", "default"),
        (
            "node-taints-v1alpha1",
            "profiles[0].pluginConfig[0].args.nodeFit",
            "strategies.RemovePodsViolatingNodeTaints.params.nodeFit",
        ),
        ("node-taints-v1alpha1", "profiles[0].pluginConfig[0].args.evictLocalStoragePods", "evictLocalStoragePods"),
        (
            "node-taints-v1alpha1",
            "profiles[0].plugins.deschedule.enabled[0].name",
            "strategies.RemovePodsViolatingNodeTaints",
        ),
    ] {
        assert_eq!(from(name, path), wanted, "{name} {path}");
    }
}

#[test]
fn what_a_policy_becomes_is_a_configuration_without_problems() {
    for name in
        ["node-taints-v1alpha1", "node-taints-v1alpha2", "evictor-v1alpha1", "evictor-v1alpha2", "utilization-v1alpha2"]
    {
        let policy = sample(name);
        assert_eq!(Kind::of(&policy).unwrap().check(&policy), [], "{name}");
        let configuration = translated(&policy, Evictor::default()).document;
        assert_eq!(Kind::of(&configuration), Some(Kind::Descheduler));
        assert_eq!(Kind::Descheduler.check(&configuration), [], "{name}");
        assert_eq!(Kind::Descheduler.warnings(&configuration), [], "{name}");
    }
}

#[test]
fn the_plugins_of_kubernetes_sigs_descheduler_are_those_of_its_release() {
    let names: Vec<&str> = COMMUNITY_PLUGINS.iter().map(|args| args.plugin).collect();
    assert_eq!((names.len(), names.contains(&"DefaultEvictor")), (11, true));
    for koordinator in
        ["MigrationController", "LowNodeLoad", "CustomPriority", "FragmentationAware", "ScaleDownBinPack"]
    {
        assert!(!names.contains(&koordinator) && PLUGINS.iter().any(|args| args.plugin == koordinator));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn any_policy_is_refused_or_becomes_a_configuration_that_is_right(
        field in proptest::sample::select(vec![
            "strategies", "profiles", "nodeSelector", "maxNoOfPodsToEvictPerNode", "gracePeriodSeconds", "metricsProviders", "0", "",
        ]),
        key in proptest::sample::select(vec!["RemoveDuplicates", "PodLifeTime", "name", "plugins", "pluginConfig", "params", "0"]),
        text in "[ -~]{0,8}",
        number in -3_i64..200,
    ) {
        let leaves = [json!(text), json!(number), Value::Null, json!(true), json!([text]), json!({ key: number })];
        for leaf in &leaves {
            for value in [leaf.clone(), json!({ key: leaf }), json!([leaf]), json!([{ key: leaf }]), json!({ key: {"enabled": true, "params": leaf} })] {
                for policy in [v1alpha1(json!({ field: value })), v1alpha2(json!({ field: value }))] {
                    for evictor in [Evictor::DefaultEvictor, Evictor::MigrationController] {
                        match translate(&policy, evictor) {
                            Ok(translation) => assert_eq!(Kind::Descheduler.check(&translation.document), []),
                            Err(problems) => assert!(!problems.is_empty()),
                        }
                    }
                }
            }
        }
    }
}
