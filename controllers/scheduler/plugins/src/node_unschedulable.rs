//! NodeUnschedulable: a cordoned node takes no pods.

use k8s_openapi::api::core::v1::Taint;
use koord_engine::{
    cluster::Cluster,
    columns::Row,
    event::Events,
    plugin::{Filter, Plugin, PreFilter, Refusal, Request},
};
use koord_scheduling::{Effect, tolerates};

/// Refuses nodes with `spec.unschedulable`, unless the pod tolerates the taint that stands for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: Effect::NoSchedule.as_str().to_owned(),
            ..Taint::default()
        };
        let is_tolerated = request.template().tolerations.iter().any(|toleration| tolerates(toleration, &taint));
        if is_tolerated { PreFilter::Skip } else { PreFilter::Nodes(Box::new(*self)) }
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<String> {
        vec!["node(s) were unschedulable".to_owned()]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_TAINTS
    }
}

impl Filter for NodeUnschedulable {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let is_cordoned = cluster.node(row).is_some_and(|node| node.unschedulable);
        if is_cordoned { Err(Refusal::unresolvable(0)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{filtered, node};

    #[test]
    fn a_cordoned_node_takes_pods_that_tolerate_it() {
        let nodes = [node("a", &json!({"spec": {"unschedulable": true}})), node("b", &json!({}))];
        let refused = ["UU node(s) were unschedulable", ""];
        assert_eq!(filtered(&NodeUnschedulable, &nodes, &json!({})), refused);
        let tolerations = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
        assert_eq!(filtered(&NodeUnschedulable, &nodes, &json!({"tolerations": tolerations})), ["", ""]);
    }
}
