//! DeviceShare: the GPUs, network cards and FPGAs that a pod gets of a node, or shares of them.
//! See `spec/scheduler.md` 3F.
//!
//! The devices of a node and the allocator are in [`koord_scheduler_allocation::devices`]; [`DeviceShare`] asks it for the scheduler.

pub mod device_plugin;
mod fragments;
mod node_views;
mod plugin;
mod shown;

pub use self::plugin::DeviceShare;
