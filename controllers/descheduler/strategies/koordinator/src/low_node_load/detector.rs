//! Whether a node has been overutilized for long enough: what LowNodeLoad keeps from pass to pass.

use std::{collections::BTreeMap, sync::Arc};

use koord_config::descheduler::AnomalyCondition;

/// After this time an anomaly is over where the condition says no time.
const TIMEOUT_MS: i64 = 60_000;

/// The detectors of all nodes that were overutilized not long ago: by what the node uses, and by what its production pods use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Detectors {
    pub(super) node: Detector,
    pub(super) prod: Detector,
}

/// Counters by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Detector(BTreeMap<Arc<str>, Counter>);

/// What is known of one node. It is in anomaly, or it is in order and counts how often in a row it was overutilized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counter {
    /// How often in a row it was overutilized, while it is in order.
    abnormal: u32,
    /// How often in a row it was not, while it is in anomaly.
    normal: u32,
    /// When its anomaly is over; `None` while it is in order.
    anomaly_until_ms: Option<i64>,
    /// When it was overutilized last.
    marked_ms: i64,
}

/// When a node is in anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// It is in anomaly when it was overutilized more often in a row.
    abnormal_max: u32,
    /// It is in order again when it was not overutilized more often in a row.
    normal_max: u32,
    timeout_ms: i64,
}

// === impl Condition ===

impl Condition {
    pub(super) fn new(condition: &AnomalyCondition) -> Self {
        let timeout_ms = condition.timeout.as_nanos() / 1_000_000;
        Self {
            abnormal_max: condition.consecutive_abnormalities,
            normal_max: condition.consecutive_normalities,
            timeout_ms: if timeout_ms > 0 { timeout_ms } else { TIMEOUT_MS },
        }
    }

    /// QUIRK: with one pass in a row demanded the first one counts, with two the third.
    pub(super) fn is_immediate(&self) -> bool {
        self.abnormal_max <= 1
    }
}

// === impl Detectors ===

impl Detectors {
    /// Forgets nodes that were not overutilized for so long.
    pub(super) fn forget(&mut self, now_ms: i64, lifetime_ms: i64) {
        for Detector(counters) in [&mut self.node, &mut self.prod] {
            counters.retain(|_, counter| now_ms.saturating_sub(counter.marked_ms) < lifetime_ms);
        }
    }
}

// === impl Detector ===

impl Detector {
    /// The node is overutilized. Whether it is in anomaly.
    pub(super) fn mark_abnormal(&mut self, node: &Arc<str>, now_ms: i64, condition: &Condition) -> bool {
        if condition.is_immediate() {
            return true;
        }
        let counter = self.0.entry(Arc::clone(node)).or_default();
        counter.lapse(now_ms);
        counter.marked_ms = now_ms;
        if counter.anomaly_until_ms.is_some() {
            counter.normal = 0;
            return true;
        }
        counter.abnormal += 1;
        if counter.abnormal <= condition.abnormal_max {
            return false;
        }
        *counter = Counter {
            anomaly_until_ms: Some(now_ms.saturating_add(condition.timeout_ms)),
            marked_ms: now_ms,
            ..Counter::default()
        };
        true
    }

    /// The node is not overutilized: counting begins anew, and an anomaly is over after enough such passes.
    pub(super) fn mark_normal(&mut self, node: &str, now_ms: i64, condition: &Condition) {
        let Some(counter) = self.0.get_mut(node) else { return };
        counter.lapse(now_ms);
        counter.abnormal = 0;
        if counter.anomaly_until_ms.is_some() {
            counter.normal += 1;
            if counter.normal > condition.normal_max {
                self.0.remove(node);
            }
        }
    }

    /// The node is in order, and nothing is counted.
    pub(super) fn reset(&mut self, node: &str) {
        self.0.remove(node);
    }
}

impl Counter {
    /// An anomaly whose time is over is none.
    fn lapse(&mut self, now_ms: i64) {
        if self.anomaly_until_ms.is_some_and(|until| now_ms > until) {
            *self = Self { marked_ms: self.marked_ms, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(abnormal: u32, normal: u32, timeout: &str) -> Condition {
        Condition::new(&AnomalyCondition {
            timeout: timeout.parse().unwrap(),
            consecutive_abnormalities: abnormal,
            consecutive_normalities: normal,
        })
    }

    /// Passes at seconds: overutilized (`A`) or not (`N`). In which of them the node is in anomaly.
    fn anomalies(condition: &Condition, interval_seconds: i64, passes: &str) -> Vec<usize> {
        let (mut detector, node) = (Detector::default(), Arc::from("n1"));
        let mut anomalies = Vec::new();
        for (index, pass) in passes.chars().enumerate() {
            let now_ms = interval_seconds * 1000 * i64::try_from(index).unwrap();
            match pass {
                'A' if detector.mark_abnormal(&node, now_ms, condition) => anomalies.push(index + 1),
                'A' => {}
                _ => detector.mark_normal(&node, now_ms, condition),
            }
        }
        anomalies
    }

    #[test]
    fn more_passes_in_a_row_are_needed_than_the_number() {
        assert_eq!(anomalies(&condition(2, 1, "1m"), 1, "AAAA"), [3, 4]);
        assert_eq!(anomalies(&condition(5, 3, "1m"), 1, "AAAAAAA"), [6, 7]);
        assert_eq!(anomalies(&condition(1, 1, "1m"), 1, "AA"), [1, 2], "one is immediate");
    }

    #[test]
    fn a_pass_in_which_the_node_is_in_order_begins_the_count_anew() {
        assert_eq!(anomalies(&condition(2, 1, "1m"), 1, "AANAANAAA"), [9]);
    }

    #[test]
    fn an_anomaly_ends_after_more_passes_in_order_than_the_number() {
        assert_eq!(anomalies(&condition(2, 2, "1h"), 1, "AAANNA"), [3, 6], "two are not more than two");
        assert_eq!(anomalies(&condition(2, 2, "1h"), 1, "AAANNNA"), [3]);
        assert_eq!(anomalies(&condition(2, 2, "1h"), 1, "AAANNANNA"), [3, 6, 9], "not in a row");
    }

    #[test]
    fn after_its_time_an_anomaly_is_over_and_counting_begins_anew() {
        assert_eq!(anomalies(&condition(2, 1, "1m"), 120, "AAAAAA"), [3, 6], "one in three passes");
        let burst = anomalies(&condition(5, 3, "1m"), 10, &"A".repeat(30));
        assert_eq!(burst, [6, 7, 8, 9, 10, 11, 12, 18, 19, 20, 21, 22, 23, 24, 30]);
        assert_eq!(anomalies(&condition(2, 1, "0s"), 61, "AAAA"), [3], "no time is a minute");
    }

    #[test]
    fn what_was_not_overutilized_for_long_is_forgotten() {
        let (mut detectors, node) = (Detectors::default(), Arc::from("n1"));
        detectors.node.mark_abnormal(&node, 0, &condition(2, 1, "1m"));
        detectors.prod.mark_abnormal(&node, 5_000, &condition(2, 1, "1m"));
        detectors.forget(9_999, 10_000);
        assert_ne!(detectors.node, Detector::default());
        detectors.forget(10_000, 10_000);
        assert_eq!(detectors.node, Detector::default());
        assert_ne!(detectors.prod, Detector::default());
        detectors.prod.reset("n1");
        assert_eq!(detectors, Detectors::default());
    }
}
