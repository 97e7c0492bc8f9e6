//! Where a pod may run: affinity, selectors of nodes, tolerations, spread, gates.

use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::{Value, json};

use super::{super::selectors, is_set, list, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NOT_AN_OPERATOR: &str = "not a valid selector operator";
const NO_SELECTOR: &str = "must not be specified when labelSelector is not set";

/// Checks an affinity.
pub(super) fn affinity(affinity: &Value, at: &Path<'_>, errors: &mut Errors) {
    let nodes_at = at.child("nodeAffinity");
    node_selector(&affinity["nodeAffinity"][REQUIRED], &nodes_at.child(REQUIRED), errors);
    let preferred_at = nodes_at.child(PREFERRED);
    for (index, term) in list(&affinity["nodeAffinity"], PREFERRED).enumerate() {
        let at = preferred_at.index(index);
        weight(term, &at, errors);
        node_term(&term["preference"], &at.child("preference"), Values::Any, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let kind_at = at.child(kind);
        let required_at = kind_at.child(REQUIRED);
        for (index, term) in list(&affinity[kind], REQUIRED).enumerate() {
            pod_term(term, &required_at.index(index), errors);
        }
        let preferred_at = kind_at.child(PREFERRED);
        for (index, term) in list(&affinity[kind], PREFERRED).enumerate() {
            let at = preferred_at.index(index);
            weight(term, &at, errors);
            pod_term(&term["podAffinityTerm"], &at.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, at: &Path<'_>, errors: &mut Errors) {
    let weight = term["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.invalid(&at.child("weight"), weight, "must be in the range 1-100");
    }
}

/// Whether the values of a selector of nodes must be values of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    OfLabels,
    Any,
}

/// Checks a selector of nodes, where there is one.
fn node_selector(selector: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !selector.is_object() {
        return;
    }
    let terms_at = at.child("nodeSelectorTerms");
    if list(selector, "nodeSelectorTerms").next().is_none() {
        return errors.required(&terms_at, "must have at least one node selector term");
    }
    for (index, term) in list(selector, "nodeSelectorTerms").enumerate() {
        node_term(term, &terms_at.index(index), Values::OfLabels, errors);
    }
}

fn node_term(term: &Value, at: &Path<'_>, values: Values, errors: &mut Errors) {
    let expressions_at = at.child("matchExpressions");
    for (index, requirement) in list(term, "matchExpressions").enumerate() {
        node_labels(requirement, &expressions_at.index(index), values, errors);
    }
    let fields_at = at.child("matchFields");
    for (index, requirement) in list(term, "matchFields").enumerate() {
        node_fields(requirement, &fields_at.index(index), errors);
    }
}

fn node_labels(requirement: &Value, at: &Path<'_>, values_rule: Values, errors: &mut Errors) {
    let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
    let values: Vec<&str> = list(requirement, "values").filter_map(Value::as_str).collect();
    let values_at = at.child("values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&values_at, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.forbidden(&values_at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.required(&values_at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.invalid(&at.child("operator"), operator, NOT_AN_OPERATOR),
    }
    label_key(key, &at.child("key"), errors);
    for (index, value) in values.iter().enumerate().filter(|_| values_rule == Values::OfLabels) {
        for message in names::label_value(value) {
            errors.invalid(&values_at.index(index), value, message);
        }
    }
}

fn node_fields(requirement: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
    let values: Vec<&str> = list(requirement, "values").filter_map(Value::as_str).collect();
    let values_at = at.child("values");
    if !matches!(operator, "In" | "NotIn") {
        errors.invalid(&at.child("operator"), operator, NOT_AN_OPERATOR);
    } else if values.len() != 1 {
        errors
            .required(&values_at, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    }
    if key != "metadata.name" {
        return errors.invalid(&at.child("key"), key, "not a valid field selector key");
    }
    for (index, value) in values.iter().enumerate() {
        for message in names::dns1123_subdomain(value) {
            errors.invalid(&values_at.index(index), value, message);
        }
    }
}

fn label_key(key: &str, at: &Path<'_>, errors: &mut Errors) {
    for message in names::qualified_name(key) {
        errors.invalid(at, key, message);
    }
}

fn pod_term(term: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selectors::check(&term[field], &at.child(field), errors);
    }
    for namespace in list(term, "namespaces").filter_map(Value::as_str) {
        for message in names::dns1123_label(namespace) {
            errors.invalid(&at.child("namespace"), namespace, message);
        }
    }
    label_keys(term, at, errors);
    let (topology, topology_at) = (text(term, "topologyKey"), at.child("topologyKey"));
    if topology.is_empty() {
        errors.required(&topology_at, "can not be empty");
    }
    label_key(topology, &topology_at, errors);
}

/// Checks the labels of the incoming pod that a selector takes over.
fn label_keys(term: &Value, at: &Path<'_>, errors: &mut Errors) {
    let selector = &term["labelSelector"];
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = at.child(field);
        if list(term, field).next().is_some() && !is_set(selector) {
            errors.forbidden(&at, NO_SELECTOR);
            continue;
        }
        for (index, key) in list(term, field).filter_map(Value::as_str).enumerate() {
            label_key(key, &at.index(index), errors);
        }
    }
    let keys: Vec<&str> = list(term, "matchLabelKeys").filter_map(Value::as_str).collect();
    // What creation merged in stands there once; a second requirement of the same key was the user's.
    let mut selected: Vec<&str> =
        selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for requirement in list(selector, "matchExpressions") {
        let key = text(requirement, "key");
        if let Some(index) = keys.iter().rposition(|known| *known == key).filter(|_| selected.contains(&key)) {
            errors.invalid(&at.index(index), key, "exists in both matchLabelKeys and labelSelector");
        }
        selected.push(key);
    }
    for (index, key) in keys.iter().enumerate() {
        if list(term, "mismatchLabelKeys").any(|other| other == key) {
            let message = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&at.child("matchLabelKeys").index(index), key, message);
        }
    }
}

/// Writes the labels that a new pod has under `matchLabelKeys` and `mismatchLabelKeys` into the selectors beside them.
pub(in crate::kinds) fn merge_label_keys(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    let mut merge = |term: &mut Value| {
        if !term["labelSelector"].is_object() {
            return;
        }
        let mut added = Vec::new();
        for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            for key in list(term, field).filter_map(Value::as_str) {
                if let Some(value) = labels.get(key) {
                    added.push(json!({"key": key, "operator": operator, "values": [value]}));
                }
            }
        }
        if added.is_empty() {
            return;
        }
        let expressions = &mut term["labelSelector"]["matchExpressions"];
        match expressions.as_array_mut() {
            Some(known) => known.extend(added),
            None => *expressions = Value::Array(added),
        }
    };
    if let Some(affinity) = spec.get_mut("affinity").filter(|affinity| affinity.is_object()) {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(terms) = affinity.get_mut(kind).filter(|terms| terms.is_object()) else { continue };
            for term in terms.get_mut(PREFERRED).and_then(Value::as_array_mut).into_iter().flatten() {
                merge(&mut term["podAffinityTerm"]);
            }
            terms.get_mut(REQUIRED).and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut merge);
        }
    }
    let constraints = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut);
    constraints.into_iter().flatten().for_each(&mut merge);
}

/// Checks which taints are tolerated.
pub(super) fn tolerations(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in list(spec, "tolerations").enumerate() {
        let at = at.index(index);
        let part = |name: &str| toleration[name].as_str().unwrap_or_default();
        let (key, operator, value, effect) = (part("key"), part("operator"), part("value"), part("effect"));
        let operator_at = at.child("operator");
        if !key.is_empty() {
            label_key(key, &at.child("key"), errors);
        }
        if key.is_empty() && operator != "Exists" {
            let message = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator_at, operator, message);
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            errors.invalid(&at.child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator {
            "" | "Equal" => {
                let wrong = names::label_value(value);
                if !wrong.is_empty() {
                    errors.invalid(&operator_at, value, wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                errors.invalid(&operator_at, value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            other => errors.not_supported(&operator_at, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.not_supported(&at.child("effect"), effect, &EFFECTS);
        }
    }
}

/// Checks how a pod is spread.
pub(super) fn spread(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
    let constraints: Vec<&Value> = list(spec, "topologySpreadConstraints").collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let at = at.index(index);
        let positive = |number: i64, at: &Path<'_>, errors: &mut Errors| {
            if number <= 0 {
                errors.invalid(at, number, "must be greater than zero");
            }
        };
        positive(constraint["maxSkew"].as_i64().unwrap_or_default(), &at.child("maxSkew"), errors);
        let (topology, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if topology.is_empty() {
            errors.required(&at.child("topologyKey"), "can not be empty");
        }
        if !ACTIONS.contains(&action) {
            errors.not_supported(&at.child("whenUnsatisfiable"), action, &ACTIONS);
        }
        let is_same =
            |other: &&&Value| text(other, "topologyKey") == topology && text(other, "whenUnsatisfiable") == action;
        if constraints[index + 1..].iter().any(|other| is_same(&other)) {
            errors.duplicate(&at.child("{topologyKey, whenUnsatisfiable}"), format!("{{{topology}, {action}}}"));
        }
        if let Some(domains) = constraint["minDomains"].as_i64() {
            let at = at.child("minDomains");
            positive(domains, &at, errors);
            if action != ACTIONS[0] {
                let message = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&at, domains, message);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint[field].as_str();
            if let Some(policy) = policy.filter(|policy| !matches!(*policy, "Honor" | "Ignore")) {
                errors.not_supported(&at.child(field), policy, &["Honor", "Ignore"]);
            }
        }
        label_keys(constraint, &at, errors);
        selectors::check(&constraint["labelSelector"], &at.child("labelSelector"), errors);
    }
}

/// Checks what must be cleared before a pod is scheduled.
pub(super) fn gates(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, gate) in list(spec, "schedulingGates").enumerate() {
        let at = at.index(index);
        let name = text(gate, "name");
        label_key(name, &at, errors);
        if seen.contains(&name) {
            errors.duplicate(&at, name);
        }
        seen.push(name);
    }
}

/// Checks that a gated pod may still go only where it might have gone before.
pub(super) fn only_narrows(now: &Value, before: &Value, at: &Path<'_>, errors: &mut Errors) {
    const ADDITIONS: &str = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    let selector = &now["nodeSelector"];
    let kept = |(key, value): (&String, &Value)| selector.get(key) == Some(value);
    if !before["nodeSelector"].as_object().into_iter().flatten().all(kept) {
        errors.invalid(&at.child("nodeSelector"), selector, ADDITIONS);
    }
    let terms = |spec: &Value| -> Vec<Value> {
        let required = &spec["affinity"]["nodeAffinity"][REQUIRED];
        list(required, "nodeSelectorTerms").cloned().collect()
    };
    let (new, old) = (terms(now), terms(before));
    let affinity_at = at.child("affinity");
    let nodes_at = affinity_at.child("nodeAffinity");
    let required_at = nodes_at.child(REQUIRED);
    let terms_at = required_at.child("nodeSelectorTerms");
    if !old.is_empty() && old.len() != new.len() {
        let message = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown: Vec<String> = new.iter().map(shown_term).collect();
        let value = if new.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
        return super::invalid_as(&terms_at, value, message, errors);
    }
    for (index, (new, old)) in new.iter().zip(&old).enumerate() {
        if !only_adds(new, old) {
            let message = "only additions are allowed (no mutations or deletions)";
            super::invalid_as(&terms_at.index(index), shown_term(new), message, errors);
        }
    }
}

fn only_adds(new: &Value, old: &Value) -> bool {
    let parts = ["matchExpressions", "matchFields"];
    let (new, old) =
        (parts.map(|part| list(new, part).collect::<Vec<_>>()), parts.map(|part| list(old, part).collect::<Vec<_>>()));
    // A term without requirements matches nothing: any requirement would widen it.
    let is_empty = |lists: &[Vec<&Value>; 2]| lists.iter().all(Vec::is_empty);
    (!is_empty(&old) || is_empty(&new)) && new.iter().zip(&old).all(|(new, old)| new.starts_with(old))
}

/// A term as the real server shows the struct.
fn shown_term(term: &Value) -> String {
    let part = |name: &str| -> String {
        if !is_set(&term[name]) {
            return "null".to_owned();
        }
        let shown: Vec<String> = list(term, name)
            .map(|it| format!(r#"{{"Key":{},"Operator":{},"Values":{}}}"#, it["key"], it["operator"], it["values"]))
            .collect();
        format!("[{}]", shown.join(","))
    };
    format!(r#"{{"MatchExpressions":{},"MatchFields":{}}}"#, part("matchExpressions"), part("matchFields"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_new_pod_complete_its_selectors() {
        let term = json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone", "matchLabelKeys": ["hash", "none"], "mismatchLabelKeys": ["tenant"]});
        let mut pod = json!({
            "metadata": {"labels": {"hash": "1", "tenant": "t"}},
            "spec": {
                "affinity": {"podAntiAffinity": {REQUIRED: [term], PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}},
                "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["hash"]}, {"matchLabelKeys": ["hash"]}],
            },
        });
        merge_label_keys(&mut pod);
        let merged = json!([
            {"key": "hash", "operator": "In", "values": ["1"]}, {"key": "tenant", "operator": "NotIn", "values": ["t"]},
        ]);
        let anti = &pod["spec"]["affinity"]["podAntiAffinity"];
        assert_eq!(anti[REQUIRED][0]["labelSelector"]["matchExpressions"], merged);
        assert_eq!(anti[PREFERRED][0]["podAffinityTerm"]["labelSelector"]["matchExpressions"], merged);
        let spread = &pod["spec"]["topologySpreadConstraints"];
        assert_eq!(spread[0]["labelSelector"]["matchExpressions"], json!([merged[0]]));
        assert_eq!(spread[1]["labelSelector"], Value::Null);
        let mut errors = Errors::new();
        affinity(&pod["spec"]["affinity"], &Path::root("affinity"), &mut errors);
        assert_eq!(errors.to_string(), "[]", "what was merged is no second requirement");
    }

    #[test]
    fn a_selector_of_nodes_has_operators_and_values_that_go_together() {
        let refused = |requirement: Value| {
            let mut errors = Errors::new();
            let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]});
            node_selector(&terms, &Path::root("s"), &mut errors);
            errors.to_string()
        };
        assert_eq!(refused(json!({"key": "a", "operator": "Gt", "values": ["1"]})), "[]");
        let at = "s.nodeSelectorTerms[0].matchExpressions[0]";
        assert_eq!(
            refused(json!({"key": "a", "operator": "Gt"})),
            format!("{at}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'")
        );
        assert_eq!(
            refused(json!({"key": "a", "operator": "Near"})),
            format!("{at}.operator: Invalid value: \"Near\": not a valid selector operator")
        );
    }

    #[test]
    fn a_gated_pod_goes_to_fewer_nodes_only() {
        let spec = |values: Value| json!({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": values}]}}}});
        let one = json!({"key": "a", "operator": "Exists"});
        let other = json!({"key": "b", "operator": "Exists"});
        let refused = |now: Value, before: Value| {
            let mut errors = Errors::new();
            only_narrows(&now, &before, &Path::root("spec"), &mut errors);
            errors.len()
        };
        assert_eq!(refused(spec(json!([one, other])), spec(json!([one]))), 0);
        assert_eq!(refused(spec(json!([other])), spec(json!([one]))), 1);
        assert_eq!(refused(json!({}), spec(json!([one]))), 1);
    }
}
