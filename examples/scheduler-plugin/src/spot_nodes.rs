//! Nodes that may be taken away are for pods that may be interrupted, and those prefer them.

use std::sync::Arc;

use koord_scheduler_framework::prelude::*;

pub(crate) struct SpotNodes;

impl Plugin for SpotNodes {
    fn name(&self) -> &'static str {
        "SpotNodes"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).filter(&self).score(&self).retried_after(Events::NODE_ADDED | Events::NODE_LABELS)
    }
}

impl Filter for SpotNodes {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        if may_be_interrupted(request) {
            return PreparedFilter::Skip;
        }
        PreparedFilter::of_node(|node| Refusal::unresolvable(0).when(is_spot(node)))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        vec![ReasonCode::PluginSpecific.reason("node(s) that may be taken away")]
    }
}

impl Score for SpotNodes {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        may_be_interrupted(request).then(|| score_of_node(|node| if is_spot(node) { SCORE_MAX } else { 0 }))
    }
}

fn may_be_interrupted(request: &Request<'_>) -> bool {
    request.template().labels.get("example.com/interruptible") == Some("true")
}

fn is_spot(node: &Node) -> bool {
    node.labels.get("example.com/spot") == Some("true")
}
