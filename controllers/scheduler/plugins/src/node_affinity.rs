//! NodeAffinity: pods choose nodes by labels and names.

use std::{collections::BTreeSet, sync::Arc};

use koord_engine::{
    cluster::Cluster,
    columns::Row,
    event::Events,
    plugin::{Filter, Plugin, PreFilter, Refusal, Request, Score, default_normalize},
    pod::Template,
};

/// Refuses nodes that `nodeSelector` and the required node affinity do not select, and prefers those that the preferred
/// terms do.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeAffinity;

const NOT_SELECTED: u16 = 0;
const CONFLICT: u16 = 1;
const OTHER_NAME: u16 = 2;

struct Required {
    template: Arc<Template>,
    /// The names that can be selected at all; none where any can.
    names: Option<BTreeSet<Box<str>>>,
}

struct Preferred(Arc<Template>);

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        let template = request.template();
        if template.affinity.is_everything() {
            return PreFilter::Skip;
        }
        let names = template.affinity.names();
        if names.as_ref().is_some_and(BTreeSet::is_empty) {
            return PreFilter::None(Refusal::unresolvable(CONFLICT));
        }
        let names = names.map(|names| names.into_iter().map(Box::from).collect());
        PreFilter::Nodes(Box::new(Required { template: Arc::clone(template), names }))
    }

    fn score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn Score>> {
        let template = request.template();
        (!template.preferred.is_empty()).then(|| Box::new(Preferred(Arc::clone(template))) as Box<dyn Score>)
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<String> {
        let reason = match refusal.reason {
            CONFLICT => "pod affinity terms conflict",
            OTHER_NAME => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            _ => "node(s) didn't match Pod's node affinity/selector",
        };
        vec![reason.to_owned()]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS
    }
}

impl Filter for Required {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node) = cluster.node(row) else { return Err(Refusal::unresolvable(NOT_SELECTED)) };
        if self.names.as_ref().is_some_and(|names| !names.contains(&*node.name)) {
            return Err(Refusal::unresolvable(OTHER_NAME));
        }
        let is_selected = self.template.affinity.selects(&node.name, |key| node.labels.get(key));
        if is_selected { Ok(()) } else { Err(Refusal::unresolvable(NOT_SELECTED)) }
    }
}

impl Score for Preferred {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.node(row).map_or(0, |node| self.0.preferred.score(&node.name, |key| node.labels.get(key)))
    }

    fn normalize(&self, scores: &mut [i64]) {
        default_normalize(scores, false);
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Nodes, filtered, node, scored};

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
        assert_eq!(filtered(&NodeAffinity, &nodes(), &json!({})), ["", ""]);
        assert_eq!(filtered(&NodeAffinity, &nodes(), &json!({"nodeSelector": {"zone": "b"}})), [refused, ""]);
        let zone = |operator| json!({"matchExpressions": [{"key": "zone", "operator": operator, "values": ["a"]}]});
        assert_eq!(filtered(&NodeAffinity, &nodes(), &required(&zone("NotIn"))), [refused, ""]);
        let name = |names: &[&str]| json!({"key": "metadata.name", "operator": "In", "values": names});
        let named = required(&json!({"matchFields": [name(&["n2"])]}));
        assert_eq!(
            filtered(&NodeAffinity, &nodes(), &named),
            ["UU node(s) didn't satisfy plugin(s) [NodeAffinity]", ""]
        );
        let conflict = required(&json!({"matchFields": [name(&["n1"]), name(&["n2"])]}));
        assert_eq!(filtered(&NodeAffinity, &nodes(), &conflict), ["UU pod affinity terms conflict"; 2]);
    }

    #[test]
    fn preferred_terms_count_by_weight() {
        assert_eq!(scored(&NodeAffinity, &nodes(), &json!({})), None);
        let term = |zone: &str, weight: i32| {
            let expression = json!({"key": "zone", "operator": "In", "values": [zone]});
            json!({"weight": weight, "preference": {"matchExpressions": [expression]}})
        };
        let terms = [term("a", 20), term("a", 30), term("b", 10)];
        let preferred =
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}});
        assert_eq!(scored(&NodeAffinity, &nodes(), &preferred), Some(vec![100, 20]));
    }
}
