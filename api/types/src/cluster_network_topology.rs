//! ClusterNetworkTopology: the layers of the network between nodes, and where each node is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};

/// The layer of the whole cluster, which always exists.
pub const CLUSTER_LAYER: &str = "ClusterTopologyLayer";
/// The layer of single nodes, which always exists.
pub const NODE_LAYER: &str = "NodeTopologyLayer";

/// The layers of the network, from single nodes to the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "cnt"))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ClusterNetworkTopology {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The layers.
    #[serde(default)]
    pub spec: ClusterNetworkTopologySpec,
    /// The places that the nodes' labels make up.
    #[serde(default)]
    pub status: ClusterNetworkTopologyStatus,
}

/// The layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkTopologySpec {
    /// One entry per layer; each names the layer above it.
    pub network_topology_spec: Vec<NetworkTopologySpec>,
}

/// One layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTopologySpec {
    /// Labels of nodes of which any one names the node's place in this layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label_key: Vec<String>,
    /// Name of the layer above; empty for the layer of the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_topology_layer: String,
    /// Name of the layer.
    pub topology_layer: String,
}

/// The places that the nodes' labels make up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkTopologyStatus {
    /// One entry per place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detail_status: Vec<NetworkTopologyDetail>,
}

/// One place in the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTopologyDetail {
    /// The place.
    pub topology_info: TopologyInfo,
    /// The place above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_topology_info: Option<TopologyInfo>,
    /// Name of the layer below.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub child_topology_layer: String,
    /// Names of the places below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_topology_names: Vec<String>,
    /// How many nodes are in the place.
    pub node_num: i32,
}

/// One place by its layer and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyInfo {
    /// Name of the layer.
    pub topology_layer: String,
    /// Name of the place in its layer.
    pub topology_name: String,
}
