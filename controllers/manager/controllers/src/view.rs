//! What the manager keeps of each object: one projection per kind.

mod config_map;
mod device;
mod elastic_quota;
mod node;
mod node_metric;
mod node_slo;
mod pending_pod;
mod pod;
mod pod_uses;
mod quota_profile;
mod topology;

pub use config_map::ConfigMapView;
pub use device::DeviceView;
pub use elastic_quota::ElasticQuotaView;
pub use node::NodeView;
pub use node_metric::{ApplicationUsage, Measured, NodeMetricView, Report};
pub use node_slo::NodeSloView;
pub use pending_pod::PendingPodView;
pub use pod::{ByNode, Claim, PodView};
pub use pod_uses::{PodUsage, PodUses};
pub use quota_profile::QuotaProfileView;
pub use topology::TopologyView;
