//! Device: the GPUs, FPGAs and network cards of one node. The object has the node's name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use koord_resource::{Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// The devices of one node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster")]
#[koord(hardened(category = "koordinator"))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct Device {
    /// Name, labels and annotations. Labels tell the model and the driver of GPUs.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What the node has.
    #[serde(default)]
    pub spec: DeviceSpec,
    /// What is allocated.
    #[serde(default)]
    pub status: DeviceStatus,
}

/// What the node has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct DeviceSpec {
    /// One entry per device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInfo>,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// Unique id of the device, such as a GPU's UUID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Minor number, unique among the devices of one type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<i32>,
    /// Number of the module that the device is part of.
    #[serde(rename = "moduleID", default, skip_serializing_if = "Option::is_none")]
    pub module_id: Option<i32>,
    /// Type of the device: `gpu`, `fpga`, `rdma` or another.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<DeviceType>,
    /// Labels that pods select devices by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether the device works.
    #[serde(default)]
    #[koord(required, default = false)]
    pub health: bool,
    /// What the device has, by resource name.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// Where the device sits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<DeviceTopology>,
    /// Its virtual functions, in groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vf_groups: Vec<VirtualFunctionGroup>,
    /// Conditions; `Healthy` tells why a device does not work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

words! {
    /// Type of a device.
    pub open enum DeviceType {
        /// A graphics processor.
        Gpu = "gpu",
        /// A field-programmable gate array.
        Fpga = "fpga",
        /// A network card with remote direct memory access.
        Rdma = "rdma",
    }
}

/// Where a device sits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceTopology {
    /// Number of the CPU socket.
    #[serde(rename = "socketID")]
    pub socket_id: i32,
    /// Number of the NUMA node.
    #[serde(rename = "nodeID")]
    pub node_id: i32,
    /// The PCIe switch.
    #[serde(rename = "pcieID")]
    pub pcie_id: String,
    /// Address on the bus, such as `0000:1a:00.0`.
    #[serde(rename = "busID", default, skip_serializing_if = "String::is_empty")]
    pub bus_id: String,
}

/// Virtual functions with the same labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct VirtualFunctionGroup {
    /// Labels that pods select virtual functions by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The virtual functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vfs: Vec<VirtualFunction>,
}

/// One virtual function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct VirtualFunction {
    /// Minor number.
    pub minor: i32,
    /// Address on the bus.
    #[serde(rename = "busID", default, skip_serializing_if = "String::is_empty")]
    pub bus_id: String,
}

/// What is allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct DeviceStatus {
    /// One entry per type of device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<DeviceAllocation>,
}

/// Which devices of one type are allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct DeviceAllocation {
    /// Type of the devices.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<DeviceType>,
    /// One entry per pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<DeviceAllocationItem>,
}

/// Which devices one pod has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct DeviceAllocationItem {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// UID of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    /// Minor numbers of the devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub minors: Vec<i32>,
}
