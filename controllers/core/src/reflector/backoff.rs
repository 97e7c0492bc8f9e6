//! How long failures are waited out.

use std::time::Duration;

use crate::{clock::Moment, random::Random};

/// Waits between failures: 0.8 s doubling up to 30 s, each with up to as much again at random.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Moment,
}

impl Backoff {
    pub(super) const BASE: Duration = Duration::from_millis(800);
    const MAX: Duration = Duration::from_secs(30);
    const RESET: Duration = Duration::from_mins(2);

    /// The next wait.
    pub(super) fn next(&mut self, now: Moment, random: &Random) -> Duration {
        if now.since(self.last) > Self::RESET {
            self.failures = 0;
        }
        self.last = now;
        let wait = Self::BASE.saturating_mul(1 << self.failures.min(6)).min(Self::MAX);
        self.failures = self.failures.saturating_add(1);
        random.jitter(wait, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_wait_longer_up_to_half_a_minute_and_are_forgotten_after_two() {
        let mut backoff = Backoff::default();
        let random = Random::seeded(3);
        let mut now = Moment::at(Duration::from_mins(10));
        for expected in [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000] {
            let wait = u64::try_from(backoff.next(now, &random).as_millis()).unwrap();
            assert!((expected..=2 * expected).contains(&wait), "{wait} ms, expected about {expected}");
            now = now + Duration::from_millis(wait);
        }
        let wait = backoff.next(now + Duration::from_secs(121), &random);
        assert!(wait <= 2 * Backoff::BASE);
    }
}
