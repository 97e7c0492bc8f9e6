//! NodeResourceTopology: the NUMA topology of one node. The object has the node's name.
//!
//! Two versions are served; Koordinator writes and reads the older one.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Quantity, Resource, ResourceList, Schema, Validate};
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

/// What each NUMA node offers. Zones of another type than [`ZONE_TYPE_NODE`] are no NUMA nodes.
pub fn allocatable(zones: &[Zone]) -> BTreeMap<u32, ResourceList> {
    let zones = zones.iter().filter(|zone| zone.type_ == ZONE_TYPE_NODE).filter_map(|zone| {
        let mut allocatable = ResourceList::new();
        for resource in &zone.resources {
            allocatable.insert(resource.name.as_str(), resource.allocatable.clone());
        }
        Some((numa_node_of(&zone.name)?, allocatable))
    });
    zones.collect()
}

/// Version v1alpha1, which Koordinator writes and reads.
pub mod v1alpha1 {
    use super::{Deserialize, ObjectMeta, Resource, Schema, Validate, Zone};

    /// Reports the NUMA topology of one node, and the resources of its zones.
    #[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
    #[serde(rename_all = "camelCase")]
    #[koord(group = "topology.node.k8s.io", version = "v1alpha1", scope = "Cluster", storage = false)]
    #[koord(plural = "noderesourcetopologies", short_name = "node-res-topo")]
    #[koord(annotation("controller-gen.kubebuilder.io/version", "v0.11.1"))]
    #[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/1870"))]
    pub struct NodeResourceTopology {
        /// Standard object metadata. Annotations report the CPU topology and the allocated CPUs.
        #[serde(default)]
        pub metadata: ObjectMeta,
        /// The kubelet's topology policies.
        pub topology_policies: Vec<String>,
        /// The zones, such as NUMA nodes.
        pub zones: Vec<Zone>,
    }
}

/// Version v1alpha2, in which objects are stored.
pub mod v1alpha2 {
    use super::{AttributeInfo, Deserialize, ObjectMeta, Resource, Schema, Validate, Zone};

    /// Reports the NUMA topology of one node, and the resources of its zones.
    #[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
    #[serde(rename_all = "camelCase")]
    #[koord(group = "topology.node.k8s.io", version = "v1alpha2", scope = "Cluster")]
    #[koord(plural = "noderesourcetopologies", short_name = "node-res-topo")]
    #[koord(annotation("controller-gen.kubebuilder.io/version", "v0.11.1"))]
    #[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/1870"))]
    pub struct NodeResourceTopology {
        /// Standard object metadata.
        #[serde(default)]
        pub metadata: ObjectMeta,
        /// The kubelet's topology policies. Deprecated: use attributes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub topology_policies: Vec<String>,
        /// The zones, such as NUMA nodes.
        pub zones: Vec<Zone>,
        /// Attributes of the node.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub attributes: Vec<AttributeInfo>,
    }
}

/// One zone of a node, such as a NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct Zone {
    /// Name of the zone, such as `node-0`.
    pub name: String,
    /// Type of the zone, such as `Node`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Name of the parent zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// Distances to other zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostInfo>,
    /// Attributes of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeInfo>,
    /// Resources of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceInfo>,
}

/// Distance to another zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
pub struct CostInfo {
    /// Name of the other zone.
    pub name: String,
    /// The distance.
    pub value: i64,
}

/// A named attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
pub struct AttributeInfo {
    /// Name of the attribute.
    pub name: String,
    /// Value of the attribute.
    pub value: String,
}

/// One resource of a zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ResourceInfo {
    /// Name of the resource.
    pub name: String,
    /// Total amount.
    pub capacity: Quantity,
    /// Amount that can be allocated to pods.
    pub allocatable: Quantity,
    /// Amount that is not allocated.
    pub available: Quantity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numa_nodes_offer_what_is_allocatable_and_other_zones_nothing() {
        let zones: Vec<Zone> = serde_json::from_str(
            r#"[{"name":"node-0","type":"Node","resources":[{"name":"cpu","capacity":"4","allocatable":"3","available":"2"}]},
                {"name":"socket-0","type":"Socket"}]"#,
        )
        .unwrap();
        let offered = allocatable(&zones);
        let amounts: Vec<_> =
            offered.iter().map(|(node, amounts)| (*node, amounts.amount("cpu").to_string())).collect();
        assert_eq!(amounts, [(0, "3".to_owned())]);
    }
}
