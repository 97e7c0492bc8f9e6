//! Evicts pods of overutilized nodes, as far as others can take them.

use std::cmp::Reverse;

use koord_descheduler_framework::{
    ByClass, Cluster, Pass, Pod, PodId, ReasonCode, Refusal,
    order::{by_importance, newest},
};
use koord_scheduling::{ResourceId, ResourceVector};

use super::{
    LowNodeLoad, Move, State,
    budget::Budget,
    classify::Class,
    reason::reason,
    rooms::Rooms,
    thresholds::Bounds,
    usage::{NodeUsage, Scope, known, pods_with_usage},
};
use crate::targets::Targets;

/// Of these a target is not even looked at where it has too little free.
const REQUESTED: [ResourceId; 2] = [ResourceId::CPU, ResourceId::MEMORY];

/// The nodes of a pool while pods are chosen.
pub(super) struct Relief<'r, 'a> {
    plugin: &'r LowNodeLoad,
    cluster: &'a Cluster,
    bounds: &'r [Bounds<'r>],
    has_prod: bool,
    nodes: Vec<(NodeUsage<'a>, Class)>,
    targets: Targets<'a>,
    /// By the number of a target: the number of its node among the nodes.
    node_of: Vec<usize>,
    /// The targets of the scope at work.
    open: Vec<usize>,
    /// What each of them can still take.
    rooms: Rooms,
    /// By the number of an equivalence class: what a pod used that fitted no target. One that uses as much or more fits none either, as targets only
    /// become fuller.
    misfits: Vec<Option<ResourceVector>>,
    /// Whether pods may be moved, by what the arguments say.
    movable: ByClass<Result<(), ReasonCode>>,
    state: &'r mut State,
}

/// A pod with what is to be known of it.
struct Candidate<'a> {
    id: PodId,
    pod: &'a Pod,
    /// `None` where it is not reported.
    usage: Option<ResourceVector>,
}

impl<'r, 'a> Relief<'r, 'a> {
    pub(super) fn new(
        plugin: &'r LowNodeLoad,
        cluster: &'a Cluster,
        nodes: Vec<(NodeUsage<'a>, Class)>,
        bounds: &'r [Bounds<'r>],
        has_prod: bool,
        state: &'r mut State,
    ) -> Self {
        let node_of = nodes.iter().enumerate().filter(|(_, (_, class))| class.is_low()).map(|(index, _)| index);
        let mut node_of: Vec<usize> = node_of.collect();
        // Nodes with taints come last: few pods tolerate them, so they would be looked at in vain again and again.
        node_of.sort_by_key(|index| nodes.get(*index).is_some_and(|(node, _)| !node.node.taints.is_empty()));
        let ids = node_of.iter().filter_map(|index| nodes.get(*index)).map(|(node, _)| node.id);
        let mut targets = Targets::new(cluster, ids);
        for Move { pod, to, .. } in &state.moves {
            let target = to.and_then(|to| (0..targets.len()).find(|target| targets.node(*target) == Some(to)));
            targets.take(target, *pod);
        }
        Self {
            plugin,
            cluster,
            bounds,
            has_prod,
            nodes,
            targets,
            node_of,
            open: Vec::new(),
            rooms: Rooms::default(),
            misfits: Vec::new(),
            movable: ByClass::default(),
            state,
        }
    }

    /// Relieves the sources: first nodes as a whole, and then production pods, which may use what is left of targets.
    pub(super) fn run(&mut self, pass: &mut Pass<'_>, [of_nodes, of_prod]: [Vec<usize>; 2]) {
        let mut budget = Budget::of(Scope::Node, &self.nodes, self.bounds, None);
        self.relieve(pass, Scope::Node, of_nodes, &mut budget);
        if !of_prod.is_empty() {
            let mut of_pods = Budget::of(Scope::Prod, &self.nodes, self.bounds, Some(&budget));
            self.relieve(pass, Scope::Prod, of_prod, &mut of_pods);
        }
    }

    /// The sources that use most come first.
    fn relieve(&mut self, pass: &mut Pass<'_>, scope: Scope, mut sources: Vec<usize>, budget: &mut Budget) {
        let class = |target: &usize| self.node_of.get(*target).and_then(|node| self.nodes.get(*node));
        let is_target = |target: &usize| class(target).is_some_and(|(_, class)| class.is_target(scope));
        self.open = (0..self.targets.len()).filter(is_target).collect();
        let rooms: Vec<Vec<i64>> = self.open.iter().map(|target| self.room(scope, *target)).collect();
        self.rooms = Rooms::new(self.width(scope), &rooms);
        self.misfits = vec![None; self.cluster.equivalence_classes_max()];
        let score = |source: &usize| self.nodes.get(*source).map(|(node, _)| node.score(scope, self.bounds));
        sources.sort_by_cached_key(|source| Reverse(score(source)));
        let has_targets = !self.open.is_empty();
        for source in sources {
            if !self.plugin.args.dry_run && !pass.is_search_of_use() {
                break;
            }
            if has_targets {
                self.relieve_node(pass, scope, source, budget);
            } else if let Some((node, _)) = self.nodes.get(source) {
                pass.leave_node(node.id, &ReasonCode::NoTargetNodes.into());
            }
        }
    }

    fn relieve_node(&mut self, pass: &mut Pass<'_>, scope: Scope, source: usize, budget: &mut Budget) {
        for candidate in self.candidates(pass, scope, source) {
            let Some((node, _)) = self.nodes.get(source) else { return };
            if !node.is_over(scope, self.bounds) {
                pass.leave(candidate.id, ReasonCode::NodeRelieved);
            } else if budget.is_exhausted() {
                pass.leave(candidate.id, ReasonCode::TargetsFull);
            } else {
                self.try_to_evict(pass, scope, source, &candidate, budget);
            }
        }
        if let Some((node, _)) = self.nodes.get(source)
            && !node.is_over(scope, self.bounds)
        {
            self.state.detectors.of(scope).reset(&node.node.name);
        }
    }

    /// The pods of a node in the order in which they go.
    fn candidates(&self, pass: &mut Pass<'_>, scope: Scope, source: usize) -> Vec<Candidate<'a>> {
        let Some((node, _)) = self.nodes.get(source) else { return Vec::new() };
        let usage = node.usage(scope);
        let excess = node.over(scope, self.bounds).map(|(bounds, id)| Excess {
            id,
            amount: usage.used.get(id) - usage.high.get(id),
            weight: bounds.weight,
        });
        let excess: Vec<Excess> = excess.collect();
        let mut candidates = Vec::new();
        for (id, pod, usage) in pods_with_usage(self.cluster, node.id, node.metric) {
            if scope == Scope::Prod && !self.state.production.contains(self.cluster, id, pod) {
                pass.leave(id, ReasonCode::NotProductionPod);
            } else if let Err(refusal) = self.movable.of(self.cluster, id, || self.plugin.movable.check(pod)) {
                pass.leave(id, refusal);
            } else {
                let usage = usage.cloned().map(|mut usage| {
                    usage.set(ResourceId::PODS, 1);
                    usage
                });
                candidates.push(Candidate { id, pod, usage });
            }
        }
        candidates.sort_by_cached_key(|candidate| {
            let score = candidate.usage.as_ref().map(|usage| score(&excess, usage).to_bits());
            (by_importance(candidate.pod), Reverse(score), newest(candidate.pod))
        });
        candidates
    }

    fn try_to_evict(
        &mut self,
        pass: &mut Pass<'_>,
        scope: Scope,
        source: usize,
        candidate: &Candidate<'a>,
        budget: &mut Budget,
    ) {
        let Candidate { id, usage, .. } = candidate;
        let has_fit = self.plugin.args.node_fit;
        if has_fit && usage.is_none() {
            pass.leave(*id, ReasonCode::PodUsageUnknown);
            return;
        }
        if !pass.filter(*id) {
            return;
        }
        let target = usage.as_ref().filter(|_| has_fit).and_then(|usage| self.fit(scope, *id, usage));
        if has_fit && target.is_none() {
            if pass.wants_verdicts() {
                let refusal = self.refusal(scope, *id);
                pass.leave(*id, refusal);
            }
            return;
        }
        let Some((node, _)) = self.nodes.get(source) else { return };
        let (reason, recorded) = reason(node, scope, self.bounds);
        let is_evicted = if self.plugin.args.dry_run {
            pass.evict_in_dry_run(*id, reason, recorded);
            true
        } else {
            pass.evict(*id, reason, recorded)
        };
        if let Some(usage) = usage.as_ref().filter(|_| is_evicted) {
            budget.spend(usage);
            self.carry(source, candidate, usage, target, scope);
        }
    }

    /// A pod leaves its node, and a target is to take it.
    fn carry(
        &mut self,
        source: usize,
        candidate: &Candidate<'a>,
        usage: &ResourceVector,
        target: Option<usize>,
        scope: Scope,
    ) {
        let is_prod = self.has_prod && self.state.production.contains(self.cluster, candidate.id, candidate.pod);
        let Some((node, _)) = self.nodes.get_mut(source) else { return };
        node.change(|used| used.subtract(usage), is_prod);
        let from = node.id;
        if let Some(target) = target {
            self.targets.take(Some(target), candidate.id);
            if let Some((node, _)) = self.node_of.get(target).and_then(|node| self.nodes.get_mut(*node)) {
                node.change(|used| used.add(usage), is_prod);
            }
            if let Ok(place) = self.open.binary_search(&target) {
                let room = self.room(scope, target);
                self.rooms.set(place, &room);
            }
        }
        let to = target.and_then(|target| self.targets.node(target));
        self.state.moves.push(Move { pod: candidate.id, usage: usage.clone(), is_prod, from, to });
    }

    /// The first target that can take a pod alone: its usage stays below the high thresholds, and what the pod requests is free.
    fn fit(&mut self, scope: Scope, id: PodId, usage: &ResourceVector) -> Option<usize> {
        let is_less = |one: &ResourceVector, other: &ResourceVector| {
            known(self.bounds).all(|(_, id)| one.get(id) <= other.get(id))
        };
        let class = self.cluster.equivalence_class(id);
        let misfit = self.misfits.get(class).and_then(Option::as_ref);
        if misfit.is_some_and(|misfit| is_less(misfit, usage)) {
            return None;
        }
        let is_new = misfit.is_none_or(|misfit| is_less(usage, misfit));
        let (requests, demand) = (self.cluster.requests(id), self.demand(scope, usage, self.cluster.requests(id)));
        let (open, targets) = (&self.open, &mut self.targets);
        let mut accepts = |place: usize| {
            let target = open.get(place);
            target.is_some_and(|target| targets.has_free(*target, requests) && targets.may_run(*target, id))
        };
        let found = self.rooms.first(&demand, &mut accepts).and_then(|place| self.open.get(place)).copied();
        if found.is_none()
            && is_new
            && let Some(misfit) = self.misfits.get_mut(class)
        {
            *misfit = Some(usage.clone());
        }
        found
    }

    /// What a target can take before it is above a high threshold, and what requests it has free of cpu and memory. What production pods use must not
    /// make the node overutilized as a whole either.
    fn room(&self, scope: Scope, target: usize) -> Vec<i64> {
        let Some((node, _)) = self.node_of.get(target).and_then(|node| self.nodes.get(*node)) else {
            return Vec::new();
        };
        let left = |scope: Scope| {
            let usage = node.usage(scope);
            known(self.bounds).map(|(_, id)| usage.high.get(id).saturating_sub(usage.used.get(id)))
        };
        let of_prod = (scope == Scope::Prod).then(|| left(Scope::Prod)).into_iter().flatten();
        let free = self.targets.free(target);
        left(Scope::Node).chain(of_prod).chain(REQUESTED.map(|id| free.map_or(0, |free| free.get(id)))).collect()
    }

    /// What a pod takes of [`Self::room`].
    fn demand(&self, scope: Scope, usage: &ResourceVector, requests: &ResourceVector) -> Vec<i64> {
        let used = || known(self.bounds).map(|(_, id)| usage.get(id));
        let of_prod = (scope == Scope::Prod).then(used).into_iter().flatten();
        used().chain(of_prod).chain(REQUESTED.map(|id| requests.get(id))).collect()
    }

    /// How many amounts a room has.
    fn width(&self, scope: Scope) -> usize {
        let known = known(self.bounds).count();
        REQUESTED.len() + if scope == Scope::Prod { 2 * known } else { known }
    }

    /// Why a pod that fits no target stays.
    fn refusal(&mut self, scope: Scope, id: PodId) -> Refusal {
        let is_target = |node: &usize| self.nodes.get(*node).is_some_and(|(_, class)| class.is_target(scope));
        let targets = self.node_of.iter().enumerate().filter(|(_, node)| is_target(node)).map(|(target, _)| target);
        let targets: Vec<usize> = targets.collect();
        let may_run = targets.iter().filter(|target| self.targets.may_run(**target, id)).count();
        let requests = self.cluster.requests(id);
        let has_free = targets.iter().any(|target| self.targets.has_free(*target, requests));
        let code = if may_run > 0 && has_free { ReasonCode::PodOverloadsTargets } else { ReasonCode::NoOtherNodeFits };
        Refusal::new(code).with("targets", targets.len()).with("suitable", may_run)
    }
}

/// By how much a node is above a threshold.
struct Excess {
    id: ResourceId,
    amount: i64,
    weight: i64,
}

/// How well the leaving of a pod covers the excess of its node: best is the pod that just does, then come larger ones, and then smaller ones.
fn score(excess: &[Excess], usage: &ResourceVector) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for Excess { id, amount, weight } in excess {
        let ratio = if *amount > 0 { usage.get(*id).max(0) as f64 / *amount as f64 } else { 0.0 };
        sum += *weight as f64 * if ratio < 1.0 { ratio } else { 1.0 + 1.0 / ratio };
        weights += *weight as f64;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_that_just_covers_the_excess_is_best() {
        let excess = [(ResourceId::CPU, 4000, 1), (ResourceId::MEMORY, 4 << 30, 2)];
        let excess = excess.map(|(id, amount, weight)| Excess { id, amount, weight });
        for (cpu, gib, expected) in [(3, 4, 1.583), (2, 5, 1.367), (4, 3, 1.167), (5, 2, 0.933), (4, 4, 2.0)] {
            let mut usage = ResourceVector::default();
            usage.set(ResourceId::CPU, cpu * 1000);
            usage.set(ResourceId::MEMORY, gib << 30);
            let score = score(&excess, &usage);
            assert!((score - expected).abs() < 0.001, "{cpu} {gib}: {score}");
        }
        assert!(score(&[], &ResourceVector::default()).abs() < f64::EPSILON);
    }
}
