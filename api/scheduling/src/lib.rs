//! What scheduler, node agent, webhooks and the embedded API server decide alike: which objects a selector matches,
//! which taints are tolerated, what a pod requests, how CPUs and NUMA nodes are numbered.
//!
//! Types and functions of plain data; no input and output, no clock, no client. Amounts are exact quantities where
//! users see them, and `i64` vectors over [interned names](ResourceNames) where many nodes are compared.
//!
//! Read first: [`Selector`], [`PodRequests`], [`ResourceVector`].
//!
//! ```
//! use koord_scheduling::Selector;
//! let selector = Selector::parse("tier in (web,db),!canary")?;
//! let labels = [("tier", "web")];
//! let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
//! assert!(selector.selects(label));
//! # Ok::<(), String>(())
//! ```
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cpu_set;
mod cpu_topology;
mod field_selector;
mod kubernetes_qos;
mod node_affinity;
mod numa_mask;
mod pod_requests;
mod resources;
mod selector;
mod siblings;
mod taints;

pub use cpu_set::{CPU_MAX, CpuSet, ParseCpuSetError};
pub use cpu_topology::{Cpu, CpuTopology, NumaPlace};
pub use field_selector::{FieldRequirement, FieldSelector};
pub use kubernetes_qos::{Bounds, kubernetes_qos};
pub use node_affinity::{NodeAffinity, NodeTerm, PreferredNodes};
pub use numa_mask::NumaMask;
pub use pod_requests::{Amounts, PodRequests};
pub use resources::{ResourceId, ResourceNames, ResourceVector, count, quantity};
pub use selector::{Outcome, Selector, SelectorError, check, matches};
pub use taints::{Effect, tolerates, untolerated};
