//! Pods whose decision or binding lasts for too long.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_runtime::{clock::Moment, uid::Uid};
use koord_scheduler_engine::Attempt;
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};

use crate::metrics::Timeouts;

/// When the monitor looks, and what is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitoring {
    /// How often it looks.
    pub period: Duration,
    /// What lasts longer is reported at every look.
    pub timeout: Duration,
}

impl Default for Monitoring {
    /// Those of the original.
    fn default() -> Self {
        Self { period: Duration::from_secs(10), timeout: Duration::from_secs(30) }
    }
}

/// The bindings that are under way.
#[derive(Default)]
pub(super) struct Monitor {
    pub(super) settings: Monitoring,
    bindings: BTreeMap<Uid, (Arc<Pod>, Moment)>,
    looked: Option<Moment>,
}

impl Monitor {
    /// A pod is to be bound. How long it has waited for others does not count.
    pub(super) fn began(&mut self, attempt: &Attempt, now: Moment) {
        let since = if attempt.has_waited { now } else { attempt.began };
        self.bindings.insert(attempt.pod.uid.clone(), (Arc::clone(&attempt.pod), since));
    }

    /// The binding of a pod has ended. Says how long it lasted, if that was too long.
    pub(super) fn ended(&mut self, uid: &Uid, now: Moment) -> Option<Duration> {
        let (_, since) = self.bindings.remove(uid)?;
        Some(now.since(since)).filter(|lasted| *lasted > self.settings.timeout)
    }

    /// The pods that are being bound for too long, once in a period.
    pub(super) fn overdue(&mut self, cluster: &Cluster, now: Moment) -> Vec<(Arc<Pod>, Duration)> {
        if self.looked.is_some_and(|looked| now.since(looked) < self.settings.period) {
            return Vec::new();
        }
        self.looked = Some(now);
        // Somebody else may have bound or deleted it.
        self.bindings.retain(|uid, _| cluster.pod(uid).is_some_and(|placed| placed.pod.node.is_none()));
        let lasting = self.bindings.values().map(|(pod, since)| (Arc::clone(pod), now.since(*since)));
        lasting.filter(|(_, lasts)| *lasts > self.settings.timeout).collect()
    }
}

/// The decision or binding of a pod lasts for too long.
pub(super) fn report(pod: &Pod, what: &'static str, lasts: Duration, timeouts: Option<&Timeouts>) {
    let profile = &*pod.template.scheduler;
    tracing::error!(pod = %pod.key, profile, ?lasts, "!!!CRITICAL TIMEOUT!!! the {what} of a pod lasts for too long");
    if let Some(timeouts) = timeouts {
        timeouts.count(profile);
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::key::ObjectKey;
    use koord_scheduler_engine::{Outcome, Refused, queue::Tried};
    use koord_scheduler_framework::{hold::Holds, node::Node};

    use super::*;

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
            let pods = monitor.overdue(cluster, at(second));
            pods.iter().map(|(pod, lasts)| format!("{} {}", pod.key.name(), lasts.as_secs())).collect::<Vec<_>>()
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
