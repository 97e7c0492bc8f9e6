//! Koordinator's kinds and its extension protocol: types and pure functions.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod attached;
pub mod catalogue;
pub mod classes;
pub mod cluster_colocation_profile;
pub mod cluster_network_topology;
pub mod device;
pub mod device_protocol;
pub mod elastic_quota;
pub mod elastic_quota_profile;
pub mod extensions;
pub mod gang;
pub mod go_text;
pub mod node_annotations;
pub mod node_metric;
pub mod node_resource_topology;
pub mod node_slo;
pub mod numa;
pub mod pod_annotations;
pub mod pod_group;
pub mod pod_migration_job;
pub mod priority;
pub mod protocol;
pub mod qos;
pub mod quota;
pub mod recommendation;
pub mod reservation;
pub mod reservation_protocol;
pub mod resource_names;
pub mod schedule_explanation;
pub mod slo_config;
pub mod word;

use koord_resource::document::Declared;

/// All kinds, each with its versions, in the order of their CRDs' file names.
pub const KINDS: &[&[Declared]] = &[
    &[Declared::of::<recommendation::Recommendation>()],
    &[Declared::of::<cluster_colocation_profile::ClusterColocationProfile>()],
    &[Declared::of::<elastic_quota_profile::ElasticQuotaProfile>()],
    &[Declared::of::<cluster_network_topology::ClusterNetworkTopology>()],
    &[Declared::of::<device::Device>()],
    &[Declared::of::<pod_migration_job::PodMigrationJob>()],
    &[Declared::of::<reservation::Reservation>()],
    &[Declared::of::<schedule_explanation::ScheduleExplanation>()],
    &[Declared::of::<elastic_quota::ElasticQuota>()],
    &[Declared::of::<pod_group::PodGroup>()],
    &[Declared::of::<node_metric::NodeMetric>()],
    &[Declared::of::<node_slo::NodeSLO>()],
    &[
        Declared::of::<node_resource_topology::v1alpha1::NodeResourceTopology>(),
        Declared::of::<node_resource_topology::v1alpha2::NodeResourceTopology>(),
    ],
];
