//! What may stand in a pod's spec and status, and what an update may change.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::Value;

/// Checks the spec of a new pod.
pub(super) fn spec(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let volumes = volume_names(spec, at, errors);
    let mut seen = Vec::new();
    if list(spec, "containers").next().is_none() {
        errors.required(&at.child("containers"), "");
    }
    for field in ["containers", "initContainers"] {
        let at = at.child(field);
        for (index, container) in list(spec, field).enumerate() {
            let at = at.index(index);
            check_container(container, &at, &volumes, errors);
            let name = container["name"].as_str().unwrap_or_default();
            if !name.is_empty() && seen.contains(&name) {
                errors.duplicate(&at.child("name"), name);
            }
            seen.push(name);
        }
    }
    check_host_ports(spec, &at.child("containers"), errors);
    one_of(spec, "restartPolicy", at, &["Always", "OnFailure", "Never"], errors);
    one_of(spec, "dnsPolicy", at, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    koord_schema::object_meta::validate_labels(&spec["nodeSelector"], &at.child("nodeSelector"), errors);
    for field in ["hostname", "subdomain"] {
        label(spec, field, at, errors);
    }
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let value = spec[field].as_str().unwrap_or_default();
        if !value.is_empty() {
            for message in names::dns1123_subdomain(value) {
                errors.invalid(&at.child(field), value, message);
            }
        }
    }
    check_tolerations(spec, at, errors);
    if let Some(seconds) =
        spec["activeDeadlineSeconds"].as_i64().filter(|seconds| !(1..=2_147_483_647).contains(seconds))
    {
        errors.invalid(&at.child("activeDeadlineSeconds"), seconds, "must be between 1 and 2147483647, inclusive");
    }
    check_spread(spec, at, errors);
    let gates_at = at.child("schedulingGates");
    for (index, gate) in list(spec, "schedulingGates").enumerate() {
        let at = gates_at.index(index);
        let name = gate["name"].as_str().unwrap_or_default();
        for message in names::qualified_name(name) {
            errors.invalid(&at.child("name"), name, message);
        }
        if list(spec, "schedulingGates").take(index).any(|earlier| earlier["name"] == gate["name"]) {
            errors.duplicate(&at.child("name"), name);
        }
    }
}

fn list<'a>(fields: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    fields[name].as_array().into_iter().flatten()
}

fn label(fields: &Value, name: &str, at: &Path<'_>, errors: &mut Errors) {
    let value = fields[name].as_str().unwrap_or_default();
    if !value.is_empty() {
        for message in names::dns1123_label(value) {
            errors.invalid(&at.child(name), value, message);
        }
    }
}

fn one_of(fields: &Value, name: &str, at: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    match fields[name].as_str() {
        None | Some("") => errors.required(&at.child(name), ""),
        Some(value) if !allowed.contains(&value) => errors.not_supported(&at.child(name), value, allowed),
        Some(_) => {}
    }
}

fn volume_names<'a>(spec: &'a Value, at: &Path<'_>, errors: &mut Errors) -> Vec<&'a str> {
    let at = at.child("volumes");
    let mut found = Vec::new();
    for (index, volume) in list(spec, "volumes").enumerate() {
        let at = at.index(index);
        let name = volume["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        } else {
            for message in names::dns1123_label(name) {
                errors.invalid(&at.child("name"), name, message);
            }
        }
        if found.contains(&name) {
            errors.duplicate(&at.child("name"), name);
        }
        found.push(name);
    }
    found
}

/// No two containers take the same port of their node.
fn check_host_ports(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut taken = Vec::new();
    for (index, container) in list(spec, "containers").enumerate() {
        let at = at.index(index);
        let ports_at = at.child("ports");
        for (index, port) in list(container, "ports").enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let part = |name: &str| port[name].as_str().unwrap_or_default();
            let place = format!("{}/{}/{number}", part("protocol"), part("hostIP"));
            if taken.contains(&place) {
                errors.duplicate(&ports_at.index(index).child("hostPort"), &place);
            }
            taken.push(place);
        }
    }
}

fn check_container(container: &Value, at: &Path<'_>, volumes: &[&str], errors: &mut Errors) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.required(&at.child("name"), "");
    } else {
        for message in names::dns1123_label(name) {
            errors.invalid(&at.child("name"), name, message);
        }
    }
    if container["image"].as_str().unwrap_or_default().is_empty() {
        errors.required(&at.child("image"), "");
    }
    let ports_at = at.child("ports");
    for (index, port) in list(container, "ports").enumerate() {
        let at = ports_at.index(index);
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => errors.required(&at.child("containerPort"), ""),
            number => check_port(number, &at.child("containerPort"), errors),
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) {
            check_port(number, &at.child("hostPort"), errors);
        }
        one_of(port, "protocol", &at, &["SCTP", "TCP", "UDP"], errors);
    }
    let env_at = at.child("env");
    for (index, variable) in list(container, "env").enumerate() {
        if variable["name"].as_str().unwrap_or_default().is_empty() {
            errors.required(&env_at.index(index).child("name"), "");
        }
    }
    let mounts_at = at.child("volumeMounts");
    for (index, mount) in list(container, "volumeMounts").enumerate() {
        let at = mounts_at.index(index);
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        }
        if !volumes.contains(&name) {
            errors.add(FieldError {
                mistake: Mistake::NotFound,
                field: at.child("name").to_string(),
                value: format!("{name:?}"),
                detail: String::new(),
            });
        }
        if mount["mountPath"].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child("mountPath"), "");
        }
    }
    one_of(container, "imagePullPolicy", at, &["Always", "IfNotPresent", "Never"], errors);
    check_resources(&container["resources"], &at.child("resources"), errors);
}

fn check_port(number: i64, at: &Path<'_>, errors: &mut Errors) {
    if !(1..=65535).contains(&number) {
        errors.invalid(at, number, "must be between 1 and 65535, inclusive");
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Checks requests and limits.
pub(super) fn check_resources(resources: &Value, at: &Path<'_>, errors: &mut Errors) {
    let quantity = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let (limits_at, requests_at) = (at.child("limits"), at.child("requests"));
    for (name, value) in resources["limits"].as_object().into_iter().flatten() {
        check_quantity(name, value, &limits_at.key(name), errors);
    }
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        check_quantity(name, value, &requests_at.key(name), errors);
        let Some(request) = quantity(value) else { continue };
        let limit = quantity(&resources["limits"][name]);
        match limit {
            Some(limit) if !is_native(name) && request != limit => {
                errors.invalid(&requests_at, value, format!("must be equal to {name} limit of {limit}"));
            }
            Some(limit) if request > limit => {
                errors.invalid(&requests_at, value, format!("must be less than or equal to {name} limit of {limit}"));
            }
            None if !is_native(name) => {
                errors.required(&limits_at, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
}

fn check_quantity(name: &str, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    for message in names::qualified_name(name) {
        errors.invalid(at, name, message);
    }
    let Some(quantity) = value.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { return };
    if quantity.is_negative() {
        errors.invalid(at, value, "must be greater than or equal to 0");
    }
    let is_whole = quantity.milli_value() % 1000 == 0;
    if !is_native(name) && !is_whole {
        errors.invalid(at, value, "must be an integer");
    }
}

fn check_tolerations(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let at = at.child("tolerations");
    for (index, toleration) in list(spec, "tolerations").enumerate() {
        let at = at.index(index);
        let part = |name: &str| toleration[name].as_str().unwrap_or_default();
        let (key, operator, value, effect) = (part("key"), part("operator"), part("value"), part("effect"));
        if !key.is_empty() {
            for message in names::qualified_name(key) {
                errors.invalid(&at.child("key"), key, message);
            }
        }
        if key.is_empty() && operator != "Exists" {
            let message = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&at.child("operator"), operator, message);
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            errors.invalid(&at.child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator {
            "" | "Equal" => {
                for message in names::label_value(value) {
                    errors.invalid(&at.child("operator"), value, message);
                }
            }
            "Exists" if !value.is_empty() => {
                errors.invalid(&at.child("operator"), value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            other => errors.not_supported(&at.child("operator"), other, &["Equal", "Exists"]),
        }
        if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            errors.not_supported(&at.child("effect"), effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

fn check_spread(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let at = at.child("topologySpreadConstraints");
    for (index, constraint) in list(spec, "topologySpreadConstraints").enumerate() {
        let at = at.index(index);
        let skew = constraint["maxSkew"].as_i64().unwrap_or_default();
        if skew <= 0 {
            errors.invalid(&at.child("maxSkew"), skew, "must be greater than zero");
        }
        if constraint["topologyKey"].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child("topologyKey"), "can not be empty");
        }
        let when = constraint["whenUnsatisfiable"].as_str().unwrap_or_default();
        if !matches!(when, "DoNotSchedule" | "ScheduleAnyway") {
            errors.not_supported(&at.child("whenUnsatisfiable"), when, &["DoNotSchedule", "ScheduleAnyway"]);
        }
    }
}

const FORBIDDEN_UPDATE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a change of a pod through its main endpoint.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    let (now, before) = (&new["spec"], &old["spec"]);
    for field in ["containers", "initContainers"] {
        let at = spec_at.child(field);
        if list(now, field).count() != list(before, field).count() {
            errors.forbidden(&at, "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in list(now, field).enumerate() {
            if container["image"].as_str().unwrap_or_default().is_empty() {
                errors.required(&at.index(index).child("image"), "");
            }
        }
    }
    let gates_at = spec_at.child("schedulingGates");
    for (index, gate) in list(now, "schedulingGates").enumerate() {
        if !list(before, "schedulingGates").any(|known| known["name"] == gate["name"]) {
            let name = gate["name"].as_str().unwrap_or_default();
            let message = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&gates_at.index(index).child("name"), message);
        }
    }
    check_added_tolerations(now, before, &spec_at, errors);
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    match (deadline(now), deadline(before)) {
        (Some(now), Some(before)) if now > before => {
            let message = format!("must be less than or equal to previous value of {before}");
            errors.invalid(&spec_at.child("activeDeadlineSeconds"), now, message);
        }
        (None, Some(_)) => {
            errors.invalid(
                &spec_at.child("activeDeadlineSeconds"),
                Value::Null,
                "must not update from a positive integer to nil value",
            );
        }
        _ => {}
    }
    if !errors.is_empty() {
        return;
    }
    let is_gated = list(before, "schedulingGates").next().is_some();
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
    // A gated pod may still be steered to fewer nodes.
    if is_gated && selector_only_narrows(&before["nodeSelector"], &now["nodeSelector"]) {
        keep(&mut allowed, before, "nodeSelector");
    }
    if before["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
        && now["terminationGracePeriodSeconds"].as_i64() == Some(1)
    {
        keep(&mut allowed, before, "terminationGracePeriodSeconds");
    }
    if allowed != *before {
        errors.forbidden(&spec_at, FORBIDDEN_UPDATE);
    }
}

fn selector_only_narrows(before: &Value, now: &Value) -> bool {
    before.as_object().into_iter().flatten().all(|(key, value)| now.get(key) == Some(value))
}

fn keep(fields: &mut Value, before: &Value, name: &str) {
    let Some(fields) = fields.as_object_mut() else { return };
    match before.get(name) {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

fn check_added_tolerations(now: &Value, before: &Value, at: &Path<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut()
            && fields.get("effect").and_then(Value::as_str) == Some("NoExecute")
        {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let current: Vec<Value> = list(now, "tolerations").map(without_seconds).collect();
    let lost = list(before, "tolerations").any(|toleration| !current.contains(&without_seconds(toleration)));
    if lost {
        errors.forbidden(
            &at.child("tolerations"),
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
    check_tolerations(now, at, errors);
}

/// Checks a change of a pod's status.
pub(super) fn status(new: &Value, old: &Value, errors: &mut Errors) {
    let at = Path::root("status");
    let (now, before) = (&new["status"], &old["status"]);
    if now["qosClass"] != before["qosClass"] && before["qosClass"].is_string() {
        errors.invalid(&at.child("qosClass"), &now["qosClass"], "field is immutable");
    }
    let nominated = now["nominatedNodeName"].as_str().unwrap_or_default();
    if !nominated.is_empty() {
        for message in names::dns1123_subdomain(nominated) {
            errors.invalid(&at.child("nominatedNodeName"), nominated, message);
        }
    }
    let policy = old["spec"]["restartPolicy"].as_str().unwrap_or_default();
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
                errors.forbidden(
                    &statuses_at.index(index).child("state"),
                    "may not be transitioned to non-terminated state",
                );
            }
        }
    }
}

/// Checks a change of a pod's ephemeral containers.
pub(super) fn ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    let at = spec_at.child("ephemeralContainers");
    let volumes: Vec<&str> = list(&new["spec"], "volumes").filter_map(|volume| volume["name"].as_str()).collect();
    for (index, container) in list(&new["spec"], "ephemeralContainers").enumerate() {
        check_container(container, &at.index(index), &volumes, errors);
    }
    for known in list(&old["spec"], "ephemeralContainers") {
        let name = known["name"].as_str().unwrap_or_default();
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
pub(super) fn resize(new: &Value, old: &Value, errors: &mut Errors) {
    let spec_at = Path::root("spec");
    let at = spec_at.child("containers");
    for (index, container) in list(&new["spec"], "containers").enumerate() {
        let at = at.index(index).child("resources").to_string();
        check_resources(&container["resources"], &Path::root(&at), errors);
    }
    let quality = old["status"]["qosClass"].as_str().unwrap_or_default();
    if super::pod::quality_of_service(&new["spec"]) != quality {
        errors.invalid(&spec_at, quality, "Pod QOS Class may not change as a result of resizing");
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

    #[test]
    fn images_change_and_tolerations_are_added() {
        let old = json!({"containers": [{"name": "c", "image": "i:1"}], "tolerations": [{"operator": "Exists"}]});
        let new = json!({
            "containers": [{"name": "c", "image": "i:2"}],
            "tolerations": [{"operator": "Exists"}, {"key": "k", "operator": "Exists"}],
        });
        assert_eq!(refused(&new, &old), "[]");
        let without = json!({"containers": [{"name": "c", "image": "i:1"}]});
        assert!(refused(&without, &old).contains("existing toleration can not be modified"));
    }

    #[test]
    fn a_refused_update_says_what_may_change_and_shows_no_go_struct() {
        let old = json!({"containers": [{"name": "c", "image": "i:1"}]});
        let new = json!({"containers": [{"name": "c", "image": "i:1"}], "nodeSelector": {"a": "b"}});
        assert_eq!(refused(&new, &old), format!("spec: Forbidden: {FORBIDDEN_UPDATE}"));
    }
}
