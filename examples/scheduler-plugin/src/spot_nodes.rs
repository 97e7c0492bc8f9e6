//! Nodes that may be taken away are for pods that may be interrupted, and those prefer them.

use koord_engine::{
    cluster::Cluster,
    columns::Row,
    event::Events,
    labels::Labels,
    plugin::{Filter, Plugin, PreFilter, Reason, ReasonCode, Refusal, Request, SCORE_MAX, Score},
};

pub(crate) struct SpotNodes;

impl Plugin for SpotNodes {
    fn name(&self) -> &'static str {
        "SpotNodes"
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        if may_be_interrupted(request) { PreFilter::Skip } else { PreFilter::Nodes(Box::new(Steady)) }
    }

    fn score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn Score>> {
        may_be_interrupted(request).then(|| -> Box<dyn Score> { Box::new(Spot) })
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        vec![ReasonCode::PluginSpecific.says("node(s) that may be taken away")]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS
    }
}

fn may_be_interrupted(request: &Request<'_>) -> bool {
    is_true(&request.template().labels, "example.com/interruptible")
}

fn is_spot(cluster: &Cluster, row: Row) -> bool {
    cluster.node(row).is_some_and(|node| is_true(&node.labels, "example.com/spot"))
}

fn is_true(labels: &Labels, key: &str) -> bool {
    labels.get(key) == Some("true")
}

/// Refuses nodes that may be taken away.
struct Steady;

impl Filter for Steady {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        if is_spot(cluster, row) { Err(Refusal::unresolvable(0)) } else { Ok(()) }
    }
}

/// Prefers them.
struct Spot;

impl Score for Spot {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        if is_spot(cluster, row) { SCORE_MAX } else { 0 }
    }

    fn is_local(&self) -> bool {
        true
    }
}
