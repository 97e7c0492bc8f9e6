//! Metrics under the names that dashboards of controller-runtime know, and a few of our own.

use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, Result, TextEncoder,
    core::Collector, proto::MetricFamily,
};

/// The registries of a program and the metrics that the runtime itself keeps.
///
/// Three registries are served, as by the original: the runtime's at `/metrics`, the components' at
/// `/internal-metrics`, those for other systems at `/external-metrics`; `/all-metrics` merges them.
#[derive(Clone)]
pub struct Metrics {
    runtime: Registry,
    internal: Registry,
    external: Registry,
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
    pub(crate) rest_requests: IntCounterVec,
    pub(crate) leader: IntGaugeVec,
    pub(crate) cache_objects: IntGaugeVec,
    pub(crate) cache_quarantined: IntGaugeVec,
    pub(crate) cache_strings: IntGaugeVec,
    pub(crate) watch_restarts: IntGaugeVec,
    pub(crate) watch_events: IntCounterVec,
}

/// Which of the three registries a metric belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The runtime: `/metrics`.
    Runtime,
    /// The program's components: `/internal-metrics`.
    Internal,
    /// Other systems: `/external-metrics`.
    External,
}

impl Metrics {
    /// The registries with the runtime's own metrics.
    pub fn new() -> Result<Self> {
        let runtime = Registry::new();
        let controller = &["controller"][..];
        let queue = &["name", "controller"][..];
        let reconcile_buckets = vec![
            0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
            1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0,
            60.0,
        ];
        let queue_buckets: Vec<f64> = (-8..=3).map(|exponent| 10_f64.powi(exponent)).collect();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            register(&runtime, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            register(&runtime, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let seconds =
            |name: &str, help: &str, labels: &[&str]| register(&runtime, GaugeVec::new(Opts::new(name, help), labels));
        let histogram = |name: &str, help: &str, labels: &[&str], buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            register(&runtime, HistogramVec::new(options, labels))
        };
        Ok(Self {
            reconcile_total: counter(
                "controller_runtime_reconcile_total",
                "Reconciliations per controller and result.",
                &["controller", "result"],
            )?,
            reconcile_errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Failed reconciliations per controller.",
                controller,
            )?,
            reconcile_terminal_errors: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Failed reconciliations per controller that are not tried again.",
                controller,
            )?,
            reconcile_panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Reconciliations per controller that panicked.",
                controller,
            )?,
            reconcile_faults: counter(
                "koord_reconcile_faults_total",
                "Failed reconciliations per controller by whose fault it was.",
                &["controller", "fault"],
            )?,
            reconcile_time: histogram(
                "controller_runtime_reconcile_time_seconds",
                "Length of reconciliations per controller, writes included.",
                controller,
                &reconcile_buckets,
            )?,
            max_concurrent: gauge(
                "controller_runtime_max_concurrent_reconciles",
                "Workers per controller.",
                controller,
            )?,
            active_workers: gauge(
                "controller_runtime_active_workers",
                "Workers per controller that are busy.",
                controller,
            )?,
            queue_depth: gauge(
                "workqueue_depth",
                "Keys that are ready in the queue; all have the same priority.",
                &["name", "controller", "priority"],
            )?,
            queue_adds: counter("workqueue_adds_total", "Keys added to the queue.", queue)?,
            queue_retries: counter("workqueue_retries_total", "Keys added again after a failure.", queue)?,
            queue_wait: histogram(
                "workqueue_queue_duration_seconds",
                "Seconds a key waits in the queue.",
                queue,
                &queue_buckets,
            )?,
            queue_work: histogram(
                "workqueue_work_duration_seconds",
                "Seconds a key is worked on.",
                queue,
                &queue_buckets,
            )?,
            queue_unfinished: seconds(
                "workqueue_unfinished_work_seconds",
                "Seconds that keys in work have been so, all together.",
                queue,
            )?,
            queue_longest: seconds(
                "workqueue_longest_running_processor_seconds",
                "Seconds that the key longest in work has been so.",
                queue,
            )?,
            rest_requests: counter(
                "rest_client_requests_total",
                "Requests to the API server by status code, method and host.",
                &["code", "method", "host"],
            )?,
            leader: gauge("leader_election_master_status", "Whether this process leads (1) or waits (0).", &["name"])?,
            cache_objects: gauge("koord_cache_objects", "Objects in the cache per kind.", &["kind"])?,
            cache_quarantined: gauge(
                "koord_cache_quarantined_objects",
                "Objects per kind that cannot be read.",
                &["kind"],
            )?,
            cache_strings: gauge(
                "koord_cache_shared_texts",
                "Different texts that the objects of a kind share.",
                &["kind"],
            )?,
            watch_restarts: gauge("koord_watch_restarts", "Times that a collection was fetched anew.", &["kind"])?,
            watch_events: counter("koord_watch_events_total", "Lines received from watches per kind.", &["kind"])?,
            runtime,
            internal: Registry::new(),
            external: Registry::new(),
        })
    }

    /// A registered counter.
    pub fn counter(&self, audience: Audience, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        register(self.registry(audience), IntCounterVec::new(Opts::new(name, help), labels))
    }

    /// A registered gauge of whole numbers.
    pub fn gauge(&self, audience: Audience, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        register(self.registry(audience), IntGaugeVec::new(Opts::new(name, help), labels))
    }

    /// A registered histogram.
    pub fn histogram(
        &self,
        audience: Audience,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> Result<HistogramVec> {
        let options = HistogramOpts::new(name, help).buckets(buckets);
        register(self.registry(audience), HistogramVec::new(options, labels))
    }

    /// Registers a metric made elsewhere.
    pub fn register(&self, audience: Audience, metric: impl Collector + 'static) -> Result<()> {
        self.registry(audience).register(Box::new(metric))
    }

    /// Says which build runs here, as Kubernetes programs do.
    pub fn build_info(&self, program: &str, version: &str) -> Result<()> {
        let name = format!("{program}_build_info");
        let info =
            self.gauge(Audience::Runtime, &name, "Always 1; the labels say what runs.", &["version", "language"])?;
        info.with_label_values(&[version, "rust"]).set(1);
        Ok(())
    }

    /// The metrics for some audiences in the text format of Prometheus.
    pub fn text(&self, audiences: &[Audience]) -> String {
        let mut families: Vec<MetricFamily> =
            audiences.iter().flat_map(|audience| self.registry(*audience).gather()).collect();
        families.sort_by(|a, b| a.name().cmp(b.name()));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(%error, "metrics could not be written");
        }
        String::from_utf8(text).unwrap_or_default()
    }

    /// The registry of an audience, for parts that make their own metrics.
    pub fn registry(&self, audience: Audience) -> &Registry {
        match audience {
            Audience::Runtime => &self.runtime,
            Audience::Internal => &self.internal,
            Audience::External => &self.external,
        }
    }
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, metric: Result<C>) -> Result<C> {
    let metric = metric?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_audience_has_its_registry_and_all_can_be_merged() {
        let metrics = Metrics::new().unwrap();
        metrics.build_info("koord", "1.2.3").unwrap();
        let counter = metrics.counter(Audience::Internal, "slo_count", "Help.", &["status"]).unwrap();
        counter.with_label_values(&["succeeded"]).inc();
        assert!(metrics.text(&[Audience::Runtime]).contains(r#"koord_build_info{language="rust",version="1.2.3"} 1"#));
        assert_eq!(
            metrics.text(&[Audience::Internal]),
            "# HELP slo_count Help.\n# TYPE slo_count counter\nslo_count{status=\"succeeded\"} 1\n"
        );
        assert_eq!(metrics.text(&[Audience::External]), "");
        let all = metrics.text(&[Audience::Runtime, Audience::Internal]);
        assert!(all.contains("slo_count") && all.contains("koord_build_info"));
        assert!(
            metrics.counter(Audience::Internal, "slo_count", "Help.", &["status"]).is_err(),
            "a name is taken once"
        );
    }
}
