//! Conditions in the status of a definition.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::environment::time_text;

/// Whether a condition of a definition is true.
pub(crate) fn has_condition(definition: &Value, type_: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Sets a condition, with the time of its last transition.
pub(crate) fn set_condition(definition: &mut Value, mut condition: Value, now: Timestamp) {
    condition["lastTransitionTime"] = json!(time_text(now));
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
