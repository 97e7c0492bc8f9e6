//! How busy a hollow node is: a function of time, so that any moment of the past can be asked again.

use std::time::Duration;

use jiff::Timestamp;

use crate::seed::Seed;

/// The shape of a node's load over time. Shares are of what the node or a pod could use: 0 idle, 1 all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UsageModel {
    /// The same load all day.
    Steady {
        /// Share in use.
        share: f64,
    },
    /// Quiet at night, busy in the day: a cosine over 24 hours.
    DailyWave {
        /// Share at the quietest moment.
        low: f64,
        /// Share at the busiest moment.
        high: f64,
        /// When it is busiest, seconds after midnight UTC.
        peak_s: u32,
    },
    /// A steady load with a burst that comes back.
    Spike {
        /// Share between bursts.
        base: f64,
        /// Share within a burst.
        burst: f64,
        /// From the start of one burst to the start of the next.
        period: Duration,
        /// How long a burst lasts.
        length: Duration,
    },
}

const DAY_S: i64 = 24 * 60 * 60;

/// How far the load trembles around its model, as a share of it.
const NOISE: f64 = 0.03;

impl UsageModel {
    /// The model of a node, drawn from its seed: half of the nodes follow the day, three in ten are steady, two in ten have bursts.
    pub fn drawn(seed: Seed) -> Self {
        let level = seed.child("level").share();
        match seed.child("model").below(10) {
            0..=4 => UsageModel::DailyWave {
                low: 0.05 + 0.15 * level,
                high: 0.45 + 0.40 * level,
                // office hours of three regions
                peak_s: [6, 14, 20][seed.child("region").below(3) as usize] * 3600,
            },
            5..=7 => UsageModel::Steady { share: 0.15 + 0.55 * level },
            _ => UsageModel::Spike {
                base: 0.10 + 0.20 * level,
                burst: 0.75 + 0.20 * level,
                period: Duration::from_secs(1200 + 60 * seed.child("period").below(40)),
                length: Duration::from_secs(120 + 60 * seed.child("length").below(6)),
            },
        }
    }

    /// The share in use at `now`, without the tremble: between 0 and 1.
    pub fn share(&self, now: Timestamp) -> f64 {
        let share = match *self {
            UsageModel::Steady { share } => share,
            UsageModel::DailyWave { low, high, peak_s } => {
                let from_peak_s = (now.as_second() - i64::from(peak_s)).rem_euclid(DAY_S);
                let angle = std::f64::consts::TAU * from_peak_s as f64 / DAY_S as f64;
                low + (high - low) * (1.0 + angle.cos()) / 2.0
            }
            UsageModel::Spike { base, burst, period, length } => {
                let period_s = i64::try_from(period.as_secs()).unwrap_or(i64::MAX).max(1);
                let into_s = now.as_second().rem_euclid(period_s).unsigned_abs();
                if into_s < length.as_secs() { burst } else { base }
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share in use at `now` as it is measured: it trembles by a few percent from one ten-second slot to the next.
    pub fn measured(&self, seed: Seed, now: Timestamp) -> f64 {
        let slot = now.as_second().div_euclid(10);
        let tremble = 2.0 * seed.at(slot).share() - 1.0;
        (self.share(now) * (1.0 + NOISE * tremble)).clamp(0.0, 1.0)
    }
}

/// Average and percentiles of what was measured over a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub avg: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// How many moments of a span are looked at.
const SAMPLES: u32 = 60;

impl Summary {
    /// What was measured from `now - span` to `now`.
    pub fn of(model: &UsageModel, seed: Seed, now: Timestamp, span: Duration) -> Self {
        let mut shares: Vec<f64> = (0..SAMPLES)
            .map(|step| {
                let ago = span / SAMPLES * step;
                model.measured(seed, now.checked_sub(ago).unwrap_or(Timestamp::MIN))
            })
            .collect();
        shares.sort_by(f64::total_cmp);
        let rank = |percent: usize| shares[(shares.len() * percent).div_ceil(100) - 1];
        Summary {
            avg: shares.iter().sum::<f64>() / f64::from(SAMPLES),
            p50: rank(50),
            p90: rank(90),
            p95: rank(95),
            p99: rank(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_wave_peaks_in_its_hour_and_is_lowest_twelve_hours_later() {
        let wave = UsageModel::DailyWave { low: 0.1, high: 0.9, peak_s: 14 * 3600 };
        for (time, share) in [("14:00", 0.9), ("02:00", 0.1), ("08:00", 0.5), ("20:00", 0.5)] {
            let found = wave.share(at(&format!("2026-03-04T{time}:00Z")));
            assert!((found - share).abs() < 1e-9, "{time}: {found}");
        }
    }

    #[test]
    fn a_burst_comes_back_after_its_period() {
        let (period, length) = (Duration::from_mins(10), Duration::from_mins(1));
        let spike = UsageModel::Spike { base: 0.2, burst: 0.8, period, length };
        let shares: Vec<f64> =
            [0, 59, 60, 599, 600].map(|second| spike.share(Timestamp::from_second(second).unwrap())).to_vec();
        assert_eq!(shares, [0.8, 0.8, 0.2, 0.2, 0.8]);
    }

    #[test]
    fn measuring_the_same_moment_twice_gives_the_same() {
        let now = at("2026-03-04T05:06:07Z");
        for index in 0..50 {
            let seed = Seed::new(3).child(&format!("node-{index}"));
            let model = UsageModel::drawn(seed);
            assert_eq!(model, UsageModel::drawn(seed));
            assert_eq!(model.measured(seed, now).to_bits(), model.measured(seed, now).to_bits());
            assert!((model.measured(seed, now) - model.share(now)).abs() <= NOISE);
        }
    }

    #[test]
    fn a_fleet_holds_all_three_models() {
        let drawn: Vec<UsageModel> =
            (0..200).map(|index| UsageModel::drawn(Seed::new(1).child(&format!("node-{index}")))).collect();
        let share = |of: fn(&UsageModel) -> bool| drawn.iter().filter(|model| of(model)).count();
        assert!((70..130).contains(&share(|model| matches!(model, UsageModel::DailyWave { .. }))));
        assert!((35..85).contains(&share(|model| matches!(model, UsageModel::Steady { .. }))));
        assert!((20..60).contains(&share(|model| matches!(model, UsageModel::Spike { .. }))));
    }

    #[test]
    fn percentiles_of_a_burst_show_the_burst_and_its_average_does_not() {
        let (period, length) = (Duration::from_mins(10), Duration::from_mins(1));
        let spike = UsageModel::Spike { base: 0.2, burst: 0.8, period, length };
        let summary = Summary::of(&spike, Seed::new(9), at("2026-03-04T05:06:07Z"), Duration::from_mins(10));
        assert!(summary.p50 < 0.21 && summary.p99 > 0.75, "{summary:?}");
        assert!((0.22..0.30).contains(&summary.avg), "{summary:?}");
        assert!(summary.p50 <= summary.p90 && summary.p90 <= summary.p95 && summary.p95 <= summary.p99);
    }

    proptest::proptest! {
        #[test]
        fn a_share_is_always_between_nothing_and_all(seed: u64, second in -377_705_023_201i64..253_402_207_200) {
            let seed = Seed::new(seed);
            let share = UsageModel::drawn(seed).measured(seed, Timestamp::from_second(second).unwrap());
            proptest::prop_assert!((0.0..=1.0).contains(&share));
        }
    }
}
