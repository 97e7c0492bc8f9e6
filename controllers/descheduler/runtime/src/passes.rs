//! When passes are made, and what is kept between them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_descheduler_framework::{Descheduler, Input, Memory, Plan, PodId, Stopwatch};
use koord_runtime::{clock::Moment, uid::Uid};

use crate::migration::SharedCluster;

/// The first pause after an eviction failed, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// The descheduler between its passes.
pub struct Passes {
    descheduler: Arc<Descheduler>,
    pub(crate) cluster: SharedCluster,
    memory: Memory,
    /// The time from the start of a pass to the start of the next; `None` for a single pass.
    interval: Option<Duration>,
    /// When the next pass begins; `None` where there is none to come.
    next: Option<Moment>,
    /// Pods whose eviction failed: until when they are not tried, and the pause after the next failure.
    failed: BTreeMap<Uid, (Moment, Duration)>,
}

/// A pass under way.
pub(crate) struct UnderWay {
    pub(crate) plan: Plan,
    results: Vec<bool>,
    held: Vec<PodId>,
    now: Timestamp,
}

impl Passes {
    pub fn new(descheduler: Descheduler, interval: Duration) -> Self {
        Self {
            descheduler: Arc::new(descheduler),
            cluster: SharedCluster::default(),
            memory: Memory::default(),
            interval: (!interval.is_zero()).then_some(interval),
            next: None,
            failed: BTreeMap::new(),
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
        self.failed.retain(|_, (until, pause)| *until + *pause > moment);
        let held = self.held(moment);
        let plan = self.plan(&[], &held, now, stopwatch);
        UnderWay { plan, results: Vec::new(), held, now }
    }

    /// What has become of the next step. A failure changes what follows.
    pub(crate) fn carried_out(&self, pass: &mut UnderWay, is_done: bool) {
        pass.results.push(is_done);
        if !is_done {
            pass.plan = self.plan(&pass.results, &pass.held, pass.now, None);
        }
    }

    /// The eviction of a pod failed: it is left alone for a while, for longer after each failure.
    pub(crate) fn eviction_failed(&mut self, pod: &Uid, moment: Moment) {
        let pause = self.failed.get(pod).map_or(PAUSE_MIN, |(_, pause)| *pause);
        self.failed.insert(pod.clone(), (moment + pause, (pause * 2).min(PAUSE_MAX)));
    }

    /// A pass has ended: strategies remember it.
    pub(crate) fn end(&mut self, pass: UnderWay) {
        self.memory = pass.plan.memory;
    }

    /// The pods whose eviction failed not long ago.
    fn held(&self, now: Moment) -> Vec<PodId> {
        if self.failed.is_empty() {
            return Vec::new();
        }
        let is_held = |uid: &Uid| self.failed.get(uid).is_some_and(|(until, _)| *until > now);
        self.cluster.lock().pods().filter(|(_, pod)| is_held(&pod.uid)).map(|(id, _)| id).collect()
    }

    fn plan(&self, results: &[bool], held: &[PodId], now: Timestamp, stopwatch: Option<Stopwatch<'_>>) -> Plan {
        let cluster = self.cluster.lock();
        self.descheduler.pass(&Input { results, held, stopwatch, ..Input::new(&cluster, &self.memory, now) })
    }
}

impl UnderWay {
    /// How many steps have been carried out.
    pub(crate) fn done(&self) -> usize {
        self.results.len()
    }
}
