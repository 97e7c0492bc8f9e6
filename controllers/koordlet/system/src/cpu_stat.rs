//! `cpu.stat`: how often a cgroup was throttled, and on cgroup v2 how much CPU it used.

use crate::{cgroup::Version, parse_error::ParseError, text::keyed};

const FILE: &str = "cpu.stat";

/// How often a cgroup was throttled since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods that have passed while the cgroup had a quota and something to run.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// How long it was throttled, over all CPUs. Saturates.
    pub throttled_ns: u64,
}

impl Throttling {
    /// Reads `cpu.stat`.
    ///
    /// Fails where nr_periods, nr_throttled or the throttled time (`throttled_time` on v1, `throttled_usec` on v2) is missing or no number.
    pub fn parse(version: Version, text: &[u8]) -> Result<Self, ParseError> {
        let (time, ns) = match version {
            Version::V1 => ("throttled_time", 1),
            Version::V2 => ("throttled_usec", 1000),
        };
        let [periods, throttled_periods, time] = keyed(FILE, text, ["nr_periods", "nr_throttled", time])?;
        Ok(Self { periods, throttled_periods, throttled_ns: time.saturating_mul(ns) })
    }

    /// The share of periods since an earlier reading in which the quota was used up, from 0 to 1.
    /// 0 where no period has passed, and where the counters went backwards because the cgroup was made anew.
    pub fn ratio_since(&self, earlier: &Self) -> f64 {
        let periods = self.periods.saturating_sub(earlier.periods);
        let throttled = self.throttled_periods.saturating_sub(earlier.throttled_periods);
        if periods == 0 { 0.0 } else { (throttled as f64 / periods as f64).min(1.0) }
    }
}

/// The CPU time of a cgroup v2 in nanoseconds, which is `usage_usec` times 1000. Saturates.
///
/// Fails where `usage_usec` is missing or no number.
pub fn parse_cpu_usage_v2_ns(text: &[u8]) -> Result<u64, ParseError> {
    let [usage_us] = keyed(FILE, text, ["usage_usec"])?;
    Ok(usage_us.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "nr_periods 10\nnr_throttled 3\nthrottled_time 500000\n";
    const V2: &str = "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\nnice_usec 0\nnr_periods 10\nnr_throttled 3\n\
        throttled_usec 500\nnr_bursts 0\nburst_usec 0\n";
    /// Of a cgroup without the controller `cpu`.
    const V2_ROOT: &str = "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\n";

    #[test]
    fn both_versions_are_read() {
        let throttling = Throttling { periods: 10, throttled_periods: 3, throttled_ns: 500_000 };
        assert_eq!(Throttling::parse(Version::V1, V1.as_bytes()), Ok(throttling));
        assert_eq!(Throttling::parse(Version::V2, V2.as_bytes()), Ok(throttling));
        for text in [V2, V2_ROOT] {
            assert_eq!(parse_cpu_usage_v2_ns(text.as_bytes()), Ok(1_000_000_000));
        }
        assert_eq!(parse_cpu_usage_v2_ns(b"usage_usec 18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn a_missing_field_is_named() {
        for (version, text, error) in [
            (Version::V2, V2_ROOT, "cpu.stat lacks nr_periods"),
            (Version::V2, V1, "cpu.stat lacks throttled_usec"),
            (Version::V1, "nr_periods 1\n", "cpu.stat lacks nr_throttled"),
            (
                Version::V1,
                "nr_periods one\n",
                "cpu.stat: nr_periods is \"one\", not a number from 0 to 18446744073709551615",
            ),
        ] {
            assert_eq!(Throttling::parse(version, text.as_bytes()).unwrap_err().to_string(), error);
        }
        assert_eq!(parse_cpu_usage_v2_ns(V1.as_bytes()).unwrap_err().to_string(), "cpu.stat lacks usage_usec");
    }

    #[test]
    fn the_throttled_ratio_is_of_the_periods_that_passed() {
        let at = |periods, throttled_periods| Throttling { periods, throttled_periods, throttled_ns: 0 };
        for (earlier, later, ratio) in [
            (at(10, 3), at(30, 8), 0.25),
            (at(10, 3), at(10, 3), 0.0),
            (at(10, 3), at(10, 4), 0.0),
            (at(10, 3), at(2, 1), 0.0),
            (at(10, 3), at(12, 1), 0.0),
            (at(10, 3), at(11, 9), 1.0),
        ] {
            assert!((later.ratio_since(&earlier) - ratio).abs() < 1e-12, "{earlier:?} {later:?}");
        }
    }
}
