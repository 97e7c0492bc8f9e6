//! DeviceShare: the GPUs, network cards and FPGAs that a pod gets of a node, or shares of them.
//! See `spec/scheduler.md` 3F.
//!
//! Decisions are functions of plain values. A pod's [`DeviceRequest`] and a node's [`NodeDevices`] meet in the
//! [`Allocator`], which gives an [`Allocation`] or says why there is none; [`DeviceShare`] asks it for the scheduler.

mod allocate;
mod allocation;
mod amounts;
mod audit_twice;
mod by_default;
mod combination;
pub mod device_plugin;
mod fragments;
mod gpus;
mod mix;
mod node;
mod numa;
mod outlook;
mod partition;
mod plugin;
mod refusal;
mod request;
mod scope;
mod score;
mod shown;
mod state;
mod template;
#[cfg(test)]
pub(crate) mod testing;
mod view;
mod ways;

pub use self::{
    allocate::{Allocator, Limits, NodeLabels},
    allocation::{Allocation, Share},
    amounts::{DeviceAmounts, DeviceResource},
    combination::InvalidRequest,
    node::{Device, NodeDevices, Place},
    numa::numa_hints,
    outlook::Demand,
    plugin::DeviceShare,
    refusal::Refused,
    request::{DeviceHint, DeviceRequest, GpuRequest, InvalidDevices, Joint, Kind},
    score::{Preference, Scorer},
    state::Devices,
    template::{GpuTemplates, TemplateNames},
};
