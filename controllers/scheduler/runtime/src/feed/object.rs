//! Objects beside nodes and pods, as the engine's plugins read them: whole.

use std::{any::TypeId, borrow::Cow, sync::Arc};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim},
    policy::v1::PodDisruptionBudget,
    storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment},
};
use koord_resource::controller::{ObjectScope, ResourceKind};
use koord_runtime::{
    cache::{Change, Entry},
    intern::Interner,
    projection::{DecodeError, Metadata, MetadataOnly, Projection, WireMetadata},
    store::Store,
};
use koord_scheduler_framework::{
    dynamic::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice},
    object::Object,
    workload::{ReplicaSet, ReplicationController, Service, StatefulSet},
};
use koord_types::{
    cluster_network_topology::ClusterNetworkTopology, device::Device, elastic_quota::ElasticQuota,
    elastic_quota_profile::ElasticQuotaProfile, node_metric::NodeMetric,
    node_resource_topology::v1alpha1::NodeResourceTopology, pod_group::PodGroup, reservation::Reservation,
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{Caches, Delta};

/// A type of the API whose objects are kept whole.
pub(crate) trait Kind:
    k8s_openapi::Resource<Scope: ObjectScope> + DeserializeOwned + PartialEq + Send + Sync + 'static
{
}

impl<T> Kind for T where
    T: k8s_openapi::Resource<Scope: ObjectScope> + DeserializeOwned + PartialEq + Send + Sync + 'static
{
}

macro_rules! kinds {
    ($($kind:ty),* $(,)?) => {
        /// Follows the kinds of these that plugins read.
        pub(crate) fn follow(caches: &mut Caches<'_>) {
            $(caches.follow::<$kind>();)*
        }

        /// The kind of a type.
        fn kind(type_: TypeId) -> Option<ResourceKind> {
            let kinds = [$((TypeId::of::<$kind>(), ResourceKind::typed::<$kind>())),*];
            kinds.into_iter().find(|(known, _)| *known == type_).map(|(_, kind)| kind)
        }
    };
}

kinds![
    Namespace,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
    ResourceClaim,
    ResourceSlice,
    DeviceClass,
    DeviceTaintRule,
    PodDisruptionBudget,
    NodeMetric,
    NodeResourceTopology,
    Device,
    Reservation,
    PodGroup,
    ElasticQuota,
    ElasticQuotaProfile,
    ClusterNetworkTopology,
    ConfigMap,
];

/// The API groups of Kubernetes itself from which kinds are followed.
const OF_KUBERNETES: [&str; 5] = ["", "apps", "policy", "storage.k8s.io", "resource.k8s.io"];

/// What metrics call the objects of a type: kinds of Kubernetes by their names, others as plugins of the original name them.
pub(crate) fn name_in_events(type_: TypeId) -> Cow<'static, str> {
    match kind(type_) {
        Some(ResourceKind { kind, group, .. }) if OF_KUBERNETES.contains(&group) => kind.into(),
        Some(ResourceKind { group, version, plural, .. }) => format!("{plural}.{version}.{group}").into(),
        None => "Object".into(),
    }
}

/// The versions beside its own in which an API server may serve a kind, the newest first. Kubernetes 1.32 and 1.33 have no
/// `resource.k8s.io/v1`.
pub(crate) fn further_versions(kind: ResourceKind) -> &'static [&'static str] {
    if (kind.group, kind.version) == ("resource.k8s.io", "v1") { &["v1beta2", "v1beta1"] } else { &[] }
}

#[derive(Debug, PartialEq)]
pub(crate) struct Whole<T>(Arc<T>);

impl<T> Whole<T> {
    pub(crate) fn object(&self) -> &T {
        &self.0
    }
}

pub(crate) struct WholeWire<'a, T> {
    metadata: WireMetadata<'a>,
    object: T,
}

impl<'a, T> Metadata<'a> for WholeWire<'a, T> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<'de: 'a, 'a, T: DeserializeOwned> Deserialize<'de> for WholeWire<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        let error = serde::de::Error::custom::<serde_json::Error>;
        let MetadataOnly { metadata } = serde_json::from_str(text).map_err(error)?;
        Ok(Self { metadata, object: serde_json::from_str(text).map_err(error)? })
    }
}

impl<T: Kind> Projection for Whole<T> {
    const KIND: ResourceKind = ResourceKind::typed::<T>();
    type Wire<'a> = WholeWire<'a, T>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(Arc::new(wire.object)))
    }
}

/// The delta of a change.
pub(crate) fn delta<T: Kind>(change: &Change<Whole<T>>) -> Delta {
    match &change.new {
        Some(entry) => Delta::Object(object(&change.key, entry)),
        None => Delta::ObjectGone(TypeId::of::<T>(), change.key.clone()),
    }
}

/// All objects of a cache.
pub(crate) fn all<T: Kind>(store: &Store<Whole<T>>) -> Vec<Delta> {
    store.read().iter().map(|(key, entry)| Delta::Object(object(key, entry))).collect()
}

fn object<T: Kind>(key: &koord_runtime::key::ObjectKey, entry: &Entry<Whole<T>>) -> Object {
    Object::new(key.clone(), entry.uid.clone(), entry.deleting, Arc::clone(&entry.value.0))
}
