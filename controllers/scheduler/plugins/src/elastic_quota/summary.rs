//! The quotas as people see them, under the names of the original.

use serde_json::{Map, Value, json};

use super::{Forest, Quotas, forest::Node};

impl Quotas {
    /// All quotas, by name.
    pub fn summaries(&self) -> Value {
        let forest = self.forest();
        forest.nodes().map(|(name, node)| (name.to_string(), summary(forest, name, node))).collect::<Map<_, _>>().into()
    }

    /// A quota; none where there is no such quota.
    pub fn summary(&self, name: &str) -> Option<Value> {
        let forest = self.forest();
        forest.node(name).map(|node| summary(forest, name, node))
    }
}

/// A quota as people see it.
pub(super) fn summary(forest: &Forest, name: &str, node: &Node) -> Value {
    let Node { quota, sums, request, .. } = node;
    json!({
        "name": name,
        "parentName": quota.parent,
        "tree": quota.tree_id,
        "isParent": quota.is_parent,
        "allowLentResource": quota.lends,
        "min": quota.min,
        "max": quota.max,
        "runtime": *forest.limit(name),
        "request": request,
        "childRequest": sums.request,
        "nonPreemptibleRequest": sums.non_preemptible_request,
        "used": sums.used,
        "nonPreemptibleUsed": sums.non_preemptible_used,
    })
}
