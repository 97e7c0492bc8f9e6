//! What a strategy sees and does in one pass. The evictor proxy of the original is [`Pass::filter`] and [`Pass::evict`].

mod memory;

use std::{any::Any, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};

pub use self::memory::Memory;
use crate::{
    cluster::{Cluster, NodeId, PodId},
    evictor::{PreparedEvict, PreparedFilter, PreparedPreEvictionFilter},
    judge::Judge,
    limits::{Evicted, Limits},
    outlook::{Outlook, Planning},
    pod::Pod,
    reason::{Reason, ReasonCode},
    refusal::Refusal,
    step::{EvictedPod, Eviction, Means, Step},
};

/// One strategy at work.
pub struct Pass<'a> {
    cluster: &'a Cluster,
    now: Timestamp,
    strategy: Strategy<'a>,
    work: Work<'a>,
}

/// Which strategy is at work.
#[derive(Clone, Copy)]
pub(crate) struct Strategy<'a> {
    pub(crate) plugin: &'static str,
    pub(crate) profile: &'a Arc<str>,
    pub(crate) profile_index: usize,
    /// The nodes of the profile that are ready, by name.
    pub(crate) nodes: &'a [NodeId],
    pub(crate) planning: Planning,
}

/// What a pass has come to so far, over all profiles.
pub(crate) struct Work<'a> {
    pub(crate) limits: Limits,
    pub(crate) evictors: Vec<Evictor<'a>>,
    pub(crate) steps: Vec<Step>,
    /// Evictions that are not worth it, of profiles in which such pods stay.
    pub(crate) spared: Vec<Eviction>,
    /// Foresees what evictions lead to, where that is wanted.
    pub(crate) judge: Option<Box<dyn Judge + 'a>>,
    /// Whether each step was taken to succeed.
    pub(crate) assumed: Vec<bool>,
    /// Whether the first steps succeeded.
    pub(crate) results: &'a [bool],
    pub(crate) expected: Expected<'a>,
    pub(crate) evicted: Evicted,
    /// By the number of the pod: what has become of it in this pass.
    pub(crate) tried: Vec<Tried>,
    pub(crate) memory: Memory,
    pub(crate) verdicts_of: VerdictScope<'a>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The plugins of a profile that filter and evict.
pub(crate) struct Evictor<'a> {
    pub(crate) filters: Vec<Box<dyn PreparedFilter + 'a>>,
    pub(crate) pre_eviction_filters: Vec<Box<dyn PreparedPreEvictionFilter + 'a>>,
    pub(crate) evict: Box<dyn PreparedEvict + 'a>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tried {
    #[default]
    Not,
    Evicted,
    Failed,
}

/// What is taken for the result of a step that was not carried out. It has no effect on which steps are carried out: where the result is another, the pass
/// is computed again.
#[derive(Clone, Copy, Debug, Default)]
pub enum Expected<'a> {
    /// Every step succeeds.
    #[default]
    Success,
    /// No pod of these controllers is evicted, as a PodDisruptionBudget forbids it.
    Refused(&'a BTreeSet<Uid>),
    /// No pod is evicted.
    NoEvictions,
}

/// Whose verdicts a plan shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerdictScope<'a> {
    #[default]
    Nothing,
    /// Those about one pod.
    Pod(&'a ObjectKey),
    /// All of them, up to this number.
    All(usize),
}

/// What a strategy, or a filter that it asked, says of a pod that stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub profile: Arc<str>,
    /// The strategy that was at work.
    pub plugin: &'static str,
    pub pod: ObjectKey,
    pub refusal: Refusal,
}

// === impl Pass ===

impl<'a> Pass<'a> {
    pub(crate) fn new(cluster: &'a Cluster, now: Timestamp, strategy: Strategy<'a>, work: Work<'a>) -> Self {
        Self { cluster, now, strategy, work }
    }

    pub(crate) fn into_work(self) -> Work<'a> {
        self.work
    }

    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// When the pass began.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The nodes of the profile, by name: those that are ready and that its selector selects. Cordoned nodes are among them.
    pub fn nodes(&self) -> &'a [NodeId] {
        self.strategy.nodes
    }

    /// All pods of the nodes, those that have ended too, node by node.
    pub fn pods(&self) -> impl Iterator<Item = (PodId, &'a Arc<Pod>)> + use<'a> {
        let cluster = self.cluster;
        self.strategy.nodes.iter().flat_map(move |node| cluster.pods_on(*node))
    }

    /// What the strategy has kept of earlier passes, and keeps for later ones.
    pub fn memory<T: Any + Clone + Default + Send + Sync>(&mut self) -> &mut T {
        self.work.memory.of((self.strategy.profile_index, self.strategy.plugin))
    }

    /// Whether verdicts are wanted of any pod. Where not, whoever would go through many pods to leave them can save that.
    pub fn wants_verdicts(&self) -> bool {
        self.work.verdicts_of != VerdictScope::Nothing
    }

    /// Whether to go on looking for pods: one more may be evicted, or verdicts are wanted of those that may not.
    pub fn is_search_of_use(&self) -> bool {
        self.wants_verdicts() || !self.work.evicted.is_used_up(&self.work.limits)
    }

    /// Records why the strategy leaves all active pods of a node. It costs nothing unless somebody asked.
    pub fn leave_node(&mut self, node: NodeId, refusal: &Refusal) {
        if self.wants_verdicts() {
            for (pod, _) in self.cluster.active_pods_on(node) {
                self.leave(pod, refusal.clone());
            }
        }
    }

    /// Whether the pod is evicted in this pass already, by whichever strategy.
    pub fn is_evicted(&self, pod: PodId) -> bool {
        self.work.tried.get(pod.index()) == Some(&Tried::Evicted)
    }

    /// Whether a pod may be evicted, by all plugins that filter. Why it may not is recorded.
    pub fn filter(&mut self, pod: PodId) -> bool {
        match self.filtered(pod) {
            Ok(()) => true,
            Err(refusal) => {
                self.leave(pod, refusal);
                false
            }
        }
    }

    /// Whether the limits of evictions let one more pod of its node and namespace go. [`Pass::evict`] checks that too: ask before what takes long, such as
    /// [`Pass::pre_eviction_filter`]. Why a pod may not be evicted is recorded.
    pub fn within_limits(&mut self, pod: PodId) -> bool {
        let Some(object) = self.cluster.pod(pod) else { return false };
        match self.work.evicted.allows(object, &self.work.limits) {
            Ok(()) => true,
            Err(refusal) => {
                self.leave(pod, refusal);
                false
            }
        }
    }

    /// What is checked once more before an eviction: fit and the like. Why a pod may not be evicted is recorded.
    pub fn pre_eviction_filter(&mut self, pod: PodId) -> bool {
        let evictor = self.work.evictors.get(self.strategy.profile_index);
        let filters = evictor.into_iter().flat_map(|evictor| &evictor.pre_eviction_filters);
        match filters.map(|filter| filter.pre_eviction_filter(pod)).find(Result::is_err) {
            Some(Err(refusal)) => {
                self.leave(pod, refusal);
                false
            }
            _ => true,
        }
    }

    /// Evicts a pod, if limits, filters, the plugin that evicts and what is foreseen let it go. Whether it is evicted: where it is not, the strategy
    /// goes on with the next pod. `recorded_reason` is what the original writes into jobs and events.
    pub fn evict(&mut self, pod: PodId, reason: Reason, recorded_reason: impl Into<String>) -> bool {
        let eviction =
            self.means(pod, &reason).and_then(|means| self.eviction(pod, reason, recorded_reason.into(), means));
        match eviction.and_then(|eviction| self.foreseen(eviction)) {
            Ok(eviction) => self.step(pod, eviction),
            Err(refusal) => {
                self.leave(pod, refusal);
                false
            }
        }
    }

    /// What [`Pass::evict`] would do, for a strategy that is in dry run: the step is in the plan, is not carried out, and counts for no limit.
    pub fn evict_in_dry_run(&mut self, pod: PodId, reason: Reason, recorded_reason: impl Into<String>) {
        if let Ok(eviction) = self.eviction(pod, reason, recorded_reason.into(), Means::DryRun)
            && let Ok(eviction) = self.foreseen(eviction)
        {
            let is_expected = self.cluster.pod(pod).is_some_and(|pod| self.work.expected.lets_go(pod));
            self.carried_out(Step::Evict(Box::new(eviction)), is_expected);
        }
    }

    /// Cordons a node. Whether that succeeds.
    pub fn cordon(&mut self, node: NodeId) -> bool {
        let node = self.cluster.node_name(node).into();
        self.carried_out(Step::Cordon { node }, true)
    }

    /// Uncordons a node that this pass has cordoned. Whether that succeeds.
    pub fn uncordon(&mut self, node: NodeId) -> bool {
        let node = self.cluster.node_name(node).into();
        self.carried_out(Step::Uncordon { node }, true)
    }

    /// Sets what the deletion of a pod costs. Whether that succeeds.
    pub fn set_deletion_cost(&mut self, pod: PodId, cost: i32) -> bool {
        let Some(pod) = self.cluster.pod(pod).map(|pod| EvictedPod::of(pod)) else { return false };
        self.carried_out(Step::SetDeletionCost { pod, cost }, true)
    }

    /// Records why the strategy leaves a pod. It costs next to nothing unless somebody asked.
    pub fn leave(&mut self, pod: PodId, refusal: impl Into<Refusal>) {
        let work = &mut self.work;
        let Some(pod) = self.cluster.pod(pod) else { return };
        let is_wanted = match work.verdicts_of {
            VerdictScope::Nothing => false,
            VerdictScope::Pod(key) => *key == pod.key,
            VerdictScope::All(max) => work.verdicts.len() < max,
        };
        if is_wanted {
            let (profile, plugin) = (Arc::clone(self.strategy.profile), self.strategy.plugin);
            work.verdicts.push(Verdict { profile, plugin, pod: pod.key.clone(), refusal: refusal.into() });
        }
    }

    fn filtered(&self, pod: PodId) -> Result<(), Refusal> {
        match self.work.tried.get(pod.index()) {
            Some(Tried::Evicted) => return Err(ReasonCode::EvictedAlready.into()),
            Some(Tried::Failed) => return Err(ReasonCode::EvictionFailed.into()),
            Some(Tried::Not) | None => {}
        }
        let evictor = self.work.evictors.get(self.strategy.profile_index);
        evictor.into_iter().flat_map(|evictor| &evictor.filters).try_for_each(|filter| filter.filter(pod))
    }

    fn means(&mut self, id: PodId, reason: &Reason) -> Result<Means, Refusal> {
        let Some(pod) = self.cluster.pod(id) else { return Err(ReasonCode::EvictionFailed.into()) };
        self.work.evicted.allows(pod, &self.work.limits)?;
        self.filtered(id)?;
        match self.work.evictors.get_mut(self.strategy.profile_index) {
            Some(evictor) => evictor.evict.evict(id, reason),
            None => Err(ReasonCode::EvictionFailed.into()),
        }
    }

    fn eviction(&self, pod: PodId, reason: Reason, recorded_reason: String, means: Means) -> Result<Eviction, Refusal> {
        let pod = self.cluster.pod(pod).map(|pod| EvictedPod::of(pod)).ok_or(ReasonCode::EvictionFailed)?;
        let (profile, plugin) = (Arc::clone(self.strategy.profile), self.strategy.plugin);
        Ok(Eviction { pod, profile, plugin, reason, recorded_reason, means, outlook: Outlook::default() })
    }

    /// An eviction with what it leads to, or why it is not worth it where the profile heeds that.
    fn foreseen(&mut self, mut eviction: Eviction) -> Result<Eviction, Refusal> {
        let work = &mut self.work;
        let Some(judge) = work.judge.as_deref_mut().filter(|_| self.strategy.planning != Planning::Off) else {
            return Ok(eviction);
        };
        eviction.outlook = judge.outlook(self.cluster, &eviction);
        match &eviction.outlook.objection {
            Some(objection) if self.strategy.planning == Planning::Enforce => {
                judge.take_back();
                let refusal = objection.clone();
                work.spared.push(eviction);
                Err(refusal)
            }
            _ => Ok(eviction),
        }
    }

    fn step(&mut self, id: PodId, eviction: Eviction) -> bool {
        let is_foreseen = eviction.outlook != Outlook::default();
        let is_expected = self.cluster.pod(id).is_some_and(|pod| self.work.expected.lets_go(pod));
        let is_done = self.carried_out(Step::Evict(Box::new(eviction)), is_expected);
        let work = &mut self.work;
        if let Some(judge) = work.judge.as_deref_mut().filter(|_| is_foreseen && !is_done) {
            judge.take_back();
        }
        if let Some(tried) = work.tried.get_mut(id.index()) {
            *tried = if is_done { Tried::Evicted } else { Tried::Failed };
        }
        if let Some(pod) = self.cluster.pod(id).filter(|_| is_done) {
            work.evicted.add(pod);
            for filter in work.evictors.iter_mut().flat_map(|evictor| &mut evictor.filters) {
                filter.evicted(id);
            }
        }
        is_done
    }

    /// Adds a step, and says whether it succeeds as far as is known, or expected.
    fn carried_out(&mut self, step: Step, is_expected: bool) -> bool {
        let work = &mut self.work;
        let is_done = work.results.get(work.steps.len()).copied().unwrap_or(is_expected);
        work.assumed.push(is_done);
        work.steps.push(step);
        is_done
    }
}

impl Expected<'_> {
    /// Whether a pod is evicted.
    fn lets_go(self, pod: &Pod) -> bool {
        match self {
            Self::Success => true,
            Self::Refused(controllers) => pod.controller().is_none_or(|owner| !controllers.contains(&owner.uid)),
            Self::NoEvictions => false,
        }
    }
}

impl EvictedPod {
    fn of(pod: &Pod) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone(), node: pod.node.clone() }
    }
}
