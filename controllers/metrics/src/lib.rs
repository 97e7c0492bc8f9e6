//! Metrics as data: every metric is made from a [`Description`], so that what is served, what is documented and what
//! alerts query is one table. The crate knows neither which metrics a program has, nor HTTP.
//!
//! Read first: [`Description`] (a metric as a constant), [`Registries`] (what is served), [`ExpiringGauge`] (a series per
//! object), [`Exposition`] (which of them are shown).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod description;
mod expiring;
mod exposition;
mod process;
mod series;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

pub use description::{Audience, Description, Kind, Unit, exponential_buckets};
pub use expiring::ExpiringGauge;
pub use exposition::Exposition;
use parking_lot::Mutex;
pub use process::PROCESS;
use prometheus::{
    Encoder, Error, GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Registry, Result, TextEncoder, core::Collector,
    proto::MetricFamily,
};
pub use series::{write_gauge_head, write_series};

/// The registries of a program. Cheap to clone.
///
/// Three registries are served, as by Koordinator's programs: the runtime's at `/metrics`, the components' at
/// `/internal-metrics`, those for other systems at `/external-metrics`; `/all-metrics` merges them. A fourth one has the
/// service level indicators of Kubernetes, at `/metrics/slis`.
#[derive(Clone, Default)]
pub struct Registries {
    runtime: Registry,
    internal: Registry,
    external: Registry,
    slis: Registry,
    made: Arc<Mutex<BTreeMap<&'static str, (Description, Made)>>>,
    exposition: Arc<OnceLock<Exposition>>,
}

/// A metric that was registered before; the same description gives the same metric.
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
            Audience::Slis => &self.slis,
        }
    }

    /// A counter; the same description gives the same metric.
    pub fn counter(&self, description: Description) -> Result<IntCounterVec> {
        same_or_new!(self, description, Counter, make_counter)
    }

    /// A gauge of whole numbers; the same description gives the same metric.
    pub fn gauge(&self, description: Description) -> Result<IntGaugeVec> {
        same_or_new!(self, description, Gauge, make_gauge)
    }

    /// A gauge of any numbers; the same description gives the same metric.
    pub fn float_gauge(&self, description: Description) -> Result<GaugeVec> {
        same_or_new!(self, description, FloatGauge, make_float_gauge)
    }

    /// A histogram; the same description gives the same metric.
    pub fn histogram(&self, description: Description) -> Result<HistogramVec> {
        same_or_new!(self, description, Histogram, make_histogram)
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
        self.of(description.audience).register(Box::new(metric))?;
        self.made.lock().insert(description.name, (description, Made::Elsewhere));
        Ok(())
    }

    /// Serves what the operating system says of this process ([`PROCESS`]); Linux alone does.
    pub fn watch_process(&self) -> Result<()> {
        #[cfg(target_os = "linux")]
        {
            let process = prometheus::process_collector::ProcessCollector::for_self();
            self.runtime.register(Box::new(process))?;
            let mut made = self.made.lock();
            made.extend(PROCESS.map(|description| (description.name, (description, Made::Elsewhere))));
        }
        Ok(())
    }

    /// Every metric that is served, whether or not it has a series yet, by name.
    pub fn described(&self) -> Vec<Description> {
        self.made.lock().values().map(|(description, _)| *description).collect()
    }

    /// Says which build runs here, as Kubernetes programs do: labels `version` and `language`.
    pub fn build_info(&self, description: Description, version: &str) -> Result<()> {
        self.gauge(description)?.with_label_values(&[version, "rust"]).set(1);
        Ok(())
    }

    /// Decides which metrics every page shows, and with which values of their labels. Once: a second decision is an error.
    pub fn show(&self, exposition: Exposition) -> Result<()> {
        let decided = self.exposition.set(exposition);
        decided.map_err(|_| Error::Msg("which metrics are shown has been decided before".to_owned()))
    }

    /// The metrics for some audiences in the text format of Prometheus, as far as they are shown.
    pub fn text(&self, audiences: &[Audience]) -> String {
        let mut families: Vec<MetricFamily> =
            audiences.iter().flat_map(|audience| self.of(*audience).gather()).collect();
        if let Some(exposition) = self.exposition.get() {
            exposition.apply_to(&mut families);
        }
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
        let metrics = Registries::default();
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
        let metrics = Registries::default();
        metrics.counter(COUNT).unwrap();
        assert!(metrics.gauge(COUNT).is_err());
        assert!(metrics.counter(Description { labels: &["reason"], ..COUNT }).is_err());
        assert!(metrics.counter(COUNT.to(Audience::External)).is_err());
        let other = Description::gauge("other", &["a"], "Help.");
        assert!(metrics.adopt(other, COUNT.make_counter().unwrap()).is_err());
    }
}
