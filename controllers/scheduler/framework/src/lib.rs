//! The scheduling framework: what a plugin may decide, what of the cluster it sees, and how the plugins of a profile are called.
//!
//! It is given nodes, pods, the time and random numbers, and has no client, no tasks, no clock and no randomness of its own, so a scheduler,
//! a simulation and the diagnosis of a pod run the same code.
//!
//! # Extension points
//!
//! A plugin names itself and registers for the extension points that it implements ([`Plugin`], [`Registration`]). Each point is one trait, in a
//! file of its own, in the order in which an attempt passes them:
//!
//! | point | trait |
//! |---|---|
//! | the queue | [`PreEnqueue`], [`NextPod`], [`EnqueueExtensions`], [`PodActivation`] |
//! | the search for a node | [`ReservationRestore`], [`BeforePreFilter`], [`PreFilter`], [`FindOneNode`], [`PreferNodes`], [`Filter`], [`ExtenderCalls`], [`Score`] |
//! | a pod that no node takes | [`PostFilter`], [`FailureHandler`] |
//! | plugins that depend on each other | [`NumaTopologyManager`], [`NumaHintProvider`], [`ReservationFilter`], [`SchedulingHintSource`] |
//! | the chosen node | [`Reserve`], [`Permit`], [`PreBind`], [`Bind`] |
//! | running pods and objects | [`AllocationRestore`], [`ReservePodSource`], [`PluginState`] |
//! | what is written and shown | [`StatusWriter`], [`Diagnostics`], [`ServiceEndpoint`], [`MetricSource`], [`WorkloadSource`], [`Audit`] |
//! | what answers may be reused | [`SchedulingSignature`] |
//!
//! PreFilter and PreScore of the Kubernetes framework are [`Filter::prepare_filter`] and [`Score::prepare_score`]: a plugin looks at a pod once
//! and prepares what then runs for every node ([`NodeFilter`], [`NodeScore`]). Most of what is prepared depends on the pod's template and
//! the node alone, and says so (`is_local`): then the answers for one pod hold for the next pod of its class, on every node that has not
//! changed.
//!
//! # What else is here
//!
//! [`cluster::Cluster`] is the snapshot, with nodes as rows and resources as [`columns`]; [`cycle`] calls the plugins of a [`Profile`] for a pod and finds
//! the node; [`preemption`] tries without which victims a pod fits. The queue and the binding cycle are in `koord_scheduler_engine`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod affinity;
pub mod best;
pub mod cluster;
pub mod columns;
pub mod cycle;
pub mod dynamic;
pub mod event;
pub mod extender;
mod extension_points;
pub mod hold;
pub mod host_ports;
pub mod labels;
pub mod node;
pub mod object;
mod plugin_set;
pub mod pod;
pub mod policy;
pub mod preemption;
pub mod shown;
pub mod template;
pub mod texts;
pub mod timing;
pub mod volume;
pub mod workload;

pub use self::{extension_points::*, plugin_set::PluginSet};

/// What most plugins name: `use koord_scheduler_framework::prelude::*`.
pub mod prelude {
    pub use crate::{
        cluster::Cluster,
        columns::Row,
        event::{Event, Events},
        extension_points::*,
        node::Node,
        pod::Pod,
    };
}
