//! What the webhook server counts.

use std::time::Duration;

use koord_resource::admission::{Operation, Verdict, WebhookKind};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, exponential_buckets,
};

/// Duration of reviews in milliseconds, and requests that broke off.
#[derive(Clone, Debug)]
pub struct Metrics {
    duration: HistogramVec,
    panics: IntCounterVec,
}

/// The figures of one path. Those of handlers without parts are found once, so that a request looks nothing up.
#[derive(Debug)]
pub(crate) struct PathMetrics {
    webhook_type: &'static str,
    object_type: &'static str,
    whole: [[Histogram; 2]; OPERATIONS.len()],
    parts: HistogramVec,
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

    /// `plugin` names the whole decision, for handlers that tell of no parts.
    pub(crate) fn of_path(
        &self,
        path: &str,
        plugin: &str,
        kind: WebhookKind,
        object_type: &'static str,
    ) -> PathMetrics {
        let webhook_type = match kind {
            WebhookKind::Mutating => "mutate",
            WebhookKind::Validating => "validate",
        };
        let histogram = |operation: Operation, status: &str| {
            self.duration.with_label_values(&[webhook_type, object_type, operation.as_str(), plugin, status])
        };
        PathMetrics {
            webhook_type,
            object_type,
            parts: self.duration.clone(),
            whole: OPERATIONS.map(|operation| [histogram(operation, "rejected"), histogram(operation, "allowed")]),
            panics: self.panics.with_label_values(&[path]),
        }
    }
}

impl PathMetrics {
    /// A decision took this long. Of parts that were passed, the last one is where a refusal comes from.
    pub(crate) fn observe(&self, operation: Operation, verdict: &Verdict, whole: Duration) {
        let allowed = verdict.denial.is_none();
        let milliseconds = |spent: Duration| spent.as_secs_f64() * 1000.0;
        if verdict.steps.is_empty() {
            if let Some(index) = OPERATIONS.iter().position(|known| *known == operation) {
                self.whole[index][usize::from(allowed)].observe(milliseconds(whole));
            }
            return;
        }
        let mut left = verdict.steps.iter().len();
        for (part, spent) in verdict.steps.iter() {
            left -= 1;
            let status = if allowed || left > 0 { "allowed" } else { "rejected" };
            let labels = [self.webhook_type, self.object_type, operation.as_str(), part, status];
            self.parts.with_label_values(&labels).observe(milliseconds(spent));
        }
    }
}
