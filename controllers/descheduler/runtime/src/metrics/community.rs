//! The metrics of kubernetes-sigs/descheduler, for the dashboards and alerts of its users: behind a flag, under the names of version 0.35 and under those
//! before.

use std::{sync::Arc, time::Duration};

use koord_descheduler_migration::controller::{COMMUNITY_PODS_EVICTED, COMMUNITY_PODS_EVICTED_TOTAL};
use koord_runtime::metrics::{Description, Metrics, Unit};
use prometheus::{HistogramVec, Result};

const LOOP_BUCKETS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0];
const STRATEGY_BUCKETS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0];

const BUILD_INFO: Description = Description::gauge(
    "descheduler_build_info",
    &["GoVersion", "AppVersion", "DeschedulerVersion", "GitBranch", "GitSha1"],
    "Always 1; `DeschedulerVersion` is the version of koord-descheduler, and labels about Go and Git are empty.",
)
.unit(Unit::YesNo);
const LOOP_DURATION: Description = Description::histogram(
    "descheduler_loop_duration_seconds",
    &[],
    LOOP_BUCKETS,
    "Time that a pass took, with the requests of its evictions.",
);
const OLDER_LOOP_DURATION: Description = Description {
    name: "descheduler_descheduler_loop_duration_seconds",
    help: "The same by its older name.",
    ..LOOP_DURATION
};
const STRATEGY_DURATION: Description = Description::histogram(
    "descheduler_strategy_duration_seconds",
    &["strategy", "profile"],
    STRATEGY_BUCKETS,
    "Time in which a strategy selected pods, without the requests of their evictions.",
);
const OLDER_STRATEGY_DURATION: Description = Description {
    name: "descheduler_descheduler_strategy_duration_seconds",
    help: "The same by its older name.",
    ..STRATEGY_DURATION
};

/// The metrics that the flag adds or changes.
pub const COMMUNITY_METRICS: &[Description] = &[
    BUILD_INFO,
    OLDER_LOOP_DURATION,
    OLDER_STRATEGY_DURATION,
    LOOP_DURATION,
    COMMUNITY_PODS_EVICTED,
    COMMUNITY_PODS_EVICTED_TOTAL,
    STRATEGY_DURATION,
];

/// Those that are not about single evictions.
pub(super) struct Community {
    loops: [HistogramVec; 2],
    strategies: [HistogramVec; 2],
}

impl Community {
    pub(super) fn new(metrics: &Metrics, version: &str) -> Result<Self> {
        let app = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let labels = ["", &app, &format!("v{version}"), "", ""];
        metrics.gauge(BUILD_INFO)?.with_label_values(&labels).set(1);
        Ok(Self {
            loops: [metrics.histogram(LOOP_DURATION)?, metrics.histogram(OLDER_LOOP_DURATION)?],
            strategies: [metrics.histogram(STRATEGY_DURATION)?, metrics.histogram(OLDER_STRATEGY_DURATION)?],
        })
    }

    pub(super) fn pass_ended(&self, took: Duration) {
        for histogram in &self.loops {
            histogram.with_label_values::<&str>(&[]).observe(took.as_secs_f64());
        }
    }

    pub(super) fn computed(&self, strategies: &[(Arc<str>, &'static str, Duration)]) {
        for (profile, strategy, took) in strategies {
            for histogram in &self.strategies {
                histogram.with_label_values(&[*strategy, &**profile]).observe(took.as_secs_f64());
            }
        }
    }
}
