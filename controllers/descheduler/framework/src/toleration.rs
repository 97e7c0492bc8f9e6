//! Which taints a toleration is about, with the operators that compare numbers. The scheduler does not know these yet: in Kubernetes they are behind the
//! feature gate TaintTolerationComparisonOperators.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Whether a toleration is about a taint. `Gt` and `Lt` tolerate a taint whose value is above or below that of the toleration.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let is_above = match toleration.operator.as_deref() {
        Some("Gt") => true,
        Some("Lt") => false,
        _ => return koord_scheduling::tolerates(toleration, taint),
    };
    let is_about = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == found);
    if !is_about(toleration.effect.as_deref(), &taint.effect) || !is_about(toleration.key.as_deref(), &taint.key) {
        return false;
    }
    let (Some(bound), Some(value)) = (number(toleration.value.as_deref()), number(taint.value.as_deref())) else {
        return false;
    };
    if is_above { value > bound } else { value < bound }
}

/// An integer as Kubernetes accepts it here: without a plus sign, leading zeros and the like.
fn number(text: Option<&str>) -> Option<i64> {
    let text = text?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_as_integers_in_their_plain_form() {
        let tolerated = |operator: &str, bound: &str, value: &str| {
            let toleration = json!({"key": "sla", "operator": operator, "value": bound, "effect": "NoSchedule"});
            let taint = json!({"key": "sla", "value": value, "effect": "NoSchedule"});
            tolerates(&serde_json::from_value(toleration).unwrap(), &serde_json::from_value(taint).unwrap())
        };
        for (operator, bound, value, expected) in [
            ("Gt", "750", "950", true),
            ("Gt", "950", "800", false),
            ("Gt", "950", "950", false),
            ("Lt", "950", "800", true),
            ("Lt", "800", "950", false),
            ("Lt", "950", "950", false),
            ("Gt", "-100", "-50", true),
            ("Gt", "9223372036854775806", "9223372036854775807", true),
            ("Gt", "0100", "200", false),
            ("Gt", "+100", "200", false),
            ("Gt", "100", "0200", false),
            ("Lt", "100", "-0", false),
            ("Lt", "100", "", false),
            ("Lt", "high", "1", false),
            ("Equal", "100", "100", true),
        ] {
            assert_eq!(tolerated(operator, bound, value), expected, "{operator} {bound} {value}");
        }
    }

    #[test]
    fn key_and_effect_count_as_for_other_operators() {
        let tolerated = |toleration: serde_json::Value| {
            let taint = json!({"key": "sla", "value": "5", "effect": "NoSchedule"});
            tolerates(&serde_json::from_value(toleration).unwrap(), &serde_json::from_value(taint).unwrap())
        };
        assert!(tolerated(json!({"key": "sla", "operator": "Gt", "value": "1"})), "every effect");
        assert!(!tolerated(json!({"key": "other", "operator": "Gt", "value": "1"})));
        assert!(!tolerated(json!({"key": "sla", "operator": "Gt", "value": "1", "effect": "NoExecute"})));
        assert!(tolerated(json!({"operator": "Exists"})));
    }
}
