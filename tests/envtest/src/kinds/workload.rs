//! Kinds that carry a pod template: defaults, selectors, generation.

use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value, json};

use super::{
    daemon_set,
    pod_template::{self, below, fill, items},
    workload_checks,
};
use crate::{
    metadata,
    options::Propagation,
    strategy::{Generation, Strategy, Surroundings},
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
        if *self == Workload::DaemonSet {
            daemon_set::state(object);
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
            Workload::ReplicaSet | Workload::ReplicationController => fill(spec, "replicas", json!(1)),
            Workload::StatefulSet => {
                fill(spec, "replicas", json!(1));
                fill(spec, "revisionHistoryLimit", json!(10));
                fill(spec, "podManagementPolicy", json!("OrderedReady"));
                fill(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
                if let Some(policy) = below(spec, "persistentVolumeClaimRetentionPolicy") {
                    fill(policy, "whenDeleted", json!("Retain"));
                    fill(policy, "whenScaled", json!("Retain"));
                }
                fill(spec, "updateStrategy", json!({}));
                if let Some(strategy) = below(spec, "updateStrategy") {
                    rolling(strategy, &[("partition", json!(0))]);
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
                fill(spec, "concurrencyPolicy", json!("Allow"));
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

    fn prepare_create(&self, object: &mut Value, _around: &Surroundings<'_>) {
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

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return;
        }
        if *self == Workload::DaemonSet {
            daemon_set::keep(new, old);
        }
        if *self == Workload::Job {
            for field in ["selector", "template"] {
                if new["spec"].get(field).is_none_or(Value::is_null) {
                    new["spec"][field] = old["spec"][field].clone();
                }
            }
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        if *self == Workload::CronJob {
            workload_checks::cron_job(&object["spec"], &at, errors);
        } else {
            workload_checks::spec(*self, &object["spec"], &at, errors);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if !subresource.is_empty() {
            return;
        }
        self.check_create(new, errors);
        let selector = &new["spec"]["selector"];
        if *self != Workload::ReplicationController && *selector != old["spec"]["selector"] {
            errors.invalid(&Path::root("spec").child("selector"), selector, "field is immutable");
        }
        if *self == Workload::Job && new["spec"]["template"] != old["spec"]["template"] {
            errors.invalid(&Path::root("spec").child("template"), &new["spec"]["template"], "field is immutable");
        }
    }
}

fn rolling(strategy: &mut Map<String, Value>, parameters: &[(&str, Value)]) {
    fill(strategy, "type", json!("RollingUpdate"));
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
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
    ] {
        fill(spec, name, value);
    }
}

/// A job selects its pods by its own identity, unless the user selects by hand.
fn own_pods(object: &mut Value) {
    let uid = metadata::text(object, "uid").to_owned();
    let name = metadata::text(object, "name").to_owned();
    if object["spec"]["manualSelector"] != Value::Bool(true) {
        object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
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
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if object["metadata"]["labels"].as_object().is_none_or(Map::is_empty) && labels.is_object() {
        metadata::of_mut(object).insert("labels".to_owned(), labels);
    }
}
