//! Metrics under the names that dashboards of controller-runtime know, and a few of our own.
//!
//! Every metric is made from a [`Description`], so that what is served, what is documented and what alerts ask for is
//! one table.

mod description;
mod expiring;
mod runtime;

use std::{collections::BTreeMap, sync::Arc};

pub use description::{Audience, Description, Kind, Unit, exponential_buckets};
pub use expiring::ExpiringGauge;
use parking_lot::Mutex;
use prometheus::{
    Encoder, Error, GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Registry, Result, TextEncoder, core::Collector,
    proto::MetricFamily,
};
pub use runtime::{PROCESS, RUNTIME};

/// The registries of a program and the metrics that the runtime itself keeps. Cheap to clone.
///
/// Three registries are served, as by the original: the runtime's at `/metrics`, the components' at
/// `/internal-metrics`, those for other systems at `/external-metrics`; `/all-metrics` merges them.
#[derive(Clone)]
pub struct Metrics {
    registries: Registries,
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
    pub(crate) rest_duration: HistogramVec,
    pub(crate) rest_limited: HistogramVec,
    pub(crate) leader: IntGaugeVec,
    pub(crate) cache_objects: IntGaugeVec,
    pub(crate) cache_quarantined: IntGaugeVec,
    pub(crate) cache_strings: IntGaugeVec,
    pub(crate) watch_restarts: IntGaugeVec,
    pub(crate) watch_events: IntCounterVec,
    pub(crate) watch_age: IntGaugeVec,
    pub(crate) panics: IntCounterVec,
    pub(crate) trace_spans: IntCounterVec,
}

#[derive(Clone)]
struct Registries {
    runtime: Registry,
    internal: Registry,
    external: Registry,
    made: Arc<Mutex<BTreeMap<&'static str, (Description, Made)>>>,
}

/// A metric that was made before; who asks for it again gets the same.
#[derive(Clone)]
enum Made {
    Counter(IntCounterVec),
    Gauge(IntGaugeVec),
    FloatGauge(GaugeVec),
    Histogram(HistogramVec),
    Elsewhere,
}

macro_rules! same_or_new {
    ($self:ident, $description:ident, $variant:ident, $make:ident) => {{
        let mut made = $self.made.lock();
        match made.get($description.name) {
            Some((known, Made::$variant(metric))) if *known == $description => Ok(metric.clone()),
            Some(_) => Err(Error::AlreadyReg),
            None => {
                let metric = $description.$make()?;
                $self.of($description.audience).register(Box::new(metric.clone()))?;
                made.insert($description.name, ($description, Made::$variant(metric.clone())));
                Ok(metric)
            }
        }
    }};
}

impl Registries {
    fn of(&self, audience: Audience) -> &Registry {
        match audience {
            Audience::Runtime => &self.runtime,
            Audience::Internal => &self.internal,
            Audience::External => &self.external,
        }
    }

    fn counter(&self, description: Description) -> Result<IntCounterVec> {
        same_or_new!(self, description, Counter, make_counter)
    }

    fn gauge(&self, description: Description) -> Result<IntGaugeVec> {
        same_or_new!(self, description, Gauge, make_gauge)
    }

    fn float_gauge(&self, description: Description) -> Result<GaugeVec> {
        same_or_new!(self, description, FloatGauge, make_float_gauge)
    }

    fn histogram(&self, description: Description) -> Result<HistogramVec> {
        same_or_new!(self, description, Histogram, make_histogram)
    }
}

impl Metrics {
    /// The registries with the runtime's own metrics.
    pub fn new() -> Result<Self> {
        let registries = Registries {
            runtime: Registry::new(),
            internal: Registry::new(),
            external: Registry::new(),
            made: Arc::default(),
        };
        let of = &registries;
        Ok(Self {
            reconcile_total: of.counter(runtime::RECONCILE_TOTAL)?,
            reconcile_errors: of.counter(runtime::RECONCILE_ERRORS)?,
            reconcile_terminal_errors: of.counter(runtime::TERMINAL_ERRORS)?,
            reconcile_panics: of.counter(runtime::RECONCILE_PANICS)?,
            reconcile_faults: of.counter(runtime::RECONCILE_FAULTS)?,
            reconcile_time: of.histogram(runtime::RECONCILE_TIME)?,
            max_concurrent: of.gauge(runtime::MAX_CONCURRENT)?,
            active_workers: of.gauge(runtime::ACTIVE_WORKERS)?,
            queue_depth: of.gauge(runtime::QUEUE_DEPTH)?,
            queue_adds: of.counter(runtime::QUEUE_ADDS)?,
            queue_retries: of.counter(runtime::QUEUE_RETRIES)?,
            queue_wait: of.histogram(runtime::QUEUE_WAIT)?,
            queue_work: of.histogram(runtime::QUEUE_WORK)?,
            queue_unfinished: of.float_gauge(runtime::QUEUE_UNFINISHED)?,
            queue_longest: of.float_gauge(runtime::QUEUE_LONGEST)?,
            rest_requests: of.counter(runtime::REST_REQUESTS)?,
            rest_duration: of.histogram(runtime::REST_DURATION)?,
            rest_limited: of.histogram(runtime::REST_LIMITED)?,
            leader: of.gauge(runtime::LEADER)?,
            cache_objects: of.gauge(runtime::CACHE_OBJECTS)?,
            cache_quarantined: of.gauge(runtime::CACHE_QUARANTINED)?,
            cache_strings: of.gauge(runtime::CACHE_STRINGS)?,
            watch_restarts: of.gauge(runtime::WATCH_RESTARTS)?,
            watch_events: of.counter(runtime::WATCH_EVENTS)?,
            watch_age: of.gauge(runtime::WATCH_AGE)?,
            panics: of.counter(runtime::PANICS)?,
            trace_spans: of.counter(runtime::TRACE_SPANS)?,
            registries,
        })
    }

    /// A counter; who asks for it again gets the same.
    pub fn counter(&self, description: Description) -> Result<IntCounterVec> {
        self.registries.counter(description)
    }

    /// A gauge of whole numbers; who asks for it again gets the same.
    pub fn gauge(&self, description: Description) -> Result<IntGaugeVec> {
        self.registries.gauge(description)
    }

    /// A gauge of any numbers; who asks for it again gets the same.
    pub fn float_gauge(&self, description: Description) -> Result<GaugeVec> {
        self.registries.float_gauge(description)
    }

    /// A histogram; who asks for it again gets the same.
    pub fn histogram(&self, description: Description) -> Result<HistogramVec> {
        self.registries.histogram(description)
    }

    /// Serves a metric that was made elsewhere. It must be what the description says.
    pub fn adopt(&self, description: Description, metric: impl Collector + 'static) -> Result<()> {
        let is_described = metric
            .desc()
            .iter()
            .all(|desc| desc.fq_name == description.name && desc.variable_labels == description.labels);
        if !is_described {
            return Err(Error::Msg(format!("{} is not what its description says", description.name)));
        }
        self.registries.of(description.audience).register(Box::new(metric))?;
        self.registries.made.lock().insert(description.name, (description, Made::Elsewhere));
        Ok(())
    }

    /// Serves what the operating system says of this process ([`PROCESS`]); Linux alone does.
    pub fn watch_process(&self) -> Result<()> {
        #[cfg(target_os = "linux")]
        {
            let process = prometheus::process_collector::ProcessCollector::for_self();
            self.registries.runtime.register(Box::new(process))?;
            let mut made = self.registries.made.lock();
            made.extend(PROCESS.map(|description| (description.name, (description, Made::Elsewhere))));
        }
        Ok(())
    }

    /// Every metric that is served, whether or not it has a series yet, by name.
    pub fn described(&self) -> Vec<Description> {
        self.registries.made.lock().values().map(|(description, _)| *description).collect()
    }

    /// Says which build runs here, as Kubernetes programs do: labels `version` and `language`.
    pub fn build_info(&self, description: Description, version: &str) -> Result<()> {
        self.gauge(description)?.with_label_values(&[version, "rust"]).set(1);
        Ok(())
    }

    /// The metrics for some audiences in the text format of Prometheus.
    pub fn text(&self, audiences: &[Audience]) -> String {
        let mut families: Vec<MetricFamily> =
            audiences.iter().flat_map(|audience| self.registries.of(*audience).gather()).collect();
        families.sort_by(|a, b| a.name().cmp(b.name()));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(%error, "metrics could not be written");
        }
        String::from_utf8(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Description = Description::counter("slo_count", &["status"], "Help.").to(Audience::Internal);

    #[test]
    fn each_audience_has_its_registry_and_all_can_be_merged() {
        const INFO: Description = Description::gauge("koord_build_info", &["version", "language"], "Help.");
        let metrics = Metrics::new().unwrap();
        metrics.build_info(INFO, "1.2.3").unwrap();
        metrics.counter(COUNT).unwrap().with_label_values(&["succeeded"]).inc();
        metrics.counter(COUNT).unwrap().with_label_values(&["succeeded"]).inc();
        assert!(metrics.text(&[Audience::Runtime]).contains(r#"koord_build_info{language="rust",version="1.2.3"} 1"#));
        assert_eq!(
            metrics.text(&[Audience::Internal]),
            "# HELP slo_count Help.\n# TYPE slo_count counter\nslo_count{status=\"succeeded\"} 2\n"
        );
        assert_eq!(metrics.text(&[Audience::External]), "");
        let all = metrics.text(&[Audience::Runtime, Audience::Internal]);
        assert!(all.contains("slo_count") && all.contains("koord_build_info"));
    }

    #[test]
    fn a_name_means_one_thing() {
        let metrics = Metrics::new().unwrap();
        metrics.counter(COUNT).unwrap();
        assert!(metrics.gauge(COUNT).is_err());
        assert!(metrics.counter(Description { labels: &["reason"], ..COUNT }).is_err());
        assert!(metrics.counter(COUNT.to(Audience::External)).is_err());
        let other = Description::gauge("other", &["a"], "Help.");
        assert!(metrics.adopt(other, COUNT.make_counter().unwrap()).is_err());
    }

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
}
