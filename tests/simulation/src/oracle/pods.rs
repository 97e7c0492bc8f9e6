//! Pods: what class they are of, what they request, where they are.

use serde_json::Value;

use super::{entry, quantity::nano};

/// What classes are worth; the higher ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Prod,
    Mid,
    Batch,
    Free,
    None,
}

impl Class {
    /// By the name in a label or a report.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "koord-prod" => Self::Prod,
            "koord-mid" => Self::Mid,
            "koord-batch" => Self::Batch,
            "koord-free" => Self::Free,
            _ => Self::None,
        }
    }

    /// The class of a pod: by label, else by priority, else by its QoS (§1.3).
    pub(super) fn of(pod: &Value) -> Self {
        let raw = match entry(pod, "labels", "koordinator.sh/priority-class") {
            Some(name) => Self::named(name),
            None => match pod["spec"]["priority"].as_i64().unwrap_or_default() {
                9000..=9999 => Self::Prod,
                7000..=7999 => Self::Mid,
                5000..=5999 => Self::Batch,
                3000..=3999 => Self::Free,
                _ => Self::None,
            },
        };
        match (raw, qos(pod)) {
            (Self::None, "BE") => Self::Batch,
            (Self::None, _) => Self::Prod,
            (raw, _) => raw,
        }
    }

    /// Whether a pod of this class lives from what others leave.
    pub(super) fn is_best_effort(self) -> bool {
        matches!(self, Self::Batch | Self::Free)
    }
}

/// The QoS class of a pod: by label, else by Kubernetes' own.
pub(super) fn qos(pod: &Value) -> &str {
    match entry(pod, "labels", "koordinator.sh/qosClass") {
        Some(named @ ("LSE" | "LSR" | "LS" | "BE" | "SYSTEM")) => named,
        _ => match pod["status"]["qosClass"].as_str() {
            Some("Guaranteed") => "LSR",
            Some("Burstable") => "LS",
            _ => "BE",
        },
    }
}

/// Whether a pod still takes something.
pub(super) fn is_active(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Running" | "Pending"))
}

/// What a pod requests: the larger of what all containers and what one that runs before them wants, and the overhead.
pub(super) fn request(pod: &Value, resource: &str) -> i128 {
    let of = |field: &str| -> Vec<i128> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.map(|container| nano(&container["resources"]["requests"][resource])).collect()
    };
    let before = of("initContainers").into_iter().max().unwrap_or_default();
    of("containers").into_iter().sum::<i128>().max(before) + nano(&pod["spec"]["overhead"][resource])
}

/// The NUMA nodes that a pod was given, of `count`; all where it was given none.
pub(super) fn zones(pod: &Value, count: usize) -> Vec<usize> {
    let status = entry(pod, "annotations", "scheduling.koordinator.sh/resource-status");
    let status: Value = status.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let given = status["numaNodeResources"].as_array().into_iter().flatten();
    let given: Vec<usize> =
        given.filter_map(|of| usize::try_from(of["node"].as_i64()?).ok()).filter(|node| *node < count).collect();
    if given.is_empty() { (0..count).collect() } else { given }
}
