//! An ElasticQuota, as far as the one who makes it from a profile cares.

use koord_resource::Projection;
use koord_runtime::projection::Labels;
use koord_types::elastic_quota::{ElasticQuota, ElasticQuotaSpec};

/// An ElasticQuota, as far as the one who makes it from a profile cares.
#[derive(Debug, PartialEq, Projection)]
#[koord(kind = ElasticQuota)]
pub struct ElasticQuotaView {
    pub labels: Labels,
    pub annotations: Labels,
    /// Promise and bound.
    pub spec: Option<ElasticQuotaSpec>,
}
