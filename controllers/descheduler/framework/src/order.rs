//! Orders in which pods are evicted, as far as several strategies share them.

use std::cmp::Reverse;

use koord_types::qos::QosClass;

use crate::pod::{PREFER_NO_EVICTION, Pod};

/// The order of kubernetes-sigs/descheduler, from what is evicted first: priority, then Kubernetes' QoS class, then pods that do not ask to stay. Sort
/// stably by it.
pub fn low_to_high(pod: &Pod) -> impl Ord + use<> {
    (pod.priority(), kubernetes_qos_rank(pod), pod.annotation(PREFER_NO_EVICTION).is_some())
}

/// `BestEffort` before `Burstable` before `Guaranteed`.
pub fn kubernetes_qos_rank(pod: &Pod) -> u8 {
    match pod.kubernetes_qos() {
        "BestEffort" => 0,
        "Burstable" => 1,
        _ => 2,
    }
}

/// Koordinator's order, from what is evicted first: priority class, priority, Kubernetes' QoS class, QoS class, what its deletion costs, what its eviction
/// costs. LowNodeLoad then goes by usage; among equals the [`newest`] comes first. Sort stably by it.
pub fn by_importance(pod: &Pod) -> impl Ord + use<> {
    // A pod without class is the most important.
    let classes = pod.classes();
    let priority_class = classes.priority.map_or(u8::MAX, |class| class as u8);
    let qos_class = match classes.qos {
        Some(QosClass::Be) => 1,
        Some(QosClass::Ls) => 2,
        Some(QosClass::Lsr) => 3,
        Some(QosClass::Lse | QosClass::System) => 4,
        Some(QosClass::Other(_)) | None => 5,
    };
    let costs = (pod.deletion_cost(), pod.eviction_cost());
    (priority_class, pod.priority(), kubernetes_qos_rank(pod), qos_class, costs)
}

/// The pod that was created last comes first. Sort stably by it.
pub fn newest(pod: &Pod) -> impl Ord + use<> {
    Reverse(pod.created)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_scheduler_framework::{labels::Labels, pod::Template as Placement};

    use super::*;
    use crate::pod::{DELETION_COST, EVICTION_COST, State, Template};

    struct Given {
        priority: i32,
        qos: &'static str,
        labels: &'static [(&'static str, &'static str)],
        annotations: &'static [(&'static str, &'static str)],
        created: i64,
    }

    const PLAIN: Given = Given { priority: 0, qos: "Burstable", labels: &[], annotations: &[], created: 0 };

    fn pod(given: &Given) -> Pod {
        let labels: Labels = given.labels.iter().copied().collect();
        let placement = Placement { priority: given.priority, labels, ..Placement::default() };
        let template = Arc::new(Template { placement: Arc::new(placement), ..Template::default() });
        let state = Arc::new(State { qos: Some(given.qos.into()), ..State::default() });
        let annotations = given.annotations.iter().copied().collect();
        Pod { template, state, annotations, created: given.created, ..Pod::default() }
    }

    #[test]
    fn pods_go_from_the_least_to_the_most_important() {
        let be = &[("koordinator.sh/qosClass", "BE")];
        let lsr = &[("koordinator.sh/qosClass", "LSR")];
        let lse = &[("koordinator.sh/qosClass", "LSE")];
        let in_order = [
            Given { priority: 3500, ..PLAIN },
            Given { priority: 5000, labels: be, created: 9, ..PLAIN },
            Given { priority: 5000, labels: be, created: 8, ..PLAIN },
            Given { priority: 5000, labels: be, annotations: &[(EVICTION_COST, "100")], created: 9, ..PLAIN },
            Given { priority: 5000, labels: be, annotations: &[(EVICTION_COST, "200")], created: 9, ..PLAIN },
            Given { priority: 5000, labels: be, annotations: &[(DELETION_COST, "100")], ..PLAIN },
            Given { priority: 5000, labels: be, annotations: &[(DELETION_COST, "200")], ..PLAIN },
            Given { priority: 5999, labels: be, ..PLAIN },
            Given { priority: 7000, qos: "BestEffort", ..PLAIN },
            Given { priority: 7000, ..PLAIN },
            Given { priority: 9000, ..PLAIN },
            Given { priority: 9000, labels: lsr, ..PLAIN },
            Given { priority: 9000, labels: lse, ..PLAIN },
            Given { priority: 9000, qos: "Guaranteed", labels: lsr, ..PLAIN },
            Given { priority: 9001, qos: "BestEffort", ..PLAIN },
        ];
        let pods: Vec<Pod> = in_order.iter().map(pod).collect();
        for (first, second) in pods.iter().zip(pods.iter().skip(1)) {
            let key = |pod: &Pod| (by_importance(pod), newest(pod));
            assert!(key(first) < key(second), "{first:?}\n{second:?}");
        }
    }

    #[test]
    fn a_pod_without_class_ranks_by_that_which_follows_from_its_requests() {
        let rank = |qos| by_importance(&pod(&Given { qos, ..PLAIN }));
        assert!(rank("BestEffort") < rank("Burstable") && rank("Burstable") < rank("Guaranteed"));
        let unlabelled = by_importance(&pod(&Given { priority: 9000, ..PLAIN }));
        let ls = &[("koordinator.sh/qosClass", "LS")];
        assert!(unlabelled == by_importance(&pod(&Given { priority: 9000, labels: ls, ..PLAIN })));
    }
}
