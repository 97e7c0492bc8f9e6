//! What the working devices of a node add up to.

use std::{borrow::Cow, collections::BTreeMap};

use koord_resource::{Resource as _, ResourceList, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject, nullable},
};
use koord_types::{
    device::Device,
    node_annotations::{GPU_DRIVER_VERSION, GPU_MODEL, GPU_VENDOR},
};
use serde::Deserialize;

/// What the working devices of a node add up to.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Vendor, model and driver of its GPUs.
    pub labels: Labels,
    /// How many devices of each type work.
    pub working: BTreeMap<Box<str>, i64>,
    /// What its working GPUs have together.
    pub gpus: ResourceList,
}

/// What is read of a Device.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    spec: Option<Spec<'a>>,
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    devices: Option<Vec<Info<'a>>>,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(borrow, rename = "type", default, deserialize_with = "nullable")]
    type_: Cow<'a, str>,
    #[serde(default)]
    health: bool,
    #[serde(default)]
    resources: Option<ResourceList>,
}

// By hand: sums are kept, not the devices.
impl Projection for DeviceView {
    const KIND: ResourceKind = ResourceKind::of(&Device::INFO);
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let wanted = |key: &str| [GPU_VENDOR.name(), GPU_MODEL.name(), GPU_DRIVER_VERSION.name()].contains(&key);
        let (mut working, mut gpus) = (BTreeMap::<Box<str>, i64>::new(), ResourceList::new());
        for device in wire.members.spec.and_then(|spec| spec.devices).unwrap_or_default() {
            if !device.health {
                continue;
            }
            *working.entry(device.type_.as_ref().into()).or_default() += 1;
            if device.type_ == "gpu" {
                gpus.add(&device.resources.unwrap_or_default());
            }
        }
        Ok(Self { labels: Labels::read_some("metadata.labels", wire.metadata.labels, strings, wanted)?, working, gpus })
    }
}
