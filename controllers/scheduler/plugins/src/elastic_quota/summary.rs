//! The quotas as people see them, under the names of the original.

use koord_engine::plugin::Figure;
use koord_resource::ResourceList;
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

impl Quotas {
    /// What all quotas may have, request and use: CPU in cores, everything else in whole units.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let forest = self.forest();
        forest.nodes().flat_map(|(name, node)| figures(forest, name, node)).collect()
    }
}

/// The figures of a quota.
pub(super) fn figures(forest: &Forest, name: &str, node: &Node) -> Vec<Figure> {
    let Node { quota, sums, request, allocated, guaranteed, .. } = node;
    let limit = forest.limit(name);
    let spec: [(&str, &ResourceList); 3] =
        [("min", &quota.min), ("max", &quota.max), ("sharedWeight", &quota.shared_weight)];
    let status: [(&str, &ResourceList); 8] = [
        ("runtime", &limit),
        ("request", request),
        ("childRequest", &sums.request),
        ("nonPreemptibleRequest", &sums.non_preemptible_request),
        ("used", &sums.used),
        ("nonPreemptibleUsed", &sums.non_preemptible_used),
        ("allocated", allocated),
        ("guaranteed", guaranteed),
    ];
    let lists = spec.into_iter().map(|(field, amounts)| ("scheduler_elastic_quota_spec", field, amounts));
    let lists =
        lists.chain(status.into_iter().map(|(field, amounts)| ("scheduler_elastic_quota_status", field, amounts)));
    let figures = lists.flat_map(|(metric, field, amounts)| {
        amounts.iter().map(move |(resource, amount)| {
            let labels =
                [name, resource, &quota.tree_id, if quota.is_parent { "true" } else { "false" }, &quota.parent, field];
            Figure { name: metric, labels: labels.map(str::to_owned).to_vec(), value: amount.as_f64() }
        })
    });
    figures.collect()
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
