//! What the workload auditor measures. Names, labels and buckets are those of the original; most metrics have the label `priority`, and those
//! that a flag names.

use std::time::Duration;

use koord_runtime::metrics::{Description, Registries, Unit, exponential_buckets};
use prometheus::{HistogramVec, IntCounterVec, Result};

use crate::auditor::{Finding, Report};

const DURATION_BUCKETS: &[f64] = &exponential_buckets::<15>(0.1, 2.0);
const INTERVAL_BUCKETS: &[f64] = &exponential_buckets::<20>(0.1, 2.0);
const RETRY_BUCKETS: &[f64] = &counts::<20>();
const EVENT_BUCKETS: &[f64] = &counts::<30>();
const METHOD_BUCKETS: &[f64] = &exponential_buckets::<10>(0.000_001, 4.0);

const LABELS: &[&str] = &["priority"];

const PREEMPTIONS: Description = Description::counter(
    "scheduler_workload_auditor_repeated_preemptions_total",
    LABELS,
    "Evictions for a pod or gang group for which others were evicted before. Every metric of the workload auditor has the class of the priority as a label, and the labels of --workload-auditor-metric-labels.",
)
.advice("What was evicted has not helped: others have taken the room, or it was not enough. The log names the workload.");
const INVALIDATIONS: Description = Description::counter(
    "scheduler_workload_auditor_preemption_invalidations_total",
    LABELS,
    "Evictions after which the pod or gang group was refused, or others were evicted for it, before it was scheduled.",
)
.advice("Victims have gone in vain: see which pods were placed on their nodes meanwhile.");
const RESCHEDULED: Description = Description::histogram(
    "scheduler_workload_auditor_victim_reschedule_duration_seconds",
    LABELS,
    DURATION_BUCKETS,
    "Time from when the last victim is gone to the next result of the pod or gang group.",
)
.advice("Long: the queue is long, or the pod waits for the end of a pause; see `scheduler_pending_pods`.");
const RETRIES: Description = Description::histogram(
    "scheduler_workload_auditor_preemption_victim_deleting_retries",
    LABELS,
    RETRY_BUCKETS,
    "Attempts in vain while victims were leaving, by eviction.",
)
.unit(Unit::Count);
const DELETION: Description = Description::histogram(
    "scheduler_workload_auditor_preemption_to_victim_deleted_seconds",
    LABELS,
    DURATION_BUCKETS,
    "Time from an eviction to when the last victim is gone.",
)
.advice("Long: victims have a long terminationGracePeriodSeconds or finalizers, or their nodes do not answer.");
const INTERRUPTED: Description = Description::histogram(
    "scheduler_workload_auditor_preemption_cycle_interrupted_seconds",
    LABELS,
    DURATION_BUCKETS,
    "Time from an eviction to what came before the last victim was gone: another eviction, a failure, the place, or the deletion of the workload.",
);
const EVENTS: Description = Description::histogram(
    "scheduler_workload_auditor_scheduling_events_before_outcome",
    &["priority", "event_type", "outcome"],
    EVENT_BUCKETS,
    "How often an event has happened to a pod or gang group before it was scheduled or deleted (scheduled, deleted, gangScheduled, gangDeleted).",
)
.unit(Unit::Count)
.advice("Many `scheduleFailure` or `preemptFailure`: the cluster is full; `koordctl why` names what would help.");
const INTERVALS: Description = Description::histogram(
    "scheduler_workload_auditor_scheduling_event_interval_seconds",
    LABELS,
    INTERVAL_BUCKETS,
    "Time between an event of a pod or gang group and the next one, while no scheduling gate holds it back.",
)
.advice("Minutes: nothing that happens helps the pod, so that it is tried every five minutes only.");
const METHODS: Description = Description::histogram(
    "scheduler_workload_auditor_record_method_duration_seconds",
    &["method"],
    METHOD_BUCKETS,
    "Time that the workload auditor itself takes, by what it records.",
);

/// The metrics of the auditor.
pub(super) const METRICS: [Description; 9] =
    [PREEMPTIONS, INVALIDATIONS, RESCHEDULED, RETRIES, DELETION, INTERRUPTED, EVENTS, INTERVALS, METHODS];

/// What is measured.
pub(crate) struct OfWorkloads {
    preemptions: IntCounterVec,
    invalidations: IntCounterVec,
    rescheduled: HistogramVec,
    retries: HistogramVec,
    deletion: HistogramVec,
    interrupted: HistogramVec,
    events: HistogramVec,
    intervals: HistogramVec,
    methods: HistogramVec,
}

impl OfWorkloads {
    /// The metrics, with these labels after `priority`.
    pub(crate) fn new(metrics: &Registries, further: &[String]) -> Result<Self> {
        let with =
            |description: Description| Description { labels: labels(description.labels, further), ..description };
        Ok(Self {
            preemptions: metrics.counter(with(PREEMPTIONS))?,
            invalidations: metrics.counter(with(INVALIDATIONS))?,
            rescheduled: metrics.histogram(with(RESCHEDULED))?,
            retries: metrics.histogram(with(RETRIES))?,
            deletion: metrics.histogram(with(DELETION))?,
            interrupted: metrics.histogram(with(INTERRUPTED))?,
            events: metrics.histogram(with(EVENTS))?,
            intervals: metrics.histogram(with(INTERVALS))?,
            methods: metrics.histogram(METHODS)?,
        })
    }

    /// Something was found out about a workload.
    pub(crate) fn observe(&self, Report { labels, finding, .. }: &Report) {
        let values: Vec<&str> = labels.iter().map(String::as_str).collect();
        match *finding {
            Finding::PreemptedAgain(_) => self.preemptions.with_label_values(&values).inc(),
            Finding::PreemptionInvalidated(_) => self.invalidations.with_label_values(&values).inc(),
            Finding::Rescheduled { after, .. } => {
                self.rescheduled.with_label_values(&values).observe(after.as_secs_f64());
            }
            Finding::PreemptionEnded { lasted, retries, is_complete, .. } => {
                let lasting = if is_complete { &self.deletion } else { &self.interrupted };
                lasting.with_label_values(&values).observe(lasted.as_secs_f64());
                self.retries.with_label_values(&values).observe(f64::from(retries));
            }
            Finding::Interval { lasted, .. } => {
                self.intervals.with_label_values(&values).observe(lasted.as_secs_f64());
            }
            Finding::Ended { outcome, event, times } => {
                let (priority, further) = values.split_first().unwrap_or((&"", &[]));
                let values = [&[*priority, event.name(), outcome.name()], further].concat();
                self.events.with_label_values(&values).observe(f64::from(times));
            }
        }
    }

    /// The auditor has recorded something.
    pub(crate) fn recorded(&self, method: &str, took: Duration) {
        self.methods.with_label_values(&[method]).observe(took.as_secs_f64());
    }
}

/// Labels of a description and further ones. What a metric is called lives as long as the program, so these do.
fn labels(known: &'static [&'static str], further: &[String]) -> &'static [&'static str] {
    if further.is_empty() {
        return known;
    }
    let further = further.iter().map(|name| &*name.clone().leak());
    known.iter().copied().chain(further).collect::<Vec<_>>().leak()
}

/// The first `N` numbers, from 0.
const fn counts<const N: usize>() -> [f64; N] {
    let mut counts = [0.0; N];
    let mut index = 1;
    while index < N {
        counts[index] = counts[index - 1] + 1.0;
        index += 1;
    }
    counts
}
