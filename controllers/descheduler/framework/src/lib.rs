//! The descheduling framework: what a plugin may decide, what of the cluster it sees, and how the plugins of all profiles make one pass.
//!
//! It is given a snapshot of the cluster and the time, and has no client, no tasks and no clock, so the program, a dry run, a plan of `koordctl` and a
//! test run the same code.
//!
//! # A pass
//!
//! [`Descheduler::pass`] is a function: the snapshot, what the plugins remember, the results of steps that were carried out and the time give a
//! [`Plan`], the ordered [`Step`]s of the pass. A step whose result is not known is taken for successful, or for what is [`Expected`]. Whoever carries the
//! plan out and sees a step end otherwise calls the function again with the results so far: it gives the same steps up to there, and goes on as the
//! strategies do after that result. So a dry run names exactly the pods that a real run evicts.
//!
//! # Extension points
//!
//! A plugin names itself and registers for the extension points that it implements ([`Plugin`], [`Registration`]):
//!
//! | point | trait |
//! |---|---|
//! | strategies that look at each pod | [`Deschedule`] |
//! | strategies that look at all nodes | [`Balance`] |
//! | which pods may be evicted | [`Filter`] |
//! | what is asked once more before an eviction | [`PreEvictionFilter`] |
//! | how a pod is evicted | [`Evict`] |
//!
//! Strategies see the cluster and the other plugins of their profile through [`Pass`] alone. Filters and evictors are prepared once a pass, and then asked
//! pod by pod ([`PreparedFilter`], [`PreparedEvict`]).
//!
//! # What else is here
//!
//! [`Cluster`] is the snapshot, which changes of objects keep up to date; [`fit`] says which pods fit which nodes; [`order`] has the orders that several
//! strategies evict in; [`Refusal`] says why a pod stays.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cluster;
mod descheduler;
mod evictor;
mod extension_points;
pub mod fit;
mod history;
mod judge;
mod limits;
mod metric;
mod node;
pub mod objects;
pub mod order;
mod outlook;
mod pass;
pub mod pod;
mod reason;
mod refusal;
mod selection;
mod snapshot;
mod step;
pub mod toleration;
mod usage;

pub use koord_scheduler_framework::{
    affinity::{PodTerm, SpreadConstraint},
    labels::Labels,
};

pub use self::{
    cluster::{ByClass, Cluster, NodeId, PodId},
    descheduler::{Descheduler, Input, Plan, Profile, ProfileError, Skipped, Stopwatch},
    evictor::{Evict, Filter, PreEvictionFilter, PreparedEvict, PreparedFilter, PreparedPreEvictionFilter},
    extension_points::{Balance, Deschedule, Plugin, Registration, StrategyError},
    history::{CoolDown, History, PastEviction, PastOwner},
    judge::Judge,
    limits::Limits,
    metric::{NodeMetric, UsageReport},
    node::Node,
    objects::ObjectType,
    outlook::{Outlook, Planning, Successor},
    pass::{Expected, Memory, Pass, Verdict, VerdictScope},
    pod::Pod,
    reason::{Reason, ReasonCode},
    refusal::{Operand, Refusal},
    selection::{NamespaceSelection, PodSelection},
    snapshot::SnapshotError,
    step::{EvictedPod, Eviction, Means, Step},
    usage::{Measured, MeasuredUsage, Measurements, UsageQuery},
};
