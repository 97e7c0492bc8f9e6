//! What a pass decides to do, as data.

use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_types::pod_migration_job::PodMigrationJobMode;
use serde_json::Value;

use crate::{outlook::Outlook, reason::Reason};

/// One thing that a pass does. A failure matters to the steps that follow.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A pod is evicted.
    Evict(Box<Eviction>),
    /// A node is cordoned.
    Cordon { node: Arc<str> },
    /// A node that was cordoned in this pass is uncordoned.
    Uncordon { node: Arc<str> },
    /// The annotation `controller.kubernetes.io/pod-deletion-cost` of a pod is set.
    SetDeletionCost { pod: EvictedPod, cost: i32 },
}

/// An eviction, and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    pub pod: EvictedPod,
    /// The profile whose plugin evicts it.
    pub profile: Arc<str>,
    /// The strategy that chose it.
    pub plugin: &'static str,
    /// Why it was chosen.
    pub reason: Reason,
    /// The reason as the original writes it into jobs and events; empty for strategies of kubernetes-sigs/descheduler.
    pub recorded_reason: String,
    pub means: Means,
    /// What it leads to, as far as that was foreseen.
    pub outlook: Outlook,
}

/// Which pod is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedPod {
    pub key: ObjectKey,
    pub uid: Uid,
    pub node: Option<Arc<str>>,
}

/// How a pod is evicted.
#[derive(Clone, Debug, PartialEq)]
pub enum Means {
    /// By the Eviction API, with these DeleteOptions.
    Eviction { delete_options: Option<Value> },
    /// By a PodMigrationJob.
    Job {
        mode: PodMigrationJobMode,
        /// How long the job may take, in milliseconds; 0 for no limit.
        ttl_ms: i64,
        delete_options: Option<Value>,
    },
    /// Not at all: the plugin is in dry run.
    DryRun,
}

impl Means {
    /// As a name for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Eviction { .. } => "Eviction",
            Self::Job { .. } => "PodMigrationJob",
            Self::DryRun => "DryRun",
        }
    }
}

impl Step {
    /// The eviction, if it is one.
    pub fn eviction(&self) -> Option<&Eviction> {
        match self {
            Self::Evict(eviction) => Some(eviction),
            Self::Cordon { .. } | Self::Uncordon { .. } | Self::SetDeletionCost { .. } => None,
        }
    }

    /// Whether nothing is written.
    pub fn is_dry_run(&self) -> bool {
        self.eviction().is_some_and(|eviction| eviction.means == Means::DryRun)
    }
}
