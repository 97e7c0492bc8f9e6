//! What Koordinator's scheduler measures beside kube-scheduler's metrics. Names and labels are those of the original (`spec/scheduler.md`
//! 5.1), buckets too where they are known.

use std::{collections::BTreeMap, time::Duration};

use koord_runtime::{
    clock::Moment,
    metrics::{Description, Registries, Unit, exponential_buckets},
};
use koord_scheduler_engine::{Attempt, Ended, Engine};
use koord_scheduler_framework::Figure;
use prometheus::{GaugeVec, Histogram, HistogramVec, IntCounterVec, Result};

use super::{families, requests};

const NODE_BUCKETS: &[f64] = &exponential_buckets::<24>(1.0, 2.0);
const PROCESS_BUCKETS: &[f64] = &exponential_buckets::<24>(0.00001, 2.0);
const HOOK_BUCKETS: &[f64] = &exponential_buckets::<24>(0.000_001, 2.0);
const JOB_BUCKETS: &[f64] = &[0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 25.0, 30.0, 45.0, 60.0, 120.0];
const WRITE_BUCKETS: &[f64] = &exponential_buckets::<15>(0.001, 2.0);

/// How often figures are read.
const FIGURES_INTERVAL: Duration = Duration::from_secs(5);

const TIMEOUTS: Description = Description::counter(
    "scheduler_scheduling_timeout",
    &["profile"],
    "Looks of the monitor at pods whose decision or binding has lasted longer than --scheduling-timeout.",
)
.advice(
    "The log names the pods. A decision that does not end: a plugin or an object that takes it too long; nothing else is scheduled meanwhile. A binding that does not end: the API server does not answer, or a volume is not provided.",
);
const EVALUATED: Description = Description::histogram(
    "scheduler_pod_scheduling_evaluated_nodes",
    &[],
    NODE_BUCKETS,
    "Nodes that a decision has counted. What is known of a node from before is not asked again.",
)
.unit(Unit::Count);
const FEASIBLE: Description = Description::histogram(
    "scheduler_pod_scheduling_feasible_nodes",
    &[],
    NODE_BUCKETS,
    "Nodes that take the pod of a decision.",
)
.unit(Unit::Count)
.advice("Mostly 0: the cluster is full, or pods ask for what few nodes have; `koordctl why` names what would help.");
const JOBS: Description = Description::histogram(
    "scheduler_gang_schedule_cycle_duration_seconds",
    &["reason", "job_size"],
    JOB_BUCKETS,
    "Time from the first to the last attempt of a gang group, by number of pods (`1-100`, `101-200`, up to `1000+`) and why it ended: `gang is already succeed` (its pods have their nodes), `all pending pods is already been attempted` (they do not fit), `gang is nil, may be already deleted`, `interrupted`.",
)
.advice("`interrupted`: other gangs are tried in between. Long: gangs are large, or the decision about one pod is slow.");
const BATCHES: Description = Description::histogram(
    "scheduler_inline_batch_schedule_duration_seconds",
    &["result"],
    WRITE_BUCKETS,
    "Time from the first to the last attempt of a gang group that was tried as a whole (gate EnableInlineBatchSchedule), by result (success, failure).",
);
const QUOTA_PROCESS: Description = Description::histogram(
    "scheduler_elastic_quota_process_latency",
    &["operation"],
    PROCESS_BUCKETS,
    "Time to take a changed (UpdateQuota) or deleted (DeleteQuota) ElasticQuota into account.",
)
.advice("Above a second: trees of thousands of quotas change too often.");
const QUOTA_HOOKS: Description = Description::histogram(
    "scheduler_elastic_quota_hook_plugin_latency",
    &["plugin", "operation"],
    HOOK_BUCKETS,
    "Time of a call of a hook of quotas, by the hook's key and what it was asked (is_quota_updated, pre_quota_update, post_quota_update, on_pod_update, update_quota_status, check_pod).",
)
.advice("Hooks are called while a decision is made: above a millisecond they slow every decision.");
const QUOTA_STATUS: Description = Description::histogram(
    "scheduler_update_elastic_quota_status_duration_seconds",
    &[],
    WRITE_BUCKETS,
    "Time from the decision to write into an ElasticQuota to the answer.",
)
.advice("This is the API server's time to write; see `rest_client_request_duration_seconds`.");
const PHASE: Description = Description::gauge(
    "scheduler_reservation_status_phase",
    &["name", "phase"],
    "1 for the phase that a Reservation is in, and 0 for the others.",
)
.advice("`Pending` for long: `koordctl why reservation NAME`.");
const RESERVED: Description = Description::gauge(
    "scheduler_reservation_resource",
    &["type", "name", "resource", "unit"],
    "What a Reservation reserves (allocatable) and what its owners have of it (allocated), by its status: in cores (`core`), GiB (`Gi`), or as it is (`raw`); and their `ratio` (utilization).",
);
const QUOTA_SPEC: Description = Description::gauge(
    "scheduler_elastic_quota_spec",
    &["name", "resource", "tree", "is_parent", "parent", "field"],
    "What an ElasticQuota has been given: min, max, sharedWeight; thousandths of cores, bytes and numbers.",
);
const QUOTA_AMOUNTS: Description = Description::gauge(
    "scheduler_elastic_quota_status",
    &["name", "resource", "tree", "is_parent", "parent", "field"],
    "What an ElasticQuota may use (runtime), requests and uses; thousandths of cores, bytes and numbers.",
)
.advice("`used` near `runtime` and `request` above it: pods wait for the quota; `koordctl explain quota NAME`.");
const WAITING_GANGS: Description = Description::gauge(
    "scheduler_waiting_gang_group_number",
    &[],
    "Gang groups with pods that have their places and wait for the others.",
)
.advice("It does not fall: members are missing or do not fit, and those that wait keep resources; `koordctl why gang NAMESPACE/NAME`.");

/// Koordinator's own metrics.
pub(super) const METRICS: [Description; 13] = [
    TIMEOUTS,
    EVALUATED,
    FEASIBLE,
    JOBS,
    BATCHES,
    QUOTA_PROCESS,
    QUOTA_HOOKS,
    QUOTA_STATUS,
    PHASE,
    RESERVED,
    QUOTA_SPEC,
    QUOTA_AMOUNTS,
    WAITING_GANGS,
];

/// What is measured.
pub(super) struct OfKoordinator {
    pub(super) timeouts: IntCounterVec,
    evaluated: Histogram,
    feasible: Histogram,
    jobs: HistogramVec,
    batches: HistogramVec,
    pub(super) quota_process: HistogramVec,
    pub(super) quota_hooks: HistogramVec,
    pub(super) quota_status: Histogram,
    gauges: BTreeMap<&'static str, GaugeVec>,
    /// What is shown.
    figures: BTreeMap<(&'static str, Vec<String>), f64>,
    read: Option<Moment>,
}

impl OfKoordinator {
    pub(super) fn new(metrics: &Registries) -> Result<Self> {
        let none: &[&str] = &[];
        let of_engine = [families::REQUESTS, families::GIVEN_TWICE, families::OVERCOMMITTED, families::UNCOUNTED];
        let gauges = [PHASE, RESERVED, QUOTA_SPEC, QUOTA_AMOUNTS, WAITING_GANGS];
        Ok(Self {
            timeouts: metrics.counter(TIMEOUTS)?,
            evaluated: metrics.histogram(EVALUATED)?.with_label_values(none),
            feasible: metrics.histogram(FEASIBLE)?.with_label_values(none),
            jobs: metrics.histogram(JOBS)?,
            batches: metrics.histogram(BATCHES)?,
            quota_process: metrics.histogram(QUOTA_PROCESS)?,
            quota_hooks: metrics.histogram(QUOTA_HOOKS)?,
            quota_status: metrics.histogram(QUOTA_STATUS)?.with_label_values(none),
            gauges: gauges
                .into_iter()
                .chain(of_engine)
                .map(|gauge| Ok((gauge.name, metrics.float_gauge(gauge)?)))
                .collect::<Result<_>>()?,
            figures: BTreeMap::new(),
            read: None,
        })
    }

    pub(super) fn decided(&self, attempt: &Attempt) {
        // As the original: of pods that no node takes nothing is observed.
        if let Some(searched) = attempt.searched.filter(|searched| searched.feasible > 0) {
            self.evaluated.observe(f64::from(searched.evaluated));
            self.feasible.observe(f64::from(searched.feasible));
        }
    }

    pub(super) fn job_ended(&self, job: &Ended, now: Moment) {
        self.jobs.with_label_values(&[job.reason, &job_size(job.pods)]).observe(super::seconds(job.began, now));
        if job.is_batch {
            let result = if job.is_complete { "success" } else { "failure" };
            self.batches.with_label_values(&[result]).observe(super::seconds(job.began, now));
        }
    }

    /// Shows what plugins report, if that was not done lately. What is not reported any more is not shown any more.
    pub(super) fn observe(&mut self, engine: &Engine, now: Moment) {
        if self.read.is_some_and(|read| now.since(read) < FIGURES_INTERVAL) {
            return;
        }
        self.read = Some(now);
        let figures = engine.figures().into_iter().chain(requests::pending(engine));
        let reported = figures.map(|Figure { name, labels, value }| ((name, labels), value));
        let reported: BTreeMap<_, _> = reported.collect();
        for ((name, labels), _) in self.figures.iter().filter(|(key, _)| !reported.contains_key(key)) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            // It was shown, so it is there.
            let _ = self.gauges.get(name).map(|gauge| gauge.remove_label_values(&labels));
        }
        for (key @ (name, labels), value) in reported.iter().filter(|(key, value)| self.figures.get(key) != Some(value))
        {
            let values: Vec<&str> = labels.iter().map(String::as_str).collect();
            let gauge = self.gauges.get(name).map(|gauge| gauge.get_metric_with_label_values(&values));
            if let Some(Ok(gauge)) = gauge {
                gauge.set(*value);
            } else {
                tracing::debug!(?key, "a figure has no metric");
            }
        }
        self.figures = reported;
    }
}

/// The hundred that a number of pods is in.
fn job_size(pods: usize) -> String {
    match pods.div_ceil(100) {
        0 => "0".to_owned(),
        hundreds @ 1..=10 => format!("{}-{}", hundreds * 100 - 99, hundreds * 100),
        _ => "1000+".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_runtime::{metrics::Audience, random::Random};
    use koord_scheduler_engine::queue::Timings;
    use koord_scheduler_framework::{MetricSource, Plugin, Profile, Registration, cluster::Cluster, node::Node};

    use super::*;

    /// Reports the pods of every node.
    struct Counts;

    impl Plugin for Counts {
        fn name(&self) -> &'static str {
            "Counts"
        }

        fn register(self: Arc<Self>) -> Registration {
            Registration::of(&self).metrics(&self)
        }
    }

    impl MetricSource for Counts {
        fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
            let nodes = cluster.rows().map(|(_, node)| node.name.to_string());
            nodes
                .map(|node| Figure { name: PHASE.name, labels: vec![node, "Available".to_owned()], value: 1.0 })
                .collect()
        }
    }

    #[test]
    fn what_is_not_reported_any_more_is_not_shown_any_more() {
        let metrics = Registries::default();
        let profile = Profile::of("test", vec![Arc::new(Counts)]);
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut measures = OfKoordinator::new(&metrics).unwrap();
        let mut shown = |engine: &Engine, second: u64| {
            measures.observe(engine, Moment::at(Duration::from_secs(second)));
            let text = metrics.text(&[Audience::Runtime]);
            text.lines().filter(|line| line.starts_with(PHASE.name)).map(str::to_owned).collect::<Vec<_>>()
        };
        let node = Arc::new(Node { name: "n1".into(), ..Node::default() });
        engine.set_node(node, Moment::default());
        let line = r#"scheduler_reservation_status_phase{name="n1",phase="Available"} 1"#;
        assert_eq!(shown(&engine, 0), [line]);
        engine.remove_node("n1", Moment::default());
        assert_eq!(shown(&engine, 4), [line], "it was read lately");
        assert_eq!(shown(&engine, 5), [""; 0]);
    }

    #[test]
    fn jobs_are_counted_in_hundreds() {
        let sizes = [0, 1, 100, 101, 250, 901, 1000, 1001].map(job_size);
        assert_eq!(sizes, ["0", "1-100", "1-100", "101-200", "201-300", "901-1000", "901-1000", "1000+"]);
    }

    /// The names of `spec/scheduler.md` 5.1. Those of the list below are left out; docs/scheduler.md says why.
    #[test]
    fn the_metrics_of_the_original_are_served_or_named() {
        const ORIGINAL: &str = "scheduling_timeout reservation_status_phase reservation_resource pod_scheduling_evaluated_nodes \
            pod_scheduling_feasible_nodes elastic_quota_process_latency secondary_device_not_well_planned \
            waiting_gang_group_number next_pod_delete_from_queue_latency elastic_quota_hook_plugin_latency \
            job_preemption_duration_seconds gang_schedule_cycle_duration_seconds reservation_selector_index_query_total \
            reservation_selector_index_candidates_count inline_batch_schedule_duration_seconds elastic_quota_spec \
            elastic_quota_status update_elastic_quota_status_duration_seconds batch_algorithm_by_node_duration_seconds \
            batch_algorithm_by_pod_duration_seconds batch_partial_bind_jobs_total batch_partial_bind_pods_total \
            batch_bind_failures_total batch_assumed_pods_cleanup_total workload_auditor_repeated_preemptions_total \
            workload_auditor_preemption_invalidations_total workload_auditor_victim_reschedule_duration_seconds \
            workload_auditor_preemption_victim_deleting_retries workload_auditor_preemption_to_victim_deleted_seconds \
            workload_auditor_preemption_cycle_interrupted_seconds workload_auditor_scheduling_events_before_outcome \
            workload_auditor_scheduling_event_interval_seconds workload_auditor_record_method_duration_seconds";
        const OF_KUBE_SCHEDULER: &str = "schedule_attempts_total event_handling_duration_seconds \
            scheduling_attempt_duration_seconds scheduling_algorithm_duration_seconds preemption_victims \
            preemption_attempts_total pending_pods inflight_events goroutines pod_scheduling_sli_duration_seconds \
            pod_scheduling_attempts framework_extension_point_duration_seconds plugin_execution_duration_seconds \
            queueing_hint_execution_duration_seconds queue_incoming_pods_total permit_wait_duration_seconds cache_size \
            unschedulable_pods plugin_evaluation_total preemption_goroutines_duration_seconds \
            preemption_goroutines_execution_total async_api_call_execution_total \
            async_api_call_execution_duration_seconds batch_attempts_total batch_cache_flushed_total \
            get_node_hint_duration_seconds store_schedule_results_duration_seconds";
        let page = include_str!("../../../../../docs/scheduler.md");
        let (_, left_out) = page.split_once("These of the original are left out:").unwrap();
        let (left_out, _) = left_out.split_once("\n\n##").unwrap();
        for name in ORIGINAL.split_whitespace().chain(OF_KUBE_SCHEDULER.split_whitespace()) {
            let is_served = families::METRICS.iter().any(|metric| metric.name == format!("scheduler_{name}"));
            assert_ne!(is_served, left_out.contains(&format!("`{name}`")), "{name}");
        }
        let served = ORIGINAL.split_whitespace().filter(|name| !left_out.contains(name)).count();
        assert_eq!(served, METRICS.len() + super::super::workloads::METRICS.len());
    }
}
