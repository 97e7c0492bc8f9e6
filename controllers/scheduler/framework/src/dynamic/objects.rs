//! ResourceClaims, ResourceSlices and DeviceClasses, as far as they decide what a claim is given.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    ClusterResourceScope, NamespaceResourceScope, Resource, api::core::v1::NodeSelector,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::taints::{DeviceTaint, DeviceToleration};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    /// Who owns it, and at which revision it is.
    pub metadata: ClaimMetadata,
    /// What it requests.
    pub spec: ClaimSpec,
    /// What it was given.
    pub status: ClaimStatus,
}

/// The metadata of a claim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimMetadata {
    pub resource_version: String,
    /// What has to happen before it is deleted.
    pub finalizers: Vec<String>,
    pub owner_references: Vec<OwnerReference>,
}

/// What a claim requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimSpec {
    pub devices: DeviceClaim,
}

/// The devices that a claim requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceClaim {
    /// The requests, in order.
    pub requests: Vec<DeviceRequest>,
    /// What must hold for several devices.
    pub constraints: Vec<DeviceConstraint>,
    /// Opaque parameters for drivers.
    pub config: Vec<DeviceConfiguration>,
}

/// A request for devices: exact, or alternatives of which the first that can be had counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "RequestWire")]
pub struct DeviceRequest {
    pub name: String,
    /// The exact request.
    pub exactly: Option<DeviceRequestSpec>,
    pub first_available: Vec<DeviceRequestSpec>,
}

/// A request of any version: in `v1beta1` the exact request is not apart.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestWire {
    name: String,
    exactly: Option<DeviceRequestSpec>,
    first_available: Vec<DeviceRequestSpec>,
    #[serde(flatten)]
    plain: DeviceRequestSpec,
}

impl From<RequestWire> for DeviceRequest {
    fn from(RequestWire { name, exactly, first_available, plain }: RequestWire) -> Self {
        let plain = Some(plain).filter(|plain| !plain.device_class_name.is_empty());
        Self { name, exactly: exactly.or(plain), first_available }
    }
}

/// The specification of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceRequestSpec {
    /// The name of an alternative.
    pub name: String,
    /// The class of the devices.
    pub device_class_name: String,
    /// Which devices of the class.
    pub selectors: Vec<Selector>,
    /// `ExactCount` or `All`; empty is the first.
    pub allocation_mode: String,
    /// How many; none is one.
    pub count: Option<i64>,
    /// Whether devices may be used that others use, to look after them.
    pub admin_access: Option<bool>,
    /// The taints of devices that do not matter.
    pub tolerations: Vec<DeviceToleration>,
    /// The requested part of a device.
    pub capacity: Option<IgnoredAny>,
}

/// Which devices are meant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// By an expression.
    pub cel: Option<Expression>,
}

/// An expression in CEL.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Expression {
    pub expression: String,
}

/// What must hold for the devices of some requests, or of all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceConstraint {
    /// The names of the requests; empty for all.
    pub requests: Vec<String>,
    /// They have the same value of this attribute.
    pub match_attribute: Option<String>,
    /// Each has another value of this attribute.
    pub distinct_attribute: Option<String>,
}

/// Opaque parameters for the drivers of devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceConfiguration {
    /// The names of the requests whose devices are meant; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The parameters, which only drivers understand.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// What a claim was given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimStatus {
    /// The devices; none before.
    pub allocation: Option<Allocation>,
    /// Who may use them.
    pub reserved_for: Vec<Consumer>,
}

/// The devices that a claim was given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Allocation {
    pub devices: AllocatedDevices,
    /// The nodes from which they can be reached; none where that is every node.
    pub node_selector: Option<NodeSelector>,
}

/// Devices with the requests for which they were given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllocatedDevices {
    pub results: Vec<AllocatedDevice>,
}

/// A device that was given to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocatedDevice {
    /// The request; with a stroke between request and alternative.
    pub request: String,
    #[serde(flatten)]
    pub device: DeviceId,
    /// Whether others may be given it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// Which part of the device it is, where others may be given further parts.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
}

/// A device, by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceId {
    pub driver: Arc<str>,
    /// The pool of the driver.
    pub pool: Arc<str>,
    /// The device in the pool.
    pub device: Arc<str>,
}

/// Who may use what a claim was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Consumer {
    /// The uid of the pod.
    pub uid: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    /// The devices that belong to it, and the parameters for their drivers.
    pub spec: DeviceClassSpec,
}

/// The devices of a class.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassSpec {
    /// Which devices belong to it.
    pub selectors: Vec<Selector>,
    /// Opaque parameters for drivers.
    pub config: Vec<DeviceConfiguration>,
    /// The extended resource of which each of the devices is one.
    pub extended_resource_name: Option<String>,
}

/// A ResourceSlice: a part of a pool of devices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceSlice {
    pub spec: SliceSpec,
}

/// The devices of a slice, and the nodes from which they can be reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SliceSpec {
    pub driver: Arc<str>,
    pub pool: SlicePool,
    /// The only node from which they can be reached.
    pub node_name: Option<Arc<str>>,
    /// The nodes from which they can be reached.
    pub node_selector: Option<NodeSelector>,
    /// Whether they can be reached from every node.
    pub all_nodes: Option<bool>,
    /// Whether each device says from which nodes.
    pub per_device_node_selection: Option<bool>,
    pub devices: Vec<Device>,
}

/// The pool of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlicePool {
    pub name: Arc<str>,
    /// Which description of the pool the slice is a part of: older ones do not count.
    pub generation: i64,
    /// How many slices describe the whole pool.
    pub resource_slice_count: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "DeviceWire")]
pub struct Device {
    pub name: Arc<str>,
    /// What it is like.
    pub attributes: BTreeMap<Box<str>, DeviceAttribute>,
    /// How much it has.
    pub capacity: BTreeMap<Box<str>, DeviceCapacity>,
    /// What keeps it from being given.
    pub taints: Vec<DeviceTaint>,
    /// What it shares with other devices.
    pub consumes_counters: Vec<IgnoredAny>,
    /// What has to happen before a pod may use it.
    pub binding_conditions: Vec<IgnoredAny>,
    /// Whether it can be given in parts.
    pub allow_multiple_allocations: Option<bool>,
}

/// A device of any version: in `v1beta1` what it is like stands in `basic`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DeviceWire {
    name: Arc<str>,
    basic: Option<BasicDevice>,
    #[serde(flatten)]
    plain: BasicDevice,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BasicDevice {
    attributes: BTreeMap<Box<str>, DeviceAttribute>,
    capacity: BTreeMap<Box<str>, DeviceCapacity>,
    taints: Vec<DeviceTaint>,
    consumes_counters: Vec<IgnoredAny>,
    binding_conditions: Vec<IgnoredAny>,
    allow_multiple_allocations: Option<bool>,
}

impl From<DeviceWire> for Device {
    fn from(DeviceWire { name, basic, plain }: DeviceWire) -> Self {
        let BasicDevice {
            attributes,
            capacity,
            taints,
            consumes_counters,
            binding_conditions,
            allow_multiple_allocations,
        } = basic.unwrap_or(plain);
        Self { name, attributes, capacity, taints, consumes_counters, binding_conditions, allow_multiple_allocations }
    }
}

/// The value of an attribute: one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceAttribute {
    pub int: Option<i64>,
    pub bool: Option<bool>,
    pub string: Option<Box<str>>,
    pub version: Option<Box<str>>,
}

/// How much a device has of something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceCapacity {
    pub value: Box<str>,
}

macro_rules! resource {
    ($type:ident, $path:literal, $scope:ty) => {
        impl Resource for $type {
            const API_VERSION: &'static str = "resource.k8s.io/v1";
            const GROUP: &'static str = "resource.k8s.io";
            const KIND: &'static str = stringify!($type);
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = $path;
            type Scope = $scope;
        }
    };
}

resource!(ResourceClaim, "resourceclaims", NamespaceResourceScope);
resource!(ResourceSlice, "resourceslices", ClusterResourceScope);
resource!(DeviceClass, "deviceclasses", ClusterResourceScope);
