//! The work queue of a controller, with client-go's semantics, as a state machine: time comes in with every call.
//!
//! Keys come in the order in which they were added. A key is in the queue at most once; a key that is added while it is being worked on
//! comes back when that work is done; a key that fails waits longer each time; a key added for later keeps the earliest of its times.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use koord_resource::controller::RateLimit;

use crate::{clock::Moment, key::ObjectKey};

/// Keys that wait for a controller.
#[derive(Debug)]
pub struct WorkQueue {
    /// Keys to hand out, the oldest first.
    ready: BTreeSet<(u64, ObjectKey)>,
    /// Keys that need work: those in `ready`, and those of `processing` that were added again.
    dirty: BTreeMap<ObjectKey, Added>,
    /// Keys that are being worked on, and since when.
    processing: BTreeMap<ObjectKey, Moment>,
    /// Keys to add later: by time, and the time of each key.
    later: BTreeSet<(Moment, ObjectKey)>,
    due: BTreeMap<ObjectKey, Moment>,
    failures: BTreeMap<ObjectKey, u32>,
    bucket: Bucket,
    limit: RateLimit,
    adds: u64,
    retries: u64,
}

/// How a key was added.
#[derive(Clone, Copy, Debug)]
struct Added {
    number: u64,
    at: Moment,
}

/// A key to work on.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// The key; it must be given back with [`WorkQueue::done`].
    pub key: ObjectKey,
    /// How long it waited since it was added.
    pub waited: Duration,
}

impl WorkQueue {
    /// An empty queue.
    pub fn new(limit: RateLimit) -> Self {
        Self {
            ready: BTreeSet::new(),
            dirty: BTreeMap::new(),
            processing: BTreeMap::new(),
            later: BTreeSet::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            bucket: Bucket::new(f64::from(limit.per_second), f64::from(limit.burst)),
            limit,
            adds: 0,
            retries: 0,
        }
    }

    /// A key needs work now.
    pub fn add(&mut self, key: ObjectKey, now: Moment) {
        if self.dirty.contains_key(&key) {
            return;
        }
        self.adds += 1;
        let added = Added { number: self.adds, at: now };
        if !self.processing.contains_key(&key) {
            self.ready.insert((added.number, key.clone()));
        }
        self.dirty.insert(key, added);
    }

    /// A key needs work after a while; an earlier time that it already has stays.
    pub fn add_after(&mut self, key: ObjectKey, delay: Duration, now: Moment) {
        if delay.is_zero() {
            return self.add(key, now);
        }
        let at = now + delay;
        match self.due.get(&key) {
            Some(&known) if known <= at => return,
            Some(&known) => self.later.remove(&(known, key.clone())),
            None => false,
        };
        self.due.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    /// A key has failed and needs work again: after its own growing delay or when the rate over all keys allows,
    /// whichever is later. Gives the delay.
    pub fn add_rate_limited(&mut self, key: ObjectKey, now: Moment) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let own = self.limit.base_ms.saturating_mul(1_u64.checked_shl(*failures).unwrap_or(u64::MAX));
        *failures = failures.saturating_add(1);
        let delay = Duration::from_millis(own.min(self.limit.max_ms)).max(self.bucket.reserve(now));
        self.retries += 1;
        self.add_after(key, delay, now);
        delay
    }

    /// A key has succeeded: its next failure counts as the first.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.failures.remove(key);
    }

    /// What made keys fail is over: those that wait because they have failed are ready now. Their next failure counts as one more.
    pub fn retry_failed(&mut self, now: Moment) {
        let waiting: Vec<(Moment, ObjectKey)> =
            self.failures.keys().filter_map(|key| Some((*self.due.get(key)?, key.clone()))).collect();
        for (at, key) in waiting {
            self.later.remove(&(at, key.clone()));
            self.due.remove(&key);
            self.add(key, now);
        }
    }

    /// How often a key has failed in a row.
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    /// Hands out the next key, if one is ready.
    pub fn take(&mut self, now: Moment) -> Option<Taken> {
        self.ripen(now);
        let (_, key) = self.ready.pop_first()?;
        let waited = self.dirty.remove(&key).map_or(Duration::ZERO, |added| now.since(added.at));
        self.processing.insert(key.clone(), now);
        Some(Taken { key, waited })
    }

    /// The work on a key is finished, well or badly. Gives how long it took.
    pub fn done(&mut self, key: &ObjectKey, now: Moment) -> Duration {
        let Some(started) = self.processing.remove(key) else { return Duration::ZERO };
        if let Some(added) = self.dirty.get_mut(key) {
            added.at = now;
            self.ready.insert((added.number, key.clone()));
        }
        now.since(started)
    }

    /// When the next key becomes ready by the passing of time alone.
    pub fn next_due(&self) -> Option<Moment> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Keys that are ready to be handed out.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Keys that wait for their time.
    pub fn waiting(&self) -> usize {
        self.later.len()
    }

    /// How often keys were added, and how often because they had failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.adds, self.retries)
    }

    /// For how long the keys that are being worked on have been so: all together, and the longest.
    pub fn unfinished(&self, now: Moment) -> (Duration, Duration) {
        let spans = self.processing.values().map(|started| now.since(*started));
        spans.fold((Duration::ZERO, Duration::ZERO), |(sum, longest), span| (sum + span, longest.max(span)))
    }

    fn ripen(&mut self, now: Moment) {
        while let Some((at, _)) = self.later.first()
            && *at <= now
            && let Some((at, key)) = self.later.pop_first()
        {
            self.due.remove(&key);
            self.add(key, at);
        }
    }
}

/// A token bucket from which also tokens of the future can be taken.
#[derive(Clone, Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    last: Moment,
}

impl Bucket {
    /// A full bucket. A rate of zero or less means no limit.
    pub fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, tokens: burst, last: Moment::default() }
    }

    /// The time until a token may be used at once.
    pub fn wait(&self, now: Moment) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        let gained = now.since(self.last).as_secs_f64() * self.per_second;
        let missing = 1.0 - (self.tokens + gained).min(self.burst);
        // Timers know no less than a millisecond, and must not fire before their time.
        let seconds = if missing > 1e-9 { missing / self.per_second } else { return Duration::ZERO };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(Duration::from_millis(1))
    }

    /// Takes a token, if one may be used at once.
    pub fn take(&mut self, now: Moment) -> bool {
        let may = self.wait(now).is_zero();
        if may {
            self.reserve(now);
        }
        may
    }

    /// Whether nothing was taken for so long that all tokens are back.
    pub fn is_full(&self, now: Moment) -> bool {
        self.per_second <= 0.0 || self.tokens + now.since(self.last).as_secs_f64() * self.per_second >= self.burst
    }

    /// Takes a token and gives the time until it may be used.
    pub fn reserve(&mut self, now: Moment) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        let gained = now.since(self.last).as_secs_f64() * self.per_second;
        self.last = self.last.max(now);
        self.tokens = (self.tokens + gained).min(self.burst) - 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.per_second).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::cluster(name)
    }

    fn ms(milliseconds: u64) -> Moment {
        Moment::at(Duration::from_millis(milliseconds))
    }

    fn taken(queue: &mut WorkQueue, now: Moment) -> Option<String> {
        queue.take(now).map(|taken| taken.key.to_string())
    }

    #[test]
    fn a_key_is_queued_once_and_in_order() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        for name in ["a", "b", "a"] {
            queue.add(key(name), ms(0));
        }
        assert_eq!((queue.depth(), queue.counts().0), (2, 2));
        assert_eq!(queue.take(ms(7)).unwrap(), Taken { key: key("a"), waited: Duration::from_millis(7) });
        assert_eq!(taken(&mut queue, ms(7)).as_deref(), Some("b"));
        assert_eq!(taken(&mut queue, ms(7)), None);
    }

    #[test]
    fn what_has_failed_is_ready_when_the_cause_is_over_and_what_was_planned_keeps_its_time() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        for _ in 0..12 {
            queue.add_rate_limited(key("failed"), ms(0));
        }
        queue.add_after(key("planned"), Duration::from_mins(1), ms(0));
        assert_eq!(taken(&mut queue, ms(1)), None);
        queue.retry_failed(ms(1));
        assert_eq!(taken(&mut queue, ms(1)).as_deref(), Some("failed"));
        assert_eq!((taken(&mut queue, ms(1)), queue.waiting(), queue.failures(&key("failed"))), (None, 1, 12));
    }

    #[test]
    fn a_key_added_while_it_is_worked_on_comes_back_when_that_is_done() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        queue.add(key("a"), ms(0));
        queue.take(ms(0)).unwrap();
        queue.add(key("a"), ms(1));
        queue.add(key("a"), ms(2));
        assert_eq!(taken(&mut queue, ms(3)), None, "never two runs of one key");
        assert_eq!(queue.unfinished(ms(5)), (Duration::from_millis(5), Duration::from_millis(5)));
        assert_eq!(queue.done(&key("a"), ms(5)), Duration::from_millis(5));
        assert_eq!(taken(&mut queue, ms(5)).as_deref(), Some("a"));
        queue.done(&key("a"), ms(6));
        assert_eq!(taken(&mut queue, ms(6)), None);
    }

    #[test]
    fn of_two_later_times_the_earlier_holds() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        queue.add_after(key("a"), Duration::from_millis(50), ms(0));
        queue.add_after(key("a"), Duration::from_millis(20), ms(0));
        queue.add_after(key("a"), Duration::from_millis(90), ms(0));
        assert_eq!((queue.next_due(), queue.waiting()), (Some(ms(20)), 1));
        assert_eq!(taken(&mut queue, ms(19)), None);
        assert_eq!(taken(&mut queue, ms(20)).as_deref(), Some("a"));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn failures_of_a_key_double_its_delay_up_to_a_thousand_seconds() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        let delays: Vec<u128> =
            (0..20).map(|_| queue.add_rate_limited(key("a"), Moment::default()).as_millis()).collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[17..], [655_360, 1_000_000, 1_000_000]);
        queue.forget(&key("a"));
        assert_eq!(queue.add_rate_limited(key("a"), Moment::default()).as_millis(), 5);
    }

    #[test]
    fn retries_over_all_keys_come_ten_per_second_after_a_burst_of_a_hundred() {
        let mut queue = WorkQueue::new(RateLimit::DEFAULT);
        let mut delay = |number: u32| queue.add_rate_limited(key(&number.to_string()), ms(0)).as_millis();
        assert!((0..100).all(|number| delay(number) == 5));
        assert_eq!((delay(100), delay(101)), (100, 200));
    }
}
