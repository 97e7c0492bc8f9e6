//! What the webhook server counts.

use koord_resource::admission::{Operation, WebhookKind};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, exponential_buckets,
};

/// Duration of reviews in milliseconds, and requests that broke off.
#[derive(Clone, Debug)]
pub struct Metrics {
    duration: HistogramVec,
    panics: IntCounterVec,
}

/// The figures of one path, found once so that a request looks nothing up.
#[derive(Debug)]
pub(crate) struct PathMetrics {
    durations: [[Histogram; 2]; OPERATIONS.len()],
    pub(crate) panics: IntCounter,
}

const OPERATIONS: [Operation; 5] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect, Operation::Other];

impl Metrics {
    /// Registers the metrics. The name and labels of the duration are those of the original.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let duration = HistogramVec::new(
            HistogramOpts::new(
                "koord_manager_webhook_webhook_duration_milliseconds",
                "Time that the decision about one admission request took, in milliseconds.",
            )
            .buckets(exponential_buckets(0.001, 2.0, 20)?),
            &["webhook_type", "object_type", "operation", "plugin_name", "status"],
        )?;
        let panics = IntCounterVec::new(
            Opts::new(
                "koord_manager_webhook_panics_total",
                "Admission requests whose decision broke off because of a defect of the program; each was answered with 500.",
            ),
            &["path"],
        )?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(panics.clone()))?;
        Ok(Self { duration, panics })
    }

    pub(crate) fn of_path(&self, path: &str, kind: WebhookKind, object_type: &str) -> PathMetrics {
        let webhook_type = match kind {
            WebhookKind::Mutating => "mutate",
            WebhookKind::Validating => "validate",
        };
        let histogram = |operation: Operation, status: &str| {
            self.duration.with_label_values(&[webhook_type, object_type, operation.as_str(), path, status])
        };
        PathMetrics {
            durations: OPERATIONS.map(|operation| [histogram(operation, "rejected"), histogram(operation, "allowed")]),
            panics: self.panics.with_label_values(&[path]),
        }
    }
}

impl PathMetrics {
    pub(crate) fn observe(&self, operation: Operation, allowed: bool, milliseconds: f64) {
        if let Some(index) = OPERATIONS.iter().position(|known| *known == operation) {
            self.durations[index][usize::from(allowed)].observe(milliseconds);
        }
    }
}
