//! The quotas as people see them, under the names of the original.

use koord_resource::{Quantity, ResourceList};
use koord_scheduler_framework::{Figure, Query, cluster::Cluster, pod::Pod};
use koord_types::{elastic_quota::ElasticQuota, quota::UNSCHEDULABLE_RESOURCE};
use serde_json::{Map, Value, json};

use super::{Forest, Quotas, forest::Node};

/// Whether the pods of quotas are listed.
const WITH_PODS: &str = "includePods";
/// The tree whose quotas are listed.
const TREE: &str = "tree";
/// What a quota may use is found out when it is asked for, so that there is no version of it that is behind another.
const RUNTIME_VERSION: i64 = 1;

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

    /// The quotas that are asked for, by name.
    pub(super) fn summaries_of(&self, query: &Query, cluster: &Cluster) -> Value {
        let forest = self.forest();
        let tree = query.get(TREE);
        let selected = forest.nodes().filter(|(_, node)| tree.is_none_or(|tree| node.quota.tree_id == tree));
        let mut summaries: Map<String, Value> =
            selected.map(|(name, node)| (name.to_string(), summary(forest, name, node))).collect();
        if query.is_set(WITH_PODS) {
            self.list_pods(&mut summaries, cluster);
        }
        summaries.into()
    }

    /// A quota, with its pods where they are asked for.
    pub(super) fn summary_with(&self, name: &str, query: &Query, cluster: &Cluster) -> Option<Value> {
        let mut summaries: Map<String, Value> = [(name.to_owned(), self.summary(name)?)].into_iter().collect();
        if query.is_set(WITH_PODS) {
            self.list_pods(&mut summaries, cluster);
        }
        summaries.remove(name)
    }

    fn list_pods(&self, summaries: &mut Map<String, Value>, cluster: &Cluster) {
        let placed = cluster.pods().map(|placed| (&placed.pod, true));
        // What is assumed to be placed is known as pending too.
        let waiting = cluster.pending().filter(|pod| cluster.pod(&pod.uid).is_none());
        let pods = placed.chain(waiting.map(|pod| (pod, false)));
        for (pod, is_assigned) in pods.filter(|(pod, _)| self.counts(pod)) {
            let summary = self.quota_of(&pod.template).and_then(|name| summaries.get_mut(&**name));
            if let Some(summary) = summary {
                summary["podCache"][pod.key.as_str()] = self.shown(pod, is_assigned);
            }
        }
    }

    fn shown(&self, pod: &Pod, is_assigned: bool) -> Value {
        json!({"isAssigned": is_assigned, "resource": *self.requests(&pod.template)})
    }
}

const SPEC: &str = "scheduler_elastic_quota_spec";
const STATUS: &str = "scheduler_elastic_quota_status";

impl Quotas {
    /// What all quotas may have, request and use: CPU in thousandths of cores, everything else in whole units.
    pub(super) fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        let forest = self.forest();
        let mut figures: Vec<Figure> = forest.nodes().flat_map(|(name, node)| figures(forest, name, node)).collect();
        for (key, object) in cluster.objects().of::<ElasticQuota>() {
            let annotations = object.metadata.annotations.as_ref();
            let unschedulable = annotations.and_then(|annotations| UNSCHEDULABLE_RESOURCE.get(annotations).ok()?);
            let root = forest.node(key.name()).filter(|node| node.quota.begins_tree);
            if let (Some(amounts), Some(node)) = (unschedulable, root) {
                figures.extend(of_list(STATUS, key.name(), node, "unschedulable-resource", &amounts));
            }
        }
        figures
    }
}

/// The figures of a quota.
pub(super) fn figures(forest: &Forest, name: &str, node: &Node) -> Vec<Figure> {
    let Node { quota, sums, request, allocated, guaranteed, .. } = node;
    let limit = forest.limit(name);
    let lists: [(&str, &str, &ResourceList); 11] = [
        (SPEC, "min", &quota.min),
        (SPEC, "max", &quota.max),
        (SPEC, "sharedWeight", &quota.shared_weight),
        (STATUS, "runtime", &limit),
        (STATUS, "request", request),
        (STATUS, "child-request", &sums.request),
        (STATUS, "non-preemptible-request", &sums.non_preemptible_request),
        (STATUS, "used", &sums.used),
        (STATUS, "non-preemptible-used", &sums.non_preemptible_used),
        (STATUS, "allocated", allocated),
        (STATUS, "guaranteed", guaranteed),
    ];
    lists.into_iter().flat_map(|(metric, field, amounts)| of_list(metric, name, node, field, amounts)).collect()
}

fn of_list(metric: &'static str, name: &str, node: &Node, field: &str, amounts: &ResourceList) -> Vec<Figure> {
    let Node { quota, .. } = node;
    let is_parent = if quota.is_parent { "true" } else { "false" };
    let figure = |(resource, amount): (&str, &Quantity)| {
        let labels = [name, resource, &quota.tree_id, is_parent, &quota.parent, field];
        let value = if resource == "cpu" { amount.milli_value() } else { amount.value() };
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        let value = value as f64;
        Figure { name: metric, labels: labels.map(str::to_owned).to_vec(), value }
    };
    amounts.iter().map(figure).collect()
}

/// A quota as people see it.
pub(super) fn summary(forest: &Forest, name: &str, node: &Node) -> Value {
    let Node { quota, sums, request, allocated, guaranteed, .. } = node;
    json!({
        "name": name,
        "parentName": quota.parent,
        "tree": quota.tree_id,
        "isParent": quota.is_parent,
        "runtimeVersion": RUNTIME_VERSION,
        "allowLentResource": quota.lends,
        "min": quota.min,
        "autoScaleMin": forest.scaled_min(name),
        "max": quota.max,
        "sharedWeight": quota.weights(),
        "runtime": *forest.shown_limit(name),
        "request": request,
        "childRequest": sums.request,
        "nonPreemptibleRequest": sums.non_preemptible_request,
        "used": sums.used,
        "nonPreemptibleUsed": sums.non_preemptible_used,
        "allocated": allocated,
        "guaranteed": guaranteed,
        "podCache": {},
    })
}
