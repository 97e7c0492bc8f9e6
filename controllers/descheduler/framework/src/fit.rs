//! Which pods fit which nodes, by the two rules that descheduling knows: Koordinator's and that of kubernetes-sigs/descheduler. What other pods that are
//! evicted in the same pass leave is not counted.

use k8s_openapi::api::core::v1::Taint;
use koord_scheduling::{Effect, ResourceId, ResourceVector, untolerated};

use crate::{
    cluster::{Cluster, NodeId, PodId},
    node::Node,
    pod::Pod,
    reason::ReasonCode,
    refusal::Refusal,
    toleration,
};

/// Why a pod does not fit a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// The node is cordoned.
    Unschedulable,
    /// Its node selector or required affinity does not select the node.
    Affinity,
    /// A taint is not tolerated.
    Taint,
    /// Its required anti-affinity forbids a pod of the node.
    AntiAffinity,
    /// It requests more of a resource than is free.
    Resource(ResourceId),
    /// The node has as many pods as it may have.
    PodSlots,
}

/// By which rule a pod fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Koordinator's: the number of pods and anti-affinity do not count, and a pod is counted on its own node like any other.
    Koordinator,
    /// That of kubernetes-sigs/descheduler: on its own node the requests of a pod do not count.
    Kubernetes,
}

impl Misfit {
    /// As the reason why a pod stays.
    pub fn text(self, cluster: &Cluster) -> String {
        match self {
            Self::Unschedulable => "is cordoned".to_owned(),
            Self::Affinity => "is not selected by node selector or affinity".to_owned(),
            Self::Taint => "has a taint that is not tolerated".to_owned(),
            Self::AntiAffinity => "has a pod that anti-affinity forbids".to_owned(),
            Self::Resource(id) => format!("has too little {}", cluster.resources().name(id)),
            Self::PodSlots => "has as many pods as it may".to_owned(),
        }
    }
}

impl Rule {
    /// Whether a pod fits a node.
    pub fn check(self, cluster: &Cluster, id: PodId, node: NodeId) -> Result<(), Misfit> {
        let (Some(pod), Some(on)) = (cluster.pod(id), cluster.node(node)) else { return Err(Misfit::Affinity) };
        if on.is_unschedulable {
            return Err(Misfit::Unschedulable);
        }
        selects(pod, on).then_some(()).ok_or(Misfit::Affinity)?;
        self.tolerates(pod, on).then_some(()).ok_or(Misfit::Taint)?;
        if self == Self::Koordinator {
            return has_free(cluster, node, cluster.requests(id)).map_err(Misfit::Resource);
        }
        if pod.node.as_ref() != Some(&on.name) {
            has_free(cluster, node, cluster.requests(id)).map_err(Misfit::Resource)?;
            let slots = cluster.allocatable(node).get(ResourceId::PODS);
            if i64::try_from(cluster.active_pods(node)).unwrap_or(i64::MAX) >= slots {
                return Err(Misfit::PodSlots);
            }
        }
        // The dearest check comes last.
        if is_forbidden(cluster, pod, node) { Err(Misfit::AntiAffinity) } else { Ok(()) }
    }

    /// Whether a pod tolerates all taints of a node that keep pods away or evict them. That of kubernetes-sigs/descheduler compares numbers too.
    fn tolerates(self, pod: &Pod, node: &Node) -> bool {
        match self {
            Self::Koordinator => tolerates(pod, node),
            Self::Kubernetes => {
                let counts = |taint: &&Taint| Effect::HARD.iter().any(|effect| effect.as_str() == taint.effect);
                let tolerations = &pod.template.placement.tolerations;
                let is_tolerated =
                    |taint| tolerations.iter().any(|toleration| toleration::tolerates(toleration, taint));
                node.taints.iter().filter(counts).all(is_tolerated)
            }
        }
    }

    /// Whether a pod fits one of these nodes, but for its own. The refusal says what is against the nodes.
    pub fn fits_other(
        self,
        cluster: &Cluster,
        id: PodId,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<NodeId, Refusal> {
        let own = cluster.node_of(id);
        self.fits_any(cluster, id, nodes.into_iter().filter(|node| Some(*node) != own))
    }

    /// Whether a pod fits one of these nodes.
    pub fn fits_any(
        self,
        cluster: &Cluster,
        id: PodId,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<NodeId, Refusal> {
        let mut misfits = std::collections::BTreeMap::<Misfit, usize>::new();
        for node in nodes {
            match self.check(cluster, id, node) {
                Ok(()) => return Ok(node),
                Err(misfit) => *misfits.entry(misfit).or_default() += 1,
            }
        }
        let refusal = Refusal::new(ReasonCode::NoOtherNodeFits).with("nodes", misfits.values().sum::<usize>());
        // What is against most of them is worth knowing.
        let most = misfits.iter().max_by_key(|(misfit, count)| (**count, std::cmp::Reverse(**misfit)));
        Err(match most {
            Some((misfit, count)) => {
                let text = format!("{count} of them: the node {}", misfit.text(cluster));
                refusal.with("most", std::sync::Arc::<str>::from(text))
            }
            None => refusal,
        })
    }
}

/// Whether a pod's node selector and required affinity select a node.
pub fn selects(pod: &Pod, node: &Node) -> bool {
    pod.template.placement.affinity.selects(&node.name, |key| node.label(key))
}

/// Whether a pod tolerates all taints of a node that keep pods away or evict them.
pub fn tolerates(pod: &Pod, node: &Node) -> bool {
    untolerated(&node.taints, &pod.template.placement.tolerations, &Effect::HARD).is_none()
}

/// The first resource of which a node has less free than is requested. A resource that the node does not have is missing where any of it is requested.
pub fn has_free(cluster: &Cluster, node: NodeId, requests: &ResourceVector) -> Result<(), ResourceId> {
    let (allocatable, requested) = (cluster.allocatable(node), cluster.requested(node));
    let lacks = |(id, amount): (ResourceId, i64)| {
        (id != ResourceId::PODS && amount > 0 && amount > allocatable.get(id).saturating_sub(requested.get(id)))
            .then_some(id)
    };
    requests.iter().find_map(lacks).map_or(Ok(()), Err)
}

/// Whether the pod's own required anti-affinity forbids a pod that shares a domain with the node. A node without the label of a domain forbids nothing.
fn is_forbidden(cluster: &Cluster, pod: &Pod, node: NodeId) -> bool {
    let terms = &pod.template.placement.pod_affinity.forbidden;
    let Some(target) = cluster.node(node).filter(|_| !terms.is_empty()) else { return false };
    let none = koord_scheduler_framework::labels::Labels::default();
    terms.iter().any(|term| {
        let Some(domain) = target.label(&term.topology_key) else { return false };
        let near = cluster.nodes_labelled(&term.topology_key, domain).iter();
        near.flat_map(|near| cluster.active_pods_on(*near)).any(|(_, other)| {
            let namespace = cluster.objects().get::<crate::objects::Namespace>(other.namespace());
            let of_namespace = namespace.map_or(&none, |namespace| &namespace.labels);
            other.key != pod.key && term.means(other.namespace(), &other.template.placement.labels, of_namespace)
        })
    })
}
