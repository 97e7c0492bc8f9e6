//! Quotas of limits on this node's CPUs.

use koord_koordlet_framework::Pod;
use koord_koordlet_system::{Value, quota_of_milli_cpu};
use koord_types::{node_annotations::CPU_NORMALIZATION_RATIO, numa::RESOURCE_STATUS, qos::QosClass};

use crate::{feature::Feature, input::Input};

/// How much faster the CPUs are than those that requests are counted in, where quotas are reduced by that.
pub(super) fn normalization_ratio(input: &Input<'_>) -> f64 {
    let annotations = input.node.and_then(|node| node.annotations.as_ref());
    let ratio = annotations
        .filter(|_| input.features.is_on(Feature::CpuNormalization))
        .and_then(|annotations| CPU_NORMALIZATION_RATIO.get(annotations).ok().flatten());
    ratio.map_or(1.0, |ratio| ratio.value().max(1.0))
}

/// Whether the quotas of a pod are reduced by that: of pods of LS and of no class that share CPUs.
pub(super) fn is_normalized(pod: &Pod) -> bool {
    let has_own_cpus =
        || RESOURCE_STATUS.get(&pod.annotations).ok().flatten().is_some_and(|status| !status.cpuset.is_empty());
    matches!(pod.qos_label, None | Some(QosClass::Ls)) && !has_own_cpus()
}

/// The quota of a limit on this node's CPUs.
pub(super) fn quota_of(limit_milli: i64, ratio: f64) -> Option<i64> {
    match quota_of_milli_cpu(limit_milli) {
        Value::Amount(quota) => Some((quota as f64 / ratio).ceil() as i64),
        _ => None,
    }
}

/// The quota of the limits of a pod; `None` where a container has no limit.
pub(super) fn pod_base(pod: &Pod, ratio: f64) -> Option<i64> {
    let is_limited = pod.containers.iter().all(|container| container.limit("cpu").is_some_and(|limit| limit > 0));
    if is_limited { quota_of(pod.limit("cpu"), ratio) } else { None }
}
