//! Pods whose decision or binding lasts for too long.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_runtime::{clock::Moment, uid::Uid};
use koord_scheduler_engine::{Attempt, Outcome};
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};

use crate::observer::{Observed, Observer, Occurrence};

/// The bindings that are under way.
#[derive(Default)]
pub(super) struct Monitor {
    bindings: BTreeMap<Uid, (Arc<Pod>, Moment)>,
    inspected: Option<Moment>,
}

impl Monitor {
    /// A pod is to be bound. How long it has waited for others does not count.
    fn began(&mut self, attempt: &Attempt, now: Moment) {
        let since = if attempt.has_waited { now } else { attempt.began };
        self.bindings.insert(attempt.pod.uid.clone(), (Arc::clone(&attempt.pod), since));
    }

    /// The binding of a pod has ended. Returns how long it lasted.
    fn ended(&mut self, uid: &Uid, now: Moment) -> Option<Duration> {
        let (_, since) = self.bindings.remove(uid)?;
        Some(now.since(since))
    }

    /// How long the bindings under way have lasted, once in a period.
    fn bindings(&mut self, cluster: &Cluster, now: Moment, period: Duration) -> Vec<(Arc<Pod>, Duration)> {
        if self.inspected.is_some_and(|inspected| now.since(inspected) < period) {
            return Vec::new();
        }
        self.inspected = Some(now);
        // Somebody else may have bound or deleted it.
        self.bindings.retain(|uid, _| cluster.pod(uid).is_some_and(|placed| placed.pod.node.is_none()));
        self.bindings.values().map(|(pod, since)| (Arc::clone(pod), now.since(*since))).collect()
    }
}

impl Observer for Monitor {
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>) {
        let (reports, now) = (observed.timeouts, observed.clock.moment());
        match occurrence {
            Occurrence::Tick => {
                for (pod, lasts) in self.bindings(observed.engine.cluster(), now, reports.settings.period) {
                    reports.report(&pod, "binding", lasts);
                }
            }
            Occurrence::Decided { attempt, began, decided } => {
                reports.report(&attempt.pod, "decision", decided.since(*began));
                if matches!(attempt.outcome, Outcome::Bind { .. }) {
                    self.began(attempt, *began);
                }
            }
            Occurrence::Ended { attempt, .. } => {
                if let Some(lasted) = self.ended(&attempt.pod.uid, now) {
                    reports.report(&attempt.pod, "binding", lasted);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::key::ObjectKey;
    use koord_scheduler_engine::{Refused, queue::Tried};
    use koord_scheduler_framework::{hold::Holds, node::Node};

    use super::*;
    use crate::timeouts::Monitoring;

    #[test]
    fn what_lasts_for_too_long_is_reported_at_every_look() {
        let at = |second| Moment::at(Duration::from_secs(second));
        let mut cluster = Cluster::default();
        let node = Arc::new(Node { name: "n1".into(), ..Node::default() });
        cluster.set_node(Arc::clone(&node));
        let mut monitor = Monitor::default();
        for (name, has_waited) in [("a", false), ("b", true)] {
            let pod = Pod { key: ObjectKey::new("ns", name), uid: Uid::from(name), ..Pod::default() };
            let outcome = Outcome::Refused(Refused::default());
            let (pod, tried) = (Arc::new(pod), Tried::default());
            cluster.place(Arc::clone(&pod), &node.name, Holds::default());
            monitor.began(&Attempt { pod, tried, began: at(0), has_waited, searched: None, outcome }, at(20));
        }
        let mut overdue = |cluster: &Cluster, second| {
            let pods = monitor.bindings(cluster, at(second), Duration::from_secs(10));
            let overdue = pods.iter().filter(|(_, lasts)| *lasts > Monitoring::default().timeout);
            overdue.map(|(pod, lasts)| format!("{} {}", pod.key.name(), lasts.as_secs())).collect::<Vec<_>>()
        };
        assert_eq!(overdue(&cluster, 30), [""; 0]);
        assert_eq!(overdue(&cluster, 35), [""; 0], "it looks every ten seconds");
        assert_eq!(overdue(&cluster, 40), ["a 40"], "b has waited for its gang");
        assert_eq!(overdue(&cluster, 60), ["a 60", "b 40"]);
        cluster.remove_pod(&Uid::from("a"));
        assert_eq!(overdue(&cluster, 70), ["b 50"]);
        assert_eq!(monitor.ended(&Uid::from("b"), at(75)).map(|lasted| lasted.as_secs()), Some(55));
        assert_eq!(monitor.ended(&Uid::from("b"), at(75)), None, "it ends once");
    }
}
