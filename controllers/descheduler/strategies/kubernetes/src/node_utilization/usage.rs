//! Where utilization is known from.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::key::ObjectKey;
use koord_descheduler_framework::{Cluster, NodeId, PodId};
use koord_scheduling::{ResourceId, ResourceVector};

use super::measure::{NodeUsage, Resources};

/// What nodes and pods use.
pub(crate) trait UsageSource {
    /// What a node uses; `None` where that is not known.
    fn of_node(&self, cluster: &Cluster, resources: &Resources<'_>, node: NodeId) -> Option<NodeUsage>;
    fn of_pod(&self, cluster: &Cluster, resources: &Resources<'_>, pod: PodId) -> PodUsage;
}

/// What a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodUsage {
    /// By the order of [`Resources`].
    Amounts(Vec<i64>),
    /// The source measures nodes alone.
    NotMeasured,
    /// The source measures pods, and does not name this one.
    Unknown,
}

/// What pods request is taken for what they use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests;

/// What the metrics server has measured. It measures cpu and memory; pods are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts<'a> {
    pub(crate) nodes: &'a BTreeMap<Arc<str>, ResourceVector>,
    pub(crate) pods: &'a BTreeMap<ObjectKey, ResourceVector>,
}

/// What a query gives: how much of each node is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares<'a>(pub(crate) &'a BTreeMap<Arc<str>, f64>);

impl UsageSource for Requests {
    fn of_node(&self, cluster: &Cluster, resources: &Resources<'_>, node: NodeId) -> Option<NodeUsage> {
        Some(resources.measure(cluster, node, &counted(cluster, node, cluster.requested(node))))
    }

    fn of_pod(&self, cluster: &Cluster, resources: &Resources<'_>, pod: PodId) -> PodUsage {
        PodUsage::Amounts(resources.amounts(&one(cluster.requests(pod))))
    }
}

impl UsageSource for Amounts<'_> {
    fn of_node(&self, cluster: &Cluster, resources: &Resources<'_>, node: NodeId) -> Option<NodeUsage> {
        let usage = self.nodes.get(cluster.node_name(node))?;
        Some(resources.measure(cluster, node, &counted(cluster, node, usage)))
    }

    fn of_pod(&self, cluster: &Cluster, resources: &Resources<'_>, pod: PodId) -> PodUsage {
        let usage = cluster.pod(pod).and_then(|pod| self.pods.get(&pod.key));
        usage.map_or(PodUsage::Unknown, |usage| PodUsage::Amounts(resources.amounts(&one(usage))))
    }
}

impl UsageSource for Shares<'_> {
    /// QUIRK: whole percents count, as in the original (`a_share_counts_in_whole_percents`).
    fn of_node(&self, cluster: &Cluster, _: &Resources<'_>, node: NodeId) -> Option<NodeUsage> {
        let share = self.0.get(cluster.node_name(node))?;
        Some(NodeUsage::of_percent(node, (share * 100.0) as i64))
    }

    fn of_pod(&self, _: &Cluster, _: &Resources<'_>, _: PodId) -> PodUsage {
        PodUsage::NotMeasured
    }
}

/// The usage of a node with the number of its pods.
fn counted(cluster: &Cluster, node: NodeId, usage: &ResourceVector) -> ResourceVector {
    let mut usage = usage.clone();
    usage.set(ResourceId::PODS, i64::try_from(cluster.active_pods(node)).unwrap_or(i64::MAX));
    usage
}

/// The usage of a pod, which is one.
fn one(usage: &ResourceVector) -> ResourceVector {
    let mut usage = usage.clone();
    usage.set(ResourceId::PODS, 1);
    usage
}
