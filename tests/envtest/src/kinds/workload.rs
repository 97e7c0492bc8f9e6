//! Kinds that carry a pod template: defaults, selectors, generation.

use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value, json};

use super::{
    daemon_set,
    pod_template::{self, below, fill, fill_text, items},
    warnings, workload_checks, workload_status,
};
use crate::{
    metadata,
    strategy::{Generation, Propagation, StatusKeeps, Strategy, WriteContext},
};

/// Which kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    ReplicationController,
}

impl Strategy for Workload {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn has_status(&self) -> bool {
        true
    }

    fn status_keeps(&self) -> StatusKeeps {
        if *self == Workload::Deployment { StatusKeeps::Labels } else { StatusKeeps::Nothing }
    }

    fn metadata_moves_generation(&self, new: &Value, old: &Value) -> bool {
        // Its controller reads annotations.
        *self == Workload::Deployment && new["metadata"]["annotations"] != old["metadata"]["annotations"]
    }

    fn has_own_field_labels(&self) -> bool {
        matches!(self, Workload::Job | Workload::ReplicationController)
    }

    fn default_propagation(&self) -> Propagation {
        match self {
            Workload::Job | Workload::ReplicationController => Propagation::Orphan,
            _ => Propagation::Background,
        }
    }

    fn set_defaults(&self, object: &mut Value) {
        match self {
            Workload::DaemonSet => daemon_set::state(object),
            Workload::ReplicationController => select_by_labels_of_pods(object),
            Workload::Job => label_like_pods(object),
            _ => {}
        }
        let Some(spec) = object["spec"].as_object_mut() else { return };
        match self {
            Workload::Deployment => {
                fill(spec, "replicas", json!(1));
                fill(spec, "revisionHistoryLimit", json!(10));
                fill(spec, "progressDeadlineSeconds", json!(600));
                fill(spec, "strategy", json!({}));
                if let Some(strategy) = below(spec, "strategy") {
                    rolling(strategy, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
                }
            }
            Workload::ReplicaSet => fill(spec, "replicas", json!(1)),
            Workload::ReplicationController => {
                fill(spec, "replicas", json!(1));
                if spec.get("minReadySeconds") == Some(&json!(0)) {
                    spec.remove("minReadySeconds");
                }
            }
            Workload::StatefulSet => {
                fill(spec, "replicas", json!(1));
                fill(spec, "revisionHistoryLimit", json!(10));
                fill_text(spec, "podManagementPolicy", "OrderedReady");
                fill(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
                if let Some(policy) = below(spec, "persistentVolumeClaimRetentionPolicy") {
                    fill_text(policy, "whenDeleted", "Retain");
                    fill_text(policy, "whenScaled", "Retain");
                }
                fill(spec, "updateStrategy", json!({}));
                if let Some(strategy) = below(spec, "updateStrategy") {
                    rolling(strategy, &[("partition", json!(0))]);
                }
                for claim in items(spec, "volumeClaimTemplates") {
                    fill(claim, "apiVersion", json!("v1"));
                    fill(claim, "kind", json!("PersistentVolumeClaim"));
                    fill(claim, "status", json!({}));
                    if let Some(status) = below(claim, "status") {
                        fill(status, "phase", json!("Pending"));
                    }
                    if let Some(spec) = below(claim, "spec") {
                        fill(spec, "volumeMode", json!("Filesystem"));
                    }
                }
            }
            Workload::DaemonSet => {
                fill(spec, "revisionHistoryLimit", json!(10));
                fill(spec, "updateStrategy", json!({}));
                if let Some(strategy) = below(spec, "updateStrategy") {
                    rolling(strategy, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
                }
            }
            Workload::Job => job_defaults(spec),
            Workload::CronJob => {
                fill_text(spec, "concurrencyPolicy", "Allow");
                fill(spec, "suspend", json!(false));
                fill(spec, "successfulJobsHistoryLimit", json!(3));
                fill(spec, "failedJobsHistoryLimit", json!(1));
            }
        }
        let template = match self {
            Workload::CronJob => spec.get_mut("jobTemplate").map(|job| &mut job["spec"]["template"]["spec"]),
            _ => spec.get_mut("template").map(|template| &mut template["spec"]),
        };
        if let Some(template) = template.filter(|template| template.is_object()) {
            pod_template::set_defaults(template);
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        match self {
            Workload::ReplicaSet | Workload::ReplicationController | Workload::StatefulSet => {
                object["status"] = json!({"replicas": 0});
                if *self == Workload::StatefulSet {
                    object["status"]["availableReplicas"] = json!(0);
                }
            }
            Workload::DaemonSet => {
                daemon_set::begin(object);
                object["status"] = json!({
                    "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
                });
            }
            _ => object["status"] = json!({}),
        }
        if *self == Workload::Job {
            own_pods(object);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if subresource == "status" {
            return;
        }
        if *self == Workload::DaemonSet {
            daemon_set::keep(new, old);
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        workload_checks::name(*self, metadata::text(object, "name"), errors);
        if *self == Workload::CronJob {
            workload_checks::cron_job(&object["spec"], &at, errors);
        } else {
            workload_checks::spec(*self, &object["spec"], &at, errors);
        }
        if *self == Workload::Job {
            workload_checks::generated_selector(object, errors);
        }
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        let has_own_rule = matches!(self, Workload::StatefulSet | Workload::DaemonSet);
        if old.is_none() && !has_own_rule {
            warnings.extend(warnings::host_name(object, "Pod names and hostnames"));
        }
        // Who only rescales or labels what runs already gets no second warning.
        if old.is_none_or(|old| old["metadata"]["generation"] != object["metadata"]["generation"]) {
            let spec = &object["spec"];
            warnings.extend(match self {
                Workload::CronJob => {
                    warnings::of_template(&spec["jobTemplate"]["spec"]["template"], "spec.jobTemplate.spec.template")
                }
                _ => warnings::of_template(&spec["template"], "spec.template"),
            });
        }
        if *self == Workload::StatefulSet
            && object["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0)
        {
            warnings.push(KEEPS_ALL.to_owned());
        }
        warnings
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            workload_status::check(*self, &new["status"], &old["status"], errors);
        }
        if !subresource.is_empty() {
            return;
        }
        let selector = &new["spec"]["selector"];
        let changes_selector = *selector != old["spec"]["selector"];
        let selector_at = Path::root("spec");
        let selector_at = selector_at.child("selector");
        if *self == Workload::DaemonSet && changes_selector {
            errors.invalid(&selector_at, selector, "field is immutable");
        }
        self.check_create(new, errors);
        match self {
            Workload::Job => {
                // The real server checks the spec of a changed job twice.
                workload_checks::spec(*self, &new["spec"], &Path::root("spec"), errors);
                job_update(new, old, errors);
            }
            Workload::Deployment | Workload::ReplicaSet if changes_selector => {
                errors.invalid(&selector_at, selector, "field is immutable");
            }
            Workload::StatefulSet if changes_more_than(MUTABLE_STATEFUL, &new["spec"], &old["spec"]) => {
                let listed: Vec<String> = MUTABLE_STATEFUL.iter().map(|field| format!("'{field}'")).collect();
                let (last, others) = listed.split_last().unwrap_or_else(|| unreachable!("the list is not empty"));
                let message = format!(
                    "updates to statefulset spec for fields other than {} and {last} are forbidden",
                    others.join(", ")
                );
                errors.forbidden(&Path::root("spec"), message);
            }
            _ => {}
        }
    }
}

/// What of a pod of a suspended job may still change: where it runs, and what is noted about it.
const MUTABLE_SUSPENDED: [&str; 6] = [
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/affinity",
    "/spec/nodeSelector",
    "/spec/schedulingGates",
    "/spec/tolerations",
];

/// Checks what of a job stays as it was.
fn job_update(new: &Value, old: &Value, errors: &mut Errors) {
    let at = Path::root("spec");
    let (new, status, old) = (&new["spec"], &old["status"], &old["spec"]);
    let mut fixed = |field: &str, now: &Value, before: &Value| {
        if now != before {
            errors.invalid(&at.child(field), &new[field], "field is immutable");
        }
    };
    let grows_in_tandem = new["completionMode"] == "Indexed";
    if !grows_in_tandem {
        fixed("completions", &new["completions"], &old["completions"]);
    }
    fixed("selector", &new["selector"], &old["selector"]);
    let never_ran = old["suspend"] == true && status["startTime"].is_null();
    let template = |spec: &Value| {
        let mut template = spec["template"].clone();
        for path in MUTABLE_SUSPENDED.iter().filter(|_| never_ran) {
            let (parent, field) = path.rsplit_once('/').unwrap_or_default();
            if let Some(fields) = template.pointer_mut(parent).and_then(Value::as_object_mut) {
                fields.remove(field);
            }
        }
        template
    };
    fixed("template", &template(new), &template(old));
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        fixed(field, &new[field], &old[field]);
    }
    let (now, before) = (&new["completions"], &old["completions"]);
    if grows_in_tandem && now != before && now.is_i64() && *now != new["parallelism"] {
        errors.invalid(&at.child("completions"), now, "can only be modified in tandem with spec.parallelism");
    }
}

const KEEPS_ALL: &str =
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";

/// What may change in the spec of a StatefulSet.
const MUTABLE_STATEFUL: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn changes_more_than(mutable: &[&str], new: &Value, old: &Value) -> bool {
    let fixed = |spec: &Value| -> Map<String, Value> {
        let fields = spec.as_object().into_iter().flatten();
        fields.filter(|(field, _)| !mutable.contains(&field.as_str())).map(|(f, v)| (f.clone(), v.clone())).collect()
    };
    fixed(new) != fixed(old)
}

fn rolling(strategy: &mut Map<String, Value>, parameters: &[(&str, Value)]) {
    fill_text(strategy, "type", "RollingUpdate");
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
        fill(strategy, "rollingUpdate", json!({}));
        if let Some(rolling) = below(strategy, "rollingUpdate") {
            for (name, value) in parameters {
                fill(rolling, name, value.clone());
            }
        }
    }
}

fn job_defaults(spec: &mut Map<String, Value>) {
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        fill(spec, "completions", json!(1));
    }
    // A policy on failures must see pods fail before it lets others take their place.
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    if let Some(policy) = below(spec, "podFailurePolicy") {
        for rule in items(policy, "rules") {
            for condition in items(rule, "onPodConditions") {
                if condition.get("status").and_then(Value::as_str).unwrap_or_default().is_empty() {
                    condition.insert("status".to_owned(), json!("True"));
                }
            }
        }
    }
    for (name, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 })),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
    ] {
        fill(spec, name, value);
    }
}

/// A replication controller that says neither has the labels of its pods, and selects by them.
fn select_by_labels_of_pods(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
    if !is_empty(&labels) && is_empty(&object["spec"]["selector"]) {
        object["spec"]["selector"] = labels;
    }
    label_like_pods(object);
}

/// An object without labels has those of its pods.
fn label_like_pods(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let has_own = object["metadata"]["labels"].as_object().is_some_and(|labels| !labels.is_empty());
    if !has_own && labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        metadata::of_mut(object).insert("labels".to_owned(), labels);
    }
}

/// A job selects its pods by its own identity, unless the user selects by hand.
fn own_pods(object: &mut Value) {
    let uid = metadata::text(object, "uid").to_owned();
    let name = metadata::text(object, "name").to_owned();
    let has_labels_of_pods = object["metadata"]["labels"] == object["spec"]["template"]["metadata"]["labels"];
    if object["spec"]["manualSelector"] != Value::Bool(true) {
        // Labels that the user selects by stay in the selector, where the checks find them.
        let selector = &mut object["spec"]["selector"];
        if !selector.is_object() {
            *selector = json!({});
        }
        if !selector["matchLabels"].is_object() {
            selector["matchLabels"] = json!({});
        }
        selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = json!(uid);
        let own = [
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
        ];
        let template = &mut object["spec"]["template"];
        let labels = metadata::of_mut(template).entry("labels").or_insert_with(|| json!({}));
        for (key, value) in own {
            labels[key] = json!(value);
        }
    }
    if has_labels_of_pods {
        // Labels that were taken from the pods go on being theirs.
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        metadata::of_mut(object).insert("labels".to_owned(), labels);
    }
    label_like_pods(object);
}
