//! An ElasticQuotaProfile.

use koord_resource::Projection;
use koord_runtime::projection::Labels;
use koord_types::elastic_quota_profile::{ElasticQuotaProfile, ElasticQuotaProfileSpec};

/// An ElasticQuotaProfile.
#[derive(Debug, PartialEq, Projection)]
#[koord(kind = ElasticQuotaProfile)]
pub struct QuotaProfileView {
    /// Its labels; one of them names the tree.
    pub labels: Labels,
    pub annotations: Labels,
    /// Which nodes, and which quota.
    pub spec: ElasticQuotaProfileSpec,
}
