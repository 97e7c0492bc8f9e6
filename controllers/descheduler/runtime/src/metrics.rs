//! What is measured of passes and evictions.

use std::time::Duration;

use koord_descheduler_framework::Eviction;
use koord_runtime::metrics::{Description, Metrics, Unit, exponential_buckets};
use prometheus::{Histogram, IntCounterVec, IntGauge, Result};

const PASS_BUCKETS: &[f64] = &exponential_buckets::<14>(0.0001, 2.5);

pub(crate) const EVICTED: Description = Description::counter(
    "descheduler_pods_evicted",
    &["result", "strategy", "namespace", "node"],
    "Pods that were to be evicted, by result (success, error), the strategy that chose them, their namespace and node.",
)
.advice("`error`: the event of the pod and the log say why; often a PodDisruptionBudget forbids it.");
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
pub const METRICS: &[Description] = &[EVICTED, PASS_DURATION, LAST_PASS, STRATEGY_ERRORS];

/// The metrics.
pub(crate) struct Measures {
    evicted: IntCounterVec,
    pass: Histogram,
    steps: IntGauge,
    pub(crate) errors: IntCounterVec,
}

impl Measures {
    pub(crate) fn new(metrics: &Metrics) -> Result<Self> {
        let none: [&str; 0] = [];
        Ok(Self {
            evicted: metrics.counter(EVICTED)?,
            pass: metrics.histogram(PASS_DURATION)?.with_label_values(&none),
            steps: metrics.gauge(LAST_PASS)?.with_label_values(&none),
            errors: metrics.counter(STRATEGY_ERRORS)?,
        })
    }

    /// An eviction has ended.
    pub(crate) fn evicted(&self, eviction: &Eviction, is_done: bool) {
        let result = if is_done { "success" } else { "error" };
        let node = eviction.pod.node.as_deref().unwrap_or_default();
        self.evicted.with_label_values(&[result, eviction.plugin, eviction.pod.key.namespace(), node]).inc();
    }

    /// A pass has been computed.
    pub(crate) fn computed(&self, took: Duration, steps: usize) {
        self.pass.observe(took.as_secs_f64());
        self.steps.set(i64::try_from(steps).unwrap_or(i64::MAX));
    }
}
