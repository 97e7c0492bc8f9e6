//! The QoS strategies of the node agent: what BE pods may use, who is evicted, who may burst, and how memory, caches and disks are shared.
//!
//! Read first: [`Input`], what strategies look at; [`Outcome`], what they give back; [`Strategies`], all of them. A strategy never writes and calls nobody: it
//! gives constraints with their reasons, groups of resctrl, and rounds of evictions, and others carry them out. It gives only what has changed, so that a
//! round in which nothing did costs little.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod allocatable;
mod blkio;
mod cgroup_reconcile;
mod cool_down;
mod cpu_burst;
mod cpu_evict;
mod cpu_suppress;
pub mod eviction;
mod evictor;
mod feature;
mod input;
mod memory_evict;
mod outcome;
mod resctrl;
mod strategies;
mod system_config;
#[cfg(test)]
mod testing;
mod usage;

pub use blkio::BlkIo;
pub use cgroup_reconcile::CgroupReconcile;
pub use cpu_burst::{CpuBurst, Limiter, QuotaOperation, QuotaRange, SharePool};
pub use cpu_evict::CpuEvict;
pub use cpu_suppress::{Budget, CpuCandidates, CpuSuppress, select_cpus};
pub use feature::{Feature, Features};
pub use input::{Generations, Input, PodDisks, Resctrl};
pub use memory_evict::MemoryEvict;
pub use outcome::{Gauge, Note, NoteKind, Outcome, ResctrlGroup, SystemWrite, gauges};
pub use resctrl::ResctrlReconcile;
pub use strategies::{Options, Strategies, Strategy};
pub use system_config::SystemConfig;
