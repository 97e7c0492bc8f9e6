//! The devices of a node, and what pods have of them.
//!
//! A pod's [`DeviceRequest`] and a node's [`NodeDevices`] meet in the [`Allocator`], which gives an [`AllocatedDevices`] or says why there is none.

pub mod allocate;
pub mod allocation;
pub mod amounts;
pub mod by_default;
pub mod combination;
pub mod double_allocations;
pub mod gpus;
pub mod mix;
pub mod node;
pub mod numa_hints;
pub mod outlook;
pub mod partition;
pub mod refusal;
pub mod request;
pub mod scope;
pub mod score;
pub mod state;
pub mod template;
#[cfg(test)]
pub(crate) mod testing;
pub mod view;

pub use self::{
    allocate::{Allocator, DeviceLimits, NodeLabels},
    allocation::{AllocatedDevices, Share},
    amounts::{DeviceAmounts, DeviceResource},
    combination::InvalidRequest,
    double_allocations::double_allocations,
    node::{Device, NodeDevices, Place},
    numa_hints::numa_hints,
    outlook::Demand,
    refusal::Refused,
    request::{DeviceHint, DeviceRequest, GpuRequest, InvalidDevices, Joint, Kind},
    score::{DeviceScorer, Preference},
    state::Devices,
    template::{GpuTemplates, TemplateNames},
};
