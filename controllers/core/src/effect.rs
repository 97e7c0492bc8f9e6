//! Effects: work outside of the cluster (a call of a cloud's API) that a decision asks for and does not do.
//!
//! A decision names inputs and gives a future. The program runs it when the writes of the plan have succeeded, once per key
//! and inputs; the result is a value that the next decision about the key reads. What a decision asks for no longer is
//! cancelled and forgotten.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    clock::{Moment, SharedClock},
    error::Retry,
    key::ObjectKey,
};

/// The work of an effect.
pub type Work<O> = Pin<Box<dyn Future<Output = Result<O, EffectError>> + Send>>;

/// How often and how long effects of one name run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectLimits {
    /// How many run at once.
    pub concurrency: usize,
    /// How many begin in a second; zero for no limit.
    pub per_second: f32,
    /// How many may begin at once, where there is a limit.
    pub burst: u32,
    /// One that runs longer has failed.
    pub timeout: Duration,
    /// After a failure the next attempt waits this long, and twice as long after each further one.
    pub backoff_min: Duration,
    /// The longest of these pauses.
    pub backoff_max: Duration,
    /// A result is found out again when it is this old; none to trust it for as long as the inputs are the same. A decision may say
    /// otherwise for its key ([`Outcome::effect_every`](crate::outcome::Outcome::effect_every)).
    pub refresh: Option<Duration>,
}

impl EffectLimits {
    /// Four at once, half a minute each, pauses from one second to five minutes.
    pub const DEFAULT: Self = Self {
        concurrency: 4,
        per_second: 0.0,
        burst: 1,
        timeout: Duration::from_secs(30),
        backoff_min: Duration::from_secs(1),
        backoff_max: Duration::from_mins(5),
        refresh: None,
    };
}

/// Why an effect failed, and when it is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectError {
    /// What went wrong, for a person.
    pub message: String,
    /// With backoff, after the time that the other side asked for, or not before the inputs change.
    pub retry: Retry,
}

impl EffectError {
    /// A failure that is tried again with backoff.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), retry: Retry::Backoff }
    }

    /// A failure that other inputs alone can repair.
    pub fn never(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), retry: Retry::Never }
    }

    /// The same, tried again after this time.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { retry: Retry::After(delay), ..self }
    }
}

impl<E: std::error::Error> From<E> for EffectError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// What a decision sees of an effect.
#[derive(Debug, PartialEq)]
pub enum Progress<O> {
    /// It has not ended yet.
    Pending,
    /// Its result. While it is found out again, the one before.
    Done(Arc<O>),
    /// It failed and is tried again when the error says so.
    Failed {
        /// Why.
        error: EffectError,
        /// The result of an earlier attempt with the same inputs.
        last: Option<Arc<O>>,
    },
}

/// An effect that a decision asks for, as data.
pub struct Wanted {
    /// The name of the effects.
    pub name: &'static str,
    /// What it is about.
    pub key: ObjectKey,
    /// Its inputs, as JSON. Two effects of a name and key are equal when these are.
    pub inputs: Value,
    pub(crate) begin: Box<dyn FnOnce() + Send>,
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.key, &self.inputs) == (other.name, &other.key, &other.inputs)
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, key, inputs, .. } = self;
        write!(f, "effect {name} {key} {inputs}")
    }
}

type Wake = Box<dyn Fn(&ObjectKey) + Send + Sync>;
type Ready = Box<dyn Fn() + Send + Sync>;

/// The effects of one name: what was asked for, and what came of it.
pub struct Effects<I, O> {
    name: &'static str,
    limits: EffectLimits,
    clock: SharedClock,
    state: Mutex<State<I, O>>,
    wake: OnceLock<Wake>,
    ready: OnceLock<Ready>,
}

struct State<I, O> {
    slots: BTreeMap<ObjectKey, Slot<I, O>>,
    queue: VecDeque<(ObjectKey, u64)>,
    attempts: u64,
}

struct Slot<I, O> {
    inputs: I,
    last: Option<Arc<O>>,
    phase: Phase<O>,
    /// When a result is too old.
    refresh: Option<Duration>,
    failures: u32,
    /// Why the last attempt failed.
    error: Option<String>,
}

enum Phase<O> {
    Queued(u64, Work<O>),
    Running(u64, Option<Box<dyn FnOnce() + Send>>),
    Done(Moment),
    Failed(EffectError, Option<Moment>),
}

/// How many keys an effect has, by what has become of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCounts {
    /// Wait to be run.
    pub waiting: usize,
    /// Run.
    pub running: usize,
    /// Are done.
    pub done: usize,
    /// Failed, and wait for the next attempt or for other inputs.
    pub failed: usize,
}

/// What the end of an attempt says beside its result, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It succeeded.
    Succeeded {
        /// Whether the attempt before had failed.
        after_failure: bool,
    },
    /// It failed.
    Failed {
        /// Whether the attempt before had failed for the same reason.
        again: bool,
    },
}

/// An attempt that is to be run.
pub struct Attempt<O> {
    /// What it is about.
    pub key: ObjectKey,
    /// What is to be done.
    pub work: Work<O>,
    number: u64,
}

impl<I: PartialEq, O> Effects<I, O> {
    /// Nothing is asked for yet.
    pub fn new(name: &'static str, limits: EffectLimits, clock: SharedClock) -> Self {
        let state = State { slots: BTreeMap::new(), queue: VecDeque::new(), attempts: 0 };
        Self { name, limits, clock, state: Mutex::new(state), wake: OnceLock::new(), ready: OnceLock::new() }
    }

    /// The name, for logs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How often and how long they run.
    pub fn limits(&self) -> &EffectLimits {
        &self.limits
    }

    /// Is called with a key that is to be decided about again. The first call counts.
    pub fn on_wake(&self, wake: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    /// Is called when there is an attempt to run. The first call counts.
    pub fn on_ready(&self, ready: impl Fn() + Send + Sync + 'static) {
        let _ = self.ready.set(Box::new(ready));
    }

    /// What has become of the effect of a key with these inputs.
    pub fn progress(&self, key: &ObjectKey, inputs: &I) -> Progress<O> {
        let state = self.state.lock();
        let Some(slot) = state.slots.get(key).filter(|slot| slot.inputs == *inputs) else { return Progress::Pending };
        match (&slot.phase, &slot.last) {
            (Phase::Failed(error, _), last) => Progress::Failed { error: error.clone(), last: last.clone() },
            (_, Some(last)) => Progress::Done(Arc::clone(last)),
            (_, None) => Progress::Pending,
        }
    }

    /// The time until the effect of a key is tried again, or found out again; none when it waits for nothing but its end.
    pub fn due_in(&self, key: &ObjectKey, inputs: &I) -> Option<Duration> {
        let state = self.state.lock();
        let slot = state.slots.get(key).filter(|slot| slot.inputs == *inputs)?;
        let due = match &slot.phase {
            Phase::Queued(..) | Phase::Running(..) => None,
            Phase::Done(at) => slot.refresh.map(|age| *at + age),
            Phase::Failed(_, until) => *until,
        };
        let now = self.clock.moment();
        due.filter(|due| *due > now).map(|due| due.since(now))
    }

    /// The effect is wanted, and its result for as long as `refresh` says. Nothing happens while it is under way, or done with the same inputs and
    /// not too old, or waits after a failure.
    pub fn want(&self, key: ObjectKey, inputs: I, refresh: Option<Duration>, work: Work<O>) {
        let now = self.clock.moment();
        let mut cancel = None;
        {
            let mut state = self.state.lock();
            let (mut last, mut failures, mut error) = (None, 0, None);
            if let Some(slot) = state.slots.get_mut(&key) {
                if slot.inputs == inputs {
                    slot.refresh = refresh;
                    let is_due = match &slot.phase {
                        Phase::Queued(..) | Phase::Running(..) => false,
                        Phase::Done(at) => refresh.is_some_and(|age| now.since(*at) >= age),
                        Phase::Failed(_, until) => until.is_some_and(|until| now >= until),
                    };
                    if !is_due {
                        return;
                    }
                    (last, failures, error) = (slot.last.take(), slot.failures, slot.error.take());
                } else if let Phase::Running(_, running) = &mut slot.phase {
                    cancel = running.take();
                }
            }
            state.attempts += 1;
            let number = state.attempts;
            state.queue.push_back((key.clone(), number));
            state
                .slots
                .insert(key, Slot { inputs, last, refresh, failures, error, phase: Phase::Queued(number, work) });
        }
        if let Some(cancel) = cancel {
            cancel();
        }
        if let Some(ready) = self.ready.get() {
            ready();
        }
    }

    /// The effect of a key is not wanted any more.
    pub fn forget(&self, key: &ObjectKey) {
        let slot = self.state.lock().slots.remove(key);
        if let Some(Slot { phase: Phase::Running(_, Some(cancel)), .. }) = slot {
            cancel();
        }
    }

    /// The next attempt; none while there is nothing to run.
    pub fn take(&self) -> Option<Attempt<O>> {
        let mut state = self.state.lock();
        while let Some((key, number)) = state.queue.pop_front() {
            let Some(slot) = state.slots.get_mut(&key) else { continue };
            if !matches!(slot.phase, Phase::Queued(queued, _) if queued == number) {
                continue;
            }
            if let Phase::Queued(_, work) = std::mem::replace(&mut slot.phase, Phase::Running(number, None)) {
                return Some(Attempt { key, work, number });
            }
        }
        None
    }

    /// How a running attempt is cancelled. It is at once when it is not wanted any more.
    pub fn cancel_by(&self, key: &ObjectKey, number: u64, cancel: impl FnOnce() + Send + 'static) {
        let mut cancel: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(cancel));
        if let Some(Slot { phase: Phase::Running(running, slot), .. }) = self.state.lock().slots.get_mut(key)
            && *running == number
        {
            *slot = cancel.take();
        }
        if let Some(cancel) = cancel {
            cancel();
        }
    }

    /// An attempt has ended. Its key is decided about again. Gives nothing where the effect is not wanted any more.
    pub fn ended(&self, key: &ObjectKey, number: u64, result: Result<O, EffectError>) -> Option<Ended> {
        let now = self.clock.moment();
        let ended = {
            let mut state = self.state.lock();
            let slot = state.slots.get_mut(key)?;
            if !matches!(slot.phase, Phase::Running(running, _) if running == number) {
                return None;
            }
            match result {
                Ok(value) => {
                    (slot.last, slot.failures) = (Some(Arc::new(value)), 0);
                    slot.phase = Phase::Done(now);
                    Ended::Succeeded { after_failure: slot.error.take().is_some() }
                }
                Err(error) => {
                    let doubled = self.limits.backoff_min.saturating_mul(1 << slot.failures.min(20));
                    slot.failures = slot.failures.saturating_add(1);
                    let pause = match error.retry {
                        Retry::Backoff => Some(doubled.min(self.limits.backoff_max)),
                        Retry::After(delay) => Some(delay),
                        Retry::Never => None,
                    };
                    let again = slot.error.replace(error.message.clone()).is_some_and(|before| before == error.message);
                    slot.phase = Phase::Failed(error, pause.map(|pause| now + pause));
                    Ended::Failed { again }
                }
            }
        };
        if let Some(wake) = self.wake.get() {
            wake(key);
        }
        Some(ended)
    }

    /// How many keys there are, by what has become of their effect.
    pub fn counts(&self) -> EffectCounts {
        let mut counts = EffectCounts::default();
        for slot in self.state.lock().slots.values() {
            let count = match slot.phase {
                Phase::Queued(..) => &mut counts.waiting,
                Phase::Running(..) => &mut counts.running,
                Phase::Done(_) => &mut counts.done,
                Phase::Failed(..) => &mut counts.failed,
            };
            *count += 1;
        }
        counts
    }

    /// The lead is over, or begins: nothing runs, nothing is known. The keys are decided about again.
    pub fn reset(&self) {
        let slots = {
            let mut state = self.state.lock();
            state.queue.clear();
            std::mem::take(&mut state.slots)
        };
        for (key, slot) in slots {
            if let Phase::Running(_, Some(cancel)) = slot.phase {
                cancel();
            }
            if let Some(wake) = self.wake.get() {
                wake(&key);
            }
        }
    }

    /// Keys and inputs of the effects that wait to be run; for tests and simulations, which answer them.
    pub fn waiting(&self) -> Vec<(ObjectKey, I)>
    where
        I: Clone,
    {
        let state = self.state.lock();
        let waiting = state.slots.iter().filter(|(_, slot)| matches!(slot.phase, Phase::Queued(..)));
        waiting.map(|(key, slot)| (key.clone(), slot.inputs.clone())).collect()
    }

    /// Ends the effect of a key that waits to be run without running it. Says whether there was one.
    pub fn answer(&self, key: &ObjectKey, result: Result<O, EffectError>) -> bool {
        let number = match self.state.lock().slots.get_mut(key) {
            Some(slot) => match slot.phase {
                Phase::Queued(number, _) => {
                    slot.phase = Phase::Running(number, None);
                    number
                }
                _ => return false,
            },
            None => return false,
        };
        self.ended(key, number, result);
        true
    }
}

impl<O> Attempt<O> {
    /// Tells apart this attempt and others of the key.
    pub fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::ManualClock;

    type Buckets = Effects<u32, String>;

    fn buckets(refresh: Option<Duration>) -> (Arc<Buckets>, Arc<ManualClock>, Arc<Mutex<Vec<String>>>) {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let limits = EffectLimits { refresh, ..EffectLimits::DEFAULT };
        let effects = Arc::new(Buckets::new("bucket", limits, Arc::clone(&clock) as SharedClock));
        let woken = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&woken);
        effects.on_wake(move |key| log.lock().push(key.to_string()));
        (effects, clock, woken)
    }

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "a")
    }

    fn want(effects: &Buckets, inputs: u32) {
        effects.want(key(), inputs, effects.limits().refresh, Box::pin(async { Ok(String::new()) }));
    }

    fn done(text: &str) -> Progress<String> {
        Progress::Done(Arc::new(text.to_owned()))
    }

    #[test]
    fn an_effect_runs_once_for_its_inputs() {
        let (effects, _, woken) = buckets(None);
        assert_eq!(effects.progress(&key(), &1), Progress::Pending);
        want(&effects, 1);
        want(&effects, 1);
        assert_eq!(effects.waiting(), [(key(), 1)]);
        assert!(effects.answer(&key(), Ok("made".to_owned())));
        assert_eq!(effects.progress(&key(), &1), done("made"));
        want(&effects, 1);
        assert!(effects.take().is_none() && !effects.answer(&key(), Ok(String::new())));
        assert_eq!(effects.progress(&key(), &2), Progress::Pending, "the result of other inputs is none of these");
        assert_eq!(*woken.lock(), ["ns/a"]);
        effects.forget(&key());
        assert_eq!(effects.progress(&key(), &1), Progress::Pending);
    }

    #[test]
    fn other_inputs_cancel_what_runs() {
        let (effects, ..) = buckets(None);
        let cancelled = Arc::new(Mutex::new(0));
        let run = |inputs| {
            want(&effects, inputs);
            let attempt = effects.take().unwrap();
            let cancelled = Arc::clone(&cancelled);
            effects.cancel_by(&key(), attempt.number(), move || *cancelled.lock() += 1);
            attempt.number()
        };
        let first = run(1);
        let second = run(2);
        assert_eq!(*cancelled.lock(), 1);
        effects.ended(&key(), first, Ok("late".to_owned()));
        assert_eq!(effects.progress(&key(), &1), Progress::Pending, "what comes late counts no more");
        effects.ended(&key(), second, Ok("two".to_owned()));
        assert_eq!(effects.progress(&key(), &2), done("two"));
        run(3);
        effects.forget(&key());
        run(4);
        effects.reset();
        assert_eq!(*cancelled.lock(), 3);
        want(&effects, 5);
        let number = effects.take().unwrap().number();
        effects.forget(&key());
        effects.cancel_by(&key(), number, {
            let cancelled = Arc::clone(&cancelled);
            move || *cancelled.lock() += 1
        });
        assert_eq!(*cancelled.lock(), 4, "it was not wanted any more when it began");
    }

    #[test]
    fn failures_wait_longer_each_time_and_wake_their_key() {
        let (effects, clock, woken) = buckets(None);
        for pause in [1, 2, 4] {
            want(&effects, 1);
            assert!(effects.answer(&key(), Err(EffectError::new("no answer"))), "after {pause}");
            want(&effects, 1);
            assert_eq!(effects.waiting(), [], "it waits");
            assert_eq!(effects.due_in(&key(), &1), Some(Duration::from_secs(pause)));
            clock.advance(Duration::from_secs(pause));
            assert_eq!(effects.due_in(&key(), &1), None);
        }
        assert_eq!(*woken.lock(), ["ns/a"; 3]);
        want(&effects, 1);
        assert!(effects.answer(&key(), Err(EffectError::new("slow down").after(Duration::from_mins(7)))));
        assert_eq!(effects.due_in(&key(), &1), Some(Duration::from_mins(7)));
        clock.advance(Duration::from_mins(7));
        want(&effects, 1);
        assert!(effects.answer(&key(), Err(EffectError::never("no such region"))));
        clock.advance(Duration::from_hours(7));
        want(&effects, 1);
        assert_eq!(effects.waiting(), [], "other inputs alone help");
        want(&effects, 2);
        assert_eq!(effects.waiting(), [(key(), 2)]);
    }

    #[test]
    fn a_result_is_found_out_again_when_it_is_old() {
        let (effects, clock, woken) = buckets(Some(Duration::from_mins(10)));
        want(&effects, 1);
        effects.answer(&key(), Ok("one".to_owned()));
        assert_eq!((woken.lock().len(), effects.due_in(&key(), &1)), (1, Some(Duration::from_mins(10))));
        clock.advance(Duration::from_mins(10));
        want(&effects, 1);
        assert_eq!((effects.waiting().len(), effects.progress(&key(), &1)), (1, done("one")));
        effects.answer(&key(), Err(EffectError::new("gone")));
        let Progress::Failed { error, last } = effects.progress(&key(), &1) else { panic!() };
        assert_eq!((error.message.as_str(), last.as_deref().map(String::as_str)), ("gone", Some("one")));
    }

    #[test]
    fn each_key_has_the_age_that_its_decision_names() {
        let (effects, clock, _) = buckets(Some(Duration::from_mins(10)));
        let want = |name: &str, refresh| {
            let work = Box::pin(async { Ok(String::new()) });
            effects.want(ObjectKey::new("ns", name), 1, refresh, work);
        };
        let names = ["hourly", "daily", "once"];
        let ages = [Some(Duration::from_hours(1)), Some(Duration::from_hours(24)), None];
        let want_all = || names.iter().zip(ages).for_each(|(name, age)| want(name, age));
        want_all();
        for name in names {
            assert!(effects.answer(&ObjectKey::new("ns", name), Ok(String::new())));
        }
        assert_eq!(names.map(|name| effects.due_in(&ObjectKey::new("ns", name), &1)), ages);
        clock.advance(Duration::from_hours(2));
        want_all();
        assert_eq!(effects.waiting(), [(ObjectKey::new("ns", "hourly"), 1)]);
        // An edit of the period counts at once, without other inputs.
        want("daily", Some(Duration::from_hours(2)));
        assert_eq!(effects.counts(), EffectCounts { waiting: 2, done: 1, ..EffectCounts::default() });
    }

    #[test]
    fn the_end_of_an_attempt_says_whether_it_is_news() {
        let (effects, clock, _) = buckets(None);
        let fails_with = |message: Option<&str>| {
            want(&effects, 1);
            let attempt = effects.take().unwrap();
            assert_eq!(effects.counts().running, 1);
            let result = message.map_or(Ok(String::new()), |message| Err(EffectError::new(message)));
            let ended = effects.ended(&key(), attempt.number(), result);
            clock.advance(Duration::from_mins(10));
            ended.unwrap()
        };
        assert_eq!(fails_with(Some("no answer")), Ended::Failed { again: false });
        assert_eq!(fails_with(Some("no answer")), Ended::Failed { again: true });
        assert_eq!(fails_with(Some("forbidden")), Ended::Failed { again: false });
        assert_eq!(effects.counts().failed, 1);
        assert_eq!(fails_with(None), Ended::Succeeded { after_failure: true });
        assert_eq!(effects.ended(&key(), 77, Ok(String::new())), None, "nobody wants it any more");
    }
}
