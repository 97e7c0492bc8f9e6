//! PodDisruptionBudgets.

use koord_schema::field::{Errors, FieldError, Mistake, Path};
use serde_json::{Value, json};

use super::{conditions, selectors, workload_checks::not_negative};
use crate::strategy::{Generation, Strategy, WriteContext};

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

const COUNTS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];

pub(super) struct DisruptionBudgets;

impl Strategy for DisruptionBudgets {
    fn metadata_checks(&self) -> (usize, usize) {
        (1, 2)
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        object["status"] =
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        let spec = &object["spec"];
        if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
            let shown = |field: &str| serde_json::to_string(&spec[field]).unwrap_or_default();
            errors.add(FieldError {
                mistake: Mistake::Invalid,
                field: at.to_string(),
                value: format!(
                    r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
                    shown("minAvailable"),
                    shown("selector"),
                    shown("maxUnavailable"),
                    shown("unhealthyPodEvictionPolicy")
                ),
                detail: "minAvailable and maxUnavailable cannot be both set".to_owned(),
            });
        }
        for field in ["minAvailable", "maxUnavailable"] {
            check_int_or_percent(&spec[field], &at.child(field), errors);
            check_not_above_all(&spec[field], &at.child(field), errors);
        }
        selectors::check(&spec["selector"], &at.child("selector"), errors);
        let policy = spec["unhealthyPodEvictionPolicy"].as_str();
        if let Some(policy) = policy.filter(|policy| !matches!(*policy, "AlwaysAllow" | "IfHealthyBudget")) {
            errors.not_supported(&at.child("unhealthyPodEvictionPolicy"), policy, &["AlwaysAllow", "IfHealthyBudget"]);
        }
    }

    fn check_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource.is_empty() {
            self.check_create(new, errors);
        }
        if subresource == "status" {
            let at = Path::root("status");
            not_negative(&new["status"], &COUNTS, &at, errors);
            conditions::check(&new["status"]["conditions"], &at.child("conditions"), errors);
        }
    }
}

/// A percentage is at most all.
pub(super) fn check_not_above_all(value: &Value, at: &Path<'_>, errors: &mut Errors) {
    let digits = value.as_str().and_then(|text| text.strip_suffix('%')).unwrap_or_default();
    if digits.bytes().all(|b| b.is_ascii_digit())
        && !digits.is_empty()
        && digits.parse::<u64>().unwrap_or(u64::MAX) > 100
    {
        errors.invalid(at, value, "must not be greater than 100%");
    }
}

/// A number of pods, or a share of them.
pub(super) fn check_int_or_percent(value: &Value, at: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                errors.invalid(at, text, PERCENT);
            }
        }
        Value::Number(number) if number.as_i64().unwrap_or_default() < 0 => {
            errors.invalid(at, number, "must be greater than or equal to 0");
        }
        _ => {}
    }
}
