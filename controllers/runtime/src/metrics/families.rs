//! The metrics of controllers, work queues, watches and leader election as data. Names, labels and buckets of
//! `controller_runtime_*`, `workqueue_*` and `leader_election_*` are those of controller-runtime and client-go.

use koord_client::metrics::{REST_DURATION, REST_LIMITED, REST_REQUESTS};
use koord_metrics::{Audience, Description, Unit};

const CONTROLLER: &[&str] = &["controller"];
const QUEUE: &[&str] = &["name", "controller"];

const RECONCILE_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
const EFFECT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
const QUEUE_BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

pub(super) const RECONCILE_TOTAL: Description = Description::counter(
    "controller_runtime_reconcile_total",
    &["controller", "result"],
    "Reconciliations per controller and result (success, error, requeue, requeue_after).",
)
.advice("Thousands per second in a quiet cluster: something writes the watched objects again and again; find it by `koord_watch_events_total`.");
pub(super) const RECONCILE_ERRORS: Description = Description::counter(
    "controller_runtime_reconcile_errors_total",
    CONTROLLER,
    "Failed reconciliations per controller.",
)
.advice("`koord_reconcile_faults_total` says whose fault it is, the log line `reconcile failed` which object and why.");
pub(super) const TERMINAL_ERRORS: Description = Description::counter(
    "controller_runtime_terminal_reconcile_errors_total",
    CONTROLLER,
    "Failed reconciliations per controller that are not tried again before the object changes.",
)
.advice("Fix the object that the log line `reconcile failed` names.");
pub(super) const RECONCILE_PANICS: Description = Description::counter(
    "controller_runtime_reconcile_panics_total",
    CONTROLLER,
    "Reconciliations per controller that broke off.",
)
.advice("A defect of the program; report it with the log line that names the object.");
pub(super) const RECONCILE_FAULTS: Description = Description::counter(
    "koord_reconcile_faults_total",
    &["controller", "fault"],
    "Failed reconciliations per controller by whose fault it was: api, user, node, bug.",
)
.advice("`api`: look at the API server and at permissions (`koordctl doctor`); `user`: the log names the object to fix; `bug`: report it.");
pub(super) const RECONCILE_TIME: Description = Description::histogram(
    "controller_runtime_reconcile_time_seconds",
    CONTROLLER,
    RECONCILE_BUCKETS,
    "Length of reconciliations per controller, writes included.",
)
.advice("Decisions take microseconds, so this is the API server's time to write; see `rest_client_request_duration_seconds`.");
pub(super) const MAX_CONCURRENT: Description =
    Description::gauge("controller_runtime_max_concurrent_reconciles", CONTROLLER, "Workers per controller.");
pub(super) const ACTIVE_WORKERS: Description =
    Description::gauge("controller_runtime_active_workers", CONTROLLER, "Workers per controller that are busy.")
        .advice(
            "At its maximum for minutes: writes are slow or limited; see `rest_client_rate_limiter_duration_seconds`.",
        );
pub(super) const QUEUE_DEPTH: Description = Description::gauge(
    "workqueue_depth",
    &["name", "controller", "priority"],
    "Keys that are ready in the queue; all have the same priority.",
)
.advice("Grows without end: the controller does not keep up; see its errors and the length of its writes.");
pub(super) const QUEUE_ADDS: Description =
    Description::counter("workqueue_adds_total", QUEUE, "Keys added to the queue.");
pub(super) const QUEUE_RETRIES: Description =
    Description::counter("workqueue_retries_total", QUEUE, "Keys added again after a failure.")
        .advice("See `controller_runtime_reconcile_errors_total`.");
pub(super) const QUEUE_WAIT: Description = Description::histogram(
    "workqueue_queue_duration_seconds",
    QUEUE,
    QUEUE_BUCKETS,
    "Time that a key waits in the queue.",
)
.advice("See `workqueue_depth`.");
pub(super) const QUEUE_WORK: Description =
    Description::histogram("workqueue_work_duration_seconds", QUEUE, QUEUE_BUCKETS, "Time that a key is worked on.")
        .advice("See `controller_runtime_reconcile_time_seconds`.");
pub(super) const QUEUE_UNFINISHED: Description = Description::gauge(
    "workqueue_unfinished_work_seconds",
    QUEUE,
    "Time that keys in work have been so, all together.",
)
.unit(Unit::Seconds);
pub(super) const QUEUE_LONGEST: Description = Description::gauge(
    "workqueue_longest_running_processor_seconds",
    QUEUE,
    "Time that the key longest in work has been so.",
)
.unit(Unit::Seconds)
.advice("Above 300: a worker does not finish its key, although every request is given up after 30 seconds. `rest_client_rate_limiter_duration_seconds` high: raise the limit of requests. Otherwise keep the log, restart the process, and report it.");
pub(super) const EFFECTS_TOTAL: Description = Description::counter(
    "koord_effects_total",
    &["effect", "result"],
    "Attempts of work outside of the cluster, by result: success, error, or later where the other side names the time of the next attempt.",
)
.advice("Errors: the log line `an effect failed` says which object and why; the next attempt comes with a growing pause.");
pub(super) const EFFECT_TIME: Description = Description::histogram(
    "koord_effect_duration_seconds",
    &["effect"],
    EFFECT_BUCKETS,
    "Length of attempts of work outside of the cluster.",
)
.advice("Near the timeout of the effects: what they call is slow, or does not answer.");
pub(super) const EFFECT_KEYS: Description = Description::gauge(
    "koord_effects",
    &["effect", "state"],
    "Objects whose effect waits, runs, is done, or has failed and waits for the next attempt.",
)
.advice("`waiting` grows: more is asked for than `EffectLimits` let begin. `failed` stays above 0: see the log line `an effect failed`.");
pub(super) const LEADER: Description = Description::gauge(
    "leader_election_master_status",
    &["name"],
    "Whether this process leads (1) or waits (0).",
)
.unit(Unit::YesNo)
.advice("No replica at 1: nobody can write the Lease; look at permissions, the API server, and `kubectl get lease`. Two at 1 for longer than a scrape: clocks differ; see `koordctl doctor`.");
pub(super) const CACHE_OBJECTS: Description =
    Description::gauge("koord_cache_objects", &["kind"], "Objects in the cache per kind.");
pub(super) const CACHE_QUARANTINED: Description = Description::gauge(
    "koord_cache_quarantined_objects",
    &["kind"],
    "Objects per kind that cannot be read; what was known of them last counts.",
)
.advice("The event `DecodeError` on the object says what is wrong with it; `koordctl doctor` lists them.");
pub(super) const CACHE_STRINGS: Description =
    Description::gauge("koord_cache_shared_texts", &["kind"], "Different texts that the objects of a kind share.");
pub(super) const WATCH_RESTARTS: Description = Description::gauge(
    "koord_watch_restarts",
    &["kind"],
    "Times since the start of the process that a collection was fetched anew.",
)
.advice("Grows steadily: the API server ends watches (410 Gone, overload, a proxy with a short timeout).");
pub(super) const WATCH_EVENTS: Description =
    Description::counter("koord_watch_events_total", &["kind"], "Lines received from watches per kind.")
        .advice("Says which kind is being written when the manager is busy.");

pub(super) const PANICS: Description = Description::counter(
    "koord_panics_total",
    &["task", "place"],
    "Panics that were caught, by task and place. The task goes on or starts again.",
)
.advice("A defect of the program; report it with the log line `a panic was caught`. A task that panics again and again ends the process.");
pub(super) const WATCH_AGE: Description = Description::gauge(
    "koord_watch_age_seconds",
    &["kind"],
    "Seconds since the API server last sent or answered anything for the watches of a kind; the oldest counts.",
)
.unit(Unit::Seconds)
.advice("Above 300: the API server cannot be reached, or refuses to list or watch this kind; look at its CRD and at permissions (`koordctl doctor`).");

pub(super) const TRACE_SPANS: Description = Description::counter(
    "koord_trace_spans_total",
    &["result"],
    "Spans by what became of them: recorded, dropped because too many waited, sent, failed at the collector. Only with --otlp-endpoint.",
)
.advice("Dropped or failed: the collector is slow or gone; nothing else suffers from it.");

pub(super) const HEALTH_CHECK: Description = Description::gauge(
    "kubernetes_healthcheck",
    &["name", "type"],
    "Whether a check has passed (1) when /healthz, /livez or /readyz was asked for last; `type` is the page.",
)
.unit(Unit::YesNo)
.to(Audience::Slis)
.advice("0: ask the page, which says what is wrong.");
pub(super) const HEALTH_CHECKS: Description = Description::counter(
    "kubernetes_healthchecks_total",
    &["name", "status", "type"],
    "Checks that were made for /healthz, /livez and /readyz, by result (success, error).",
)
.to(Audience::Slis);

/// The runtime's metrics, those of the process aside.
pub const RUNTIME: &[Description] = &[
    RECONCILE_TOTAL,
    RECONCILE_ERRORS,
    TERMINAL_ERRORS,
    RECONCILE_PANICS,
    RECONCILE_FAULTS,
    RECONCILE_TIME,
    MAX_CONCURRENT,
    ACTIVE_WORKERS,
    QUEUE_DEPTH,
    QUEUE_ADDS,
    QUEUE_RETRIES,
    QUEUE_WAIT,
    QUEUE_WORK,
    QUEUE_UNFINISHED,
    QUEUE_LONGEST,
    REST_REQUESTS,
    REST_DURATION,
    REST_LIMITED,
    EFFECTS_TOTAL,
    EFFECT_TIME,
    EFFECT_KEYS,
    LEADER,
    CACHE_OBJECTS,
    CACHE_QUARANTINED,
    CACHE_STRINGS,
    WATCH_RESTARTS,
    WATCH_EVENTS,
    WATCH_AGE,
    PANICS,
    TRACE_SPANS,
    HEALTH_CHECK,
    HEALTH_CHECKS,
];
