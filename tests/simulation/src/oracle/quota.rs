//! The quota of a profile (§4.4).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    entry, of,
    quantity::{ONE, cut, nano},
};
use crate::people::name_of;

const PREFIX: &str = "quota.scheduling.koordinator.sh";
/// The bound of a root: as much as Go's largest number, in halves of thousandths.
const UNBOUNDED: i128 = 4_611_686_018_427_387 * ONE;

type Amounts = BTreeMap<String, i128>;

pub(super) fn check(profile: &Value, nodes: &[Value], quotas: &[Value]) -> Result<(), String> {
    let (name, spec) = (name_of(profile), &profile["spec"]);
    let wrong = |what: String| Err(format!("the quota of profile {name}: {what}"));
    let quota = of(quotas, spec["quotaName"].as_str().unwrap_or_default());
    let selects = |node: &&Value| {
        let wanted = spec["nodeSelector"]["matchLabels"].as_object().into_iter().flatten();
        wanted.into_iter().all(|(key, value)| entry(node, "labels", key) == value.as_str())
    };
    let ratio = spec["resourceRatio"].as_str().and_then(|text| text.parse().ok());
    let ratio = ratio.filter(|ratio: &f64| *ratio > 0.0 && *ratio <= 1.0);
    let sum = |counts: &dyn Fn(&Value) -> bool| {
        let mut sum = Amounts::new();
        for node in nodes.iter().filter(selects).filter(|node| counts(node)) {
            for (resource, amount) in node["status"]["allocatable"].as_object().into_iter().flatten() {
                *sum.entry(resource.clone()).or_default() += nano(amount);
            }
        }
        if let Some(ratio) = ratio.filter(|ratio| *ratio < 1.0) {
            for (resource, amount) in &mut sum {
                *amount = cut(resource, *amount, ratio);
            }
        }
        sum
    };
    let total = sum(&|_| true);
    let unschedulable = sum(&|node| node["spec"]["unschedulable"] == true || !is_ready(node));

    for (annotation, expected) in [("total-resource", &total), ("unschedulable-resource", &unschedulable)] {
        let text = entry(quota, "annotations", &format!("{PREFIX}/{annotation}")).unwrap_or("null");
        let found: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !found.is_object() || amounts(&found) != *expected {
            return wrong(format!("{annotation} is {text} instead of {expected:?}"));
        }
    }
    let keys: Vec<String> = entry(profile, "annotations", &format!("{PREFIX}/resource-keys"))
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| vec!["cpu".to_owned(), "memory".to_owned()]);
    let min: Amounts = keys.iter().map(|key| (key.clone(), total.get(key).copied().unwrap_or_default())).collect();
    let max: Amounts = keys.iter().map(|key| (key.clone(), UNBOUNDED)).collect();
    for (field, expected) in [("min", min), ("max", max)] {
        if amounts(&quota["spec"][field]) != expected {
            return wrong(format!("{field} is {} instead of {expected:?}", quota["spec"][field]));
        }
    }
    let mut labels = json!({format!("{PREFIX}/profile"): name});
    for (key, value) in spec["quotaLabels"].as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    labels[format!("{PREFIX}/tree-id")] = profile["metadata"]["labels"][format!("{PREFIX}/tree-id")].clone();
    labels[format!("{PREFIX}/is-root")] = json!("true");
    for (key, value) in labels.as_object().into_iter().flatten() {
        if entry(quota, "labels", key) != value.as_str() || value.is_null() {
            return wrong(format!("label {key} is {:?} instead of {value}", entry(quota, "labels", key)));
        }
    }
    Ok(())
}

fn is_ready(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn amounts(list: &Value) -> Amounts {
    list.as_object().into_iter().flatten().map(|(resource, amount)| (resource.clone(), nano(amount))).collect()
}
