//! ResourceQuotas: what may be limited, and by which amounts.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use crate::strategy::{StatusKeeps, Strategy};

/// Numbers of objects: whole ones.
const OBJECTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
const AMOUNTS: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

pub(super) struct ResourceQuotas;

impl Strategy for ResourceQuotas {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Nothing
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        amounts(&object["spec"]["hard"], &Path::root("spec").child("hard"), errors);
    }

    fn check_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            for field in ["hard", "used"] {
                amounts(&new["status"][field], &Path::root("status").child(field), errors);
            }
        } else {
            self.check_create(new, errors);
        }
    }
}

fn amounts(amounts: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (resource, amount) in amounts.as_object().into_iter().flatten() {
        let at = at.key(resource);
        name(resource, &at, errors);
        let Some(parsed) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        if parsed.is_negative() {
            errors.invalid(&at, amount, "must be greater than or equal to 0");
        }
        if is_counted(resource) && parsed.milli_value() % 1000 != 0 {
            errors.invalid(&at, amount, "must be an integer");
        }
    }
}

fn name(resource: &str, at: &Path<'_>, errors: &mut Errors) {
    let wrong = names::qualified_name(resource);
    let is_simple = !resource.contains('/');
    let is_huge = resource.starts_with("hugepages-") || resource.starts_with("requests.hugepages-");
    let is_known = OBJECTS.contains(&resource) || AMOUNTS.contains(&resource) || is_huge;
    if wrong.is_empty() && is_simple && !is_known && resource != "storage" {
        errors.invalid(at, resource, "must be a standard resource type or fully qualified");
    }
    for message in wrong {
        errors.invalid(at, resource, message);
    }
    if is_simple && !is_known {
        errors.invalid(at, resource, "must be a standard resource for quota");
    }
}

/// Whether there is no half of it: objects, and what devices the nodes of somebody else's making have.
fn is_counted(resource: &str) -> bool {
    let is_extended =
        resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.");
    is_extended || OBJECTS.contains(&resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_counted_in_whole_numbers() {
        let refused = |hard: Value| {
            let mut errors = Errors::new();
            ResourceQuotas.check_create(&json!({"spec": {"hard": hard}}), &mut errors);
            errors.to_string()
        };
        assert_eq!(refused(json!({"pods": "2", "cpu": "1500m", "requests.example.com/gpu": "1500m"})), "[]");
        assert_eq!(refused(json!({"pods": "1500m"})), r#"spec.hard[pods]: Invalid value: "1500m": must be an integer"#);
        assert_eq!(
            refused(json!({"storage": "1"})),
            r#"spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota"#
        );
    }
}
