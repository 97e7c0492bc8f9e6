//! What Coscheduling keeps: the gangs, and the round that is under way (3E.2, 3E.4).

mod audit;

use std::{collections::VecDeque, sync::Arc};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    JobMark, Orders, PermitResult, Reason, ReasonCode, Rejection,
    cluster::{Cluster, Mismatch, Placed, state::State},
    columns::Row,
    object::ObjectChange,
    pod::Pod,
};
use koord_types::{cluster_network_topology::ClusterNetworkTopology, gang::NetworkTopologySpec, pod_group::PodGroup};
use thiserror::Error;

use super::{
    arrangement::Arrangement,
    declaration::{Declaration, Defaults, gang_of_pod},
    gangs::{Gangs, Member},
    network::Network,
    round::{Ending, Outcome, Round, infeasible},
    statuses::Statuses,
};

/// The gangs, and the round that is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    defaults: Defaults,
    pub(super) gangs: Gangs,
    pub(super) network: Network,
    pub(super) statuses: Statuses,
    stage: Stage,
    /// Where the members of the round go, if they ask for a place in the network; empty where there is none for all of them.
    arrangement: Option<Arrangement>,
    /// Whether those of the round were tried where they go as a whole.
    is_batch: bool,
    preemption: Option<Preemption>,
}

/// The result of preemption for the members of a round.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    /// The member for which it was tried.
    pub(super) by: ObjectKey,
    pub(super) message: String,
    /// Whether members are nominated.
    pub(super) nominates: bool,
    /// Whether preemption was tried in this round. It is not where the pod must not preempt, or waits for victims.
    pub(super) was_tried: bool,
}

/// The members of the round were assigned to nodes, and one of them does not fit there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("plan become invalid, wait for the next round")]
pub(super) struct PlanInvalid;

/// Where a pod goes.
pub(super) enum Place {
    /// Wherever it fits.
    Any,
    /// To this node.
    At(Arc<str>),
    /// Nowhere: the others of its round have their places, and it has none.
    Unplanned,
    /// Where it can be together with others, which is to be found out.
    Together(NetworkTopologySpec),
}

/// The members of a gang group that are tried together.
pub(super) struct Job {
    /// Those without a place, by their index.
    pub(super) pods: Vec<Uid>,
    /// Those in their place.
    pub(super) in_place: Vec<Uid>,
    /// The group of their gangs; none of a pod that is tried alone.
    pub(super) group: Option<String>,
}

#[derive(Clone, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// Members are tried.
    Trying(Round),
    /// Nothing came of the round, and the members that were not tried are refused for this reason.
    Refusing(VecDeque<Uid>, Reason),
}

impl Context {
    pub(super) fn new(defaults: Defaults) -> Self {
        Self { defaults, ..Self::default() }
    }

    /// The member to be tried next.
    pub(super) fn next(&self) -> Option<&Uid> {
        match &self.stage {
            Stage::Idle => None,
            Stage::Trying(round) => round.next(),
            Stage::Refusing(rest, _) => rest.front(),
        }
    }

    /// Whether a pod may wait for its turn.
    pub(super) fn may_queue(&self, uid: &Uid) -> Result<(), Reason> {
        if self.is_of_round(uid) { Ok(()) } else { self.gangs.admits(uid).map_err(|why| why.reason()) }
    }

    /// Whether a node may be looked for.
    pub(super) fn admits(&self, uid: &Uid) -> Result<(), Rejection> {
        match &self.stage {
            Stage::Refusing(rest, reason) if rest.contains(uid) => Err(Rejection::unresolvable(reason.clone())),
            _ => self.gangs.basic_check(uid).map_err(Rejection::unresolvable),
        }
    }

    /// Whether a pod would begin a round for a place in a network of which nothing is known: it is refused, and there is no round.
    pub(super) fn lacks_network(&self, uid: &Uid, cluster: &Cluster) -> bool {
        !self.is_of_round(uid) && self.topology_of(uid).is_some() && self.network.tree(cluster).is_none()
    }

    /// Where a pod goes, if places in the network count.
    pub(super) fn place_of(&self, uid: &Uid) -> Place {
        if self.is_awaited(uid) {
            return match &self.arrangement {
                None => Place::Any,
                Some(places) => places.get(uid).map_or(Place::Unplanned, |node| Place::At(Arc::clone(node))),
            };
        }
        self.topology_of(uid).map_or(Place::Any, |spec| Place::Together(spec.clone()))
    }

    /// What the gang of a pod that needs others asks of the network.
    fn topology_of(&self, uid: &Uid) -> Option<&NetworkTopologySpec> {
        let gang = self.gangs.gang_of(uid).filter(|_| !self.gangs.is_scheduled_alone(uid))?;
        self.gangs.declaration(gang)?.topology.as_ref()
    }

    /// Where the members of the round go that a pod begins; nowhere where there is no place for all of them.
    pub(super) fn arranged(&mut self, arrangement: Option<Arrangement>, is_batch: bool) {
        self.arrangement = Some(arrangement.unwrap_or_default());
        self.is_batch = is_batch;
    }

    /// Nothing holds of a round any more.
    fn forget_round(&mut self) {
        (self.arrangement, self.is_batch, self.preemption) = (None, false, None);
    }

    /// The pods that are tried together with a pod, itself among them.
    pub(super) fn job(&self, uid: &Uid) -> Job {
        let (begun, in_place) = match &self.stage {
            Stage::Trying(round) if round.awaits(uid) => (Some(round), round.in_place().to_vec()),
            _ => (None, Vec::new()),
        };
        let new = if begun.is_none() { self.gangs.round(uid) } else { None };
        let round = begun.or(new.as_ref());
        Job {
            pods: round.map_or_else(|| vec![uid.clone()], |round| self.gangs.by_index(round.untried())),
            in_place,
            group: round.map(|round| round.group().name().to_string()),
        }
    }

    /// The network topology that the pods of a preempting job require.
    ///
    /// # Errors
    ///
    /// The members were assigned to nodes, so that preemption on others does not help them.
    pub(super) fn topology_of_job(&self, uid: &Uid) -> Result<Option<NetworkTopologySpec>, PlanInvalid> {
        match &self.arrangement {
            Some(places) if !places.is_empty() => Err(PlanInvalid),
            Some(_) => Ok(self.topology_of(uid).cloned()),
            None => Ok(None),
        }
    }

    /// The result of preemption for the round that a pod is part of.
    pub(super) fn preemption(&self, uid: &Uid) -> Option<&Preemption> {
        self.preemption.as_ref().filter(|_| self.is_of_round(uid))
    }

    /// Preemption for the members of a round has ended, at the refusal of this one.
    pub(super) fn preempted(&mut self, uid: &Uid, preemption: Preemption) {
        if !self.gangs.is_scheduled_alone(uid) {
            self.preemption = Some(preemption);
        }
    }

    /// A pod is in its place.
    pub(super) fn permit(&mut self, uid: &Uid, orders: &mut Orders) -> PermitResult {
        let Some(gang) = self.gangs.gang_of(uid) else { return PermitResult::Allow };
        if !self.is_awaited(uid) && self.gangs.is_scheduled_alone(uid) {
            self.gangs.release_alone(uid);
            return PermitResult::Allow;
        }
        let limit = self.gangs.declaration(gang).and_then(|declared| declared.waiting_time.to_std());
        self.gangs.set_placed(uid, false);
        self.join(uid, orders);
        self.gangs.set_placed(uid, true);
        let Stage::Trying(round) = &mut self.stage else { return PermitResult::Allow };
        round.placed(uid);
        if round.is_complete() {
            orders.allow.extend(round.in_place().iter().filter(|other| *other != uid).cloned());
            if let Stage::Trying(round) = std::mem::take(&mut self.stage) {
                let outcome = round.outcome();
                orders.marks.push(self.ended(&outcome, Ending::Placed));
                self.gangs.conclude(&outcome);
            }
            self.forget_round();
            return PermitResult::Allow;
        }
        self.advance(orders);
        PermitResult::Wait(limit.unwrap_or_default())
    }

    /// No node was found for a pod, for this reason; one came nearest to taking it.
    pub(super) fn refuse(&mut self, uid: &Uid, reason: &str, best_node: Option<Arc<str>>, orders: &mut Orders) {
        // Who is refused because of others begins no round.
        let is_of_last_round = if let Stage::Refusing(rest, _) = &mut self.stage { leave(rest, uid) } else { false };
        let may_begin = || !self.gangs.is_scheduled_alone(uid) && self.gangs.may_be_tried(uid).is_ok();
        if !is_of_last_round && (self.is_awaited(uid) || may_begin()) {
            self.join(uid, orders);
            if let Stage::Trying(round) = &mut self.stage {
                round.refused(uid, reason, best_node);
                if self.arrangement.as_ref().is_some_and(Arrangement::is_empty) {
                    round.give_up();
                }
            }
        }
        self.advance(orders);
    }

    /// A pod lost its place, or cannot be tried.
    pub(super) fn lost(&mut self, uid: &Uid, orders: &mut Orders) {
        self.forget(uid);
        self.advance(orders);
    }

    /// Ends a round of which nothing can come any more, and wakes members that may be tried now.
    pub(super) fn settle(&mut self, orders: &mut Orders) {
        self.advance(orders);
        orders.activate.extend(self.gangs.take_woken());
    }

    fn is_awaited(&self, uid: &Uid) -> bool {
        matches!(&self.stage, Stage::Trying(round) if round.awaits(uid))
    }

    /// Whether a pod is still to be tried in the round that is under way, or to be refused because of it.
    fn is_of_round(&self, uid: &Uid) -> bool {
        match &self.stage {
            Stage::Idle => false,
            Stage::Trying(round) => round.awaits(uid),
            Stage::Refusing(rest, _) => rest.contains(uid),
        }
    }

    /// The round that awaits this pod, if need be a new one.
    fn join(&mut self, uid: &Uid, orders: &mut Orders) {
        if self.is_awaited(uid) {
            return;
        }
        // Somebody else comes in between: what was under way cannot be atomic any more.
        if let Stage::Trying(round) = std::mem::take(&mut self.stage) {
            let outcome = round.outcome();
            orders.marks.push(self.ended(&outcome, Ending::Interrupted));
            let reason = ReasonCode::GangInfeasible.reason("another gang was tried in between");
            withdraw(&outcome.placed, &reason, orders);
        }
        if let Some(round) = self.gangs.round(uid) {
            orders.activate.extend(round.untried().filter(|other| *other != uid).cloned());
            orders.marks.push(JobMark::Began(round.group().name().to_string()));
            self.gangs.began(round.group());
            self.stage = Stage::Trying(round);
        }
    }

    /// Ends the round if no member is left to try.
    fn advance(&mut self, orders: &mut Orders) {
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::Trying(round) if round.next().is_none() => {
                let outcome = round.outcome();
                let is_there = self.gangs.has_group(&outcome.group);
                orders.marks.push(self.ended(&outcome, if is_there { Ending::Attempted } else { Ending::Gone }));
                // QUIRK: the members in place are refused with what is said of the preemption, and only the first refusal counts
                // (`waiting_members_are_rejected_with_the_reason_of_the_failed_preemption`).
                let tried = self.preemption.as_ref().filter(|preemption| preemption.was_tried);
                let reason = tried.map_or(&*outcome.reason, |preemption| &*preemption.message);
                withdraw(&outcome.placed, &infeasible(reason, outcome.obstacle.as_ref()), orders);
                let reason = infeasible(&outcome.reason, outcome.obstacle.as_ref());
                Stage::Refusing(outcome.untried.into(), reason)
            }
            stage => stage,
        };
        if matches!(&self.stage, Stage::Refusing(rest, _) if rest.is_empty()) {
            self.stage = Stage::Idle;
        }
        if matches!(self.stage, Stage::Idle) {
            self.forget_round();
        }
    }

    /// The member that a pod is, if it belongs to a gang, with what its annotations declare where nothing has declared the gang.
    fn member(&self, pod: &Pod) -> Option<(Member, Option<Declaration>)> {
        let (gang, by_pod_group) = gang_of(pod)?;
        let template = &pod.template;
        let (labels, annotations) = (&template.labels, &template.annotations);
        // The first pod that declares its gang counts: what the others say, which may be long, is not read.
        let is_declared = by_pod_group || self.gangs.declaration(&gang).is_some();
        let declared = if is_declared { None } else { Declaration::of_pod(&gang, labels, annotations, &self.defaults) };
        let index = annotations.get(koord_types::gang::NETWORK_TOPOLOGY_INDEX.name());
        let member = Member {
            key: pod.key.clone(),
            gang,
            scheduler: Arc::clone(&template.scheduler),
            is_ready: pod.gates.is_empty() && !pod.deleting,
            is_bound: pod.node.is_some(),
            priority: template.priority,
            created: pod.created,
            index: index.and_then(|index| u64::try_from(index.parse::<i64>().ok()?).ok()),
        };
        Some((member, declared))
    }

    /// A round is over.
    fn ended(&self, outcome: &Outcome, why: Ending) -> JobMark {
        // Where it came to nothing, those that were not tried are refused at once.
        let untried = if why == Ending::Placed { 0 } else { outcome.untried.len() };
        let pods = outcome.placed.len() + outcome.refused.len() + untried;
        let (job, reason, is_complete) = (outcome.group.name().to_string(), why.words(), why == Ending::Placed);
        JobMark::Ended { job, pods, reason, is_complete, is_batch: self.is_batch }
    }

    fn forget(&mut self, uid: &Uid) {
        match &mut self.stage {
            Stage::Idle => {}
            Stage::Trying(round) => round.forget(uid),
            Stage::Refusing(rest, _) => _ = leave(rest, uid),
        }
    }
}

/// Takes a pod from the rest, of which it is the first, mostly. Says whether it was there.
fn leave(rest: &mut VecDeque<Uid>, uid: &Uid) -> bool {
    rest.iter().position(|other| other == uid).and_then(|at| rest.remove(at)).is_some()
}

fn withdraw(placed: &[Uid], reason: &Reason, orders: &mut Orders) {
    orders.withdraw.extend(placed.iter().map(|uid| (uid.clone(), reason.clone())));
}

impl State for Context {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        self.gangs.set_placed(&placed.pod.uid, true);
        self.network.count(placed, true);
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        self.gangs.set_placed(&placed.pod.uid, false);
        self.network.count(placed, false);
    }

    fn node(&mut self, _: &Cluster, _: Row) {
        self.network.changed();
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit(cluster)
    }

    fn pod(&mut self, cluster: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let Some(uid) = new.or(old).map(|pod| &pod.uid) else { return };
        let joined = new.and_then(|pod| self.member(pod));
        if let Some(gang) = self.gangs.gang_of(uid)
            && joined.as_ref().is_none_or(|(member, _)| member.gang != *gang)
        {
            self.statuses.member_gone(gang, cluster.time());
        }
        let Some((member, declared)) = joined else {
            self.forget(uid);
            return self.gangs.remove(uid);
        };
        if !member.is_ready {
            self.forget(uid);
        }
        self.statuses.member_changed(&member.gang, cluster.time());
        let is_changed = old.zip(new).is_some_and(|(old, new)| new.differs(old));
        self.gangs.set(uid, member, declared, is_changed);
        // One that has joined another gang, or its first one, may be in its place already.
        self.gangs.set_placed(uid, cluster.pod(uid).is_some());
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        if let (Some((_, new)), Some(key)) = (change.of::<PodGroup>(), change.key()) {
            self.statuses.changed(key, new.is_some(), cluster.time());
            match new {
                Some(group) => self.gangs.declare(key, Declaration::of_pod_group(key, group, &self.defaults)),
                None => self.gangs.undeclare(key),
            }
        }
        if change.of::<ClusterNetworkTopology>().is_some() {
            self.network.changed();
        }
        Vec::new()
    }
}

fn gang_of(pod: &Pod) -> Option<(koord_core::key::ObjectKey, bool)> {
    let template = &pod.template;
    gang_of_pod(&template.namespace, &template.labels, &template.annotations)
}
