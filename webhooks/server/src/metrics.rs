//! What the webhook server counts.

use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use koord_resource::admission::{Operation, Verdict, WebhookKind};
use koord_runtime::metrics::{self as registry, Audience, Description, Unit, exponential_buckets};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

const DURATION_BUCKETS: [f64; 20] = exponential_buckets(0.001, 2.0);
const LATENCY_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const WEBHOOK: &[&str] = &["webhook"];

const DURATION: Description = Description::histogram(
    "koord_manager_webhook_webhook_duration_milliseconds",
    &["webhook_type", "object_type", "operation", "plugin_name", "status"],
    &DURATION_BUCKETS,
    "Time that a decision about one admission request took, by the part of the webhook that made it and whether it was allowed or rejected.",
)
.to(Audience::Internal)
.unit(Unit::Milliseconds)
.advice("Decisions take microseconds. Above a second: it waited for an object that the caches do not show (a parent quota, a namespace), or the process has too little CPU.");
const BROKEN_OFF: Description = Description::counter(
    "koord_manager_webhook_panics_total",
    &["path"],
    "Admission requests whose decision broke off because of a defect of the program; each was answered with 500.",
)
.to(Audience::Internal)
.advice("A defect of the program; report it with the log line `a webhook handler broke off`.");
const WARNED: Description = Description::counter(
    "koord_manager_webhook_unenforced_denials_total",
    &["path"],
    "Admission requests that break a rule which is not enforced; each was admitted with a warning.",
)
.to(Audience::Internal)
.advice("These requests would be denied where the rules are enforced (of koord-manager: `--declared-webhooks=enforce`). Enforce them when this stays 0.");
const REQUESTS: Description = Description::counter(
    "controller_runtime_webhook_requests_total",
    &["webhook", "code"],
    "Admission requests by path and HTTP status; a refusal is an answer with status 200.",
)
.advice("400 and 413: what calls the server is no API server; 500 inside a review is counted by `koord_manager_webhook_panics_total`.");
const IN_FLIGHT: Description = Description::gauge(
    "controller_runtime_webhook_requests_in_flight",
    WEBHOOK,
    "Admission requests by path that are being decided.",
)
.advice(
    "Stays above some dozens: requests wait for caches or for CPU; see `controller_runtime_webhook_latency_seconds`.",
);
const LATENCY: Description = Description::histogram(
    "controller_runtime_webhook_latency_seconds",
    WEBHOOK,
    LATENCY_BUCKETS,
    "Time from the head of an admission request to its answer, by path, reading its body included.",
)
.advice("Much longer than the decisions: the network or the API server delivers bodies slowly, or CPU is short.");
const CERTIFICATE_EXPIRY: Description = Description::gauge(
    "koord_webhook_certificate_expiry_timestamp_seconds",
    &["certificate"],
    "When the certificate that is presented (`server`), or the one of the authority that signed it (`authority`), ends.",
)
.to(Audience::Internal)
.unit(Unit::UnixTime)
.advice("Renewal comes long before; when it did not, the log of the webhook server and `koordctl doctor` say why.");
const READY: Description = Description::gauge(
    "koord_webhook_ready",
    &[],
    "Whether the webhook configurations trust what this replica presents.",
)
.to(Audience::Internal)
.unit(Unit::YesNo)
.advice("The body of /readyz says what is missing: a configuration, permission to change it, or a certificate.");

/// What the webhook server counts.
pub const METRICS: &[Description] =
    &[DURATION, BROKEN_OFF, WARNED, REQUESTS, IN_FLIGHT, LATENCY, CERTIFICATE_EXPIRY, READY];

/// Duration of reviews in milliseconds, requests that broke off, and the state of the certificates.
#[derive(Clone, Debug)]
pub struct Metrics {
    duration: HistogramVec,
    panics: IntCounterVec,
    warned: IntCounterVec,
    requests: IntCounterVec,
    in_flight: IntGaugeVec,
    latency: HistogramVec,
    certificate_expiry: IntGaugeVec,
    pub(crate) ready: IntGauge,
}

/// The figures of one path. Those of handlers without parts are found once, so that a request looks nothing up.
#[derive(Debug)]
pub(crate) struct PathMetrics {
    webhook_type: &'static str,
    object_type: &'static str,
    whole: [[Histogram; 2]; OPERATIONS.len()],
    parts: HistogramVec,
    pub(crate) panics: IntCounter,
    pub(crate) warned: IntCounter,
    path: Box<str>,
    answered: IntCounter,
    requests: IntCounterVec,
    pub(crate) in_flight: IntGauge,
    latency: Histogram,
}

const OPERATIONS: [Operation; 5] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect, Operation::Other];

impl Metrics {
    /// Makes the metrics; a second server of the same program shares them.
    pub fn register(registry: &registry::Metrics) -> Result<Self, prometheus::Error> {
        Ok(Self {
            duration: registry.histogram(DURATION)?,
            panics: registry.counter(BROKEN_OFF)?,
            warned: registry.counter(WARNED)?,
            requests: registry.counter(REQUESTS)?,
            in_flight: registry.gauge(IN_FLIGHT)?,
            latency: registry.histogram(LATENCY)?,
            certificate_expiry: registry.gauge(CERTIFICATE_EXPIRY)?,
            ready: registry.gauge(READY)?.with_label_values(&[] as &[&str]),
        })
    }

    /// When the certificates end that are presented and trusted.
    pub(crate) fn certificates_end(&self, server: Option<Timestamp>, authority: Option<Timestamp>) {
        for (which, end) in [("server", server), ("authority", authority)] {
            if let Some(end) = end {
                self.certificate_expiry.with_label_values(&[which]).set(end.as_second());
            }
        }
    }

    /// `plugin` names the whole decision, for handlers that report no parts.
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
            warned: self.warned.with_label_values(&[path]),
            path: path.into(),
            answered: self.requests.with_label_values(&[path, "200"]),
            requests: self.requests.clone(),
            in_flight: self.in_flight.with_label_values(&[path]),
            latency: self.latency.with_label_values(&[path]),
        }
    }
}

impl PathMetrics {
    /// A request was answered with this status, so long after its head had come.
    pub(crate) fn answered(&self, status: StatusCode, spent: Duration) {
        if status == StatusCode::OK {
            self.answered.inc();
        } else {
            self.requests.with_label_values(&[&*self.path, status.as_str()]).inc();
        }
        self.latency.observe(spent.as_secs_f64());
    }

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
