//! What was applied to which pod, and how many more may be changed now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_runtime::{cache::Revision, uid::Uid};

use super::Settings;

/// A profile, at a revision, that was applied to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) profile: Arc<str>,
    pub(super) revision: Revision,
    pub(super) pod: Uid,
    pub(super) at: Timestamp,
}

/// What the controller remembers from one reconcile to the next.
pub(super) struct Memory {
    /// By profile and uid of the pod: at which revision, and when.
    applied: BTreeMap<(Arc<str>, Uid), (Revision, Timestamp)>,
    tidied: Option<Timestamp>,
    pub(super) allowance: Allowance,
}

impl Memory {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { applied: BTreeMap::new(), tidied: None, allowance: Allowance::new(settings.per_second, settings.burst) }
    }

    /// Whether this was applied not long ago.
    pub(super) fn knows(&self, mark: &Mark, settings: &Settings) -> bool {
        let known = self.applied.get(&(Arc::clone(&mark.profile), mark.pod.clone()));
        known.is_some_and(|(revision, at)| *revision == mark.revision && is_recent(*at, mark.at, settings))
    }

    pub(super) fn keep(&mut self, mark: Mark) {
        self.applied.insert((mark.profile, mark.pod), (mark.revision, mark.at));
    }

    /// Forgets now and then what is too old to matter, and what is about pods that do not wait any more.
    pub(super) fn tidy(&mut self, settings: &Settings, now: Timestamp, waits: impl Fn(&Uid) -> bool) {
        let tidied = self.tidied.map_or(now, |tidied| tidied.min(now));
        let is_due = since(tidied, now) >= settings.forget_every;
        self.tidied = Some(if is_due { now } else { tidied });
        if is_due {
            self.applied.retain(|(_, pod), (_, at)| is_recent(*at, now, settings) && waits(pod));
        }
    }
}

/// Whether something was done not long ago. What lies in the future was done by a clock that was set back since.
fn is_recent(at: Timestamp, now: Timestamp, settings: &Settings) -> bool {
    at <= now && (settings.force_after.is_zero() || since(at, now) < settings.force_after)
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

/// How many pods may be changed: so many at once, and so many per second from then on.
#[derive(Debug)]
pub(super) struct Allowance {
    per_second: f64,
    most: f64,
    left: f64,
    at: Option<Timestamp>,
}

impl Allowance {
    fn new(per_second: f32, burst: u32) -> Self {
        let most = f64::from(burst);
        Self { per_second: f64::from(per_second).max(0.0), most, left: most, at: None }
    }

    /// What is left at this moment, for a decision that takes nothing of it yet.
    pub(super) fn at(&self, now: Timestamp) -> Self {
        let passed = self.at.map_or(Duration::ZERO, |at| since(at, now));
        let left = (self.left + passed.as_secs_f64() * self.per_second).min(self.most);
        Self { left, at: Some(now), ..*self }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        *self = self.at(now);
        let any = self.left >= 1.0;
        if any {
            self.left -= 1.0;
        }
        any
    }

    /// When there will be one again; none for never.
    pub(super) fn wait(&self) -> Option<Duration> {
        (self.per_second > 0.0 && self.most >= 1.0)
            .then(|| Duration::try_from_secs_f64((1.0 - self.left) / self.per_second).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn after(ms: i64) -> Timestamp {
        START + SignedDuration::from_millis(ms)
    }

    #[test]
    fn pods_are_changed_at_once_up_to_the_burst_and_then_at_the_rate() {
        let mut allowance = Allowance::new(2.0, 3);
        let mut taken = |ms| std::iter::from_fn(|| allowance.take(after(ms)).then_some(())).count();
        assert_eq!((taken(0), taken(499), taken(500), taken(2_000), taken(60_000)), (3, 0, 1, 3, 3));
        assert_eq!(allowance.wait(), Some(Duration::from_millis(500)));
        let mut none = Allowance::new(0.0, 1);
        assert!(none.take(START) && !none.take(after(1_000_000)));
        assert_eq!(none.wait(), None);
        assert_eq!(Allowance::new(f32::NAN, 0).wait(), None);
    }

    #[test]
    fn what_was_applied_is_known_for_a_while_and_for_one_revision() {
        let settings = Settings::default();
        let mut memory = Memory::new(&settings);
        let mark =
            |revision, ms| Mark { profile: "p".into(), revision: Revision(revision), pod: "u".into(), at: after(ms) };
        memory.keep(mark(1, 0));
        assert!(memory.knows(&mark(1, 299_999), &settings) && !memory.knows(&mark(1, 300_000), &settings));
        assert!(!memory.knows(&mark(2, 0), &settings));
        assert!(!memory.knows(&mark(1, -1), &settings), "a clock that was set back has nothing to say");
        memory.tidy(&settings, after(0), |_| true);
        memory.tidy(&settings, after(599_999), |_| true);
        assert_eq!(memory.applied.len(), 1);
        memory.tidy(&settings, after(600_000), |_| true);
        assert_eq!(memory.applied.len(), 0);
    }

    #[test]
    fn without_a_duration_what_was_applied_is_known_until_the_pod_waits_no_more() {
        let settings = Settings { force_after: Duration::ZERO, ..Settings::default() };
        let mut memory = Memory::new(&settings);
        let mark = |pod: &str, ms| Mark { profile: "p".into(), revision: Revision(1), pod: pod.into(), at: after(ms) };
        memory.keep(mark("u", 0));
        memory.keep(mark("v", 0));
        let year_ms = 365 * 24 * 3_600_000;
        assert!(memory.knows(&mark("u", year_ms), &settings));
        memory.tidy(&settings, after(0), |_| true);
        memory.tidy(&settings, after(year_ms), |pod| *pod == Uid::from("u"));
        assert!(memory.knows(&mark("u", year_ms), &settings) && !memory.knows(&mark("v", year_ms), &settings));
    }
}
