//! Pods: defaults, quality of service, what an update may change, graceful deletion.

use koord_resource::Quantity;
use koord_scheduling::{Bounds, kubernetes_qos};
use koord_schema::field::Errors;
use serde_json::{Map, Value, json};

use super::{
    pod_checks,
    pod_template::{self, below, fill, items},
    warnings,
};
use crate::strategy::{Generation, Strategy, WriteContext};

pub(super) struct Pods;

impl Strategy for Pods {
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = warnings::host_name(object, "the Pod's hostname").into_iter().collect();
        warnings.extend(warnings::of_pod(&object["spec"], "spec"));
        warnings
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        pod_template::set_defaults(&mut object["spec"]);
        let Some(spec) = object["spec"].as_object_mut() else { return };
        fill(spec, "enableServiceLinks", json!(true));
        for list in ["containers", "initContainers"] {
            for container in items(spec, list) {
                requests_from_limits(container);
            }
        }
        pod_checks::resources::complete(&mut object["spec"]);
    }

    fn prepare_create(&self, object: &mut Value, around: &WriteContext<'_>) {
        pod_checks::scheduling::merge_label_keys(object);
        drop_restart_rules(&mut object["spec"]);
        let quality = quality_of_service(&object["spec"]);
        object["status"] = json!({"phase": "Pending", "qosClass": quality});
        let is_gated = object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        if is_gated {
            object["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null, "lastTransitionTime": around.now,
            }]);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if subresource == "status" {
            new["spec"] = old["spec"].clone();
            // A status writer may neither begin a deletion nor change owners.
            for field in ["ownerReferences", "deletionTimestamp"] {
                let metadata = crate::metadata::of_mut(new);
                match old["metadata"].get(field) {
                    Some(value) => metadata.insert(field.to_owned(), value.clone()),
                    None => metadata.remove(field),
                };
            }
            if new["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
                new["status"]["qosClass"] = old["status"]["qosClass"].clone();
            }
        } else {
            new["status"] = old["status"].clone();
            // Whoever knows only the old field names leaves the scheduling gates of bound pods alone.
            if subresource == "ephemeralcontainers" {
                let containers = new["spec"]["ephemeralContainers"].clone();
                new["spec"] = old["spec"].clone();
                if containers.is_array() {
                    new["spec"]["ephemeralContainers"] = containers;
                }
            }
            if subresource == "resize" {
                keep_all_but_resources(new, old);
            }
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        pod_checks::new_pod(object, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        match subresource {
            "status" => pod_checks::status(new, old, errors),
            "ephemeralcontainers" => pod_checks::ephemeral(new, old, errors),
            "resize" => pod_checks::resize(new, old, errors),
            _ => pod_checks::update(new, old, errors),
        }
    }

    fn grace_seconds(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        let spec = &object["spec"];
        let mut seconds = asked.or_else(|| spec["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30);
        let is_bound = spec["nodeName"].as_str().is_some_and(|name| !name.is_empty());
        let is_done = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !is_bound || is_done {
            seconds = 0;
        }
        Some(if seconds < 0 { 1 } else { seconds })
    }
}

/// Drops what kube-apiserver ignores while its gate `ContainerRestartRules` is off: restart policies of containers, but for
/// that of a sidecar.
fn drop_restart_rules(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else { return };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(spec, list) {
            let policy = container.get("restartPolicy").and_then(Value::as_str);
            if list != "initContainers" || policy != Some("Always") {
                container.remove("restartPolicy");
            }
            container.remove("restartPolicyRules");
        }
    }
}

/// `resize` changes nothing but resources.
fn keep_all_but_resources(new: &mut Value, old: &Value) {
    let mut spec = old["spec"].clone();
    for list in ["containers", "initContainers"] {
        let asked = new["spec"][list].as_array().cloned().unwrap_or_default();
        let Some(spec) = spec.as_object_mut() else { continue };
        for container in items(spec, list) {
            let name = container.get("name").cloned().unwrap_or_default();
            if let Some(asked) = asked.iter().find(|asked| asked["name"] == name) {
                for field in ["resources", "resizePolicy"] {
                    match asked.get(field) {
                        Some(value) => container.insert(field.to_owned(), value.clone()),
                        None => container.remove(field),
                    };
                }
            }
        }
    }
    let managed = new["metadata"]["managedFields"].clone();
    new["metadata"] = old["metadata"].clone();
    if managed.is_array() {
        new["metadata"]["managedFields"] = managed;
    }
    new["spec"] = spec;
}

/// A limit without a request is also the request.
fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = below(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    fill(resources, "requests", json!({}));
    if let Some(requests) = below(resources, "requests") {
        for (name, limit) in limits {
            fill(requests, &name, limit);
        }
    }
}

/// Guaranteed when every container's cpu and memory limits are set and equal its requests, `BestEffort` when nothing is
/// set. What the pod as a whole has counts instead, where it has any.
pub(super) fn quality_of_service(spec: &Value) -> &'static str {
    let of_pod = spec["resources"].is_object().then_some(&spec["resources"]);
    let of_containers = ["containers", "initContainers"].into_iter().filter_map(|list| spec[list].as_array()).flatten();
    let resources: Vec<&Value> = match of_pod {
        Some(resources) => vec![resources],
        None => of_containers.map(|container| &container["resources"]).collect(),
    };
    let read = |resources: &Value, which: &str, name: &str| -> Option<Quantity> {
        resources[which][name].as_str()?.parse().ok()
    };
    let amounts: Vec<[[Option<Quantity>; 2]; 2]> = resources
        .iter()
        .map(|resources| ["cpu", "memory"].map(|name| ["requests", "limits"].map(|which| read(resources, which, name))))
        .collect();
    kubernetes_qos(amounts.iter().map(|amounts| {
        amounts.each_ref().map(|[request, limit]| Bounds { request: request.as_ref(), limit: limit.as_ref() })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sidecars_have_a_restart_policy_of_their_own() {
        let mut spec = json!({
            "initContainers": [{"restartPolicy": "Always"}, {"restartPolicy": "Never", "restartPolicyRules": []}],
            "containers": [{"restartPolicy": "Never"}],
        });
        drop_restart_rules(&mut spec);
        assert_eq!(spec, json!({"initContainers": [{"restartPolicy": "Always"}, {}], "containers": [{}]}));
    }

    #[test]
    fn quality_follows_requests_and_limits() {
        let pod = |resources: Value| json!({"containers": [{"resources": resources}]});
        assert_eq!(quality_of_service(&pod(json!({}))), "BestEffort");
        assert_eq!(quality_of_service(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        let nothing_for_the_pod = json!({"resources": {}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
        assert_eq!(quality_of_service(&nothing_for_the_pod), "BestEffort");
        let all = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality_of_service(&pod(json!({"requests": all, "limits": all}))), "Guaranteed");
        let nothing_asked = json!({"cpu": "0", "memory": "1Gi"});
        assert_eq!(quality_of_service(&pod(json!({"requests": nothing_asked, "limits": all}))), "Burstable");
    }

    #[test]
    fn a_bound_pod_takes_its_time_to_end() {
        let pod = |node: &str, phase: &str| json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": 7}, "status": {"phase": phase}});
        assert_eq!(Pods.grace_seconds(&pod("n", "Running"), None), Some(7));
        assert_eq!(Pods.grace_seconds(&pod("", "Pending"), Some(5)), Some(0));
        assert_eq!(Pods.grace_seconds(&pod("n", "Succeeded"), None), Some(0));
    }
}
