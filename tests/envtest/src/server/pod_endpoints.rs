//! Binding and eviction.

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use super::{ApiServer, Outcome, identity::storage_key, subject, subresource::done, write::Write};
use crate::{
    encode, environment, metadata,
    options::DeleteOptions,
    registry::ResourceDef,
    request::Target,
    selector,
    status::{ApiError, Subject},
};

impl ApiServer {
    /// Assigns a pod to a node, once.
    pub(super) fn bind(&mut self, write: &Write) -> Result<Outcome, ApiError> {
        let binding = &write.object;
        check_binding(binding)?;
        let definition = &write.definition;
        let mut pod = self.parent(definition, &write.target)?;
        check_uid(definition, &write.target, metadata::text(binding, "uid"), &pod)?;
        let name = write.target.name.as_str();
        let about = Subject { group: "", resource: "pods/binding", name };
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let is_gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        if metadata::is_deleting(&pod) {
            return Err(ApiError::conflict(
                about,
                &format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        if !node.is_empty() {
            return Err(ApiError::conflict(about, &format!("pod {name} is already assigned to node {node:?}")));
        }
        if is_gated {
            return Err(ApiError::conflict(about, &format!("pod {name} has non-empty .spec.schedulingGates")));
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].clone();
        if let Some(added) = binding["metadata"]["annotations"].as_object() {
            let annotations = metadata::of_mut(&mut pod).entry("annotations").or_insert_with(|| json!({}));
            for (key, value) in added {
                annotations[key] = value.clone();
            }
        }
        let now = environment::time_text(self.environment.now());
        set_condition(
            &mut pod,
            &json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
        );
        if !write.dry_run {
            let key = definition.key(&write.target.namespace, name);
            self.put_object(definition, &key, &mut pod);
        }
        Ok(done(write.representation.format))
    }

    /// Deletes a pod if its disruption budget allows.
    pub(super) fn evict(&mut self, write: &Write) -> Result<Outcome, ApiError> {
        let definition = write.definition.clone();
        let mut pod = self.parent(&definition, &write.target)?;
        let options = DeleteOptions::from_value(&write.object["deleteOptions"])?;
        let dry_run = write.dry_run || options.dry_run;
        let key = definition.key(&write.target.namespace, &write.target.name);
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        let needs_budget = !matches!(phase, "Succeeded" | "Failed" | "Pending") && !metadata::is_deleting(&pod);
        if needs_budget {
            self.take_from_budget(&write.target, &pod, dry_run)?;
        }
        super::delete::check_preconditions(&definition, &write.target.name, &options, &pod)?;
        if !dry_run && !metadata::is_deleting(&pod) {
            let now = environment::time_text(self.environment.now());
            set_condition(
                &mut pod,
                &json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
                }),
            );
            self.put_object(&definition, &key, &mut pod);
        }
        let options = DeleteOptions { dry_run, ..options };
        let target = Target { subresource: String::new(), ..write.target.clone() };
        let delete = self.delete_write(&write.request, target, definition, options.clone())?;
        self.delete_admitted(delete, &options)?;
        Ok(done(write.representation.format))
    }

    fn take_from_budget(&mut self, target: &Target, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
        let Some(definition) = self.registry.any_version("policy", "poddisruptionbudgets").cloned() else {
            return Ok(());
        };
        let prefix = definition.key_prefix(&target.namespace);
        let labels = &pod["metadata"]["labels"];
        let mut matching: Vec<Value> = self
            .store
            .collection(definition.collection)
            .range(&prefix, "")
            .map(|(_, record)| encode::value(&definition, record))
            .filter(|budget| {
                selector::of_object(&budget["spec"]["selector"])
                    .is_some_and(|selector| selector.selects(|key| labels.get(key).and_then(Value::as_str)))
            })
            .collect();
        if matching.len() > 1 {
            return Err(ApiError::unclassified(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        let Some(mut budget) = matching.pop() else { return Ok(()) };
        let name = metadata::text(&budget, "name").to_owned();
        let generation = budget["metadata"]["generation"].as_i64().unwrap_or_default();
        let status = &budget["status"];
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        if number("observedGeneration") < generation {
            let why = format!("The disruption budget {name} is still being processed by the server.");
            return Err(blocked(&why, Some(10)));
        }
        if number("disruptionsAllowed") < 0 {
            return Err(blocked("pdb disruptions allowed is negative", None));
        }
        // A pod that is not ready may go when enough others are healthy, even without allowance.
        let is_ready = pod["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let healthy_enough = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if !is_ready && (always || healthy_enough) {
            return Ok(());
        }
        if number("disruptionsAllowed") == 0 {
            let (wanted, current) = (number("desiredHealthy"), number("currentHealthy"));
            let why = format!("The disruption budget {name} needs {wanted} healthy pods and has {current} currently");
            return Err(blocked(&why, None));
        }
        let left = number("disruptionsAllowed") - 1;
        let now = environment::time_text(self.environment.now());
        budget["status"]["disruptionsAllowed"] = json!(left);
        budget["status"]["disruptedPods"][&target.name] = json!(now);
        if left == 0 {
            set_condition(
                &mut budget,
                &json!({
                    "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                    "lastTransitionTime": now, "observedGeneration": generation,
                }),
            );
        }
        if !dry_run {
            let key = definition.key(&target.namespace, &name);
            self.put_object(&definition, &key, &mut budget);
        }
        Ok(())
    }
}

fn blocked(why: &str, retry_after_seconds: Option<u32>) -> ApiError {
    let mut error = ApiError::too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.");
    error.detail("causes", json!([{"reason": "DisruptionBudget", "message": why}]));
    if let Some(seconds) = retry_after_seconds {
        error.detail("retryAfterSeconds", json!(seconds));
    }
    error
}

fn check_binding(binding: &Value) -> Result<(), ApiError> {
    let mut errors = Errors::new();
    let at = Path::root("target");
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.not_supported(&at.child("kind"), kind, &["Node", "<empty>"]);
    }
    if binding["target"]["name"].as_str().unwrap_or_default().is_empty() {
        errors.required(&at.child("name"), "");
    }
    // The real server gives these mistakes without a reason.
    if errors.is_empty() { Ok(()) } else { Err(ApiError::unclassified(errors.to_string())) }
}

fn check_uid(definition: &ResourceDef, target: &Target, asked: &str, pod: &Value) -> Result<(), ApiError> {
    let uid = metadata::text(pod, "uid");
    if asked.is_empty() || asked == uid {
        return Ok(());
    }
    let key = storage_key(definition, target);
    Err(ApiError::conflict(
        subject(definition, &target.name),
        &format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}"
        ),
    ))
}

/// Replaces the condition of the same type, or adds it.
fn set_condition(object: &mut Value, condition: &Value) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => known.clone_from(condition),
        None => conditions.push(condition.clone()),
    }
    object["status"]["conditions"] = Value::Array(conditions);
}
