//! The devices of a node: GPUs by NVIDIA's library, network cards with remote direct memory access by sysfs, accelerators of other vendors by their device
//! files; and what is reported of them.
//!
//! Read first: [`Gpus`], which loads NVIDIA's library while the program runs; [`DeviceFiles`] and [`RdmaCards`], the other sources; [`DeviceReport`], the
//! Device object that they make. [`GpuUsage`] is what pods use of GPUs, [`allocated_devices`] what is added to the kubelet's list of pod resources.
//!
//! ```
//! use koord_koordlet_devices::{DeviceChange, DeviceReport, Gpus, Sources};
//! use koord_koordlet_framework::Node;
//! use koord_koordlet_system::{HostTree, Roots};
//!
//! let mut gpus = Gpus::default();
//! if let Err(error) = gpus.refresh(&HostTree, &Roots::host().sys, jiff::Timestamp::now()) {
//!     println!("no GPUs of NVIDIA: {error}; {}", error.remedy());
//! }
//! let report = DeviceReport::of(&Sources { gpus: Some(&gpus), ..Sources::default() });
//! let change = report.change(&Node::default(), None, jiff::Timestamp::now());
//! assert!(matches!(change, Some(DeviceChange::Create(_))), "nodes without devices have an object too");
//! ```
//!
//! What fails of one device, card or file harms that one alone and is named. Nothing here knows the time, the API server or tasks; everything blocks, and
//! calls of NVIDIA's library take long where its driver hangs: they belong on a thread of their own.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod found;
mod nvml;
mod pci;
mod pod_resources;
mod rdma;
mod report;
mod usage;
mod xpu;

pub use found::{FoundDevice, Health, VirtualFunctions};
pub use nvml::{Gpu, GpuFailure, Gpus, LIBRARY, NvmlError, RECOVERY_QUIET, ReturnCode, XidEvent, is_application_fault};
pub use pci::PciAddress;
pub use pod_resources::{AllocatedDevices, allocated_devices};
pub use rdma::{
    CharacterDevice, CharacterDeviceError, RdmaCard, RdmaCards, SkippedCard, rdma_device_files, rdma_device_paths,
};
pub use report::{DeviceChange, DeviceReport, Sources};
pub use usage::{GpuActivity, GpuProcess, GpuUsage, ProcessMemory, ProcessSample, group_usage, merged_processes};
pub use xpu::{DeviceFileError, DeviceFiles, PeerLink, XpuDevice};
