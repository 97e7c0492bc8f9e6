//! Conditions of the common form: every part of one must be said.

use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

const REASON_CHARS_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Checks a list of conditions.
pub(super) fn check(conditions: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, condition) in conditions.as_array().into_iter().flatten().enumerate() {
        let at = at.index(index);
        let part = |name: &str| condition[name].as_str().unwrap_or_default();
        let (kind, status, reason) = (part("type"), part("status"), part("reason"));
        for message in names::qualified_name(kind) {
            errors.invalid(&at.child("type"), kind, message);
        }
        if !kind.is_empty() && seen.contains(&kind) {
            errors.duplicate(&at.child("type"), kind);
        }
        seen.push(kind);
        if !matches!(status, "True" | "False" | "Unknown") {
            errors.not_supported(&at.child("status"), status, &["False", "True", "Unknown"]);
        }
        if let Some(number) = condition["observedGeneration"].as_i64().filter(|number| *number < 0) {
            errors.invalid(&at.child("observedGeneration"), number, "must be greater than or equal to zero");
        }
        if condition["lastTransitionTime"].is_null() {
            errors.required(&at.child("lastTransitionTime"), "");
        }
        if reason.is_empty() {
            errors.required(&at.child("reason"), "");
        } else {
            if !is_reason(reason) {
                errors.invalid(&at.child("reason"), reason, REASON);
            }
            if reason.len() > REASON_CHARS_MAX {
                errors.too_long(&at.child("reason"), REASON_CHARS_MAX);
            }
        }
        if part("message").len() > MESSAGE_BYTES_MAX {
            errors.too_long(&at.child("message"), MESSAGE_BYTES_MAX);
        }
    }
}

/// A letter, then letters, digits and `_,:`, the last two not at the end.
fn is_reason(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(inner) && !text.ends_with([',', ':'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_of_a_condition_is_said() {
        let refused = |conditions: Value| {
            let mut errors = Errors::new();
            check(&conditions, &Path::root("conditions"), &mut errors);
            let mut fields: Vec<String> = errors.iter().map(|error| error.field.clone()).collect();
            fields.dedup();
            fields
        };
        let whole =
            json!({"type": "X", "status": "True", "reason": "A,B", "lastTransitionTime": "2024-01-01T00:00:00Z"});
        assert_eq!(refused(json!([whole])), [""; 0]);
        assert_eq!(refused(json!([whole, whole])), ["conditions[1].type"]);
        assert_eq!(
            refused(json!([{"status": "Maybe", "reason": "A:"}])),
            ["conditions[0].type", "conditions[0].status", "conditions[0].lastTransitionTime", "conditions[0].reason"]
        );
    }
}
