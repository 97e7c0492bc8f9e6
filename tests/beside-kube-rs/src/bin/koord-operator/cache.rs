//! The kind.

use koord::{
    Convert, Mutate, Quantity, Resource, Schema, Validate,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    serde::{Deserialize, Serialize},
};

/// A cluster of cache servers.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Validate, Mutate, Convert)]
#[serde(crate = "koord::serde")]
#[koord(group = "cache.example.com", version = "v1", scope = "Namespaced", status)]
pub struct CacheCluster {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: CacheClusterSpec,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CacheClusterStatus>,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate, Convert)]
#[serde(crate = "koord::serde")]
pub struct CacheClusterSpec {
    /// Servers.
    pub replicas: i32,
    /// Memory of each server.
    pub memory: Quantity,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate, Convert)]
#[serde(crate = "koord::serde")]
pub struct CacheClusterStatus {
    /// Servers that answer.
    #[serde(default)]
    pub ready: i32,
    /// `Ready`: whether all servers answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "map", list_map_key = "type")]
    pub conditions: Vec<Condition>,
}
