//! The kind.

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster of cache servers.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "cache.example.com", version = "v1", kind = "CacheCluster", namespaced, status = "CacheClusterStatus")]
pub struct CacheClusterSpec {
    /// Servers.
    pub replicas: i32,
    /// Memory of each server.
    pub memory: Quantity,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheClusterStatus {
    /// Servers that answer.
    #[serde(default)]
    pub ready: i32,
    /// `Ready`: whether all servers answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
