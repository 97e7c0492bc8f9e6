//! One value for each file: what strategies and hooks want of the files of a node, and the order in which they are written.
//!
//! Strategies [submit](Resolver::submit) constraints and never write. A [pass](Resolver::pass) decides the value of each file ([`decide`]), compares it with what
//! the kernel shows, and writes only what differs: raised values from parents to children, then lowered ones from children to parents, CPUs in two steps. A value
//! that the kernel refuses is a [`State`] with its reason, tried again after growing pauses, and cut to what the kernel takes where that is safe. Who else writes
//! a file is reported after three reverts and not fought.
//!
//! [`NodeFiles`] are the files: mounted ones ([`MountedFiles`]), or those of a plan ([`PlannedFiles`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod decide;
mod node_files;
mod order;
mod resolver;

pub use decide::{Decision, Wanted, decide};
pub use node_files::{MountedFiles, NodeFiles, PlannedFiles, WriteError};
pub use resolver::{File, Outcome, Resolver, State, Written};
