//! Counts evictions, by the labels of the original or of kubernetes-sigs/descheduler.

use koord_runtime::{
    metrics::{Description, Metrics},
    prometheus::{IntCounterVec, Result},
};

/// Evictions that were carried out or refused.
pub const PODS_EVICTED: Description = Description::counter(
    "descheduler_pods_evicted",
    &["result", "strategy", "namespace", "node"],
    "Evictions of pods, by result: success, error.",
)
.advice("error: the condition `Eviction` of the PodMigrationJob says why the pod could not be evicted.");

/// The same with the labels that it has in kubernetes-sigs/descheduler, in place of [`PODS_EVICTED`].
pub const COMMUNITY_PODS_EVICTED: Description = Description {
    labels: &["result", "strategy", "profile", "namespace", "node"],
    help: "The same as without the flag, with one label more. The profile is empty for evictions of PodMigrationJobs.",
    ..PODS_EVICTED
};

/// The same by the name that it has there from version 0.34 on.
pub const COMMUNITY_PODS_EVICTED_TOTAL: Description = Description {
    name: "descheduler_pods_evicted_total",
    help: "The same by its newer name.",
    ..COMMUNITY_PODS_EVICTED
};

/// An eviction that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedEviction<'a> {
    pub is_done: bool,
    pub strategy: &'a str,
    /// Empty where it is not known.
    pub profile: &'a str,
    pub namespace: &'a str,
    pub node: &'a str,
}

/// Counts evictions.
#[derive(Clone)]
pub enum EvictionCounter {
    /// By the labels of the original.
    Original(IntCounterVec),
    /// By those of kubernetes-sigs/descheduler, under both of its names.
    Community([IntCounterVec; 2]),
}

impl EvictionCounter {
    /// # Errors
    ///
    /// A metric of the name is registered already.
    pub fn original(metrics: &Metrics) -> Result<Self> {
        Ok(Self::Original(metrics.counter(PODS_EVICTED)?))
    }

    /// # Errors
    ///
    /// A metric of the name is registered already.
    pub fn community(metrics: &Metrics) -> Result<Self> {
        Ok(Self::Community([metrics.counter(COMMUNITY_PODS_EVICTED)?, metrics.counter(COMMUNITY_PODS_EVICTED_TOTAL)?]))
    }

    /// An eviction has ended.
    pub fn count(&self, EndedEviction { is_done, strategy, profile, namespace, node }: EndedEviction<'_>) {
        let result = if is_done { "success" } else { "error" };
        match self {
            Self::Original(counter) => counter.with_label_values(&[result, strategy, namespace, node]).inc(),
            Self::Community(counters) => {
                for counter in counters {
                    counter.with_label_values(&[result, strategy, profile, namespace, node]).inc();
                }
            }
        }
    }
}
