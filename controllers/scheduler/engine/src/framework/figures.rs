//! What plugins report for metrics. They hold no clock and no counters: amounts are read off their state once in a while, and of what takes
//! long they say when it begins and ends, so that who has a clock can measure it.

use std::sync::Arc;

/// An amount of a gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of the metric.
    pub name: &'static str,
    /// The values of its labels, in their order.
    pub labels: Vec<String>,
    /// The amount.
    pub value: f64,
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
        /// The job.
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
