//! How long a container may use more than its limit: tokens that are saved below the limit and spent above it.

use std::time::Duration;

use koord_core::clock::Moment;

/// The tokens of one container: percent of its limit times seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter {
    period_s: i64,
    percent: i64,
    tokens: i64,
    counted_to: Moment,
}

/// Below this use of the limit, in percent, tokens are saved.
const SAVING_BELOW_PERCENT: i64 = 60;

impl Limiter {
    /// A container may use `percent` of its limit for `period_s` seconds when it has saved enough: capacity = period × (percent − 100).
    ///
    /// It begins with a part of half its capacity, which `random` chooses, so that containers do not burst in step.
    pub fn new(period_s: i64, percent: i64, random: u64, now: Moment) -> Self {
        let mut limiter = Self { period_s, percent, tokens: 0, counted_to: now };
        let half = u64::try_from(limiter.capacity() / 2).unwrap_or_default();
        limiter.tokens = random.checked_rem(half).and_then(|tokens| i64::try_from(tokens).ok()).unwrap_or_default();
        limiter
    }

    /// Whether it was made for these settings.
    pub fn is_for(&self, period_s: i64, percent: i64) -> bool {
        (self.period_s, self.percent) == (period_s, percent)
    }

    /// Counts the seconds since the last call at a use of `usage_percent` of the limit; returns whether the container may burst.
    pub fn allows(&mut self, usage_percent: i64, now: Moment) -> bool {
        if self.percent < 100 {
            return false;
        }
        let seconds = now.since(self.counted_to).as_secs();
        self.counted_to = self.counted_to + Duration::from_secs(seconds);
        let gain = match usage_percent {
            percent if percent < SAVING_BELOW_PERCENT => 100 - percent,
            percent if percent >= 100 => 100_i64.saturating_sub(percent),
            _ => 0,
        };
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let capacity = self.capacity();
        self.tokens = self.tokens.saturating_add(gain.saturating_mul(seconds)).clamp(-capacity, capacity);
        self.tokens > 0
    }

    fn capacity(&self) -> i64 {
        self.period_s.saturating_mul(self.percent.saturating_sub(100)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn tokens_are_saved_below_sixty_percent_and_spent_above_the_limit() {
        let mut limiter = Limiter::new(300, 200, 0, at(0));
        for (second, usage, tokens) in [
            (0, 50, 0),
            (10, 50, 500),
            (20, 60, 500),
            (30, 99, 500),
            (40, 100, 500),
            (50, 130, 200),
            (60, 130, -100),
            (70, 0, 900),
            (1000, 0, 30_000),
            (2000, 1000, -30_000),
        ] {
            assert_eq!((limiter.allows(usage, at(second)), limiter.tokens), (tokens > 0, tokens), "{second}");
        }
    }

    #[test]
    fn a_container_begins_with_less_than_half_its_capacity() {
        assert_eq!(Limiter::new(300, 200, 15_001, at(0)).tokens, 1);
        assert_eq!(Limiter::new(300, 200, 14_999, at(0)).tokens, 14_999);
        assert_eq!(Limiter::new(0, 200, 7, at(0)).tokens, 0);
    }

    #[test]
    fn below_a_hundred_percent_nothing_is_allowed() {
        assert!(!Limiter::new(300, 99, 0, at(0)).allows(0, at(100)));
    }

    #[test]
    fn parts_of_seconds_are_not_lost() {
        let mut limiter = Limiter::new(300, 200, 0, at(0));
        for half in 1..=20 {
            limiter.allows(50, Moment::at(Duration::from_millis(half * 500)));
        }
        assert_eq!(limiter.tokens, 500);
    }
}
