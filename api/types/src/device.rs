//! Device: the GPUs, FPGAs and RDMA devices of one node. The object has the node's name.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use koord_resource::{
    Resource, ResourceList, Schema, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};

use crate::{
    attached::not_negative,
    word::{self, words},
};

/// Reports the devices of one node, and which pods they are allocated to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster")]
#[koord(hardened(category = "koordinator"))]
#[koord(admission(validate(
    path = "/validate-scheduling-koordinator-sh-v1alpha1-device",
    name = "vdevice.koordinator.sh",
    on = [Create, Update],
    gate = "DeclaredWebhooks"
)))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct Device {
    /// Standard object metadata. Labels name the model and the driver of GPUs.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The devices of the node.
    #[serde(default)]
    pub spec: DeviceSpec,
    /// The allocated devices.
    #[serde(default)]
    pub status: DeviceStatus,
}

/// The devices of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct DeviceSpec {
    /// The devices.
    #[koord(check(minors_are_unique))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInfo>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// Unique id of the device, such as a GPU's UUID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Minor number, unique among the devices of one type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<i32>,
    /// Physical id of the module that the device is part of.
    #[serde(rename = "moduleID", default, skip_serializing_if = "Option::is_none")]
    pub module_id: Option<i32>,
    /// Type of the device: `gpu`, `fpga`, `rdma` or another.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<DeviceType>,
    /// Labels for the selection of devices by pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether the device is healthy.
    #[serde(default)]
    #[koord(required, default = false)]
    pub health: bool,
    /// The resources of the device, by resource name.
    #[koord(check(not_negative))]
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// The location of the device in the node's topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<DeviceTopology>,
    /// Groups of virtual functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vf_groups: Vec<VirtualFunctionGroup>,
    /// Conditions of the device; `Healthy` explains why a device is unhealthy.
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
        /// A network device with remote direct memory access.
        Rdma = "rdma",
    }
}

/// The location of a device in the node's topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct DeviceTopology {
    /// ID of the CPU socket.
    #[serde(rename = "socketID")]
    pub socket_id: i32,
    /// ID of the NUMA node.
    #[serde(rename = "nodeID")]
    pub node_id: i32,
    /// ID of the PCIe switch.
    #[serde(rename = "pcieID")]
    pub pcie_id: String,
    /// Address on the PCI bus, such as `0000:1a:00.0`.
    #[serde(rename = "busID", default, skip_serializing_if = "String::is_empty")]
    pub bus_id: String,
}

/// Virtual functions with the same labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
pub struct VirtualFunctionGroup {
    /// Labels for the selection of virtual functions by pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The virtual functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vfs: Vec<VirtualFunction>,
}

/// One virtual function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
pub struct VirtualFunction {
    /// Minor number of the virtual function.
    pub minor: i32,
    /// Address on the PCI bus.
    #[serde(rename = "busID", default, skip_serializing_if = "String::is_empty")]
    pub bus_id: String,
}

/// The allocated devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct DeviceStatus {
    /// The allocated devices, by device type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<DeviceAllocation>,
}

/// The allocated devices of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct DeviceAllocation {
    /// Type of the devices.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<DeviceType>,
    /// The allocations, one per pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<DeviceAllocationItem>,
}

/// The devices of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
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

// === attached rules ===

fn minors_are_unique(devices: &[DeviceInfo], at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, device) in devices.iter().enumerate() {
        let type_ = device.type_.as_ref().map_or("", DeviceType::as_str);
        if let Some(minor) = device.minor
            && !seen.insert((type_, minor))
        {
            errors.duplicate(&at.index(index).child("minor"), minor);
        }
    }
}
