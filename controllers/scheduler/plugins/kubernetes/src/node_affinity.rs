//! NodeAffinity: pods choose nodes by labels and names.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{Affinity, NodeAffinity as ApiAffinity, PodSpec};
use koord_config::scheduler::NodeAffinityArgs;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, NodeScore, Plugin, PreFilter, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Rejection, Request, Scale, SchedulingSignature, Score, SignatureFields,
    cluster::Cluster,
    columns::Row,
    event::{Event, Events},
    highest_is_best,
    node::Node,
    pod::{Pod, Template},
};
use koord_scheduling::PreferredNodes;

/// Refuses nodes that `nodeSelector` and the required node affinity do not select, and prefers those that the preferred
/// terms do.
#[derive(Clone, Debug, Default)]
pub struct NodeAffinity {
    added: Arc<Added>,
}

/// What holds for all pods, beside what they say themselves.
#[derive(Debug, Default)]
struct Added {
    required: koord_scheduling::NodeAffinity,
    preferred: PreferredNodes,
}

impl NodeAffinity {
    /// With these arguments. An error where the added affinity is no node affinity.
    pub fn new(args: NodeAffinityArgs) -> Result<Self, serde_json::Error> {
        let added = args.added_affinity.map(serde_json::from_value).transpose()?;
        Ok(added.map(|added| Self::with_added(&added)).unwrap_or_default())
    }

    /// With node affinity that holds for all pods.
    fn with_added(added: &ApiAffinity) -> Self {
        let affinity = Affinity { node_affinity: Some(added.clone()), ..Affinity::default() };
        let required =
            koord_scheduling::NodeAffinity::required(&PodSpec { affinity: Some(affinity), ..PodSpec::default() });
        let preferred = added.preferred_during_scheduling_ignored_during_execution.as_deref().unwrap_or_default();
        Self { added: Arc::new(Added { required, preferred: PreferredNodes::new(preferred) }) }
    }
}

/// What is said of terms whose names leave no node.
const CONFLICTING: &str = "pod affinity terms conflict";

const NOT_SELECTED: u16 = 0;
const CONFLICT: u16 = 1;
const NOT_ADDED: u16 = 3;

struct Required {
    added: Arc<Added>,
    template: Arc<Template>,
}

struct Preferred(Arc<Added>, Arc<Template>);

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeAffinity {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        let is_selected =
            |node: &Node, by: &koord_scheduling::NodeAffinity| by.selects(&node.name, |key| node.labels.get(key));
        let affinity = &pod.template.affinity;
        let selects = |node: &Node| is_selected(node, &self.added.required) && is_selected(node, affinity);
        match event {
            Event::NodeAdded(node) => selects(node),
            Event::NodeChanged { old, new } => selects(new) && !selects(old),
            _ => true,
        }
    }
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        if request.template().affinity.names().is_some_and(BTreeSet::is_empty) {
            return Err(Rejection::unresolvable(ReasonCode::NodeAffinityConflict.reason(CONFLICTING)));
        }
        Ok(())
    }
}

impl Filter for NodeAffinity {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        let template = request.template();
        if template.affinity.is_everything() && self.added.required.is_everything() {
            return PreparedFilter::Skip;
        }
        let names = template.affinity.names();
        if names.is_some_and(BTreeSet::is_empty) {
            return PreparedFilter::None(Refusal::unresolvable(CONFLICT));
        }
        let required = Box::new(Required { added: Arc::clone(&self.added), template: Arc::clone(template) });
        match names {
            Some(names) => PreparedFilter::NodeNames(names.iter().cloned().collect(), Some(required)),
            None => PreparedFilter::Nodes(required),
        }
    }

    fn names_nodes(&self) -> bool {
        true
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        let (code, words) = match refusal.reason {
            CONFLICT => (ReasonCode::NodeAffinityConflict, CONFLICTING),
            NOT_ADDED => (ReasonCode::NodeAffinityEnforced, "node(s) didn't match scheduler-enforced node affinity"),
            _ => (ReasonCode::NodeAffinityMismatch, "node(s) didn't match Pod's node affinity/selector"),
        };
        code.reason(words).into()
    }
}

impl Score for NodeAffinity {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        let template = request.template();
        let is_compared = !template.preferred.is_empty() || !self.added.preferred.is_empty();
        is_compared.then(|| Box::new(Preferred(Arc::clone(&self.added), Arc::clone(template))) as Box<dyn NodeScore>)
    }
}

impl SchedulingSignature for NodeAffinity {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl NodeFilter for Required {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node) = cluster.node(row) else { return Err(Refusal::unresolvable(NOT_SELECTED)) };
        if !self.added.required.selects(&node.name, |key| node.labels.get(key)) {
            return Err(Refusal::unresolvable(NOT_ADDED));
        }
        let is_selected = self.template.affinity.selects(&node.name, |key| node.labels.get(key));
        if is_selected { Ok(()) } else { Err(Refusal::unresolvable(NOT_SELECTED)) }
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        Some(self.filter(cluster, row))
    }
}

impl NodeScore for Preferred {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let Self(added, template) = self;
        let score = |node: &Node, terms: &PreferredNodes| terms.score(&node.name, |key| node.labels.get(key));
        cluster.node(row).map_or(0, |node| score(node, &added.preferred) + score(node, &template.preferred))
    }

    fn scale(&self) -> Option<Scale> {
        Some(highest_is_best)
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{Nodes, filtered, node, pod, scored};
    use serde_json::json;

    use super::*;

    fn nodes() -> Nodes {
        let labelled = |name: &str, zone: &str| node(name, &json!({"metadata": {"labels": {"zone": zone}}}));
        vec![labelled("n1", "a"), labelled("n2", "b")]
    }

    fn required(term: &serde_json::Value) -> serde_json::Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}})
    }

    #[test]
    fn selectors_terms_and_names_refuse_nodes() {
        let refused = "UU node(s) didn't match Pod's node affinity/selector";
        assert_eq!(filtered(&NodeAffinity::default(), &nodes(), &json!({})), ["", ""]);
        assert_eq!(
            filtered(&NodeAffinity::default(), &nodes(), &json!({"nodeSelector": {"zone": "b"}})),
            [refused, ""]
        );
        let zone = |operator| json!({"matchExpressions": [{"key": "zone", "operator": operator, "values": ["a"]}]});
        assert_eq!(filtered(&NodeAffinity::default(), &nodes(), &required(&zone("NotIn"))), [refused, ""]);
        let name = |names: &[&str]| json!({"key": "metadata.name", "operator": "In", "values": names});
        let named = required(&json!({"matchFields": [name(&["n2"])]}));
        assert_eq!(filtered(&NodeAffinity::default(), &nodes(), &named), ["left out", ""]);
        let conflict = required(&json!({"matchFields": [name(&["n1"]), name(&["n2"])]}));
        assert_eq!(filtered(&NodeAffinity::default(), &nodes(), &conflict), ["UU pod affinity terms conflict"; 2]);
    }

    #[test]
    fn preferred_terms_count_by_weight() {
        assert_eq!(scored(&NodeAffinity::default(), &nodes(), &json!({})), None);
        let term = |zone: &str, weight: i32| {
            let expression = json!({"key": "zone", "operator": "In", "values": [zone]});
            json!({"weight": weight, "preference": {"matchExpressions": [expression]}})
        };
        let terms = [term("a", 20), term("a", 30), term("b", 10)];
        let preferred =
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}});
        assert_eq!(scored(&NodeAffinity::default(), &nodes(), &preferred), Some(vec![100, 20]));
    }

    #[test]
    fn what_is_added_for_all_pods_comes_first() {
        let term = |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        let added = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term("a")]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 30, "preference": term("b")}],
        });
        let plugin = NodeAffinity::with_added(&serde_json::from_value(added).unwrap());
        let refused = "UU node(s) didn't match scheduler-enforced node affinity";
        assert_eq!(filtered(&plugin, &nodes(), &json!({})), ["", refused]);
        let unselected = "UU node(s) didn't match Pod's node affinity/selector";
        assert_eq!(filtered(&plugin, &nodes(), &json!({"nodeSelector": {"zone": "b"}})), [unselected, refused]);
        assert_eq!(scored(&plugin, &nodes(), &json!({})), Some(vec![0, 100]));
        let preferred = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": term("b")}, {"weight": 80, "preference": term("a")},
        ]}}});
        assert_eq!(scored(&plugin, &nodes(), &preferred), Some(vec![100, 50]));
    }

    #[test]
    fn a_node_helps_that_is_selected_now_and_was_not_before() {
        let nodes = nodes();
        let waiting = pod("p", &json!({"nodeSelector": {"zone": "b"}}));
        let plugin = NodeAffinity::default();
        let helps = |event: Event| plugin.is_helped_by(&waiting, &event, &Cluster::default());
        let added = |node: &Arc<Node>| helps(Event::NodeAdded(Arc::clone(node)));
        assert_eq!((added(&nodes[0]), added(&nodes[1])), (false, true));
        let changed = |old: usize, new: usize| {
            helps(Event::NodeChanged { old: Arc::clone(&nodes[old]), new: Arc::clone(&nodes[new]) })
        };
        assert_eq!([changed(0, 1), changed(1, 1), changed(1, 0)], [true, false, false]);
    }
}
