//! What is measured of passes and evictions.

use std::time::Duration;

use koord_descheduler_framework::Eviction;
use koord_descheduler_migration::controller::PODS_EVICTED;
use koord_runtime::metrics::{Description, Metrics, Unit, exponential_buckets};
use prometheus::{Histogram, IntCounterVec, IntGauge, Result};

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

pub(crate) const OBJECTIONS: Description = Description::counter(
    "koord_descheduler_objections_total",
    &["profile", "strategy", "objection", "result"],
    "Evictions that planning found not to be worth it: `evicted` with `planning: report`, `spared` with `planning: enforce`. A pod that stays is counted in each pass.",
)
.advice("`koordctl deschedule plan` shows them one by one, with what would help.");
pub(crate) const PLANNING: Description = Description::gauge(
    "koord_descheduler_planning_ready",
    &[],
    "Whether it can be foreseen what evictions lead to: 1 where the scheduler's objects are known, 0 where they are not.",
)
.advice("The log line `what evictions lead to is not foreseen` says why.");

/// All metrics of the descheduler's own.
pub const METRICS: &[Description] =
    &[PODS_EVICTED, PASS_DURATION, LAST_PASS, STRATEGY_ERRORS, OBJECTIONS, PLANNING];

/// The metrics.
pub struct Measures {
    pub(crate) evictions: IntCounterVec,
    pass: Histogram,
    steps: IntGauge,
    pub(crate) errors: IntCounterVec,
    objections: IntCounterVec,
    planning: IntGauge,
}

impl Measures {
    /// # Errors
    ///
    /// One of them is registered already.
    pub fn new(metrics: &Metrics) -> Result<Self> {
        let none: [&str; 0] = [];
        Ok(Self {
            evictions: metrics.counter(PODS_EVICTED)?,
            pass: metrics.histogram(PASS_DURATION)?.with_label_values(&none),
            steps: metrics.gauge(LAST_PASS)?.with_label_values(&none),
            errors: metrics.counter(STRATEGY_ERRORS)?,
            objections: metrics.counter(OBJECTIONS)?,
            planning: metrics.gauge(PLANNING)?.with_label_values(&none),
        })
    }

    /// An eviction has ended.
    pub(crate) fn evicted(&self, eviction: &Eviction, is_done: bool) {
        let result = if is_done { "success" } else { "error" };
        let node = eviction.pod.node.as_deref().unwrap_or_default();
        self.evictions.with_label_values(&[result, eviction.plugin, eviction.pod.key.namespace(), node]).inc();
    }

    /// A pass has been computed.
    pub(crate) fn computed(&self, took: Duration, steps: usize) {
        self.pass.observe(took.as_secs_f64());
        self.steps.set(i64::try_from(steps).unwrap_or(i64::MAX));
    }

    /// An eviction was found not to be worth it.
    pub(crate) fn objected(&self, eviction: &Eviction, is_spared: bool) {
        let Some(objection) = &eviction.outlook.objection else { return };
        let result = if is_spared { "spared" } else { "evicted" };
        let labels = [&*eviction.profile, eviction.plugin, objection.code.as_str(), result];
        self.objections.with_label_values(&labels).inc();
    }

    pub(crate) fn plans(&self, is_ready: bool) {
        self.planning.set(i64::from(is_ready));
    }
}
