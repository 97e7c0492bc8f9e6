//! Whether a node takes a pod, by what both say: selector, affinity, taints.

use serde_json::Value;

/// Why the node does not take the pod.
pub(super) fn problem(node: &Value, pod: &Value) -> Option<String> {
    let (labels, spec) = (&node["metadata"]["labels"], &pod["spec"]);
    let selected = spec["nodeSelector"].as_object().into_iter().flatten();
    if let Some((name, value)) = selected.into_iter().find(|(name, value)| labels[name.as_str()] != **value) {
        return Some(format!("its selector wants {name}={value} and the node has {}", labels[name.as_str()]));
    }
    let terms =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let terms = terms.as_array().map(Vec::as_slice).unwrap_or_default();
    if !terms.is_empty() && !terms.iter().any(|term| matches(labels, term)) {
        return Some(format!("its affinity {terms:?} is not met by {labels}"));
    }
    let mut taints: Vec<&Value> = list(&node["spec"]["taints"]).iter().collect();
    taints.retain(|taint| taint["effect"] != "PreferNoSchedule");
    let untolerated =
        taints.into_iter().find(|taint| !list(&spec["tolerations"]).iter().any(|one| tolerates(one, taint)));
    if let Some(taint) = untolerated {
        return Some(format!("it does not tolerate {taint}"));
    }
    (node["spec"]["unschedulable"] == true).then(|| "the node is cordoned".to_owned())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn matches(labels: &Value, term: &Value) -> bool {
    list(&term["matchExpressions"]).iter().all(|one| {
        let value = &labels[one["key"].as_str().unwrap_or_default()];
        let is_in = list(&one["values"]).contains(value);
        match one["operator"].as_str() {
            Some("In") => is_in,
            Some("NotIn") => !is_in,
            _ => false,
        }
    })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let has = |field: &str| toleration[field].is_null() || toleration[field] == taint[field];
    has("key") && has("effect") && (toleration["operator"] == "Exists" || toleration["value"] == taint["value"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_affinities_and_taints_are_told_apart() {
        let node = json!({"metadata": {"labels": {"zone": "a"}}, "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
        let tolerant = json!([{"key": "k", "operator": "Equal", "value": "v"}]);
        let term = |operator: &str, zone: &str| {
            let expressions = json!([{"key": "zone", "operator": operator, "values": [zone]}]);
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}})
        };
        let cases = [
            (json!({}), "it does not tolerate"),
            (json!({"tolerations": tolerant}), ""),
            (json!({"tolerations": [{"key": "k", "value": "w"}]}), "it does not tolerate"),
            (json!({"tolerations": tolerant, "nodeSelector": {"zone": "b"}}), "its selector"),
            (json!({"tolerations": tolerant, "affinity": term("In", "a")}), ""),
            (json!({"tolerations": tolerant, "affinity": term("NotIn", "a")}), "its affinity"),
        ];
        for (spec, expected) in cases {
            let found = problem(&node, &json!({ "spec": spec })).unwrap_or_default();
            assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{spec}: {found:?}");
        }
        let cordoned = json!({"spec": {"unschedulable": true}});
        assert!(problem(&cordoned, &json!({})).is_some());
    }
}
