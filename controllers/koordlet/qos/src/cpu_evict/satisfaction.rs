//! How much of what BE pods request they can use, and how much has to be released so that it is enough.

use std::time::Duration;

use koord_koordlet_framework::Node;
use koord_koordlet_metrics::{Measure, Subject};
use koord_types::{
    node_slo::{CpuEvictPolicy, ResourceThresholdStrategy},
    resource_names::BATCH_CPU,
};

use crate::input::Input;

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Satisfaction {
    lower_percent: i64,
    upper_percent: i64,
    usage_percent: i64,
    window: Duration,
    by_allocatable: bool,
}

/// Thousandths of CPUs of all BE pods.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cpu {
    usage: f64,
    request: f64,
    limit: f64,
}

/// What has to be released, with the formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Required {
    pub milli: i64,
    pub formula: String,
}

/// Use of the limit, in percent, from which BE pods count as held back.
const USAGE_PERCENT: i64 = 90;
/// The highest lower bound of satisfaction, in percent.
const LOWER_PERCENT_MAX: i64 = 60;

impl Satisfaction {
    /// The settings; `None` where they are unset or out of range: 0 < lower ≤ 60, 0 < upper < 100, lower ≤ upper.
    pub(super) fn of(strategy: &ResourceThresholdStrategy, interval: Duration) -> Option<Self> {
        let lower_percent = strategy.cpu_evict_be_satisfaction_lower_percent?;
        let upper_percent = strategy.cpu_evict_be_satisfaction_upper_percent?;
        let is_valid = (1..=LOWER_PERCENT_MAX).contains(&lower_percent)
            && (1..100).contains(&upper_percent)
            && lower_percent <= upper_percent;
        let window = u64::try_from(strategy.cpu_evict_time_window_seconds.unwrap_or_default()).unwrap_or_default();
        is_valid.then_some(Self {
            lower_percent,
            upper_percent,
            usage_percent: strategy.cpu_evict_be_usage_threshold_percent.unwrap_or(USAGE_PERCENT),
            window: interval.max(Duration::from_secs(window)),
            by_allocatable: strategy.cpu_evict_policy == Some(CpuEvictPolicy::EvictByAllocatable),
        })
    }

    /// What has to be released: what both the mean of the window and the youngest samples ask for.
    pub(super) fn required(&self, input: &Input<'_>, node: &Node) -> Option<Required> {
        let of = |measure| input.store.window(Subject::BestEffort, measure, input.before(self.window), input.now);
        let (usage, request, limit) =
            (of(Measure::BestEffortUsage), of(Measure::BestEffortRequest), of(Measure::BestEffortRealLimit));
        let count = usage.count().min(request.count()).min(limit.count()) as u64;
        if count == 0 || count * input.collect_interval.as_secs() < self.window.as_secs() / 3 {
            return None;
        }
        let allocatable = self.by_allocatable.then(|| match node.allocatable(BATCH_CPU) {
            Some(0) => 1.0,
            Some(amount) if amount > 0 => amount as f64,
            _ => -1.0,
        });
        let mean = Cpu {
            usage: usage.average()?,
            request: request.average()?,
            limit: allocatable.map_or_else(|| limit.average(), Some)?,
        };
        let required = self.release(&mean)?;
        let last = Cpu {
            usage: usage.last()?,
            request: request.last()?,
            limit: allocatable.map_or_else(|| limit.last(), Some)?,
        };
        if (last.request, last.limit) == (mean.request, mean.limit) {
            return Some(required);
        }
        self.release(&last).map(|last| if last.milli < required.milli { last } else { required })
    }

    /// ⌊request × (upper % − limit / request)⌋ when BE pods use their limit and it is at most lower % of what they request.
    fn release(&self, cpu: &Cpu) -> Option<Required> {
        let Cpu { usage, request, limit } = *cpu;
        let is_held_back =
            limit > 0.0 && (limit < 1000.0 || usage / limit >= self.usage_percent as f64 / 100.0) && request > 0.0;
        if !is_held_back {
            return None;
        }
        let rate = limit / request;
        let gap = self.upper_percent as f64 / 100.0 - rate;
        if rate > self.lower_percent as f64 / 100.0 || gap <= 0.0 {
            return None;
        }
        let milli = (request * self.upper_percent as f64 / 100.0 - limit).floor() as i64;
        let formula = format!(
            "{request:.0}m requested × ({} % − {limit:.0}m usable / {request:.0}m) = {milli}m, as satisfaction is at most {} % and {usage:.0}m are in use",
            self.upper_percent, self.lower_percent
        );
        (milli > 0).then_some(Required { milli, formula })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(lower: i64, upper: i64) -> ResourceThresholdStrategy {
        ResourceThresholdStrategy {
            cpu_evict_be_satisfaction_lower_percent: Some(lower),
            cpu_evict_be_satisfaction_upper_percent: Some(upper),
            ..ResourceThresholdStrategy::default()
        }
    }

    fn settings(lower: i64, upper: i64) -> Option<Satisfaction> {
        Satisfaction::of(&strategy(lower, upper), Duration::from_secs(1))
    }

    #[test]
    fn bounds_of_satisfaction_have_ranges() {
        for (lower, upper, is_valid) in [
            (40, 60, true),
            (60, 60, true),
            (61, 70, false),
            (40, 100, false),
            (0, 60, false),
            (50, 40, false),
            (1, 99, true),
        ] {
            assert_eq!(settings(lower, upper).is_some(), is_valid, "{lower} {upper}");
        }
        assert_eq!(Satisfaction::of(&ResourceThresholdStrategy::default(), Duration::from_secs(1)), None);
    }

    #[test]
    fn so_much_is_released_that_the_rest_is_satisfied() {
        let satisfaction = settings(40, 60).unwrap();
        for (usage, request, limit, released) in [
            // 8000m × (60 % − 25 %)
            (2000.0, 8000.0, 2000.0, Some(2800)),
            (1000.0, 8000.0, 2000.0, None),
            (1800.0, 8000.0, 2000.0, Some(2800)),
            (4000.0, 8000.0, 4000.0, None),
            // Less than a CPU is always used up.
            (0.0, 8000.0, 999.0, Some(3801)),
            // Nothing is allocatable.
            (2000.0, 8000.0, 1.0, Some(4799)),
            (2000.0, 8000.0, -1.0, None),
            (2000.0, 0.0, 2000.0, None),
        ] {
            let required = satisfaction.release(&Cpu { usage, request, limit });
            assert_eq!(required.map(|required| required.milli), released, "{usage} {request} {limit}");
        }
    }
}
