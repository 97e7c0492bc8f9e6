//! What of a pod may change, through which endpoint.

use std::net::IpAddr;

use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use super::{containers, list, resources, scheduling, text};
use crate::addresses;

const FORBIDDEN_UPDATE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a change of a pod through its main endpoint.
pub(in crate::kinds) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    let (now, before) = (&new["spec"], &old["spec"]);
    super::pod(new, errors);
    annotations(new, old, errors);
    for field in ["containers", "initContainers"] {
        let at = spec_at.child(field);
        if list(now, field).count() != list(before, field).count() {
            errors.forbidden(&at, "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in list(now, field).enumerate() {
            if text(container, "image").is_empty() {
                errors.required(&at.index(index).child("image"), "");
            }
            containers::padded_image(container, &at.index(index), errors);
        }
    }
    let deadline_at = spec_at.child("activeDeadlineSeconds");
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    match (deadline(now), deadline(before)) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            return errors.invalid(&deadline_at, seconds, "must be between 0 and 2147483647, inclusive");
        }
        (Some(now), Some(before)) if now > before => {
            return errors.invalid(&deadline_at, now, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            errors.invalid(&deadline_at, Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    tolerations(now, before, &spec_at, errors);
    let gates_at = spec_at.child("schedulingGates");
    for (index, gate) in list(now, "schedulingGates").enumerate() {
        if !list(before, "schedulingGates").any(|known| known["name"] == gate["name"]) {
            let message = format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, "name"));
            errors.forbidden(&gates_at.index(index).child("name"), message);
        }
    }
    let mut allowed = now.clone();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        keep(&mut allowed, before, field);
    }
    for field in ["containers", "initContainers"] {
        let containers = allowed.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, known) in containers.zip(list(before, field)) {
            keep(container, known, "image");
        }
    }
    if before["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
        && now["terminationGracePeriodSeconds"].as_i64() == Some(1)
    {
        keep(&mut allowed, before, "terminationGracePeriodSeconds");
    }
    // A gated pod may still be steered to fewer nodes.
    if list(before, "schedulingGates").next().is_some() {
        scheduling::only_narrows(now, before, &spec_at, errors);
        keep(&mut allowed, before, "nodeSelector");
        keep_node_affinity(&mut allowed, before);
    }
    if allowed != *before {
        errors.forbidden(&spec_at, FORBIDDEN_UPDATE);
    }
}

/// Checks the annotations that stay as they were.
fn annotations(new: &Value, old: &Value, errors: &mut Errors) {
    let meta_at = Path::root("metadata");
    let at = meta_at.child("annotations");
    let (now, before) = (&new["metadata"]["annotations"], &old["metadata"]["annotations"]);
    let word = |key: &str| match key {
        super::MIRROR => Some("mirror pod annotation"),
        _ if key.starts_with(super::security::APP_ARMOR_CONTAINER) => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, _) in before.as_object().into_iter().flatten().filter(|(key, value)| now.get(*key) != Some(value)) {
        if let Some(word) = word(key) {
            errors.forbidden(&at.key(key), format!("may not remove or update {word}"));
        }
    }
    for (key, _) in now.as_object().into_iter().flatten().filter(|(key, _)| before.get(*key).is_none()) {
        if let Some(word) = word(key) {
            errors.forbidden(&at.key(key), format!("may not add {word}"));
        }
    }
    super::annotations(now, &new["spec"], &at, errors);
}

fn keep(fields: &mut Value, before: &Value, name: &str) {
    let Some(fields) = fields.as_object_mut() else { return };
    match before.get(name) {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

fn keep_node_affinity(spec: &mut Value, before: &Value) {
    let known = &before["affinity"]["nodeAffinity"];
    if !spec["affinity"].is_object() {
        if known.is_object() {
            spec["affinity"] = serde_json::json!({"nodeAffinity": known});
        }
        return;
    }
    keep(&mut spec["affinity"], &before["affinity"], "nodeAffinity");
    if !before["affinity"].is_object() && spec["affinity"].as_object().is_some_and(serde_json::Map::is_empty) {
        keep(spec, before, "affinity");
    }
}

fn tolerations(now: &Value, before: &Value, at: &Path<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let current: Vec<Value> = list(now, "tolerations").map(without_seconds).collect();
    let at = at.child("tolerations");
    if list(before, "tolerations").any(|toleration| !current.contains(&without_seconds(toleration))) {
        return errors.forbidden(&at, "existing toleration can not be modified except its tolerationSeconds");
    }
    scheduling::tolerations(now, &at, errors);
}

/// Checks a change of a pod's status.
pub(in crate::kinds) fn status(new: &Value, old: &Value, errors: &mut Errors) {
    const KNOWN_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
    const NOT_NEGATIVE: &str = "must be a non-negative integer";
    let at = Path::root("status");
    let (now, before) = (&new["status"], &old["status"]);
    annotations(new, old, errors);
    let conditions_at = at.child("conditions");
    for (index, condition) in list(now, "conditions").enumerate() {
        let at = conditions_at.index(index);
        if let Some(number) = condition["observedGeneration"].as_i64().filter(|number| *number < 0) {
            errors.invalid(&at.child("observedGeneration"), number, NOT_NEGATIVE);
        }
        let kind = text(condition, "type");
        if !KNOWN_CONDITIONS.contains(&kind) {
            for message in names::qualified_name(kind) {
                // QUIRK: the real server's path ends with a capital.
                errors.invalid(&at.child("Type"), kind, message);
            }
        }
    }
    let nominated = text(now, "nominatedNodeName");
    if !nominated.is_empty() && nominated != text(before, "nominatedNodeName") {
        let at = at.child("nominatedNodeName");
        for message in names::dns1123_subdomain(nominated) {
            errors.invalid(&at, nominated, message);
        }
        if !text(&old["spec"], "nodeName").is_empty() {
            errors.forbidden(&at, "may not be set on pods that are already bound to a node");
        }
    }
    if let Some(number) = now["observedGeneration"].as_i64().filter(|number| *number < 0) {
        errors.invalid(&at.child("observedGeneration"), number, NOT_NEGATIVE);
    }
    if now["qosClass"] != before["qosClass"] && before["qosClass"].is_string() {
        errors.invalid(&at.child("qosClass"), &now["qosClass"], "field is immutable");
    }
    let policy = text(&old["spec"], "restartPolicy");
    if policy != "Always" {
        let statuses_at = at.child("containerStatuses");
        for (index, known) in list(before, "containerStatuses").enumerate() {
            let Some(terminated) = known["state"]["terminated"].as_object() else { continue };
            let failed = terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default() != 0;
            if policy == "OnFailure" && failed {
                continue;
            }
            let current = list(now, "containerStatuses").find(|status| status["name"] == known["name"]);
            if current.is_some_and(|status| status["state"]["terminated"].is_null()) {
                let message = "may not be transitioned to non-terminated state";
                errors.forbidden(&statuses_at.index(index).child("state"), message);
            }
        }
    }
    for field in ["podIPs", "hostIPs"] {
        addresses(now, field, &at.child(field), errors);
    }
}

/// Checks the addresses of a pod or of its node: at most one of each family.
fn addresses(status: &Value, field: &str, at: &Path<'_>, errors: &mut Errors) {
    let listed: Vec<&str> = list(status, field).map(|address| text(address, "ip")).collect();
    if let Some(first) = listed.first().filter(|first| field == "hostIPs" && **first != text(status, "hostIP")) {
        errors.invalid(&at.index(0).child("ip"), first, "must be equal to `hostIP`");
    }
    for (index, address) in listed.iter().enumerate() {
        super::check_ip(address, &at.index(index), errors);
    }
    if listed.len() > 1 {
        let parsed: Vec<IpAddr> = listed.iter().filter_map(|address| addresses::parse_ip(address)).collect();
        let has_both = parsed.iter().any(IpAddr::is_ipv4) && parsed.iter().any(IpAddr::is_ipv6);
        if !has_both || listed.len() > 2 {
            let shown: Vec<String> = listed.iter().map(|address| format!(r#"{{"IP":{address:?}}}"#)).collect();
            let message = "may specify no more than one IP for each IP family";
            super::invalid_as(at, format!("[{}]", shown.join(",")), message, errors);
        }
    }
}

/// Checks a change of a pod's ephemeral containers.
pub(in crate::kinds) fn ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    let at = spec_at.child("ephemeralContainers");
    super::pod(new, errors);
    for known in list(&old["spec"], "ephemeralContainers") {
        let name = text(known, "name");
        match list(&new["spec"], "ephemeralContainers").find(|container| container["name"] == known["name"]) {
            None => errors.forbidden(&at, format!("existing ephemeral containers {name:?} may not be removed\n")),
            Some(container) if container != known => {
                errors.forbidden(&at, format!("existing ephemeral containers {name:?} may not be changed\n"));
            }
            Some(_) => {}
        }
    }
}

/// Checks a change of a pod's resources.
pub(in crate::kinds) fn resize(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    super::pod(new, errors);
    let quality = text(&old["status"], "qosClass");
    if crate::kinds::pod::quality_of_service(&new["spec"]) != quality {
        errors.invalid(&spec_at, quality, "Pod QOS Class may not change as a result of resizing");
    }
    for field in ["initContainers", "containers"] {
        let list_at = spec_at.child(field);
        for (index, (now, before)) in list(&new["spec"], field).zip(list(&old["spec"], field)).enumerate() {
            if field == "initContainers" && before["restartPolicy"] != "Always" {
                continue;
            }
            let at = list_at.index(index);
            let resources_at = at.child("resources");
            for side in ["requests", "limits"] {
                let (now, before) = (&now["resources"][side], &before["resources"][side]);
                if before.as_object().into_iter().flatten().any(|(name, _)| now.get(name).is_none()) {
                    errors.forbidden(&resources_at.child(side), format!("resource {side} cannot be removed"));
                }
            }
        }
    }
    for (now, before) in list(&new["spec"], "containers").zip(list(&old["spec"], "containers")) {
        if !resources::differ_in_cpu_and_memory_only(now, before) {
            errors.forbidden(&spec_at, "only cpu and memory resources are mutable");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    fn refused(new: &Value, old: &Value) -> String {
        let mut errors = Errors::new();
        update(&pod(new), &pod(old), &mut errors);
        errors.to_string()
    }

    fn spec(change: &Value) -> Value {
        let mut spec = json!({
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}],
        });
        for (field, value) in change.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        spec
    }

    #[test]
    fn images_change_and_tolerations_are_added() {
        let old = spec(&json!({"tolerations": [{"operator": "Exists"}]}));
        let mut new = spec(&json!({"tolerations": [{"operator": "Exists"}, {"key": "k", "operator": "Exists"}]}));
        new["containers"][0]["image"] = json!("i:2");
        assert_eq!(refused(&new, &old), "[]");
        assert!(refused(&spec(&json!({})), &old).contains("existing toleration can not be modified"));
    }

    #[test]
    fn a_refused_update_says_what_may_change_and_shows_no_go_struct() {
        let old = spec(&json!({}));
        let new = spec(&json!({"nodeSelector": {"a": "b"}}));
        assert_eq!(refused(&new, &old), format!("spec: Forbidden: {FORBIDDEN_UPDATE}"));
    }

    #[test]
    fn what_would_be_refused_in_a_new_pod_is_refused_in_a_changed_one() {
        let old = spec(&json!({}));
        let new = spec(&json!({"hostname": "A"}));
        assert!(refused(&new, &old).starts_with("[spec.hostname: Invalid value: \"A\""), "{}", refused(&new, &old));
    }
}
