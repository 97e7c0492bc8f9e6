//! As what a pod on a node counts (`spec/scheduler.md` 3A.3).

use std::sync::Arc;

use koord_scheduler_framework::{
    cluster::Placed,
    hold::Holds,
    pod::{Pod, Template},
};
use koord_types::{
    pod_annotations::{
        LOAD_ESTIMATED_SCALING_FACTORS, LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED,
        LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED,
    },
    priority::PRIORITY_CLASS_LABEL,
    qos::QOS_LABEL,
};

/// When a pod was placed that is not reported as scheduled yet, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedAt(pub(super) i64);

/// The template with which a pod counts, where it is not that of the pod: a change of metadata alone does not change what a
/// pod on a node is estimated to use.
#[derive(Clone, Debug)]
pub(super) struct CountedAs(pub(super) Arc<Template>);

impl CountedAs {
    /// A pod on a node is known differently. It is estimated anew when its spec or its conditions have changed.
    pub(super) fn keep(was: &Placed, pod: &Pod, holds: &mut Holds) {
        let counted = holds.get::<Self>().map_or(&was.pod.template, |counted| &counted.0).clone();
        if marks(&counted) != marks(&pod.template) && differs_by_metadata_alone(&was.pod, pod) {
            holds.set(Self(counted));
        } else {
            holds.remove::<Self>();
        }
    }
}

/// The labels and annotations that an estimate depends on.
fn marks(template: &Template) -> [Option<&str>; 5] {
    let label = |name: &str| template.labels.get(name);
    let annotation = |name: &str| template.annotations.get(name);
    [
        label(QOS_LABEL),
        label(PRIORITY_CLASS_LABEL),
        annotation(LOAD_ESTIMATED_SCALING_FACTORS.name()),
        annotation(LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED.name()),
        annotation(LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED.name()),
    ]
}

/// Whether neither the spec nor a condition has changed. Most conditions that are not kept change together with the phase.
fn differs_by_metadata_alone(was: &Pod, pod: &Pod) -> bool {
    let status = |pod: &Pod| (pod.scheduled, pod.initialized, pod.is_preempted, pod.is_ready, pod.is_running);
    was.node == pod.node && status(was) == status(pod) && {
        let (labels, annotations) = (pod.template.labels.clone(), pod.template.annotations.clone());
        let controller = pod.template.controller.clone();
        Template { labels, annotations, controller, ..Template::clone(&was.template) } == *pod.template
    }
}
