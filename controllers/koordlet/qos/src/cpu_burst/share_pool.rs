//! How busy the CPUs are that pods share.

use std::time::Duration;

use koord_koordlet_metrics::{Measure, Subject};
use koord_types::qos::QosClass;

use crate::input::Input;

/// Whether the shared CPUs have room for bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharePool {
    /// Below 90 % of the threshold.
    Idle,
    /// From 90 % of the threshold on: nothing grows.
    Cooling,
    /// From the threshold on: what is above its base shrinks.
    Overloaded,
    /// A sample is missing: nothing grows.
    Unknown,
}

/// Use of the shared CPUs from which nothing grows any more, in parts of the threshold.
const COOLING: f64 = 0.9;
const THRESHOLD_PERCENT: i64 = 50;
/// Rounds of collection in the window, and its longest span.
const WINDOW_ROUNDS: u32 = 5;
const WINDOW_MAX: Duration = Duration::from_secs(10);

impl SharePool {
    /// Computes it from means of up to ten seconds: (node − pods of LSE, LSR and BE) / (all CPUs − requests of LSE and LSR pods).
    pub(super) fn of(input: &Input<'_>, threshold_percent: Option<i64>) -> Self {
        let window = (input.collect_interval * WINDOW_ROUNDS).min(WINDOW_MAX);
        let cpus = input.topology.map(|topology| topology.cpus.cpus().len()).filter(|cpus| *cpus > 0);
        let (Some(cpus), Some(node)) = (cpus, input.average(Subject::Node, Measure::Cpu, window)) else {
            return Self::Unknown;
        };
        let (mut total, mut used) = (cpus as f64, node);
        for pod in input.pods {
            let has_own_cpus = matches!(pod.qos_label, Some(QosClass::Lse | QosClass::Lsr));
            if !has_own_cpus && !pod.is_labelled_be() {
                continue;
            }
            if has_own_cpus && !pod.has_ended() {
                total -= pod.request("cpu") as f64 / 1000.0;
            }
            // Without a sample, what the pod uses counts as use of the pool.
            used -= input.average(Subject::Pod(&pod.uid), Measure::Cpu, window).unwrap_or_default();
        }
        Self::of_ratio(if total > 0.0 { used / total } else { 1.0 }, threshold_percent)
    }

    fn of_ratio(ratio: f64, threshold_percent: Option<i64>) -> Self {
        let threshold = threshold_percent.unwrap_or(THRESHOLD_PERCENT) as f64 / 100.0;
        if ratio >= threshold {
            Self::Overloaded
        } else if ratio >= threshold * COOLING {
            Self::Cooling
        } else {
            Self::Idle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_ninety_percent_of_the_threshold_on_nothing_grows() {
        for (ratio, state) in [
            (0.1, SharePool::Idle),
            (0.44, SharePool::Idle),
            (0.45, SharePool::Cooling),
            (0.5, SharePool::Overloaded),
            (1.0, SharePool::Overloaded),
        ] {
            assert_eq!(SharePool::of_ratio(ratio, None), state, "{ratio}");
        }
        assert_eq!(SharePool::of_ratio(0.5, Some(100)), SharePool::Idle);
    }
}
