//! Pods that are scheduled together.

use std::sync::Arc;

use crate::{cluster::Cluster, pod::Pod};

/// Knows which pods are scheduled together.
pub trait WorkloadSource: Send + Sync + 'static {
    /// The workload of a pod. `None` where it goes alone.
    fn workload(&self, pod: &Pod, cluster: &Cluster) -> Option<Workload>;
}

/// Pods that are scheduled together or not at all, as one of them sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name: as a job it has the same.
    pub name: Arc<str>,
    /// Whether it has the pods without which it is not tried.
    pub has_enough_pods: bool,
}

/// The begin or the end of a job: pods that are tried together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobMark {
    /// Its first pod is tried.
    Began(String),
    /// Nothing more is tried of it.
    Ended {
        job: String,
        /// How many pods were part of it.
        pods: usize,
        /// Why nothing more is tried.
        reason: &'static str,
        /// Whether its pods have their places.
        is_complete: bool,
        /// Whether it was tried as a whole before its first pod was placed.
        is_batch: bool,
    },
}
