//! Requests and limits of containers and pods.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use super::{check_label, is_set, list, not_found, text};

/// Resources without a domain that the system knows somewhere.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// Those that are counted.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE: &str = "hugepages-";

/// Who has the resources: not everything may be asked for the pod as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Container,
    Pod,
}

/// Checks requests and limits of a container.
pub(in crate::kinds) fn of_container(resources: &Value, at: &Path<'_>, errors: &mut Errors) {
    check(resources, Owner::Container, at, errors);
}

/// Whether the pod as a whole requests or limits anything.
fn are_given(spec: &Value) -> bool {
    ["requests", "limits"].iter().any(|side| spec["resources"][side].as_object().is_some_and(|side| !side.is_empty()))
}

/// Completes requests and limits of a pod as a whole. Limits of huge pages follow from its containers; requests follow
/// from its containers and then from its limits, if it has any limits.
pub(in crate::kinds) fn complete(spec: &mut Value) {
    if !are_given(spec) {
        return;
    }
    let named = |spec: &Value, side: &str| -> Vec<String> {
        let containers = ["containers", "initContainers"].into_iter().flat_map(|field| list(spec, field));
        let amounts = containers.filter_map(|container| container["resources"][side].as_object());
        amounts.flat_map(|amounts| amounts.keys().cloned()).collect()
    };
    let is_whole = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with(HUGE);
    let fill = |spec: &mut Value, side: &str, name: String, value: Value| {
        if spec["resources"][side][&name].is_null() {
            spec["resources"][side][name] = value;
        }
    };
    let huge_limits = named(spec, "limits").into_iter().filter(|name| name.starts_with(HUGE));
    for name in huge_limits.filter(|name| spec["resources"]["requests"][name].is_null()).collect::<Vec<_>>() {
        let sum = together(spec, "limits", &name).to_string();
        fill(spec, "limits", name, sum.into());
    }
    let limits = spec["resources"]["limits"].as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    for name in named(spec, "requests").into_iter().filter(|name| matches!(name.as_str(), "cpu" | "memory")) {
        let sum = together(spec, "requests", &name).to_string();
        fill(spec, "requests", name, sum.into());
    }
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_whole(name)) {
        fill(spec, "requests", name, limit);
    }
}

/// Checks requests and limits of a pod as a whole, against those of its containers.
pub(super) fn of_pod(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let resources = &spec["resources"];
    if !resources.is_object() {
        return;
    }
    if spec["os"]["name"] == "windows" {
        return errors.forbidden(at, "may not be set for a windows pod");
    }
    if is_set(&resources["claims"]) {
        errors.forbidden(&at.child("claims"), "claims may not be set for Resources at pod-level");
    }
    check(resources, Owner::Pod, at, errors);
    let requests_at = at.child("requests");
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        let (Some(whole), sum) = (quantity(value), together(spec, "requests", name)) else { continue };
        if sum > whole {
            let message = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.invalid(&requests_at.key(name), whole.to_string(), message);
        }
    }
    let containers_at = at.child("containers");
    for (index, container) in list(spec, "containers").enumerate() {
        let at = containers_at.index(index);
        for (name, value) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let (Some(limit), Some(whole)) = (quantity(value), quantity(&resources["limits"][name])) else { continue };
            if limit > whole {
                let message = format!("must be less than or equal to pod limits of {whole}");
                errors.invalid(&at.key(name).child("limits"), limit.to_string(), message);
            }
        }
    }
}

/// What the containers request, or are limited to, together: all that run side by side, or the greediest before them.
fn together(spec: &Value, side: &str, name: &str) -> Quantity {
    let of = |container: &Value| quantity(&container["resources"][side][name]).unwrap_or_default();
    let mut sum = Quantity::default();
    for container in list(spec, "containers") {
        sum += &of(container);
    }
    let (mut sidecars, mut most) = (Quantity::default(), Quantity::default());
    for container in list(spec, "initContainers") {
        let mut now = of(container);
        if container["restartPolicy"] == "Always" {
            sidecars += &now;
            sum += &now;
            now = sidecars.clone();
        } else {
            now += &sidecars;
        }
        most = most.max(now);
    }
    sum.max(most)
}

/// Whether two states of a container differ in amounts of cpu and memory only.
pub(super) fn differ_in_cpu_and_memory_only(now: &Value, before: &Value) -> bool {
    let without = |container: &Value| {
        let mut container = container.clone();
        for side in ["requests", "limits"] {
            if let Some(amounts) = container["resources"][side].as_object_mut() {
                amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
            }
        }
        container
    };
    without(now) == without(before)
}

/// Checks what a pod needs beside its containers.
pub(super) fn overhead(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    if spec["overhead"].is_object() {
        of_container(&serde_json::json!({"limits": spec["overhead"]}), at, errors);
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE)
}

fn check(resources: &Value, owner: Owner, at: &Path<'_>, errors: &mut Errors) {
    let (limits_at, requests_at) = (at.child("limits"), at.child("requests"));
    for (name, value) in resources["limits"].as_object().into_iter().flatten() {
        amount(name, value, owner, &limits_at.key(name), errors);
        huge_pages(name, value, &limits_at.key(name), errors);
    }
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        amount(name, value, owner, &requests_at.key(name), errors);
        let Some(request) = quantity(value) else { continue };
        match quantity(&resources["limits"][name]) {
            Some(limit) if !may_be_overcommitted(name) && request != limit => {
                let message = format!("must be equal to {name} limit of {limit}");
                errors.invalid(&requests_at, request.to_string(), message);
            }
            Some(limit) if request > limit => {
                let message = format!("must be less than or equal to {name} limit of {limit}");
                errors.invalid(&requests_at, request.to_string(), message);
            }
            None if !may_be_overcommitted(name) => {
                errors.required(&limits_at, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
        huge_pages(name, value, &requests_at.key(name), errors);
    }
    let names =
        || ["limits", "requests"].into_iter().flat_map(|side| resources[side].as_object().into_iter().flatten());
    let has_base = names().any(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
    if !has_base && names().any(|(name, _)| name.starts_with(HUGE)) {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
}

fn amount(name: &str, value: &Value, owner: Owner, at: &Path<'_>, errors: &mut Errors) {
    resource_name(name, owner, at, errors);
    let Some(quantity) = quantity(value) else { return };
    if quantity.is_negative() {
        errors.invalid(at, quantity.to_string(), "must be greater than or equal to 0");
    }
    let is_counted = COUNTED.contains(&name) || is_extended(name);
    if is_counted && quantity.milli_value() % 1000 != 0 {
        errors.invalid(at, quantity.to_string(), "must be an integer");
    }
}

/// Checks the name of a resource of any object: a known word, or a name with its domain.
pub(in crate::kinds) fn any_name(name: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let wrong = names::qualified_name(name);
    let is_unknown = wrong.is_empty()
        && !name.contains('/')
        && !STANDARD.contains(&name)
        && !name.starts_with(HUGE)
        && !name.starts_with("requests.hugepages-");
    let is_right = wrong.is_empty() && !is_unknown;
    for message in wrong {
        errors.invalid(at, name, message);
    }
    if is_unknown {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
    }
    is_right
}

fn resource_name(name: &str, owner: Owner, at: &Path<'_>, errors: &mut Errors) {
    let is_right = any_name(name, at, errors);
    let is_basic = matches!(name, "cpu" | "memory") || name.starts_with(HUGE);
    if owner == Owner::Pod {
        if is_right && !is_basic {
            errors.not_supported(at, name, &["cpu", "hugepages-", "memory"]);
        }
    } else if !name.contains('/') {
        if !is_basic && name != "ephemeral-storage" {
            errors.invalid(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(at, name, "doesn't follow extended resource name standard");
    }
}

fn huge_pages(name: &str, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (Some(size), Some(quantity)) = (name.strip_prefix(HUGE), quantity(value)) else { return };
    let size: Quantity = size.parse().unwrap_or_default();
    let is_whole = size.signum() > 0 && size.milli_value() % 1000 == 0 && quantity.value() % size.value() == 0;
    if !is_whole {
        let message = format!("{quantity} is not positive integer multiple of {name}");
        errors.invalid(at, quantity.to_string(), message);
    }
}

/// Checks which claims of the pod a container uses.
pub(super) fn claims(resources: &Value, at: &Path<'_>, pod_claims: &[&str], errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (index, claim) in list(resources, "claims").enumerate() {
        let at = at.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        if seen.iter().any(|key| key == name) {
            errors.duplicate(&at, name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                check_label(request, &at.child("request"), errors);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.duplicate(&at, &key);
            } else if request.is_empty() {
                let of_it = |key: &&String| key.split_once('/').is_some_and(|(of, _)| of == name);
                for _ in seen.iter().filter(of_it) {
                    errors.duplicate(&at, name);
                }
            }
            seen.push(key);
        }
        if !pod_claims.contains(&name) {
            let mut known = pod_claims.to_vec();
            known.sort_unstable();
            let which = if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
            not_found(&at, name, &format!("must be one of the names in pod.spec.resourceClaims{which}"), errors);
        }
    }
}

/// Checks the claims that a pod makes.
pub(super) fn pod_claims(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, claim) in list(spec, "resourceClaims").enumerate() {
        let at = at.index(index);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        } else if seen.contains(&name) {
            errors.duplicate(&at.child("name"), name);
        } else {
            check_label(name, &at.child("name"), errors);
            seen.push(name);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let shown = || {
            let pointer = |field: &str| serde_json::to_string(&claim[field]).unwrap_or_default();
            format!(
                r#"{{"Name":{},"ResourceClaimName":{},"ResourceClaimTemplateName":{}}}"#,
                serde_json::to_string(name).unwrap_or_default(),
                pointer(sources[0]),
                pointer(sources[1])
            )
        };
        let message = match sources.iter().filter(|field| claim[**field].is_string()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(message) = message {
            super::invalid_as(&at, shown(), message, errors);
        }
        for field in sources {
            if let Some(name) = claim[field].as_str() {
                for message in names::dns1123_subdomain(name) {
                    errors.invalid(&at.child(field), name, message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(resources: &Value) -> String {
        let mut errors = Errors::new();
        of_container(resources, &Path::root("r"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn names_of_resources_are_known_or_have_a_domain() {
        assert_eq!(refused(&json!({"limits": {"cpu": "1", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}})), "[]");
        assert_eq!(
            refused(&json!({"limits": {"gpu": "1"}})),
            "[r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified, r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers]"
        );
        assert_eq!(
            refused(&json!({"limits": {"hugepages-2Mi": "3Mi"}})),
            "[r.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi, r: Forbidden: HugePages require cpu or memory]"
        );
    }

    #[test]
    fn extended_resources_are_whole_and_not_overcommitted() {
        assert_eq!(
            refused(&json!({"requests": {"a.b/c": "1500m"}})),
            "[r.requests[a.b/c]: Invalid value: \"1500m\": must be an integer, r.limits: Required value: Limit must be set for non overcommitable resources]"
        );
    }

    #[test]
    fn a_pod_has_room_for_its_containers() {
        let spec = json!({
            "resources": {"requests": {"cpu": "1"}},
            "containers": [{"resources": {"requests": {"cpu": "600m"}}}, {"resources": {"requests": {"cpu": "500m"}}}],
        });
        let mut errors = Errors::new();
        of_pod(&spec, &Path::root("r"), &mut errors);
        assert_eq!(
            errors.to_string(),
            "r.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 1100m"
        );
    }
}
