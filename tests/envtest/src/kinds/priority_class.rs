//! PriorityClasses.

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use crate::{
    metadata,
    strategy::{Generation, Strategy},
};

const USER_VALUE_MAX: i64 = 1_000_000_000;

/// The classes that every cluster has: name, value, description.
pub const SYSTEM: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

pub(super) struct PriorityClasses;

impl Strategy for PriorityClasses {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn generation(&self) -> Generation {
        Generation::Never
    }

    fn set_defaults(&self, object: &mut Value) {
        if object["preemptionPolicy"].is_null() {
            object["preemptionPolicy"] = json!("PreemptLowerPriority");
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let name = metadata::text(object, "name");
        let value = object["value"].as_i64().unwrap_or_default();
        if name.starts_with("system-") {
            let known = SYSTEM.iter().any(|(known, wanted, _)| *known == name && *wanted == value);
            if !known {
                let at = Path::root("metadata");
                errors.forbidden(&at.child("name"), format!("priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"));
            }
        } else if value > USER_VALUE_MAX {
            errors.forbidden(
                &Path::root("value"),
                format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}"),
            );
        }
        let policy = object["preemptionPolicy"].as_str().unwrap_or_default();
        if !matches!(policy, "PreemptLowerPriority" | "Never") {
            errors.not_supported(&Path::root("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        if new["value"] != old["value"] {
            errors.forbidden(&Path::root("value"), "may not be changed in an update.");
        }
        if new["preemptionPolicy"] != old["preemptionPolicy"] {
            errors.invalid(&Path::root("preemptionPolicy"), &new["preemptionPolicy"], "field is immutable");
        }
    }
}
