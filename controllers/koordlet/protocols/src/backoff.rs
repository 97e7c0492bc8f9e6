//! Delays between attempts that grow by a factor up to a cap.

use std::time::Duration;

/// How long to wait between attempts: `first × factor^n`, at most `cap`, plus up to `jitter` of it by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// By how much each delay is longer than the one before.
    pub factor: f64,
    /// Longest delay before jitter.
    pub cap: Duration,
    /// Part of the delay that is added by chance, 0.1 for up to a tenth.
    pub jitter: f64,
}

impl Backoff {
    /// The delay after `failures` failures in a row (1 for the first); `random` is from 0 to 1. A factor or jitter that is no
    /// finite positive number counts as 1 and as 0.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let usable = |value: f64, otherwise: f64| if value.is_finite() && value > 0.0 { value } else { otherwise };
        let power = usable(self.factor, 1.0).powi(failures.saturating_sub(1).try_into().unwrap_or(i32::MAX));
        let grown = self.first.as_secs_f64() * power;
        let base = if grown < self.cap.as_secs_f64() { grown } else { self.cap.as_secs_f64() };
        let jittered = base * (1.0 + usable(self.jitter, 0.0) * usable(random, 0.0).min(1.0));
        Duration::try_from_secs_f64(jittered).unwrap_or(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOUBLED: Backoff =
        Backoff { first: Duration::from_secs(1), factor: 2.0, cap: Duration::from_mins(1), jitter: 0.1 };

    #[test]
    fn delays_double_up_to_the_cap() {
        let delays: Vec<_> = [1, 2, 3, 6, 7, 8, u32::MAX].map(|failures| DOUBLED.delay(failures, 0.0).as_secs()).into();
        assert_eq!(delays, [1, 2, 4, 32, 60, 60, 60]);
    }

    #[test]
    fn chance_adds_up_to_a_tenth() {
        assert_eq!(DOUBLED.delay(2, 1.0), Duration::from_millis(2200));
        assert_eq!(DOUBLED.delay(2, 0.5), Duration::from_millis(2100));
    }

    proptest! {
        #[test]
        fn no_numbers_make_it_panic(failures: u32, random: f64, factor: f64, jitter: f64, first: u64, cap: u64) {
            let backoff = Backoff { first: Duration::from_secs(first), factor, cap: Duration::from_secs(cap), jitter };
            let _ = backoff.delay(failures, random);
        }
    }
}
