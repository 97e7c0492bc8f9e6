//! ClusterNetworkTopology: the layers of the cluster's network, and the nodes in them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Schema, Validate};
use serde::{Deserialize, Serialize};

/// The layer of the whole cluster, which always exists.
pub const CLUSTER_LAYER: &str = "ClusterTopologyLayer";
/// The layer of single nodes, which always exists.
pub const NODE_LAYER: &str = "NodeTopologyLayer";

/// Describes the layers of the cluster's network, from single nodes to the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "cnt"))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ClusterNetworkTopology {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The layers.
    #[serde(default)]
    pub spec: ClusterNetworkTopologySpec,
    /// The topology nodes computed from the nodes' labels.
    #[serde(default)]
    pub status: ClusterNetworkTopologyStatus,
}

/// The layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkTopologySpec {
    /// The layers; each names its parent layer.
    pub network_topology_spec: Vec<NetworkTopologySpec>,
}

/// A layer of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTopologySpec {
    /// Keys of the node labels whose value names the node's position in this layer. Any of them may be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label_key: Vec<String>,
    /// Name of the parent layer; empty for the cluster layer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_topology_layer: String,
    /// Name of the layer.
    pub topology_layer: String,
}

/// The topology nodes computed from the nodes' labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkTopologyStatus {
    /// The topology nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detail_status: Vec<NetworkTopologyDetail>,
}

/// A topology node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTopologyDetail {
    /// The topology node.
    pub topology_info: TopologyInfo,
    /// The parent topology node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_topology_info: Option<TopologyInfo>,
    /// Name of the child layer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub child_topology_layer: String,
    /// Names of the child topology nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_topology_names: Vec<String>,
    /// Number of nodes in the topology node.
    pub node_num: i32,
}

/// Identifies a topology node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct TopologyInfo {
    /// Name of the layer.
    pub topology_layer: String,
    /// Name of the topology node in its layer.
    pub topology_name: String,
}
