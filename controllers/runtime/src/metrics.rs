//! Metrics under the names that dashboards of controller-runtime know, and a few of our own.

mod families;

use std::ops::Deref;

pub use families::RUNTIME;
use koord_client::metrics::RequestMetrics;
use koord_core::panics::PanicGuard;
pub use koord_metrics::{
    Audience, Description, ExpiringGauge, Exposition, Kind, PROCESS, Registries, Unit, exponential_buckets,
    write_gauge_head, write_series,
};
use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Result};

/// The registries of a program, with the metrics that the runtime itself keeps. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registries: Registries,
    requests: RequestMetrics,
    pub(crate) reconcile_total: IntCounterVec,
    pub(crate) reconcile_errors: IntCounterVec,
    pub(crate) reconcile_terminal_errors: IntCounterVec,
    pub(crate) reconcile_panics: IntCounterVec,
    pub(crate) reconcile_faults: IntCounterVec,
    pub(crate) reconcile_time: HistogramVec,
    pub(crate) max_concurrent: IntGaugeVec,
    pub(crate) active_workers: IntGaugeVec,
    pub(crate) queue_depth: IntGaugeVec,
    pub(crate) queue_adds: IntCounterVec,
    pub(crate) queue_retries: IntCounterVec,
    pub(crate) queue_wait: HistogramVec,
    pub(crate) queue_work: HistogramVec,
    pub(crate) queue_unfinished: GaugeVec,
    pub(crate) queue_longest: GaugeVec,
    pub(crate) effects_total: IntCounterVec,
    pub(crate) effect_time: HistogramVec,
    pub(crate) effect_keys: IntGaugeVec,
    pub(crate) leader: IntGaugeVec,
    pub(crate) cache_objects: IntGaugeVec,
    pub(crate) cache_quarantined: IntGaugeVec,
    pub(crate) cache_strings: IntGaugeVec,
    pub(crate) watch_restarts: IntGaugeVec,
    pub(crate) watch_events: IntCounterVec,
    pub(crate) watch_age: IntGaugeVec,
    pub(crate) panics: IntCounterVec,
    pub(crate) trace_spans: IntCounterVec,
    pub(crate) health_check: IntGaugeVec,
    pub(crate) health_checks: IntCounterVec,
}

impl Metrics {
    /// The registries with the runtime's own metrics.
    pub fn new() -> Result<Self> {
        let of = Registries::default();
        Ok(Self {
            requests: RequestMetrics::of(&of)?,
            reconcile_total: of.counter(families::RECONCILE_TOTAL)?,
            reconcile_errors: of.counter(families::RECONCILE_ERRORS)?,
            reconcile_terminal_errors: of.counter(families::TERMINAL_ERRORS)?,
            reconcile_panics: of.counter(families::RECONCILE_PANICS)?,
            reconcile_faults: of.counter(families::RECONCILE_FAULTS)?,
            reconcile_time: of.histogram(families::RECONCILE_TIME)?,
            max_concurrent: of.gauge(families::MAX_CONCURRENT)?,
            active_workers: of.gauge(families::ACTIVE_WORKERS)?,
            queue_depth: of.gauge(families::QUEUE_DEPTH)?,
            queue_adds: of.counter(families::QUEUE_ADDS)?,
            queue_retries: of.counter(families::QUEUE_RETRIES)?,
            queue_wait: of.histogram(families::QUEUE_WAIT)?,
            queue_work: of.histogram(families::QUEUE_WORK)?,
            queue_unfinished: of.float_gauge(families::QUEUE_UNFINISHED)?,
            queue_longest: of.float_gauge(families::QUEUE_LONGEST)?,
            effects_total: of.counter(families::EFFECTS_TOTAL)?,
            effect_time: of.histogram(families::EFFECT_TIME)?,
            effect_keys: of.gauge(families::EFFECT_KEYS)?,
            leader: of.gauge(families::LEADER)?,
            cache_objects: of.gauge(families::CACHE_OBJECTS)?,
            cache_quarantined: of.gauge(families::CACHE_QUARANTINED)?,
            cache_strings: of.gauge(families::CACHE_STRINGS)?,
            watch_restarts: of.gauge(families::WATCH_RESTARTS)?,
            watch_events: of.counter(families::WATCH_EVENTS)?,
            watch_age: of.gauge(families::WATCH_AGE)?,
            panics: of.counter(families::PANICS)?,
            trace_spans: of.counter(families::TRACE_SPANS)?,
            health_check: of.gauge(families::HEALTH_CHECK)?,
            health_checks: of.counter(families::HEALTH_CHECKS)?,
            registries: of,
        })
    }

    /// The metrics of requests, for [`crate::api::Api`].
    pub fn requests(&self) -> RequestMetrics {
        self.requests.clone()
    }

    /// A guard that counts panics in `koord_panics_total`.
    pub fn panic_guard(&self) -> PanicGuard {
        let counter = self.panics.clone();
        PanicGuard::counting(move |place, task, panics| {
            counter.with_label_values(&[task.to_string().as_str(), place.as_str()]).inc_by(panics);
        })
    }
}

/// A program's own metrics are made as those of the runtime are.
impl Deref for Metrics {
    type Target = Registries;

    fn deref(&self) -> &Registries {
        &self.registries
    }
}

#[cfg(test)]
mod tests {
    use koord_core::panics::{Place, Task};

    use super::*;

    #[test]
    fn every_metric_of_the_runtime_is_described_once() {
        let metrics = Metrics::new().unwrap();
        metrics.watch_process().unwrap();
        let served: Vec<_> = metrics.described().iter().map(|description| description.name).collect();
        let mut table: Vec<_> = RUNTIME.iter().chain(&PROCESS).map(|description| description.name).collect();
        table.sort_unstable();
        assert_eq!(served, table);
        let text = metrics.text(&[Audience::Runtime]);
        for description in PROCESS {
            assert!(text.contains(&format!("# TYPE {} {}\n", description.name, description.kind)), "{text}");
        }
    }

    #[test]
    fn panics_are_counted_by_task_and_place_from_zero() {
        let metrics = Metrics::new().unwrap();
        let guard = metrics.panic_guard();
        guard.count_from_zero(Place::Task, Task("events", ""));
        guard.catch(Place::Listener, Task("watch", "Pod"), || panic!("odd")).unwrap_err();
        let text = metrics.text(&[Audience::Runtime]);
        assert!(text.contains(r#"koord_panics_total{place="task",task="events"} 0"#), "{text}");
        assert!(text.contains(r#"koord_panics_total{place="listener",task="watch Pod"} 1"#), "{text}");
    }
}
