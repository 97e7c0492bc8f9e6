//! One round: the tasks of a strategy, worked off pod by pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Pod, Reason};

use super::{Answer, Eviction, Ledger, Release, ReleaseKind, Task};
use crate::feature::Feature;

/// Evictions of one round. They are decided one by one, as each depends on what became of those before.
pub struct EvictionRound {
    tasks: Vec<Planned>,
    /// What each pod releases: of several tasks that measure in the same way, the larger amount.
    releases: BTreeMap<Arc<str>, BTreeMap<Measured, i64>>,
    /// What is released or will be.
    released: BTreeMap<Measured, i64>,
    /// Pods that release what they have without another eviction.
    pending: BTreeSet<Arc<str>>,
    /// Pods that count as released.
    counted: BTreeSet<Arc<str>>,
    /// The task and the pod that come next.
    task: usize,
    next: usize,
    accepted: Vec<Arc<str>>,
}

type Measured = (ReleaseKind, &'static str);

struct Planned {
    feature: Feature,
    reason: Reason,
    required: Vec<Release>,
    pods: Vec<Arc<Pod>>,
    is_begun: bool,
}

impl EvictionRound {
    /// A round of tasks in their order; `None` where nothing has to be released.
    pub fn new(tasks: Vec<Task<'_>>, ledger: &Ledger) -> Option<Self> {
        let tasks: Vec<Task<'_>> =
            tasks.into_iter().filter(|task| task.required.iter().any(|required| required.amount > 0)).collect();
        let mut releases: BTreeMap<Arc<str>, BTreeMap<Measured, i64>> = BTreeMap::new();
        let mut pending = BTreeSet::new();
        for pod in tasks.iter().flat_map(|task| &task.pods) {
            if ledger.is_pending(pod) {
                pending.insert(Arc::clone(&pod.uid));
            }
            let of_pod = releases.entry(Arc::clone(&pod.uid)).or_default();
            for Release { kind, resource, amount } in tasks.iter().flat_map(|task| (task.release)(pod)) {
                let largest = of_pod.entry((kind, resource)).or_default();
                *largest = amount.max(*largest);
            }
        }
        let planned =
            |Task { feature, reason, required, pods, .. }| Planned { feature, reason, required, pods, is_begun: false };
        let tasks: Vec<Planned> = tasks.into_iter().map(planned).collect();
        let (released, counted, accepted) = Default::default();
        (!tasks.is_empty()).then_some(Self { tasks, releases, released, pending, counted, task: 0, next: 0, accepted })
    }

    /// The next pod that has to be evicted; `None` when enough is released, or no pod is left.
    ///
    /// Pods that were evicted earlier and are still there count first, wherever they stand in the order: what they have will be released without evictions of
    /// others.
    pub fn next_eviction(&mut self) -> Option<Eviction> {
        while let Some(task) = self.tasks.get_mut(self.task) {
            if !std::mem::replace(&mut task.is_begun, true) {
                let pending: Vec<Arc<Pod>> =
                    task.pods.iter().filter(|pod| self.pending.contains(&pod.uid)).map(Arc::clone).collect();
                for pod in &pending {
                    self.count(pod);
                }
            }
            let task = self.tasks.get(self.task)?;
            let pod = if self.is_satisfied(task) { None } else { task.pods.get(self.next) };
            let Some(pod) = pod else {
                self.task += 1;
                self.next = 0;
                continue;
            };
            self.next += 1;
            if !self.counted.contains(&pod.uid) {
                return Some(Eviction {
                    pod: Arc::clone(pod),
                    feature: task.feature,
                    reason: task.reason.clone(),
                    releases: self.releases_of(pod),
                });
            }
        }
        None
    }

    /// Takes account of pods that became pending since the round was made, such as those that another strategy evicted. To be called before each
    /// [`next_eviction`](Self::next_eviction) where rounds of several strategies are carried out one after the other.
    pub fn count_pending(&mut self, ledger: &Ledger) {
        let mut begun = Vec::new();
        for task in &self.tasks {
            for pod in task.pods.iter().filter(|pod| !self.counted.contains(&pod.uid) && ledger.is_pending(pod)) {
                self.pending.insert(Arc::clone(&pod.uid));
                // A task that is not begun counts its pending pods when it begins.
                if task.is_begun {
                    begun.push(Arc::clone(pod));
                }
            }
        }
        for pod in &begun {
            self.count(pod);
        }
    }

    /// Reports what became of an eviction. Only an accepted one counts as released.
    pub fn report(&mut self, eviction: &Eviction, answer: &Answer, ledger: &mut Ledger, now: Moment) {
        if let Answer::Accepted(means) = answer {
            ledger.accept(&eviction.pod, *means, now);
            self.count(&eviction.pod);
            self.accepted.push(Arc::clone(&eviction.pod.uid));
        }
    }

    /// The uids of pods whose eviction was accepted in this round.
    pub fn accepted(&self) -> &[Arc<str>] {
        &self.accepted
    }

    fn is_satisfied(&self, task: &Planned) -> bool {
        task.required.iter().all(|required| {
            let released = self.released.get(&(required.kind, required.resource)).copied().unwrap_or_default();
            required.amount <= released
        })
    }

    fn count(&mut self, pod: &Pod) {
        if self.counted.insert(Arc::clone(&pod.uid)) {
            for (measured, amount) in self.releases.get(&pod.uid).into_iter().flatten() {
                let released = self.released.entry(*measured).or_default();
                *released = released.saturating_add(*amount);
            }
        }
    }

    fn releases_of(&self, pod: &Pod) -> Vec<Release> {
        let releases = self.releases.get(&pod.uid).into_iter().flatten();
        releases.map(|((kind, resource), amount)| Release { kind: *kind, resource, amount: *amount }).collect()
    }
}

impl fmt::Debug for EvictionRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.tasks.iter().map(|task| (task.feature, &task.required, task.pods.len()));
        f.debug_struct("EvictionRound").field("tasks", &tasks.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
