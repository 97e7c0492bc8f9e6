//! When passes are made, and what is kept between them.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_descheduler_framework::{
    Descheduler, Eviction, History, Input, Memory, Plan, Planning, PodId, Step, Stopwatch,
};
use koord_runtime::{clock::Moment, uid::Uid};

use crate::{migration::SharedCluster, planner::Planner, refusals::Refusals};

/// The descheduler between its passes.
pub struct Passes {
    descheduler: Arc<Descheduler>,
    pub(crate) cluster: SharedCluster,
    memory: Memory,
    /// Who foresees what evictions lead to; `None` where no profile asks.
    pub(crate) planner: Option<Box<dyn Planner>>,
    pub(crate) history: History,
    /// The time from the start of a pass to the start of the next; `None` for a single pass.
    interval: Option<Duration>,
    /// When the next pass begins; `None` where there is none to come.
    next: Option<Moment>,
    refusals: Refusals,
}

/// A pass under way.
pub(crate) struct UnderWay {
    pub(crate) plan: Plan,
    results: Vec<bool>,
    held: Vec<PodId>,
    now: Timestamp,
    /// How often the plan was computed.
    pub(crate) computed: usize,
}

impl Passes {
    pub fn new(descheduler: Descheduler, interval: Duration, planner: Option<Box<dyn Planner>>) -> Self {
        Self {
            descheduler: Arc::new(descheduler),
            cluster: SharedCluster::default(),
            memory: Memory::default(),
            planner,
            history: History::default(),
            interval: (!interval.is_zero()).then_some(interval),
            next: None,
            refusals: Refusals::default(),
        }
    }

    pub(crate) fn descheduler(&self) -> &Arc<Descheduler> {
        &self.descheduler
    }

    /// Another configuration is in effect: from the next pass on, which begins at once where none was to come. What strategies keep is kept where the
    /// profiles are the same.
    pub(crate) fn reconfigure(
        &mut self,
        descheduler: Descheduler,
        (interval, keeps_memory): (Duration, bool),
        now: Option<Moment>,
    ) {
        self.descheduler = Arc::new(descheduler);
        self.interval = (!interval.is_zero()).then_some(interval);
        if !keeps_memory {
            self.memory = Memory::default();
        }
        if let (Some(now), Some(interval)) = (now, self.interval) {
            self.next = Some(self.next.map_or(now, |next| next.min(now + interval)));
        }
    }

    /// This replica leads from now on: the first pass begins at once.
    pub(crate) fn lead(&mut self, now: Moment) {
        self.next = Some(now);
    }

    /// When the next pass begins; `None` where there is none to come.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Begins a pass. The next one follows after the interval, or as soon as this one has ended.
    pub(crate) fn begin(&mut self, now: Timestamp, moment: Moment, stopwatch: Option<Stopwatch<'_>>) -> UnderWay {
        self.next = self.interval.map(|interval| moment + interval);
        self.refusals.forget(moment);
        let held = self.held(moment);
        let plan = self.plan(&[], &held, now, stopwatch);
        UnderWay { plan, results: Vec::new(), held, now, computed: 1 }
    }

    /// What has become of the next step. Where it is not what the plan assumed, what follows is computed again.
    pub(crate) fn carried_out(&mut self, pass: &mut UnderWay, is_done: bool) {
        let assumed = pass.plan.assumed.get(pass.done()).copied();
        if let Some(eviction) = pass.plan.steps.get(pass.done()).and_then(Step::eviction) {
            let controller = self.controller(eviction.pod.key.as_str());
            self.refusals.ended(controller, is_done);
        }
        pass.results.push(is_done);
        if assumed != Some(is_done) {
            pass.plan = self.plan(&pass.results, &pass.held, pass.now, None);
            pass.computed += 1;
        }
    }

    /// The eviction of a pod failed: it is left alone for a while, for longer after each failure.
    pub(crate) fn eviction_failed(&mut self, pod: &Uid, moment: Moment) {
        self.refusals.failed(pod, moment);
    }

    /// The controller of a pod; `None` where it has none, or is gone.
    fn controller(&self, pod: &str) -> Option<Uid> {
        let cluster = self.cluster.lock();
        let owner = cluster.pod(cluster.pod_id(pod)?)?.controller()?;
        Some(owner.uid.clone())
    }

    /// A pass has ended: strategies remember it.
    pub(crate) fn end(&mut self, pass: UnderWay) {
        self.memory = pass.plan.memory;
    }

    /// The pods whose eviction failed not long ago.
    fn held(&self, now: Moment) -> Vec<PodId> {
        if self.refusals.is_empty() {
            return Vec::new();
        }
        let cluster = self.cluster.lock();
        cluster.pods().filter(|(_, pod)| self.refusals.holds(&pod.uid, now)).map(|(id, _)| id).collect()
    }

    fn plan(&mut self, results: &[bool], held: &[PodId], now: Timestamp, stopwatch: Option<Stopwatch<'_>>) -> Plan {
        let cluster = self.cluster.lock();
        let expected = self.refusals.expected();
        let input = Input { results, expected, held, stopwatch, ..Input::new(&cluster, &self.memory, now) };
        match &mut self.planner {
            Some(planner) => planner.plan(&self.descheduler, &input, &self.history),
            None => self.descheduler.pass(&input),
        }
    }

    /// A pod has been evicted, or a job for that was made, in a profile that plans: that is remembered.
    pub(crate) fn remember(&mut self, eviction: &Eviction, now: Timestamp) -> bool {
        let profiles = self.descheduler.profiles.iter();
        let mut planning = profiles.filter(|profile| profile.planning != Planning::Off);
        let Some(profile) = planning.find(|profile| profile.name == eviction.profile) else { return false };
        let cool_down = profile.cool_down;
        let cluster = self.cluster.lock();
        let pod = cluster.pod_id(eviction.pod.key.as_str()).and_then(|id| cluster.pod(id));
        // The cache may show already that it is gone.
        let Some(pod) = pod.filter(|pod| pod.uid == eviction.pod.uid) else { return false };
        self.history.add(pod, eviction, cool_down, now);
        true
    }

    /// Looks for the pods that have replaced evicted ones. Whether one was found.
    pub(crate) fn find_successors(&mut self, now: Timestamp) -> bool {
        self.history.find_successors(&self.cluster.lock(), now)
    }
}

impl UnderWay {
    /// How many steps have been carried out.
    pub(crate) fn done(&self) -> usize {
        self.results.len()
    }
}

#[cfg(test)]
mod tests;
