//! What the engine knows of a node.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use koord_resource::ResourceList;
use koord_scheduling::Effect;

use crate::labels::Labels;

/// A node, as it was reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: Arc<str>,
    pub labels: Labels,
    /// Annotations of Koordinator, and locks of device plugins.
    pub annotations: Labels,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`: it is cordoned.
    pub unschedulable: bool,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// The images that it has, with their sizes in bytes; one under each of its names.
    pub images: Box<[(Arc<str>, i64)]>,
}

impl Node {
    /// Whether it has a taint that pods only prefer to avoid.
    pub fn is_softly_tainted(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule.as_str())
    }
}
