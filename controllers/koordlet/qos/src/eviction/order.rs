//! Which pods may be evicted, and in which order.

use std::{cmp::Reverse, sync::Arc};

use koord_koordlet_framework::Pod;
use koord_types::{
    pod_annotations::{EVICTION_ENABLED, EVICTION_PRIORITY},
    priority::SUB_PRIORITY,
};

use super::may_evict;
use crate::feature::Feature;

/// Pods with what they are ordered by beside their priorities.
pub type Victims = Vec<(Arc<Pod>, i64)>;

/// Pods that a feature may evict by their priority: active, opted in, not above the threshold, and with an amount. Those with the lowest eviction priority come
/// first, then those with the lowest priority, then those with the lowest priority among their class, then those with the largest amount, then by name.
pub fn by_priority(
    pods: &[Arc<Pod>],
    feature: Feature,
    priority_threshold: i32,
    amount: impl Fn(&Pod) -> Option<i64>,
) -> Victims {
    let is_victim = |pod: &&Arc<Pod>| {
        pod.is_active()
            && may_evict(pod, feature)
            && pod.priority_value() <= priority_threshold
            && EVICTION_ENABLED.is_set(&pod.labels)
    };
    let mut victims: Victims =
        pods.iter().filter(is_victim).filter_map(|pod| Some((Arc::clone(pod), amount(pod)?))).collect();
    victims.sort_by_cached_key(|(pod, amount)| {
        let priority = pod.priority_value();
        let eviction_priority = EVICTION_PRIORITY.get(&pod.annotations).ok().flatten().unwrap_or_default();
        let sub_priority = SUB_PRIORITY.get(&pod.labels).ok().flatten().map_or(priority, |priority| priority.0);
        (eviction_priority, priority, sub_priority, Reverse(*amount), name(pod))
    });
    victims
}

/// BE pods that a feature may evict: those with the lowest priority come first, then those with the largest amount, then by name in descending order.
pub(crate) fn best_effort(pods: &[Arc<Pod>], feature: Feature, amount: impl Fn(&Pod) -> f64) -> Vec<Arc<Pod>> {
    let is_victim = |pod: &&Arc<Pod>| pod.is_labelled_be() && !pod.has_ended() && may_evict(pod, feature);
    let mut victims: Vec<(Arc<Pod>, f64)> =
        pods.iter().filter(is_victim).map(|pod| (Arc::clone(pod), amount(pod))).collect();
    victims.sort_by(|(a, a_amount), (b, b_amount)| {
        let priority = |pod: &Pod| pod.priority.unwrap_or_default();
        (priority(a).cmp(&priority(b))).then(b_amount.total_cmp(a_amount)).then_with(|| name(b).cmp(&name(a)))
    });
    victims.into_iter().map(|(pod, _)| pod).collect()
}

fn name(pod: &Pod) -> (Arc<str>, Arc<str>) {
    (Arc::clone(&pod.namespace), Arc::clone(&pod.name))
}
