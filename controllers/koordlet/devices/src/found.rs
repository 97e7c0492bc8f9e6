//! A device as one of the sources finds it.

use koord_resource::ResourceList;
use koord_types::device::{DeviceTopology, DeviceType};

/// A device of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundDevice {
    pub type_: DeviceType,
    /// The UUID of a GPU, the PCI address of a network card.
    pub id: String,
    /// The number by which pods get it, unique among the devices of its type.
    pub minor: i32,
    pub resources: ResourceList,
    /// `None` where it is not known.
    pub topology: Option<DeviceTopology>,
    pub health: Health,
    pub virtual_functions: VirtualFunctions,
}

/// The PCI addresses of the virtual functions of a network card, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualFunctions(pub Vec<String>);

/// Whether pods can use a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Healthy,
    /// They cannot.
    Unhealthy {
        /// One word, such as `Xid79`; the vendor's, which need not fit the API.
        reason: String,
        /// What happened, for people.
        message: String,
    },
}

impl Health {
    /// The device is not usable.
    pub fn unhealthy(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unhealthy { reason: reason.into(), message: message.into() }
    }

    pub fn is_healthy(&self) -> bool {
        *self == Self::Healthy
    }
}
