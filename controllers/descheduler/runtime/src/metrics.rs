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

pub(crate) const USAGE_MEASUREMENTS: Description = Description::counter(
    "koord_descheduler_usage_measurements_total",
    &["source", "result"],
    "Passes for which usage was fetched from a source, by result: success, partial (some nodes or pods are not known), error.",
)
.advice("The events `UsageUnknown` and `UsageIncomplete` of the descheduler's pod, and its log, say what was wrong.");

pub(crate) const CONFIGURATION_CHANGES: Description = Description::counter(
    "koord_descheduler_configuration_changes_total",
    &["result"],
    "Changes of the configuration file, by what became of them: taken, refused, needs_restart.",
);
pub(crate) const CONFIGURATION_CURRENT: Description = Description::gauge(
    "koord_descheduler_configuration_current",
    &[],
    "Whether the configuration in effect is that of the file.",
)
.unit(Unit::YesNo)
.advice("0: the events `ConfigurationRefused` and `ConfigurationNeedsRestart` of the descheduler's pod say why the file is not in effect.");

/// All metrics of the descheduler's own.
pub const METRICS: &[Description] = &[
    PODS_EVICTED,
    PASS_DURATION,
    LAST_PASS,
    STRATEGY_ERRORS,
    USAGE_MEASUREMENTS,
    CONFIGURATION_CHANGES,
    CONFIGURATION_CURRENT,
    OBJECTIONS,
    PLANNING,
];

/// The metrics.
pub struct Measures {
    pub(crate) evictions: EvictionCounter,
    pass: Histogram,
    steps: IntGauge,
    pub(crate) errors: IntCounterVec,
    objections: IntCounterVec,
    planning: IntGauge,
    usage: IntCounterVec,
    configuration_changes: IntCounterVec,
    configuration_current: IntGauge,
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
        let configuration_current = metrics.gauge(CONFIGURATION_CURRENT)?.with_label_values(&none);
        configuration_current.set(1);
        Ok(Self {
            evictions,
            pass: metrics.histogram(PASS_DURATION)?.with_label_values(&none),
            steps: metrics.gauge(LAST_PASS)?.with_label_values(&none),
            errors: metrics.counter(STRATEGY_ERRORS)?,
            objections: metrics.counter(OBJECTIONS)?,
            planning: metrics.gauge(PLANNING)?.with_label_values(&none),
            usage: metrics.counter(USAGE_MEASUREMENTS)?,
            configuration_changes: metrics.counter(CONFIGURATION_CHANGES)?,
            configuration_current,
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

    /// Usage was fetched for a pass, or was not.
    pub(crate) fn measured(&self, source: &str, result: &str) {
        self.usage.with_label_values(&[source, result]).inc();
    }

    /// The configuration file has changed.
    pub(crate) fn configuration_changed(&self, result: &str) {
        self.configuration_changes.with_label_values(&[result]).inc();
        self.configuration_current.set(i64::from(result == "taken"));
    }

    /// A pass has been computed, with the time of each strategy, where it was wanted.
    pub(crate) fn computed(&self, took: Duration, steps: usize, strategies: &[(Arc<str>, &'static str, Duration)]) {
        if let Some(community) = &self.community {
            community.computed(strategies);
        }
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
