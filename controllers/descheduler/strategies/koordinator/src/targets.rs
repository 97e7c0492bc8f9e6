//! Nodes that may take pods, and what is left of them while a pass decides what moves there.

use koord_descheduler_framework::{Cluster, Node, NodeId, PodId, ReasonCode, Refusal, fit};
use koord_scheduling::ResourceVector;

/// Nodes that may take pods, in the order in which they are tried. Koordinator's rule of fitting counts: the number of pods and anti-affinity do not.
pub(crate) struct Targets<'a> {
    cluster: &'a Cluster,
    nodes: Vec<Target<'a>>,
    /// By the number of a pod's equivalence class, and of a target: whether the one may run on the other, as far as that is known.
    may_run: Vec<Vec<MayRun>>,
}

struct Target<'a> {
    id: NodeId,
    node: &'a Node,
    /// What is allocatable, less what the pods of the node request, and less what pods of this pass will.
    free: ResourceVector,
}

/// Whether selectors and taints let a pod run on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MayRun {
    #[default]
    Unknown,
    Yes,
    No,
}

impl<'a> Targets<'a> {
    pub(crate) fn new(cluster: &'a Cluster, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let target = |id| {
            let mut free = cluster.allocatable(id).clone();
            free.subtract(cluster.requested(id));
            Some(Target { id, node: cluster.node(id)?, free })
        };
        let nodes = nodes.into_iter().filter_map(target).collect();
        Self { cluster, nodes, may_run: vec![Vec::new(); cluster.equivalence_classes_max()] }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a target.
    pub(crate) fn node(&self, target: usize) -> Option<NodeId> {
        self.nodes.get(target).map(|target| target.id)
    }

    /// Whether a target has enough free for what a pod requests.
    pub(crate) fn has_free(&self, target: usize, requests: &ResourceVector) -> bool {
        self.nodes.get(target).is_some_and(|target| requests.exceeding(&target.free).is_none())
    }

    /// What a target has free.
    pub(crate) fn free(&self, target: usize) -> Option<&ResourceVector> {
        self.nodes.get(target).map(|target| &target.free)
    }

    /// What a pod requests.
    pub(crate) fn requests(&self, pod: PodId) -> &'a ResourceVector {
        self.cluster.requests(pod)
    }

    /// Whether a pod may run on a target: it is not cordoned, the pod's selectors select it, and the pod tolerates its taints. That depends on the
    /// template alone, and is found out once.
    pub(crate) fn may_run(&mut self, target: usize, pod: PodId) -> bool {
        let (Some(on), Some(running)) = (self.nodes.get(target), self.cluster.pod(pod)) else { return false };
        if on.node.is_unschedulable {
            return false;
        }
        if on.node.taints.is_empty() && running.template.placement.affinity.is_everything() {
            return true;
        }
        let Some(known) = self.may_run.get_mut(self.cluster.equivalence_class(pod)) else { return false };
        if known.is_empty() {
            known.resize(self.nodes.len(), MayRun::Unknown);
        }
        let Some(known) = known.get_mut(target) else { return false };
        if *known == MayRun::Unknown {
            let may_run = fit::selects(running, on.node) && fit::tolerates(running, on.node);
            *known = if may_run { MayRun::Yes } else { MayRun::No };
        }
        *known == MayRun::Yes
    }

    /// The first target from a place on that a pod fits, but for its own node.
    pub(crate) fn first(&mut self, pod: PodId, from: usize) -> Option<usize> {
        let (own, requests) = (self.cluster.node_of(pod), self.cluster.requests(pod));
        (from..self.len())
            .find(|target| self.has_free(*target, requests) && self.node(*target) != own && self.may_run(*target, pod))
    }

    /// A pod is to run on a target, if on any.
    pub(crate) fn take(&mut self, target: Option<usize>, pod: PodId) {
        let requests = self.cluster.requests(pod);
        if let Some(target) = target.and_then(|target| self.nodes.get_mut(target)) {
            target.free.subtract(requests);
        }
    }

    /// A pod is not to run on a target after all.
    pub(crate) fn give_back(&mut self, target: usize, pod: PodId) {
        let requests = self.cluster.requests(pod);
        if let Some(target) = self.nodes.get_mut(target) {
            target.free.add(requests);
        }
    }

    /// Why a pod that fits no target stays.
    pub(crate) fn refusal(&self) -> Refusal {
        Refusal::new(ReasonCode::NoOtherNodeFits).with("nodes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use koord_descheduler_testing::{cluster, node, pod, with};
    use serde_json::{Value, json};

    use super::*;

    fn requesting(name: &str, cpu: &str) -> Value {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        with(&pod(name, "n1"), &json!({"spec": {"containers": [container]}}))
    }

    #[test]
    fn what_a_pod_takes_is_gone_until_it_is_given_back() {
        let small = |name: &str| with(&node(name), &json!({"status": {"allocatable": {"cpu": "3"}}}));
        let cluster = cluster(&[node("n1"), small("n2"), small("n3"), requesting("a", "2"), requesting("b", "2")]);
        let [a, b] = ["default/a", "default/b"].map(|key| cluster.pod_id(key).unwrap());
        let mut targets = Targets::new(&cluster, cluster.nodes().map(|(id, _)| id).collect::<Vec<_>>());
        assert_eq!(targets.first(a, 0), Some(1), "its own node is none");
        targets.take(Some(1), a);
        assert_eq!((targets.first(b, 0), targets.first(b, 2)), (Some(2), Some(2)));
        targets.take(Some(2), b);
        assert_eq!(targets.first(b, 0), None);
        targets.give_back(1, a);
        assert_eq!(targets.first(b, 0), Some(1));
    }

    #[test]
    fn cordons_taints_and_selectors_are_looked_at() {
        let tainted = with(&node("n2"), &json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}));
        let cordoned = with(&node("n3"), &json!({"spec": {"unschedulable": true}}));
        let preferring = with(&node("n4"), &json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}}));
        let tolerating = with(&pod("b", "n1"), &json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}));
        let selecting = with(&pod("c", "n1"), &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n3"}}}));
        let cluster = cluster(&[node("n1"), tainted, cordoned, preferring, pod("a", "n1"), tolerating, selecting]);
        let mut targets = Targets::new(&cluster, cluster.nodes().map(|(id, _)| id).collect::<Vec<_>>());
        let mut first = |key: &str| targets.first(cluster.pod_id(key).unwrap(), 0);
        assert_eq!([first("default/a"), first("default/b"), first("default/c")], [Some(3), Some(1), None]);
        assert_eq!([first("default/a"), first("default/b"), first("default/c")], [Some(3), Some(1), None], "again");
    }
}
