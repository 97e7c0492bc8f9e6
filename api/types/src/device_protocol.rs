//! What pods and nodes say about GPUs, network cards and other devices.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::{Quantity, ResourceList};
use serde::{Deserialize, Serialize};

use crate::{
    device::DeviceType,
    protocol::{Key, Text, json_texts, read_json, write_json},
    word::{self, words},
};

/// Label of a pod: what keeps apart the pods that share a GPU, such as `HAMi-core`.
pub const GPU_ISOLATION_PROVIDER: Key<String> = Key::new("koordinator.sh/gpu-isolation-provider", "a name");
/// Annotation of a pod: the devices that it has.
pub const DEVICE_ALLOCATED: Key<DeviceAllocations> = Key::new(
    "scheduling.koordinator.sh/device-allocated",
    r#"a JSON object such as {"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"100"}}]}"#,
);
/// Annotation of a pod: which devices it wants.
pub const DEVICE_ALLOCATE_HINT: Key<DeviceAllocateHints> = Key::new(
    "scheduling.koordinator.sh/device-allocate-hint",
    r#"a JSON object such as {"rdma":{"allocateStrategy":"ApplyForAll"}}"#,
);
/// Annotation of a pod: devices that must be near each other.
pub const DEVICE_JOINT_ALLOCATE: Key<DeviceJointAllocate> = Key::new(
    "scheduling.koordinator.sh/device-joint-allocate",
    r#"a JSON object such as {"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}"#,
);
/// Annotation of a pod: which partition of GPUs it wants.
pub const GPU_PARTITION_SPEC: Key<GpuPartitionSpec> = Key::new(
    "scheduling.koordinator.sh/gpu-partition-spec",
    r#"a JSON object such as {"allocatePolicy":"Restricted"}"#,
);
/// Annotation of a Device: the partitions of its GPUs, by their number of GPUs.
pub const GPU_PARTITIONS: Key<GpuPartitionTable> =
    Key::new("scheduling.koordinator.sh/gpu-partitions", r#"a JSON object such as {"2":[{"minors":[0,1]}]}"#);

/// The devices that a pod has, by type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceAllocations(pub BTreeMap<DeviceType, Vec<DeviceAllocation>>);

/// A device that a pod has, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceAllocation {
    /// Minor number of the device.
    pub minor: i32,
    /// How much of it.
    pub resources: ResourceList,
    /// Unique id of the device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// What further was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<DeviceAllocationExtension>,
}

/// What further was allocated of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceAllocationExtension {
    /// Virtual functions.
    #[serde(rename = "vfs", skip_serializing_if = "Vec::is_empty")]
    pub virtual_functions: Vec<AllocatedVirtualFunction>,
    /// The template by which the GPU is divided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu_shared_resource_template: String,
}

/// One virtual function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocatedVirtualFunction {
    /// Minor number.
    #[serde(skip_serializing_if = "word::is_zero")]
    pub minor: i32,
    /// Address on the bus.
    #[serde(rename = "busID", skip_serializing_if = "String::is_empty")]
    pub bus_id: String,
}

/// Which devices a pod wants, by type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceAllocateHints(pub BTreeMap<DeviceType, DeviceHint>);

/// Which devices of one type a pod wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceHint {
    /// Labels of the devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Labels of their virtual functions.
    #[serde(rename = "vfSelector", skip_serializing_if = "Option::is_none")]
    pub vf_selector: Option<LabelSelector>,
    /// How many devices.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub allocate_strategy: Option<DeviceAllocateStrategy>,
    /// How near each other.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub required_topology_scope: Option<DeviceTopologyScope>,
    /// What others may not use.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub exclusive_policy: Option<DeviceExclusivePolicy>,
}

words! {
    /// How many devices a pod gets.
    pub open enum DeviceAllocateStrategy {
        /// All that fit.
        ApplyForAll = "ApplyForAll",
        /// As many as it requests.
        RequestsAsCount = "RequestsAsCount",
    }
}

words! {
    /// How near devices are to each other.
    pub open enum DeviceTopologyScope {
        /// One device.
        Device = "Device",
        /// On one PCIe switch.
        Pcie = "PCIe",
        /// On one NUMA node.
        NumaNode = "NUMANode",
        /// On one node.
        Node = "Node",
    }
}

impl DeviceTopologyScope {
    /// From 1, the node, to 4, the device; none for a scope that is not known.
    pub fn level(&self) -> Option<u8> {
        match self {
            Self::Device => Some(4),
            Self::Pcie => Some(3),
            Self::NumaNode => Some(2),
            Self::Node => Some(1),
            Self::Other(_) => None,
        }
    }
}

words! {
    /// What of devices others may not use.
    pub open enum DeviceExclusivePolicy {
        /// The devices.
        DeviceLevel = "DeviceLevel",
        /// Everything on their PCIe switch.
        PcieLevel = "PCIeLevel",
    }
}

/// Devices that must be near each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceJointAllocate {
    /// Their types; the first leads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_types: Vec<DeviceType>,
    /// How near.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub required_scope: Option<DeviceJointScope>,
}

words! {
    /// How near devices of several types are to each other.
    pub open enum DeviceJointScope {
        /// On one PCIe switch.
        SamePcie = "SamePCIe",
    }
}

/// Which partition of GPUs a pod wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuPartitionSpec {
    /// Whether it must be one; absent prefers it.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub allocate_policy: Option<GpuPartitionAllocatePolicy>,
    /// Bandwidth between its GPUs that is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_bus_bandwidth: Option<Quantity>,
}

impl GpuPartitionSpec {
    /// Whether it must be a partition.
    pub fn is_restricted(&self) -> bool {
        self.allocate_policy == Some(GpuPartitionAllocatePolicy::Restricted)
    }
}

words! {
    /// Whether GPUs must be a partition.
    pub open enum GpuPartitionAllocatePolicy {
        /// They must.
        Restricted = "Restricted",
        /// As far as possible.
        BestEffort = "BestEffort",
    }
}

/// The partitions of a node's GPUs, by their number of GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuPartitionTable(pub BTreeMap<u32, Vec<GpuPartition>>);

/// GPUs that are well connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuPartition {
    /// Minor numbers of the GPUs.
    pub minors: Vec<i32>,
    /// How they are connected, such as `NVLink`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu_link_type: String,
    /// Bandwidth between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_bus_bandwidth: Option<Quantity>,
    /// Which partition is taken first; higher is earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_score: Option<i64>,
}

impl Text for GpuPartitionTable {
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "null" {
            return Err("a table is needed, not null".to_owned());
        }
        let by_text: BTreeMap<String, Vec<GpuPartition>> = read_json(text)?;
        let by_number = by_text.into_iter().map(|(count, partitions)| match count.parse() {
            Ok(count) => Ok((count, partitions)),
            Err(_) => Err(format!("{count:?} is no number of GPUs")),
        });
        by_number.collect::<Result<_, _>>().map(Self)
    }

    fn write(&self) -> String {
        write_json(&self.0)
    }
}

impl Text for DeviceAllocateHints {
    fn read(text: &str) -> Result<Self, String> {
        // The whole has no name for the decoder.
        read_json(text).map_err(|error| {
            error.replace("Go value of type map[string]string", "Go value of type extension.DeviceAllocateHints")
        })
    }

    fn write(&self) -> String {
        write_json(self)
    }
}

json_texts!(DeviceAllocations, DeviceJointAllocate, GpuPartitionSpec);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text, written};

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&GPU_ISOLATION_PROVIDER);
        reads_any_text(&DEVICE_ALLOCATED);
        reads_any_text(&DEVICE_ALLOCATE_HINT);
        reads_any_text(&DEVICE_JOINT_ALLOCATE);
        reads_any_text(&GPU_PARTITION_SPEC);
        reads_any_text(&GPU_PARTITIONS);
    }

    #[test]
    fn values_survive() {
        let allocation = (any::<i32>(), any::<String>(), any::<i64>()).prop_map(|(minor, id, amount)| {
            let resources = [("koordinator.sh/gpu-core", Quantity::cpu_milli(amount))].into_iter().collect();
            let allocation = DeviceAllocation { minor, id, resources, extension: None };
            DeviceAllocations(BTreeMap::from([(DeviceType::Gpu, vec![allocation])]))
        });
        keeps_values(&DEVICE_ALLOCATED, allocation);
        let partitions = proptest::collection::btree_map(any::<u32>(), Just(vec![GpuPartition::default()]), 0..3);
        keeps_values(&GPU_PARTITIONS, partitions.prop_map(GpuPartitionTable));
    }

    #[test]
    fn allocations_are_written_as_in_the_original() {
        let text = r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"100"},"extension":{"vfs":[{"minor":2,"busID":"0000:1f:00.2"}]}}]}"#;
        let allocations = read(&DEVICE_ALLOCATED, text).unwrap();
        assert_eq!(written(&DEVICE_ALLOCATED, &allocations), text);
    }

    #[test]
    fn a_null_table_is_refused() {
        assert!(read(&GPU_PARTITIONS, "null").is_err());
        assert!(read(&GPU_PARTITIONS, r#"{"x":[]}"#).is_err());
        assert_eq!(read(&GPU_PARTITIONS, r#"{"2":[{"minors":[0,1]}]}"#).unwrap().0[&2][0].minors, [0, 1]);
    }

    #[test]
    fn scopes_have_levels() {
        let levels = DeviceTopologyScope::TEXTS.iter().map(|text| DeviceTopologyScope::from(*text).level());
        assert_eq!(levels.collect::<Vec<_>>(), [Some(4), Some(3), Some(2), Some(1)]);
        assert!(!read(&GPU_PARTITION_SPEC, "{}").unwrap().is_restricted());
    }
}
