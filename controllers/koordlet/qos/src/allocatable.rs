//! Evictions because pods request more than is allocatable, for CPU and memory alike.

use std::{collections::BTreeMap, sync::Arc};

use koord_koordlet_framework::{Node, Pod, Reason};
use koord_types::{
    priority::PriorityClass,
    resource_names::{BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY},
};

use crate::{
    eviction::{Release, ReleaseKind, Task, by_priority},
    feature::Feature,
    input::Input,
    outcome::Note,
};

/// The settings of one feature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocatable {
    pub feature: Feature,
    pub names: Names,
    /// The setting of the threshold.
    pub setting: &'static str,
    pub threshold_percent: Option<i64>,
    pub lower_percent: Option<i64>,
    pub priority_threshold: Option<i32>,
}

/// The names of one resource by the class of pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    native: &'static str,
    mid: &'static str,
    batch: &'static str,
}

pub(crate) const CPU: Names = Names { native: "cpu", mid: MID_CPU, batch: BATCH_CPU };
pub(crate) const MEMORY: Names = Names { native: "memory", mid: MID_MEMORY, batch: BATCH_MEMORY };

/// The highest priority whose pods may be evicted because of requests: that of class mid.
const PRIORITY_MAX: i32 = 7999;

impl Allocatable {
    /// The task; `None` where nothing has to be released, or the settings are invalid.
    ///
    /// Of each resource ⌊requested − lower % × allocatable⌋ has to be released when more than threshold % is requested, and everything when nothing is allocatable.
    pub(crate) fn task<'a>(&self, input: &Input<'a>, node: &Node, notes: &mut Vec<Note>) -> Option<Task<'a>> {
        let (Some(threshold), Some(lower), Some(priority_threshold)) =
            (self.threshold_percent, self.lower_percent, self.priority_threshold)
        else {
            notes.push(Note::invalid(
                format!("{}: threshold, lower percentage and priority threshold are not all set", self.feature),
                "set them in resource-threshold-config",
            ));
            return None;
        };
        if threshold < 0 || lower >= threshold || priority_threshold > PRIORITY_MAX {
            notes.push(Note::invalid(
                format!(
                    "{}: threshold {threshold} %, lower percentage {lower} %, priority threshold {priority_threshold}",
                    self.feature
                ),
                "the lower percentage must be below the threshold, and the priority threshold at most 7999",
            ));
            return None;
        }
        let names = self.names;
        let mut requested: BTreeMap<&'static str, i64> = BTreeMap::new();
        // Pods that have ended hold nothing.
        for pod in input.pods.iter().filter(|pod| !pod.has_ended() && pod.priority_value() <= priority_threshold) {
            let (resource, amount) = names.request_of(pod);
            let sum = requested.entry(resource).or_default();
            *sum = sum.saturating_add(amount);
        }
        let mut required = Vec::new();
        let mut formulas = Vec::new();
        for (resource, requested) in requested {
            let allocatable = node.allocatable(resource).unwrap_or_default();
            let amount = if allocatable <= 0 {
                requested
            } else if exceeds(requested, threshold, allocatable) {
                difference(requested, lower, allocatable)
            } else {
                0
            };
            if amount > 0 {
                formulas.push(format!(
                    "{resource}: {requested} requested − {lower} % × {allocatable} allocatable = {amount}, \
                     as more than {threshold} % is requested"
                ));
                required.push(Release { kind: ReleaseKind::Requested, resource, amount });
            }
        }
        if required.is_empty() {
            return None;
        }
        let overloaded: Vec<&'static str> = required.iter().map(|required| required.resource).collect();
        let request = move |pod: &Pod| {
            let (resource, amount) = names.request_of(pod);
            (resource != names.native && overloaded.contains(&resource) && amount > 0).then_some((resource, amount))
        };
        let victims =
            by_priority(input.pods, self.feature, priority_threshold, |pod| request(pod).map(|(_, amount)| amount));
        Some(Task {
            feature: self.feature,
            reason: Reason::new(self.setting, formulas.join("; ")),
            required,
            pods: victims.into_iter().map(|(pod, _)| pod).collect::<Vec<Arc<Pod>>>(),
            release: Box::new(move |pod| {
                let release = request(pod);
                release
                    .map(|(resource, amount)| Release { kind: ReleaseKind::Requested, resource, amount })
                    .into_iter()
                    .collect()
            }),
        })
    }
}

impl Names {
    /// The resource by which a pod is counted, and how much it requests of it.
    fn request_of(self, pod: &Pod) -> (&'static str, i64) {
        match pod.priority_class() {
            Some(PriorityClass::Mid) => (self.mid, positive_sum(pod, self.mid)),
            Some(PriorityClass::Batch) => (self.batch, positive_sum(pod, self.batch)),
            _ => (self.native, pod.request(self.native)),
        }
    }
}

/// What regular containers and sidecars request.
fn positive_sum(pod: &Pod, resource: &str) -> i64 {
    let requests = pod.running_containers().filter_map(|container| container.request(resource));
    requests.filter(|amount| *amount > 0).fold(0, i64::saturating_add)
}

/// Whether `requested` is more than `percent` of `allocatable`.
fn exceeds(requested: i64, percent: i64, allocatable: i64) -> bool {
    i128::from(requested) * 100 > i128::from(allocatable) * i128::from(percent)
}

/// ⌊requested − percent × allocatable⌋.
fn difference(requested: i64, percent: i64, allocatable: i64) -> i64 {
    let hundredths = i128::from(requested) * 100 - i128::from(allocatable) * i128::from(percent);
    i64::try_from(hundredths.div_euclid(100)).unwrap_or(i64::MAX)
}
