//! The kinds beside nodes and pods whose objects are checked, and the findings in one.

use std::any::Any;

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use koord_resource::controller::{ObjectScope, ResourceKind};
use koord_scheduler_framework::object::Objects;
use koord_types::{
    catalogue::{Doubt, objects},
    cluster_network_topology::ClusterNetworkTopology,
    device::Device,
    elastic_quota::ElasticQuota,
    pod_group::PodGroup,
    reservation::Reservation,
};

use super::{ROWS, ignored};
use crate::scheduler::audit::Named;

/// How many kinds there are.
pub(super) const COUNT: usize = 6;

/// The kinds. The scheduler follows ConfigMaps by name, and no others than those with templates of GPUs.
pub(super) static KINDS: [Kind; COUNT] = [
    Kind::of::<ElasticQuota>(),
    Kind::of::<PodGroup>(),
    Kind::of::<Device>(),
    Kind::of::<Reservation>(),
    Kind::of::<ClusterNetworkTopology>(),
    Kind::of::<ConfigMap>(),
];

/// A kind whose objects are looked at.
pub(super) struct Kind {
    /// How often objects of the kind have changed.
    pub(super) changes: fn(&Objects) -> u64,
    /// Looks at some objects, from this one on.
    pub(super) look: fn(&Objects, usize) -> Page,
}

/// What there is to say of some objects.
pub(super) struct Page {
    pub(super) findings: Vec<(Named, Vec<String>)>,
    /// Whether no objects of the kind come after them.
    pub(super) is_last: bool,
}

/// An object that is looked at.
trait Looked: k8s_openapi::Metadata<Ty = ObjectMeta> + k8s_openapi::Resource<Scope: ObjectScope> + Any {
    /// What hardly does what was meant, beside labels and annotations.
    fn doubts(&self) -> Vec<Doubt>;
}

impl Kind {
    const fn of<T: Looked>() -> Self {
        Self { changes: Objects::changes::<T>, look: look::<T> }
    }
}

impl Looked for ElasticQuota {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_elastic_quota(self)
    }
}

impl Looked for PodGroup {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_pod_group(self)
    }
}

impl Looked for Device {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_device(self)
    }
}

impl Looked for Reservation {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_reservation(self)
    }
}

impl Looked for ClusterNetworkTopology {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_network_topology(self)
    }
}

impl Looked for ConfigMap {
    fn doubts(&self) -> Vec<Doubt> {
        objects::of_gpu_templates(self)
    }
}

fn look<T: Looked>(objects: &Objects, from: usize) -> Page {
    let page: Vec<_> = objects.of::<T>().skip(from).take(ROWS).collect();
    let is_last = page.len() < ROWS;
    let findings = page.into_iter().filter_map(|(key, object)| {
        let uid = objects.entry::<T>(key.as_str())?.uid.clone();
        Some(((ResourceKind::typed::<T>(), key.clone(), uid), findings_of(object)))
    });
    Page { findings: findings.collect(), is_last }
}

fn findings_of<T: Looked>(object: &T) -> Vec<String> {
    let metadata = object.metadata();
    let texts = [&metadata.labels, &metadata.annotations].into_iter().flatten().flatten();
    let mut findings = ignored(texts.map(|(name, text)| (name.as_str(), text.as_str())));
    findings.extend(object.doubts().iter().map(ToString::to_string));
    findings
}
