//! NodeResourceTopology: the NUMA nodes of one node. The object has the node's name.
//!
//! Two versions are served; Koordinator writes and reads the older one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Quantity, Resource, Schema};
use serde::{Deserialize, Serialize};

/// Type of the zones that koordlet writes.
pub const ZONE_TYPE_NODE: &str = "Node";

/// Name of the zone of a NUMA node, such as `node-0`.
pub fn zone_name(numa_node: u32) -> String {
    format!("node-{numa_node}")
}

/// The number of the NUMA node whose zone has this name.
pub fn numa_node_of(zone_name: &str) -> Option<u32> {
    zone_name.strip_prefix("node-")?.parse().ok()
}

/// Version v1alpha1, which Koordinator writes and reads.
pub mod v1alpha1 {
    use super::{Deserialize, ObjectMeta, Resource, Schema, Zone};

    /// The NUMA nodes of one node.
    #[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
    #[serde(rename_all = "camelCase")]
    #[koord(group = "topology.node.k8s.io", version = "v1alpha1", scope = "Cluster", storage = false)]
    #[koord(plural = "noderesourcetopologies", short_name = "node-res-topo")]
    #[koord(annotation("controller-gen.kubebuilder.io/version", "v0.11.1"))]
    #[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/1870"))]
    pub struct NodeResourceTopology {
        /// Name, labels and annotations. Annotations tell the CPUs and who uses them.
        #[serde(default)]
        pub metadata: ObjectMeta,
        /// The kubelet's topology policies.
        pub topology_policies: Vec<String>,
        /// One entry per NUMA node.
        pub zones: Vec<Zone>,
    }
}

/// Version v1alpha2, in which objects are stored.
pub mod v1alpha2 {
    use super::{AttributeInfo, Deserialize, ObjectMeta, Resource, Schema, Zone};

    /// The NUMA nodes of one node.
    #[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
    #[serde(rename_all = "camelCase")]
    #[koord(group = "topology.node.k8s.io", version = "v1alpha2", scope = "Cluster")]
    #[koord(plural = "noderesourcetopologies", short_name = "node-res-topo")]
    #[koord(annotation("controller-gen.kubebuilder.io/version", "v0.11.1"))]
    #[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/1870"))]
    pub struct NodeResourceTopology {
        /// Name, labels and annotations.
        #[serde(default)]
        pub metadata: ObjectMeta,
        /// The kubelet's topology policies. Deprecated: attributes tell them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub topology_policies: Vec<String>,
        /// One entry per NUMA node.
        pub zones: Vec<Zone>,
        /// Attributes of the node.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub attributes: Vec<AttributeInfo>,
    }
}

/// One zone of a node, such as a NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct Zone {
    /// Name of the zone, such as `node-0`.
    pub name: String,
    /// Type of the zone, such as `Node`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The zone that it is part of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// What it costs to reach other zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostInfo>,
    /// Attributes of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeInfo>,
    /// What the zone has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceInfo>,
}

/// What it costs to reach another zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct CostInfo {
    /// Name of the other zone.
    pub name: String,
    /// The cost, in units of the one who wrote it.
    pub value: i64,
}

/// A name with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct AttributeInfo {
    /// Name of the attribute.
    pub name: String,
    /// Value of the attribute.
    pub value: String,
}

/// What a zone has of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ResourceInfo {
    /// Name of the resource.
    pub name: String,
    /// All of it.
    pub capacity: Quantity,
    /// What pods may use.
    pub allocatable: Quantity,
    /// What no pod uses.
    pub available: Quantity,
}
