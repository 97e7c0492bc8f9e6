//! The metrics of requests, with client-go's names, labels and buckets.

use koord_metrics::{Description, Registries};
use prometheus::{HistogramVec, IntCounterVec, Result};

const REQUEST_BUCKETS: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Requests by status code.
pub const REST_REQUESTS: Description = Description::counter(
    "rest_client_requests_total",
    &["code", "method", "host"],
    "Requests to the API server by status code, method and host; `<error>` where no answer came.",
)
.advice("401 and 403: `koordctl doctor` names the missing permission; 409 in numbers: somebody else writes the same fields; 429 and 5xx: the API server is overloaded.");
/// How long requests take.
pub const REST_DURATION: Description = Description::histogram(
    "rest_client_request_duration_seconds",
    &["verb", "host"],
    REQUEST_BUCKETS,
    "Time from sending a request to the head of its answer, by method and host.",
)
.advice("The API server, its etcd or a webhook in its way is slow.");
/// How long requests wait for the rate limit.
pub const REST_LIMITED: Description = Description::histogram(
    "rest_client_rate_limiter_duration_seconds",
    &["verb", "host"],
    REQUEST_BUCKETS,
    "Time that requests waited because of --rest-config-qps and --rest-config-burst.",
)
.advice("Raise both flags when the API server can take more.");

/// The metrics of requests. Cheap to clone.
#[derive(Clone)]
pub struct RequestMetrics {
    pub(crate) requests: IntCounterVec,
    pub(crate) duration: HistogramVec,
    pub(crate) limited: HistogramVec,
}

impl RequestMetrics {
    /// Those of these registries.
    pub fn of(registries: &Registries) -> Result<Self> {
        Ok(Self {
            requests: registries.counter(REST_REQUESTS)?,
            duration: registries.histogram(REST_DURATION)?,
            limited: registries.histogram(REST_LIMITED)?,
        })
    }
}
