//! Pods of a quota that belongs to a tree run on the nodes of that tree.

use koord_resource::admission::Denial;
use koord_types::quota::NAME as QUOTA_NAME;
use serde_json::{Map, Value, json};

use crate::{
    pod::{Parts, PodView},
    quota::QuotaProfile,
};

/// Adds the node selector of the pod's quota tree to every required term of its node affinity that lacks it.
pub(super) fn bind(pod: &mut Parts<'_>, view: PodView<'_>, namespace: &str) -> Result<(), Denial> {
    let name = pod.metadata.labels.get(QUOTA_NAME).filter(|name| !name.is_empty()).unwrap_or(namespace);
    let Some(tree_id) = tree_of(view, name, namespace) else { return Ok(()) };
    let profiles = view.quota_profiles.read();
    // Of several profiles the first by namespace and name decides; the original takes any.
    let Some(entry) = profiles.iter().map(|(_, entry)| entry).find(|entry| entry.value.tree_id == tree_id) else {
        return Ok(());
    };
    // QUIRK: a profile without a node selector adds a term that no node fulfils (`quota-tree-empty-selector`).
    let wanted = expressions(&entry.value);
    let affinity: Value = match pod.spec.affinity {
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|error| Denial::bad_request(koord_resource::go_json::without_position(&error)))?,
        None => Value::Null,
    };
    pod.spec.changed.affinity = Some(bound(affinity, &wanted));
    Ok(())
}

fn tree_of(view: PodView<'_>, name: &str, namespace: &str) -> Option<String> {
    let quotas = view.quotas.read();
    let index = quotas.index();
    let key = index.named(name).or_else(|| index.bound_to(namespace))?;
    quotas.get(key.as_str()).map(|entry| entry.value.tree_id.clone()).filter(|tree| !tree.is_empty())
}

fn expressions(profile: &QuotaProfile) -> Vec<Value> {
    let selector = &profile.node_selector;
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}));
    let expressions = selector.match_expressions.iter().flatten();
    labels.chain(expressions.map(|expression| json!(expression))).collect()
}

fn bound(affinity: Value, wanted: &[Value]) -> Value {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let mut affinity = fields(affinity);
    let mut node = fields(affinity.remove("nodeAffinity").unwrap_or_default());
    let mut required = fields(node.remove(REQUIRED).unwrap_or_default());
    let mut terms = match required.remove("nodeSelectorTerms") {
        Some(Value::Array(terms)) if !terms.is_empty() => terms,
        _ => vec![json!({})],
    };
    for term in &mut terms {
        let mut with = fields(std::mem::take(term));
        let mut expressions = match with.remove("matchExpressions") {
            Some(Value::Array(expressions)) => expressions,
            _ => Vec::new(),
        };
        let missing: Vec<Value> = wanted.iter().filter(|wanted| !expressions.contains(wanted)).cloned().collect();
        expressions.extend(missing);
        if !expressions.is_empty() {
            with.insert("matchExpressions".to_owned(), expressions.into());
        }
        *term = with.into();
    }
    required.insert("nodeSelectorTerms".to_owned(), terms.into());
    node.insert(REQUIRED.to_owned(), required.into());
    affinity.insert("nodeAffinity".to_owned(), node.into());
    affinity.into()
}

fn fields(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}
