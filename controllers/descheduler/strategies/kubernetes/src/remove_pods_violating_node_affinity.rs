//! Evicts pods whose node affinity another node satisfies better.

use std::{collections::BTreeMap, sync::Arc};

use koord_config::descheduler::RemovePodsViolatingNodeAffinityArgs;
use koord_descheduler_framework::{
    Cluster, Deschedule, Node, NodeId, Pass, Plugin, Pod, PodId, PodSelection, Reason, ReasonCode, Refusal,
    Registration, StrategyError,
    fit::{Rule, selects},
};
use koord_scheduling::PreferredNodes;

use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemovePodsViolatingNodeAffinity {
    selection: PodSelection,
    types: Vec<AffinityType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AffinityType {
    Required,
    Preferred,
}

impl RemovePodsViolatingNodeAffinity {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: &RemovePodsViolatingNodeAffinityArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        // QUIRK: other types are accepted and do nothing (`types_that_do_not_exist_do_nothing`).
        let types = args.node_affinity_type.iter().filter_map(|name| AffinityType::named(name));
        Ok(Self { selection, types: types.collect() })
    }

    /// Evicts the pods of one type, node by node.
    fn process<'a>(
        &self,
        pass: &mut Pass<'a>,
        mut decide: impl FnMut(&mut Pass<'a>, PodId, &'a Pod, &'a Node) -> Result<Option<Reason>, Refusal>,
    ) {
        let cluster = pass.cluster();
        for node in pass.nodes() {
            let Some(node_object) = cluster.node(*node) else { continue };
            for (id, pod) in cluster.pods_on(*node) {
                match selection::check_active(&self.selection, pod).and_then(|()| decide(pass, id, pod, node_object)) {
                    Ok(Some(reason)) if pass.pre_eviction_filter(id) => {
                        pass.evict(id, reason, "");
                    }
                    Ok(_) => {}
                    Err(refusal) => pass.leave(id, refusal),
                }
            }
        }
    }

    /// A pod that requires other nodes than its own, and fits one.
    fn required(&self, pass: &mut Pass<'_>) {
        let (cluster, nodes) = (pass.cluster(), pass.nodes());
        let mut fits = Fits::new(cluster);
        self.process(pass, |pass, id, pod, node| {
            if !pod.template.requires_affinity || selects(pod, node) {
                return Err(ReasonCode::NodeAffinityHolds.into());
            }
            if !(pass.filter(id) && pass.within_limits(id)) {
                return Ok(None);
            }
            // The node of the pod itself is no hindrance: it is not selected.
            let other = fits.any(id, pod, 0, nodes.iter().copied())?;
            let other = cluster.node_name(other);
            let text = format!("its affinity no longer selects its node {}, and it fits {other}", node.name);
            Ok(Some(ReasonCode::NodeAffinityViolated.reason(text).with("node", &node.name).with("fits", other)))
        });
    }

    /// A pod that fits a node which it prefers to its own.
    fn preferred(&self, pass: &mut Pass<'_>) {
        let (cluster, nodes) = (pass.cluster(), pass.nodes());
        let mut fits = Fits::new(cluster);
        let mut scores = Scores::new(cluster, nodes);
        self.process(pass, |pass, id, pod, node| {
            let preferred = &pod.template.placement.preferred;
            if preferred.is_empty() {
                return Err(ReasonCode::NodeAffinityHolds.into());
            }
            let own = preferred.score(&node.name, |key| node.label(key));
            let ranked = scores.of(pod);
            let better = ranked.iter().take_while(|(score, _)| *score > own).map(|(_, node)| *node);
            if better.clone().next().is_none() {
                return Err(Refusal::new(ReasonCode::NoBetterNode).with("score", own));
            }
            if !(pass.filter(id) && pass.within_limits(id)) {
                return Ok(None);
            }
            let other = fits.any(id, pod, own, better)?;
            let best = ranked.iter().find(|(_, node)| *node == other).map_or(own, |(score, _)| *score);
            let other = cluster.node_name(other);
            let text = format!("it prefers {other} with a score of {best} to its node {} with {own}", node.name);
            let reason = ReasonCode::BetterNodeExists.reason(text).with("node", &node.name).with("fits", other);
            Ok(Some(reason.with("score", own).with("best", best)))
        });
    }
}

impl AffinityType {
    fn named(name: &str) -> Option<Self> {
        match name {
            "requiredDuringSchedulingIgnoredDuringExecution" => Some(Self::Required),
            "preferredDuringSchedulingIgnoredDuringExecution" => Some(Self::Preferred),
            _ => None,
        }
    }
}

/// Which nodes pods fit, worked out once for pods of one template.
///
/// QUIRK: what pods that are evicted in the same pass will take of a node is not counted (`pods_do_not_reserve_what_they_will_take`).
struct Fits<'a> {
    cluster: &'a Cluster,
    /// By the address of the template and the score of the pod's node, which say which nodes are looked at.
    known: BTreeMap<(usize, i64), Result<NodeId, Refusal>>,
}

impl<'a> Fits<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, known: BTreeMap::new() }
    }

    /// One of these nodes that a pod fits.
    fn any(
        &mut self,
        id: PodId,
        pod: &Pod,
        score: i64,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Result<NodeId, Refusal> {
        let placement = &pod.template.placement;
        let key = (Arc::as_ptr(placement).addr(), score);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = Rule::Kubernetes.fits_any(self.cluster, id, nodes);
        // To its anti-affinity a pod does not count itself, so what another pod fits may differ.
        if placement.pod_affinity.forbidden.is_empty() {
            self.known.insert(key, found.clone());
        }
        found
    }
}

/// The nodes of the pass with the scores that pods give them, the highest first.
type Ranked = Arc<[(i64, NodeId)]>;

/// What pods prefer, worked out once for pods with the same preferences.
struct Scores<'a> {
    cluster: &'a Cluster,
    nodes: &'a [NodeId],
    known: Vec<(&'a PreferredNodes, Ranked)>,
    /// By the address of the template.
    by_template: BTreeMap<usize, Ranked>,
}

impl<'a> Scores<'a> {
    fn new(cluster: &'a Cluster, nodes: &'a [NodeId]) -> Self {
        Self { cluster, nodes, known: Vec::new(), by_template: BTreeMap::new() }
    }

    fn of(&mut self, pod: &'a Pod) -> Ranked {
        let address = Arc::as_ptr(&pod.template.placement).addr();
        if let Some(ranked) = self.by_template.get(&address) {
            return Arc::clone(ranked);
        }
        let preferred = &pod.template.placement.preferred;
        let known = self.known.iter().find(|(known, _)| *known == preferred).map(|(_, ranked)| Arc::clone(ranked));
        let ranked = known.unwrap_or_else(|| {
            let ranked = self.rank(preferred);
            self.known.push((preferred, Arc::clone(&ranked)));
            ranked
        });
        self.by_template.insert(address, Arc::clone(&ranked));
        ranked
    }

    fn rank(&self, preferred: &PreferredNodes) -> Ranked {
        let scored = self.nodes.iter().filter_map(|id| {
            let node = self.cluster.node(*id)?;
            Some((preferred.score(&node.name, |key| node.label(key)), *id))
        });
        let mut ranked: Vec<(i64, NodeId)> = scored.collect();
        ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        ranked.into()
    }
}

impl Plugin for RemovePodsViolatingNodeAffinity {
    fn name(&self) -> &'static str {
        "RemovePodsViolatingNodeAffinity"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for RemovePodsViolatingNodeAffinity {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        for type_ in &self.types {
            match type_ {
                AffinityType::Required => self.required(pass),
                AffinityType::Preferred => self.preferred(pass),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
