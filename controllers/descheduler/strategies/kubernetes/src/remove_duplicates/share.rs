//! How many pods of an owner each node should have.

use koord_descheduler_framework::{Cluster, Node, NodeId, Pod, PodId, ReasonCode, Refusal, fit, toleration};
use koord_scheduling::{Effect, ResourceId};

/// Pods of one owner with the same images.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) kind: &'a str,
    pub(super) owner: &'a str,
    pub(super) pods: usize,
    /// The nodes that have some of them, in their order.
    pub(super) holders: Vec<Holder>,
}

/// A node that has pods of a group.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    /// Its position among the nodes of the pass.
    pub(super) at: usize,
    pub(super) pods: usize,
    /// All but the first pod of each identity.
    pub(super) duplicates: Vec<PodId>,
}

impl<'a> Group<'a> {
    pub(super) fn new(kind: &'a str, owner: &'a str) -> Self {
        Self { kind, owner, pods: 0, holders: Vec::new() }
    }

    /// Adds a pod. Nodes come one after the other.
    pub(super) fn add(&mut self, at: usize, duplicate: Option<PodId>) {
        if self.holders.last().is_none_or(|holder| holder.at != at) {
            self.holders.push(Holder { at, pods: 0, duplicates: Vec::new() });
        }
        self.pods += 1;
        if let Some(holder) = self.holders.last_mut() {
            holder.pods += 1;
            holder.duplicates.extend(duplicate);
        }
    }

    pub(super) fn has_duplicates(&self) -> bool {
        self.holders.iter().any(|holder| !holder.duplicates.is_empty())
    }
}

/// The nodes that can have pods of a group, and how many each should have.
#[derive(Debug)]
pub(super) struct Shares<'a> {
    /// The most pods of the group that a node should have.
    pub(super) share: usize,
    /// How many nodes can have pods of the group.
    pub(super) targets: usize,
    shapes: Vec<Shape>,
    /// How many pods of the group each node of the pass has, with those that are expected to come.
    counts: &'a mut [usize],
}

/// Pods of a group that fit the same nodes.
#[derive(Debug)]
struct Shape {
    like: PodId,
    targets: Vec<Target>,
    /// The targets before this one take no more.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    at: usize,
    /// How many pods it can take beside those that it has.
    room: usize,
}

impl<'a> Shares<'a> {
    /// `counts` has a 0 for each of the nodes.
    ///
    /// A node is counted where the group's pods may be, and either are already or have room; the original counts those that are cordoned and full, so that
    /// pods are evicted that come back. As many nodes as the group has pods are enough: with more of them the share is 1 as well.
    pub(super) fn new(
        cluster: &Cluster,
        nodes: &[NodeId],
        group: &Group<'_>,
        counts: &'a mut [usize],
    ) -> Result<Self, Refusal> {
        for holder in &group.holders {
            counts[holder.at] = holder.pods;
        }
        let mut shapes: Vec<Shape> = Vec::new();
        let mut classes: Vec<usize> = Vec::new();
        for id in group.holders.iter().flat_map(|holder| &holder.duplicates) {
            let class = cluster.equivalence_class(*id);
            if classes.contains(&class) {
                continue;
            }
            classes.push(class);
            if !shapes.iter().any(|shape| are_alike(cluster, shape.like, *id)) {
                let targets = targets(cluster, nodes, group, *id, counts);
                shapes.push(Shape { like: *id, targets, next: 0 });
            }
        }
        let mut all: Vec<usize> = Vec::new();
        // Pods that fit one node only are not to be spread.
        for shape in shapes.iter().filter(|shape| shape.targets.len() > 1) {
            all.extend(shape.targets.iter().map(|target| target.at));
        }
        all.sort_unstable();
        all.dedup();
        if all.len() < 2 {
            return Err(Refusal::new(ReasonCode::TooFewTargetNodes).with("nodes", all.len()));
        }
        Ok(Self { share: group.pods.div_ceil(all.len()), targets: all.len(), shapes, counts })
    }

    /// A node below its share that can take a pod of the node `from`.
    pub(super) fn target(&mut self, cluster: &Cluster, pod: PodId, from: usize) -> Option<(usize, usize)> {
        let (share, counts) = (self.share, &self.counts);
        let number = self.shapes.iter().position(|shape| are_alike(cluster, shape.like, pod))?;
        let shape = self.shapes.get_mut(number)?;
        let takes = |target: &Target| target.room > 0 && counts[target.at] < share;
        let is_exhausted = |target: &&Target| target.at != from && !takes(target);
        shape.next += shape.targets[shape.next..].iter().take_while(is_exhausted).count();
        let found = shape.targets[shape.next..].iter().position(|target| target.at != from && takes(target))?;
        Some((number, shape.next + found))
    }

    /// A pod goes from a node to a target.
    pub(super) fn move_to(&mut self, (shape, target): (usize, usize), from: usize) {
        self.counts[from] = self.counts[from].saturating_sub(1);
        if let Some(target) = self.shapes.get_mut(shape).and_then(|shape| shape.targets.get_mut(target)) {
            target.room -= 1;
            self.counts[target.at] += 1;
        }
    }
}

/// Whether pods fit the same nodes.
fn are_alike(cluster: &Cluster, one: PodId, other: PodId) -> bool {
    if cluster.equivalence_class(one) == cluster.equivalence_class(other) {
        return true;
    }
    let (Some(one_pod), Some(other_pod)) = (cluster.pod(one), cluster.pod(other)) else { return false };
    let (first, second) = (&one_pod.template.placement, &other_pod.template.placement);
    first.tolerations == second.tolerations
        && first.affinity == second.affinity
        && cluster.requests(one) == cluster.requests(other)
}

/// The nodes that can have pods like this one: first those that have some, then others, as many as the group has pods.
fn targets(cluster: &Cluster, nodes: &[NodeId], group: &Group<'_>, like: PodId, counts: &[usize]) -> Vec<Target> {
    let Some(pod) = cluster.pod(like) else { return Vec::new() };
    let target = |at: usize| {
        let (id, node) = (nodes[at], cluster.node(nodes[at])?);
        let room = if node.is_unschedulable { 0 } else { room(cluster, like, id) };
        let counts = (counts[at] > 0 || room > 0) && fit::selects(pod, node) && tolerates(pod, node);
        counts.then_some(Target { at, room })
    };
    let holders = group.holders.iter().map(|holder| holder.at);
    let others = (0..nodes.len()).filter(|at| counts[*at] == 0);
    holders.chain(others).filter_map(target).take(group.pods.max(2)).collect()
}

/// How many more pods like this one a node has room for.
fn room(cluster: &Cluster, like: PodId, node: NodeId) -> usize {
    let (allocatable, requested) = (cluster.allocatable(node), cluster.requested(node));
    let slots = allocatable.get(ResourceId::PODS);
    let slots = slots.saturating_sub(i64::try_from(cluster.active_pods(node)).unwrap_or(i64::MAX));
    let requests = cluster.requests(like).iter().filter(|(id, amount)| *id != ResourceId::PODS && *amount > 0);
    let by_resource =
        requests.map(|(id, amount)| allocatable.get(id).saturating_sub(requested.get(id)).div_euclid(amount));
    usize::try_from(by_resource.fold(slots, i64::min)).unwrap_or(0)
}

/// Whether a pod tolerates the taints of a node that keep it away or evict it.
fn tolerates(pod: &Pod, node: &Node) -> bool {
    let counts = |effect: &str| Effect::HARD.iter().any(|hard| hard.as_str() == effect);
    let tolerations = &pod.template.placement.tolerations;
    node.taints
        .iter()
        .filter(|taint| counts(&taint.effect))
        .all(|taint| tolerations.iter().any(|toleration| toleration::tolerates(toleration, taint)))
}
