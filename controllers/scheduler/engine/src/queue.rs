//! The queue of pods that wait for a node (`spec/scheduler.md` 4.4).
//!
//! A pod is active (to be tried next), backing off (tried lately), parked (refused, and nothing has happened that may
//! help) or in flight (being tried, or being bound). It is a state machine: time comes in with every call, and what
//! plugins say through [`QueueingHints`].

mod arrivals;
mod entry;
mod hints;
mod in_flight;
mod representatives;
mod standing;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use koord_core::{clock::Moment, uid::Uid};
use koord_scheduler_framework::{PluginSet, event::Event, pod::Pod};

use self::{
    arrivals::Admission,
    entry::{Entry, Place},
    in_flight::{Flying, InFlight},
};
pub use self::{
    arrivals::{Arrivals, Cause, Change, Part},
    entry::Tried,
    hints::QueueingHints,
    standing::{Standing, Stands},
};

/// Timings of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// The first pause after a failed attempt.
    pub backoff: Duration,
    pub backoff_max: Duration,
    /// After this time a parked pod is tried again whatever happened.
    pub parked_max: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(10),
            parked_max: Duration::from_mins(5),
        }
    }
}

/// Why a pod comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// These plugins have refused it.
    Refused(PluginSet),
    /// Something failed that has to do with neither the pod nor the cluster.
    Failed,
}

/// Where the pods are, for metrics and for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// To be tried next.
    pub active: usize,
    /// Tried lately.
    pub backoff: usize,
    /// Refused.
    pub parked: usize,
    /// Not to be tried yet: a plugin holds them back.
    pub gated: usize,
}

/// Pods that wait for a node.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    timings: Timings,
    entries: BTreeMap<Uid, Entry>,
    /// The highest priority first, then who waits longest.
    active: BTreeSet<(Order, Uid)>,
    /// By the end of the pause, in whole seconds.
    backoff: BTreeSet<(u64, Order, Uid)>,
    error_backoff: BTreeSet<(u64, Uid)>,
    /// Who was looked at longest ago first.
    parked: BTreeSet<(Moment, Uid)>,
    /// How many of these a plugin holds back.
    gated: usize,
    /// Those whose plugin wakes them by itself.
    held: BTreeSet<(Moment, Uid)>,
    /// Those held back that something has helped while the pod that is tried in their place was being tried.
    helped: BTreeSet<Uid>,
    in_flight: InFlight,
    /// What has happened since the oldest pod in flight was taken.
    events: VecDeque<Event>,
    /// The number of the first of them.
    first_event: u64,
    arrivals: Arrivals,
}

/// The order of trial.
type Order = (Reverse<i32>, Moment);

impl Queue {
    pub fn new(timings: Timings) -> Self {
        Self { timings, ..Self::default() }
    }

    /// Forgets all pods.
    pub fn clear(&mut self) {
        *self = Self { arrivals: std::mem::take(&mut self.arrivals), ..Self::new(self.timings) };
    }

    /// How many pods are where.
    pub fn depths(&self) -> Depths {
        Depths {
            active: self.active.len(),
            backoff: self.backoff.len() + self.error_backoff.len(),
            parked: self.parked.len() - self.gated,
            gated: self.gated + self.held.len(),
        }
    }

    /// How many pods have come into which part, and why.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// The pods that wait, with the plugins that have refused them or hold them back.
    pub fn refusals(&self) -> impl Iterator<Item = (&Arc<Pod>, PluginSet)> {
        self.entries.values().map(|entry| (&entry.pod, entry.stopped_by()))
    }

    /// Whether a pod waits here, or is in flight.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.entries.contains_key(uid) || self.in_flight.get(uid).is_some()
    }

    /// Whether a pod is to be tried now, or [`Queue::flush`] has something to do.
    pub fn has_work(&self, now: Moment) -> bool {
        !self.active.is_empty() || !self.backoff.is_empty() || self.wake_at().is_some_and(|at| at <= now)
    }

    /// When [`Queue::flush`] has something to do next; none while no pod waits for the time.
    pub fn wake_at(&self) -> Option<Moment> {
        let ends = [self.backoff.first().map(|(end, ..)| *end), self.error_backoff.first().map(|(end, _)| *end)];
        let ends = ends.into_iter().flatten().map(Self::pause_over);
        let oldest = self.parked.first().into_iter().chain(self.held.first()).map(|(since, _)| *since).min();
        let parked = oldest.map(|since| since + self.timings.parked_max + Duration::from_millis(1));
        ends.chain(parked).min()
    }

    /// A pause ends with its last second.
    fn pause_over(end: u64) -> Moment {
        Moment::at(Duration::from_secs(end + 1))
    }

    /// A pod that needs a node was added, or changed; one that is as it was changes nothing.
    pub fn set(&mut self, pod: Arc<Pod>, now: Moment, hints: &dyn QueueingHints) {
        if let Some(known) = self.in_flight.pod_mut(&pod.uid) {
            let differs = pod.differs(known);
            *known = pod;
            if differs {
                self.record(Event::PodChanged);
            }
            return;
        }
        let uid = pod.uid.clone();
        if self.entries.get(&uid).is_some_and(|entry| entry.pod == pod) {
            return;
        }
        let Some(mut entry) = self.take(&uid) else {
            return self.admit(Entry::new(pod, now), now, hints, Admission::New);
        };
        let differs = pod.differs(&entry.pod);
        entry.pod = pod;
        match entry.place {
            Place::Active | Place::Backoff { .. } => self.put(entry, entry_place),
            Place::Parked | Place::Held => {
                let helps = match entry.gate {
                    _ if !differs => false,
                    Some(_) => true,
                    None => hints.is_helped_by(&entry.pod, entry.refused_by, &Event::PodChanged),
                };
                if helps {
                    self.admit(entry, now, hints, Admission::Woken(Cause::PodChanged));
                } else {
                    self.put(entry, entry_place);
                }
            }
        }
    }

    /// A pod needs no node any more: it was deleted or bound.
    pub fn remove(&mut self, uid: &Uid) {
        self.take(uid);
    }

    /// The pod to try next, which is in flight until [`Queue::done`] or [`Queue::give_back`]. Where none is active, one that
    /// only backs off is tried early.
    pub fn pop(&mut self, now: Moment) -> Option<(Arc<Pod>, Tried)> {
        if let Some((_, uid)) = self.active.first().cloned() {
            return self.pop_this(&uid, now);
        }
        let (.., uid) = self.backoff.first().cloned()?;
        self.arrivals.count(Cause::TriedEarly, Part::Active);
        self.pop_this(&uid, now)
    }

    /// This pod as the next to try, wherever in the queue it is; none where it is not there, or a plugin holds it back.
    pub fn pop_this(&mut self, uid: &Uid, now: Moment) -> Option<(Arc<Pod>, Tried)> {
        if self.entries.get(uid)?.gate.is_some() {
            return None;
        }
        let mut entry = self.take(uid)?;
        entry.tried.attempts += 1;
        entry.tried.first.get_or_insert(now);
        let since = self.first_event + self.events.len() as u64;
        self.in_flight.insert(Flying { since, pod: Arc::clone(&entry.pod) });
        Some((Arc::clone(&entry.pod), entry.tried))
    }

    /// A pod in flight is bound, or gone.
    pub fn done(&mut self, uid: &Uid) {
        if self.in_flight.remove(uid).is_none() {
            return;
        }
        let keep_from = self.in_flight.oldest().unwrap_or(self.first_event + self.events.len() as u64);
        while self.first_event < keep_from {
            self.events.pop_front();
            self.first_event += 1;
        }
    }

    /// A pod in flight could not be placed. What it has become meanwhile waits in its place.
    pub fn give_back(&mut self, pod: Arc<Pod>, tried: Tried, why: Return, now: Moment, hints: &dyn QueueingHints) {
        let flying = self.in_flight.get(&pod.uid);
        let since = flying.map(|flying| flying.since);
        let pod = flying.map_or(pod, |flying| Arc::clone(&flying.pod));
        let mut entry = Entry { tried, ..Entry::new(pod, now) };
        entry.count(why);
        let helps = match (why, since) {
            // What came while it was tried was not seen by the attempt.
            (Return::Refused(refused_by), Some(since)) if !refused_by.is_empty() => {
                let missed = usize::try_from(since.saturating_sub(self.first_event)).unwrap_or(usize::MAX);
                let mut missed = self.events.iter().skip(missed);
                missed.any(|event| hints.is_helped_by(&entry.pod, refused_by, event))
            }
            _ => true,
        };
        self.done(&entry.pod.uid.clone());
        if helps {
            self.admit_helped(entry, now, hints, Admission::Returned);
        } else {
            self.arrivals.count(Cause::AttemptFailed, Part::Parked);
            self.put(entry, |_| Place::Parked);
        }
        self.try_for_helped(now, hints);
    }

    /// Something happened: the pods that it may help are tried again.
    pub fn notify(&mut self, event: &Event, now: Moment, hints: &dyn QueueingHints) {
        self.notify_others(event, None, now, hints);
    }

    /// Something happened that does not help this pod, which is its cause.
    pub fn notify_others(&mut self, event: &Event, cause: Option<&Uid>, now: Moment, hints: &dyn QueueingHints) {
        self.record(event.clone());
        let others = self.parked.iter().filter(|(_, uid)| Some(uid) != cause);
        let helped = others.filter(|(_, uid)| self.is_helped(uid, event, hints));
        for (_, uid) in helped.cloned().collect::<Vec<_>>() {
            if let Some(entry) = self.take(&uid) {
                self.admit_helped(entry, now, hints, Admission::Woken(Cause::of(event)));
            }
        }
    }

    /// These pods are tried next, whether something may have helped them or not.
    pub fn activate(&mut self, uids: &[Uid], now: Moment, hints: &dyn QueueingHints) {
        for uid in uids {
            if let Some(entry) = self.take(uid) {
                self.admit(entry, now, hints, Admission::Activated);
            }
        }
    }

    /// A pod that a plugin holds back is looked at again.
    pub fn release(&mut self, uid: &Uid, now: Moment, hints: &dyn QueueingHints) {
        if self.entries.get(uid).is_some_and(|entry| entry.gate.is_some()) {
            self.activate(std::slice::from_ref(uid), now, hints);
        }
    }

    /// Ends pauses whose time has come.
    pub fn flush(&mut self, now: Moment, hints: &dyn QueueingHints) {
        let second = now.since(Moment::default()).as_secs();
        let is_over = |end: u64| end < second;
        let over = self.backoff.iter().take_while(|(end, ..)| is_over(*end)).map(|(.., uid)| uid.clone());
        let failed = self.error_backoff.iter().take_while(|(end, _)| is_over(*end)).map(|(_, uid)| uid.clone());
        for uid in over.chain(failed).collect::<Vec<_>>() {
            if let Some(entry) = self.take(&uid) {
                self.arrivals.count(Cause::PauseOver, Part::Active);
                self.put(entry, |_| Place::Active);
            }
        }
        let is_too_long = |(since, _): &&(Moment, Uid)| now.since(*since) > self.timings.parked_max;
        let too_long = [&self.parked, &self.held].into_iter().flat_map(|part| part.iter().take_while(is_too_long));
        for (_, uid) in too_long.cloned().collect::<Vec<_>>() {
            if self.is_helped(&uid, &Event::Timeout, hints)
                && let Some(mut entry) = self.take(&uid)
            {
                entry.looked = now;
                self.admit(entry, now, hints, Admission::Woken(Cause::TimeOver));
            }
        }
    }

    fn is_helped(&self, uid: &Uid, event: &Event, hints: &dyn QueueingHints) -> bool {
        self.entries.get(uid).is_some_and(|entry| hints.is_helped_by(&entry.pod, entry.stopped_by(), event))
    }

    fn record(&mut self, event: Event) {
        if !self.in_flight.is_empty() {
            self.events.push_back(event);
        }
    }

    /// Puts a pod where it is tried again, unless a plugin holds it back.
    fn admit(&mut self, mut entry: Entry, now: Moment, hints: &dyn QueueingHints, admission: Admission) {
        if let Err(plugin) = hints.pre_enqueue(&entry.pod, entry.gate) {
            if entry.gate.replace(plugin).is_none() {
                self.arrivals.count(admission.cause(), Part::Parked);
            }
            let place = if hints.activates(&entry.pod, plugin) { Place::Held } else { Place::Parked };
            return self.put(entry, |_| place);
        }
        let was_gated = entry.gate.take().is_some();
        let end = entry.backoff_end(self.timings);
        let second = now.since(Moment::default()).as_secs();
        let pauses = match admission {
            Admission::New | Admission::Activated => false,
            Admission::Woken(_) | Admission::Returned => !was_gated && end.is_some_and(|end| end >= second),
        };
        let place = match end.filter(|_| pauses) {
            Some(end) => Place::Backoff { end, is_error: entry.tried.errors > 0 },
            None => Place::Active,
        };
        let part = if place == Place::Active { Part::Active } else { Part::Backoff };
        self.arrivals.count(admission.cause(), part);
        self.put(entry, |_| place);
    }

    fn put(&mut self, mut entry: Entry, place: impl FnOnce(&Entry) -> Place) {
        entry.place = place(&entry);
        let (uid, order) = (entry.pod.uid.clone(), entry.order());
        match entry.place {
            Place::Active => _ = self.active.insert((order, uid.clone())),
            Place::Backoff { end, is_error: false } => _ = self.backoff.insert((end, order, uid.clone())),
            Place::Backoff { end, is_error: true } => _ = self.error_backoff.insert((end, uid.clone())),
            Place::Parked => {
                self.gated += usize::from(entry.gate.is_some());
                self.parked.insert((entry.looked, uid.clone()));
            }
            Place::Held => _ = self.held.insert((entry.looked, uid.clone())),
        }
        self.entries.insert(uid, entry);
    }

    fn take(&mut self, uid: &Uid) -> Option<Entry> {
        let entry = self.entries.remove(uid)?;
        self.helped.remove(uid);
        let order = entry.order();
        match entry.place {
            Place::Active => _ = self.active.remove(&(order, uid.clone())),
            Place::Backoff { end, is_error: false } => _ = self.backoff.remove(&(end, order, uid.clone())),
            Place::Backoff { end, is_error: true } => _ = self.error_backoff.remove(&(end, uid.clone())),
            Place::Parked => {
                self.gated -= usize::from(entry.gate.is_some());
                self.parked.remove(&(entry.looked, uid.clone()));
            }
            Place::Held => _ = self.held.remove(&(entry.looked, uid.clone())),
        }
        Some(entry)
    }
}

fn entry_place(entry: &Entry) -> Place {
    entry.place
}
