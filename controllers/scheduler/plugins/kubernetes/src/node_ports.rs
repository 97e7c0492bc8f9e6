//! NodePorts: two pods of a node cannot have the same port of it.

use std::sync::Arc;

use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, Plugin, PreparedFilter, Reason, ReasonCode, Refusal, Registration, Request,
    SchedulingSignature, SignatureFields,
    cluster::Cluster,
    columns::Row,
    event::{Event, Events},
    pod::{Pod, Template},
};

/// Refuses nodes on which a pod has a host port that this one requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodePorts;

struct HostPortsFilter(Arc<Template>);

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).enqueue_extensions(&self).filter(&self).scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodePorts {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::POD_REMOVED
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            Event::PodRemoved(gone) => pod.template.host_ports.conflict(&gone.template.host_ports),
            _ => true,
        }
    }
}

impl Filter for NodePorts {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        if request.template().host_ports.is_empty() {
            return PreparedFilter::Skip;
        }
        PreparedFilter::Nodes(Box::new(HostPortsFilter(Arc::clone(request.template()))))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::HostPortInUse.reason("node(s) didn't have free ports for the requested pod ports").into()
    }
}

impl SchedulingSignature for NodePorts {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl NodeFilter for HostPortsFilter {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let mut classes = cluster.residents(row).iter().map(|residents| residents.class.template());
        let is_taken = classes.any(|template| self.0.host_ports.conflict(&template.host_ports));
        Refusal::resolvable(0, 0).when(is_taken)
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, alike: usize) -> Option<Result<(), Refusal>> {
        Some(if alike > 0 { Err(Refusal::resolvable(0, 0)) } else { self.filter(cluster, row) })
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{cluster, filtered_in, node, pod};
    use serde_json::{Value, json};

    use super::*;

    fn spec(port: u16) -> Value {
        json!({"containers": [{"ports": [{"containerPort": 1, "hostPort": port}, {"containerPort": 2}]}]})
    }

    #[test]
    fn a_port_is_taken_once_per_node() {
        let mut cluster = cluster(&[node("a", &json!({})), node("b", &json!({}))]);
        cluster.place(pod("web", &spec(80)), &"a".into(), koord_scheduler_framework::hold::Holds::default());
        let refused = "U node(s) didn't have free ports for the requested pod ports";
        assert_eq!(filtered_in(&NodePorts, &mut cluster, &spec(80)), [refused, ""]);
        assert_eq!(filtered_in(&NodePorts, &mut cluster, &spec(81)), ["", ""]);
        assert_eq!(filtered_in(&NodePorts, &mut cluster, &json!({})), ["", ""]);
        let gone = |port| Event::PodRemoved(pod("gone", &spec(port)));
        assert!(NodePorts.is_helped_by(&pod("b", &spec(80)), &gone(80), &Cluster::default()));
        assert!(!NodePorts.is_helped_by(&pod("b", &spec(80)), &gone(81), &Cluster::default()));
    }
}
