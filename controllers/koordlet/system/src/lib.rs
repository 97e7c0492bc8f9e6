//! The node as files: cgroups, counters, topology, resctrl. This crate parses and writes; it has no policy.
//!
//! Read first: [`Resource`] with its [table](resource::TABLE), which says for each file of a cgroup what it is called in both versions of the interface, its
//! unit and range, and what a child may have of its parent; [`Layout`], which names the folders of pods and containers; [`Kernel`], what the cgroups say.
//!
//! Texts of the kernel are parsed in place by types that are named for their file, such as [`ProcStat`] and [`MemoryStat`]; [`Machine`], [`NumaNodes`] and
//! [`Disks`] discover what the node consists of. Errors name the kind of file, the field and what it holds.
//!
//! All roots ([`Roots`]) are given by the caller, so that a fixture tree is a node. Everything blocks: files of the kernel are answered from memory.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cgroup;
mod cold_pages;
mod cpu_info;
mod cpu_stat;
mod disks;
mod file_tree;
mod files;
mod id_list;
mod kernel;
mod kernel_units;
mod kubelet_files;
mod machine;
mod meminfo;
mod memory_stat;
mod numa;
mod numa_stat;
mod number;
mod parse_error;
mod pressure;
mod proc_stat;
mod processes;
pub mod resctrl;
pub mod resource;
mod text;
mod value;

pub use cgroup::{CgroupPath, ContainerId, ContainerIdError, Driver, KubeletRoot, Layout, QosFolder, Runtime, Version};
pub use cold_pages::parse_cold_page_bytes;
pub use cpu_info::CpuInfo;
pub use cpu_stat::{Throttling, parse_cpu_usage_v2_ns};
pub use disks::{CommandOutput, DeviceNumber, DeviceNumberError, Disks};
pub use file_tree::{FileTree, HostTree, RecordedTree, SkippedFile};
pub use files::{FILE_BYTES_MAX, KeptFile, KernelWriter, ObservingWriter, Roots, Writer, folders, is_gone, read};
pub use id_list::{parse_cpu_list, parse_ids};
pub use kernel::{Cgroups, Kernel, MapKernel, ReadError};
pub use kernel_units::KernelUnits;
pub use kubelet_files::{
    CpuAllocation, CpuManagerState, CpuManagerStateError, SkippedAllocation, configured_cgroup_driver,
    configured_cgroup_root,
};
pub use machine::Machine;
pub use meminfo::{MemInfo, NumaMemInfo};
pub use memory_stat::MemoryStat;
pub use numa::{HugePages, NumaGap, NumaNode, NumaNodes};
pub use numa_stat::NumaStat;
pub use number::{CpuMax, parse_counter, parse_limit, parse_number};
pub use parse_error::{Excerpt, ParseError};
pub use pressure::{Pressure, PressureResource, Stalls};
pub use proc_stat::{CpuTicks, ProcStat};
pub use processes::{KubeletProcess, OOM_SCORE_ADJUSTMENTS, oom_score_adjustment_path, parse_start_time, threads};
pub use resource::{Form, Nesting, Resource, Row, Support, TextError, ValueError};
pub use value::{
    CFS_PERIOD_US, SHARES, Value, WEIGHTS, quota_of_milli_cpu, shares_of_milli_cpu, shares_of_weight, weight_of_shares,
};
