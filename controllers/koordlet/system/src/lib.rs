//! The node as files: cgroups, counters, topology, resctrl. This crate parses and writes; it has no policy.
//!
//! Read first: [`Resource`] with its [table](resource::TABLE), which says for each file of a cgroup what it is called in both versions of the interface, its
//! unit and range, and what a child may have of its parent; [`Layout`], which names the folders of pods and containers; [`Kernel`], what the cgroups say.
//!
//! All roots ([`Roots`]) are given by the caller, so that a fixture tree is a node. Everything blocks: files of the kernel are answered from memory.

mod cgroup;
mod files;
mod kernel;
pub mod resource;
mod value;

pub use cgroup::{CgroupPath, ContainerId, ContainerIdError, Driver, Layout, QosFolder, Runtime, Version};
pub use files::{
    FILE_BYTES_MAX, KeptFile, KernelWriter, ObservingWriter, Roots, Writer, folders, is_gone, read,
};
pub use kernel::{Cgroups, Kernel, MapKernel, ReadError};
pub use resource::{Form, Nesting, Resource, Row, Support, TextError, ValueError};
pub use value::{CFS_PERIOD_US, SHARES, Value, WEIGHTS, quota_of_milli_cpu, shares_of_milli_cpu, shares_of_weight, weight_of_shares};
