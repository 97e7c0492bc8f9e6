//! What is measured of passes and evictions.

mod community;

use std::{sync::Arc, time::Duration};

use koord_descheduler_framework::Eviction;
use koord_descheduler_migration::controller::{EndedEviction, EvictionCounter, PODS_EVICTED};
use koord_runtime::metrics::{Description, Metrics, Unit, exponential_buckets};
use prometheus::{Histogram, IntCounterVec, IntGauge, Result};

pub use self::community::COMMUNITY_METRICS;
use self::community::Community;

const PASS_BUCKETS: &[f64] = &exponential_buckets::<14>(0.0001, 2.5);

pub(crate) const PASS_DURATION: Description = Description::histogram(
    "koord_descheduler_pass_duration_seconds",
    &[],
    PASS_BUCKETS,
    "Time in which a pass was computed, without the requests of its evictions.",
)
.advice("Compare with `deschedulingInterval`.");
pub(crate) const LAST_PASS: Description = Description::gauge(
    "koord_descheduler_last_pass_steps",
    &[],
    "Steps of the last pass: evictions, cordons, annotations.",
)
.unit(Unit::Count);
pub(crate) const STRATEGY_ERRORS: Description = Description::counter(
    "koord_descheduler_strategy_errors_total",
    &["profile", "strategy"],
    "Passes in which a strategy could not do its work.",
)
.advice("The log line `the strategy failed` says why.");

/// All metrics of the descheduler's own.
pub const METRICS: &[Description] = &[PODS_EVICTED, PASS_DURATION, LAST_PASS, STRATEGY_ERRORS];

/// The metrics.
pub struct Measures {
    pub(crate) evictions: EvictionCounter,
    pass: Histogram,
    steps: IntGauge,
    pub(crate) errors: IntCounterVec,
    /// What users of kubernetes-sigs/descheduler know, where it is wanted.
    community: Option<Community>,
}

impl Measures {
    /// # Errors
    ///
    /// One of them is registered already.
    pub fn new(metrics: &Metrics) -> Result<Self> {
        Self::of(metrics, EvictionCounter::original(metrics)?, None)
    }

    /// The same, with evictions and passes under the names of kubernetes-sigs/descheduler. `version` is that of the program.
    ///
    /// # Errors
    ///
    /// One of them is registered already.
    pub fn with_community_names(metrics: &Metrics, version: &str) -> Result<Self> {
        Self::of(metrics, EvictionCounter::community(metrics)?, Some(Community::new(metrics, version)?))
    }

    fn of(metrics: &Metrics, evictions: EvictionCounter, community: Option<Community>) -> Result<Self> {
        let none: [&str; 0] = [];
        Ok(Self {
            evictions,
            pass: metrics.histogram(PASS_DURATION)?.with_label_values(&none),
            steps: metrics.gauge(LAST_PASS)?.with_label_values(&none),
            errors: metrics.counter(STRATEGY_ERRORS)?,
            community,
        })
    }

    /// Whether the time of each strategy is wanted.
    pub(crate) fn times_strategies(&self) -> bool {
        self.community.is_some()
    }

    /// A pass has ended, after its evictions.
    pub(crate) fn pass_ended(&self, took: Duration) {
        if let Some(community) = &self.community {
            community.pass_ended(took);
        }
    }

    /// An eviction has ended.
    pub(crate) fn evicted(&self, eviction: &Eviction, is_done: bool) {
        self.evictions.count(EndedEviction {
            is_done,
            strategy: eviction.plugin,
            profile: &eviction.profile,
            namespace: eviction.pod.key.namespace(),
            node: eviction.pod.node.as_deref().unwrap_or_default(),
        });
    }

    /// A pass has been computed, with the time of each strategy, where it was wanted.
    pub(crate) fn computed(&self, took: Duration, steps: usize, strategies: &[(Arc<str>, &'static str, Duration)]) {
        if let Some(community) = &self.community {
            community.computed(strategies);
        }
        self.pass.observe(took.as_secs_f64());
        self.steps.set(i64::try_from(steps).unwrap_or(i64::MAX));
    }
}
