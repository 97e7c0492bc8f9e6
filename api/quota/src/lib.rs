//! Elastic quotas: what is read of each, the rules between quotas of a tree, and what each may use at run time.
//!
//! Everything here is a function of plain data. The crate knows no API server, no clock and no cache; whoever keeps
//! quotas in a cache implements [`Quotas`] for it, and [`Snapshot`] is the implementation for a list of quotas.
//!
//! Read first: [`Quota`] (one node of the tree), [`Proposal`] (the rules of the webhook), [`runtime`] (how the resources
//! of a cluster are divided; `spec/scheduler.md` 3D).
//!
//! ```
//! use koord_quota::{Child, redistribute};
//! let child = |name, request, min, weight| Child { name, request, min, guaranteed: 0, weight, lends: true };
//! let children = [child("a", 5, 10, 40), child("b", 20, 15, 60), child("c", 40, 20, 50), child("d", 70, 15, 80)];
//! assert_eq!(redistribute(100, &children), [5, 20, 35, 40]);
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod advice;
mod amounts;
mod pool;
mod quota;
mod redistribute;
mod rules;
mod runtime;
mod scaled_min;
mod snapshot;
mod tree;

pub use amounts::{Amounts, check_amounts};
pub use pool::Pool;
pub use quota::Quota;
pub use redistribute::{Child, ChildAmounts, redistribute};
pub use rules::{BoundPods, Proposal, Refusal, Rules};
pub use runtime::{Demand, runtime};
pub use scaled_min::scaled_min;
pub use snapshot::{Above, Snapshot, Top};
pub use tree::{Quotas, sum};
