//! When a job has failed, when it has succeeded, and who looks after it.

use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::{Value, json};

const RULES_MAX: usize = 20;
const CONDITIONS_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const MANAGER_BYTES_MAX: usize = 63;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Checks the policies of a job.
pub(super) fn check(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    if let Some(manager) = spec["managedBy"].as_str() {
        check_manager(manager, &at.child("managedBy"), errors);
    }
    if spec["podFailurePolicy"].is_object() {
        let policy_at = at.child("podFailurePolicy");
        let rules_at = policy_at.child("rules");
        let rules = list(&spec["podFailurePolicy"], "rules");
        if rules.len() > RULES_MAX {
            errors.too_many(&rules_at, rules.len(), RULES_MAX);
        }
        for (index, rule) in rules.iter().enumerate() {
            failure_rule(rule, spec, &rules_at.index(index), errors);
        }
    }
    if spec["successPolicy"].is_object() {
        success(spec, &at.child("successPolicy"), errors);
    }
    let policy = &spec["template"]["spec"]["restartPolicy"];
    // Other policies are refused for every job.
    if spec["podFailurePolicy"].is_object() && policy == "OnFailure" {
        let template_at = at.child("template");
        let pod_at = template_at.child("spec");
        let message = r#"only "Never" is supported when podFailurePolicy is specified"#;
        errors.invalid(&pod_at.child("restartPolicy"), policy, message);
    }
}

fn list<'a>(fields: &'a Value, name: &str) -> &'a [Value] {
    fields[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A refusal that shows no value.
fn refuse(at: &Path<'_>, detail: &str, errors: &mut Errors) {
    errors.add(FieldError {
        mistake: Mistake::Invalid,
        field: at.to_string(),
        value: String::new(),
        detail: detail.to_owned(),
    });
}

fn one_of(value: &Value, allowed: &[&str], at: &Path<'_>, errors: &mut Errors) {
    let value = value.as_str().unwrap_or_default();
    if value.is_empty() {
        let quoted: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        errors.required(at, format!("valid values: [{}]", quoted.join(" ")));
    } else if !allowed.contains(&value) {
        errors.not_supported(at, value, allowed);
    }
}

fn check_manager(manager: &str, at: &Path<'_>, errors: &mut Errors) {
    const SHAPE: &str = r#"must be a domain-prefixed path (such as "acme.io/foo")"#;
    if manager.is_empty() {
        return errors.required(at, "");
    }
    if manager.len() > MANAGER_BYTES_MAX {
        errors.too_long(at, MANAGER_BYTES_MAX);
    }
    match manager.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            for message in names::dns1123_subdomain(domain) {
                errors.invalid(at, domain, message);
            }
        }
        _ => errors.invalid(at, manager, SHAPE),
    }
}

fn failure_rule(rule: &Value, spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let action_at = at.child("action");
    if rule["action"] == "FailIndex" {
        if spec["backoffLimitPerIndex"].is_null() {
            errors.invalid(&action_at, "FailIndex", "requires the backoffLimitPerIndex to be set");
        }
    } else {
        one_of(&rule["action"], &ACTIONS, &action_at, errors);
    }
    let codes = &rule["onExitCodes"];
    if codes.is_object() {
        exit_codes(codes, &spec["template"]["spec"], &at.child("onExitCodes"), errors);
    }
    let conditions = list(rule, "onPodConditions");
    let conditions_at = at.child("onPodConditions");
    if conditions.len() > CONDITIONS_MAX {
        errors.too_many(&conditions_at, conditions.len(), CONDITIONS_MAX);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let at = conditions_at.index(index);
        let kind = condition["type"].as_str().unwrap_or_default();
        for message in names::qualified_name(kind) {
            errors.invalid(&at.child("type"), kind, message);
        }
        one_of(&condition["status"], &STATUSES, &at.child("status"), errors);
    }
    match (codes.is_object(), !conditions.is_empty()) {
        (true, true) => refuse(at, "specifying both OnExitCodes and OnPodConditions is not supported", errors),
        (false, false) => refuse(at, "specifying one of OnExitCodes and OnPodConditions is required", errors),
        _ => {}
    }
}

fn exit_codes(codes: &Value, pod: &Value, at: &Path<'_>, errors: &mut Errors) {
    one_of(&codes["operator"], &["In", "NotIn"], &at.child("operator"), errors);
    if let Some(name) = codes["containerName"].as_str() {
        let mut containers = ["containers", "initContainers"].into_iter().flat_map(|field| list(pod, field));
        if !containers.any(|container| container["name"] == name) {
            let message = "must be one of the container or initContainer names in the pod template";
            errors.invalid(&at.child("containerName"), name, message);
        }
    }
    let values_at = at.child("values");
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.invalid(&values_at, json!([]), "at least one value is required");
    } else if values.len() > EXIT_CODES_MAX {
        errors.too_many(&values_at, values.len(), EXIT_CODES_MAX);
    }
    for (index, value) in values.iter().enumerate() {
        let at = values_at.index(index);
        if *value == 0 && codes["operator"] == "In" {
            errors.invalid(&at, value, "must not be 0 for the In operator");
        }
        if values[..index].contains(value) {
            errors.duplicate(&at, value);
        }
    }
    if !values.is_sorted() {
        errors.invalid(&values_at, &values, "must be ordered");
    }
}

fn success(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let rules = list(&spec["successPolicy"], "rules");
    if spec["completionMode"] != "Indexed" {
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                format!(
                    r#"{{"SucceededIndexes":{},"SucceededCount":{}}}"#,
                    rule["succeededIndexes"], rule["succeededCount"]
                )
            })
            .collect();
        let value = format!(r#"{{"Rules":[{}]}}"#, shown.join(","));
        let detail = "requires indexed completion mode".to_owned();
        return errors.add(FieldError { mistake: Mistake::Invalid, field: at.to_string(), value, detail });
    }
    let rules_at = at.child("rules");
    if rules.is_empty() {
        errors.required(&rules_at, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > RULES_MAX {
        errors.too_many(&rules_at, rules.len(), RULES_MAX);
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &rules_at.index(index), errors);
    }
}

fn success_rule(rule: &Value, completions: i64, at: &Path<'_>, errors: &mut Errors) {
    let (count, indexes) = (rule["succeededCount"].as_i64(), rule["succeededIndexes"].as_str());
    if count.is_none() && indexes.is_none() {
        return errors.required(at, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let count_at = at.child("succeededCount");
    let mut most = (completions, "the number of specified completions");
    if let Some(text) = indexes {
        match count_indexes(text, completions) {
            Ok(total) => most = (total, "the number of indexes in the specified succeededIndexes field"),
            Err(why) => {
                let message = format!("error parsing succeededIndexes: {why}");
                errors.invalid(&at.child("succeededIndexes"), text, message);
                return;
            }
        }
    }
    match count {
        Some(count) if count < 0 => errors.invalid(&count_at, count, "must be greater than or equal to 0"),
        Some(count) if count > most.0 => {
            errors.invalid(&count_at, count, format!("must be less than or equal to {} ({})", most.0, most.1));
        }
        _ => {}
    }
}

/// How many indexes `1,3-5` names; they must rise, and stay below the number of completions.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut total: i64 = 0;
    let mut previous = None;
    if text.is_empty() {
        return Ok(0);
    }
    for part in text.split(',') {
        let limits: Vec<&str> = part.split('-').collect();
        if limits.len() > 2 {
            return Err(format!(
                "fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let mut bounds = Vec::new();
        for limit in limits {
            let index: i64 =
                limit.parse().map_err(|_| format!("cannot convert string to integer for index: {limit:?}"))?;
            if index >= completions {
                return Err(format!("too large index: {limit:?}"));
            }
            if let Some(previous) = previous.filter(|previous| *previous >= index) {
                return Err(format!("non-increasing order, previous: {previous}, current: {index}"));
            }
            previous = Some(index);
            bounds.push(index);
        }
        let (first, last) = (bounds.first().copied().unwrap_or_default(), bounds.last().copied().unwrap_or_default());
        total = total.saturating_add(last.saturating_sub(first)).saturating_add(1);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &Value) -> String {
        let mut errors = Errors::new();
        check(spec, &Path::root("spec"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_rule_of_failure_looks_at_codes_or_at_conditions() {
        let policy = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}, "template": {"spec": {"restartPolicy": "Never"}}});
        let codes = |values: Value| json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": values}});
        assert_eq!(refused(&policy(codes(json!([1, 2])))), "[]");
        assert_eq!(
            refused(&policy(codes(json!([2, 1])))),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered"
        );
        assert_eq!(
            refused(&policy(json!({"action": "Ignore"}))),
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
        );
    }

    #[test]
    fn indexes_rise_and_exist() {
        assert_eq!(count_indexes("0,2-4", 5), Ok(4));
        assert_eq!(count_indexes("0-1,5", 3), Err("too large index: \"5\"".to_owned()));
        assert_eq!(count_indexes("1-0", 3), Err("non-increasing order, previous: 1, current: 0".to_owned()));
        assert!(count_indexes("1-2-3", 9).is_err() && count_indexes("1,,2", 9).is_err());
    }

    #[test]
    fn a_manager_has_a_domain() {
        assert_eq!(refused(&json!({"managedBy": "example.com/jobs"})), "[]");
        assert_eq!(
            refused(&json!({"managedBy": "jobs"})),
            r#"spec.managedBy: Invalid value: "jobs": must be a domain-prefixed path (such as "acme.io/foo")"#
        );
    }
}
