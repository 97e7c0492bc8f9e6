//! NodeUnschedulable: a cordoned node takes no pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, Plugin, PreparedFilter, Reason, ReasonCode, Refusal, Registration, Request,
    SchedulingSignature, SignatureFields,
    cluster::Cluster,
    event::{Event, Events},
    pod::{Pod, Template},
};
use koord_scheduling::{Effect, tolerates};

/// Refuses nodes with `spec.unschedulable`, unless the pod tolerates the corresponding taint.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).enqueue_extensions(&self).filter(&self).scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeUnschedulable {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_TAINTS | Events::POD_CHANGED
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            Event::NodeAdded(node) => !node.unschedulable,
            Event::NodeChanged { old, new } => old.unschedulable && !new.unschedulable,
            Event::PodChanged => is_tolerated(&pod.template),
            _ => true,
        }
    }
}

impl Filter for NodeUnschedulable {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        if is_tolerated(request.template()) {
            return PreparedFilter::Skip;
        }
        PreparedFilter::of_node(|node| Refusal::unresolvable(0).when(node.unschedulable))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::NodeUnschedulable.reason("node(s) were unschedulable").into()
    }
}

impl SchedulingSignature for NodeUnschedulable {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

/// Whether pods of the template run on cordoned nodes too.
fn is_tolerated(template: &Template) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: Effect::NoSchedule.as_str().to_owned(),
        ..Taint::default()
    };
    template.tolerations.iter().any(|toleration| tolerates(toleration, &taint))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_scheduler_framework::node::Node;
    use koord_scheduler_testing::{filtered, node, pod};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_cordoned_node_takes_pods_that_tolerate_it() {
        let nodes = [node("a", &json!({"spec": {"unschedulable": true}})), node("b", &json!({}))];
        let refused = ["UU node(s) were unschedulable", ""];
        assert_eq!(filtered(&NodeUnschedulable, &nodes, &json!({})), refused);
        let tolerations = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
        assert_eq!(filtered(&NodeUnschedulable, &nodes, &json!({"tolerations": tolerations})), ["", ""]);
    }

    #[test]
    fn a_node_helps_that_takes_pods_and_a_pod_that_tolerates_it_helps_itself() {
        let (cordoned, open) = (node("a", &json!({"spec": {"unschedulable": true}})), node("a", &json!({})));
        let tolerant = json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]});
        let helps =
            |spec: &Value, event: Event| NodeUnschedulable.is_helped_by(&pod("p", spec), &event, &Cluster::default());
        let plain = json!({});
        assert!(helps(&plain, Event::NodeAdded(Arc::clone(&open))));
        assert!(!helps(&plain, Event::NodeAdded(Arc::clone(&cordoned))));
        let changed =
            |old: &Arc<Node>, new: &Arc<Node>| Event::NodeChanged { old: Arc::clone(old), new: Arc::clone(new) };
        assert!(helps(&plain, changed(&cordoned, &open)) && !helps(&plain, changed(&open, &cordoned)));
        assert!(helps(&tolerant, Event::PodChanged) && !helps(&plain, Event::PodChanged));
    }
}
