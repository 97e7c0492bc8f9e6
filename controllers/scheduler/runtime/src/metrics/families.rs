//! The metrics of the scheduler as data. Names, labels and buckets are those of kube-scheduler 1.34; labels of causes, too.

use std::borrow::Cow;

use koord_runtime::metrics::{Description, Unit, exponential_buckets};
use koord_scheduler_engine::queue::{Cause, Change, Part};

use crate::feed::object;

const DURATION_BUCKETS: &[f64] = &exponential_buckets::<15>(0.001, 2.0);
const POD_DURATION_BUCKETS: &[f64] = &exponential_buckets::<20>(0.01, 2.0);
const POINT_BUCKETS: &[f64] = &exponential_buckets::<12>(0.0001, 2.0);
const PLUGIN_BUCKETS: &[f64] = &exponential_buckets::<20>(0.00001, 1.5);
const ATTEMPT_BUCKETS: &[f64] = &exponential_buckets::<5>(1.0, 2.0);
const VICTIM_BUCKETS: &[f64] = &exponential_buckets::<7>(1.0, 2.0);

pub(super) const ATTEMPTS: Description = Description::counter(
    "scheduler_schedule_attempts_total",
    &["result", "profile"],
    "Attempts to schedule pods by result (scheduled, unschedulable, error) and profile.",
)
.advice("`unschedulable`: see `scheduler_unschedulable_pods` and the condition PodScheduled of the pods. `error`: the event FailedScheduling of the pod has the API server's answer.");
pub(super) const ATTEMPT_DURATION: Description = Description::histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    &["result", "profile"],
    DURATION_BUCKETS,
    "Length of attempts, from the decision to the answer of the binding.",
)
.advice("Decisions take microseconds, so this is the API server's time to write; see `rest_client_request_duration_seconds` and `rest_client_rate_limiter_duration_seconds`.");
pub(super) const DECISION: Description = Description::histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    &[],
    DURATION_BUCKETS,
    "Length of decisions: the search for a node, the reservation of resources there, and preemption.",
)
.advice("Above 100 ms: constraints that concern every node, such as spreading and affinity of pods; give the process more CPU.");
pub(super) const POD_ATTEMPTS: Description = Description::histogram(
    "scheduler_pod_scheduling_attempts",
    &[],
    ATTEMPT_BUCKETS,
    "Attempts per pod that was scheduled.",
)
.unit(Unit::Count);
pub(super) const POD_DURATION: Description = Description::histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    &["attempts"],
    POD_DURATION_BUCKETS,
    "Time from the first attempt for a pod to its binding, by the number of attempts.",
)
.advice("High with one attempt: bindings are slow. High with many: the cluster is full, or the pods ask for what few nodes have.");
pub(super) const PENDING: Description = Description::gauge(
    "scheduler_pending_pods",
    &["queue"],
    "Pods that wait: to be tried next (active), for the end of a pause (backoff), for a change that may help (unschedulable), for a plugin (gated).",
)
.advice("`active` grows without end: the scheduler does not keep up; see `scheduler_scheduling_attempt_duration_seconds`. `unschedulable`: see `scheduler_unschedulable_pods`.");
pub(super) const INCOMING: Description = Description::counter(
    "scheduler_queue_incoming_pods_total",
    &["queue", "event"],
    "Pods that came into a part of the queue, by cause.",
)
.advice("Thousands per second for an event other than UnschedulablePodAdd: that event makes refused pods be tried again and again.");
pub(super) const PREEMPTIONS: Description = Description::counter(
    "scheduler_preemption_attempts_total",
    &[],
    "Attempts after which plugins have looked for pods whose eviction makes room.",
);
pub(super) const VICTIMS: Description =
    Description::histogram("scheduler_preemption_victims", &[], VICTIM_BUCKETS, "Pods that were evicted for one pod.")
        .unit(Unit::Count);
pub(super) const PERMIT_WAIT: Description = Description::histogram(
    "scheduler_permit_wait_duration_seconds",
    &["result"],
    DURATION_BUCKETS,
    "How long pods have waited in their place before they were bound (Success) or gave it back (Unschedulable).",
)
.advice("Long: gangs wait for members that do not come or do not fit; the conditions of their pods say which.");
pub(super) const CACHE_SIZE: Description = Description::gauge(
    "scheduler_cache_size",
    &["type"],
    "Nodes, pods on nodes, and among these pods whose binding is not confirmed yet.",
)
.advice("`assumed_pods` grows without end: bindings are slow or fail; see `scheduler_schedule_attempts_total`.");
pub(super) const UNSCHEDULABLE: Description = Description::gauge(
    "scheduler_unschedulable_pods",
    &["plugin", "profile"],
    "Waiting pods that a plugin has refused or holds back. A pod counts for each plugin that has refused it.",
)
.advice("The plugin says what is missing; the condition PodScheduled of a pod says it in words.");

pub(super) const MISMATCHES: Description = Description::counter(
    "koord_scheduler_audit_mismatches_total",
    &["sum"],
    "Sums that were not what the objects amount to, by sum; each is set right when it is found.",
)
.advice("Above 0: a defect. The event SumCorrected of the node or object and the log name the amounts; report them. Pods may have been placed by the wrong sum.");
pub(super) const AUDITED: Description = Description::gauge(
    "koord_scheduler_audit_last_round_timestamp_seconds",
    &[],
    "When the audit of the sums has last come round all nodes and plugins, in seconds since 1970.",
)
.advice("A round takes a second for 64 nodes, and one for each plugin that keeps sums. Much older: the task is stuck; see `koord_panics_total`.");

pub(super) const CONFLICTS: Description = Description::counter(
    "koord_scheduler_node_conflicts_total",
    &["resource", "profile"],
    "Pods that the kubelet of their node rejected because it had not enough of a resource (OutOfcpu and the like).",
)
.advice("Somebody else places pods on these nodes: another scheduler, or static pods. The node is avoided for half a minute by pods that request as much; the pod itself has failed, and its controller makes another.");
pub(super) const ELSEWHERE: Description = Description::counter(
    "koord_scheduler_foreign_bindings_total",
    &["profile"],
    "Pods that waited for this scheduler and got their node from another program.",
)
.advice("Above 0: a second scheduler answers to the same schedulerName. The event BoundElsewhere names a pod; both give out the same resources.");
pub(super) const DECIDING: Description = Description::gauge(
    "koord_scheduler_deciding",
    &[],
    "1 while this replica leads and decides; 0 while it only follows the cluster, or waits for its caches.",
)
.advice("0 on the leader for minutes: a cache is not complete; `/readyz` names it.");
pub(super) const DISAGREEMENTS: Description = Description::counter(
    "koord_scheduler_cache_disagreements_total",
    &[],
    "How often this replica became leader and its caches did not agree with the API server in time, so that it decided all the same.",
)
.advice("Above 0: the API server answers slowly, or watches are behind; the log line `caches are behind the API server` names the kinds. Pods may have been placed by what was known before.");
pub(super) const STALE: Description = Description::counter(
    "koord_scheduler_stale_placements_total",
    &["plugin", "profile"],
    "Pods that got a node whose usage was measured too long ago for a plugin to trust it.",
)
.advice("The koordlets of nodes do not report: see `status.updateTime` of the NodeMetrics. `filterExpiredNodeMetrics` and `enableScheduleWhenNodeMetricsExpired` of LoadAwareScheduling say whether such nodes get pods.");
pub(super) const REQUESTS: Description = Description::gauge(
    "koord_scheduler_pending_requests",
    &["queue", "resource"],
    "What the pods request that wait, by part of the queue as in `scheduler_pending_pods`: cores, bytes and numbers.",
)
.advice("What the cluster lacks, as far as the pods of `unschedulable` wait for room; what they wait for otherwise `scheduler_unschedulable_pods` says.");
pub(super) const GIVEN_TWICE: Description = Description::gauge(
    "koord_scheduler_given_twice",
    &["what", "whose"],
    "CPUs, devices, virtual functions and claimed devices that are given to more pods than may have them, by what they are and whose the pods are: this scheduler's alone (own), or also those of other schedulers (others). They are looked for with the audit of the sums.",
)
.advice("`own` above 0: a defect, or two installations with one scheduler name. The event GivenTwice and the log name the pods: delete one of them, and report it. `others`: give each scheduler its own nodes.");
pub(super) const OVERCOMMITTED: Description = Description::gauge(
    "koord_scheduler_nodes_overcommitted",
    &["resource", "whose"],
    "Nodes that offer less of a resource than their pods request, by whose pods request more than there is: this scheduler's alone (own), or only together with those of other schedulers (others). Reservations do not count, their owners do.",
)
.advice("`own`: the nodes have shrunk, as batch resources do, or pods were bound by hand or resized. `others`: give each scheduler its own nodes.");
pub(super) const UNCOUNTED: Description = Description::gauge(
    "koord_scheduler_uncounted_resources",
    &[],
    "Resources that nodes offer and that are not counted, because nodes offer too many different ones; pods that request them wait.",
)
.advice("It is not 0: something writes thousands of names into `status.allocatable` of nodes.");
pub(super) const EXTENSION_POINTS: Description = Description::histogram(
    "scheduler_framework_extension_point_duration_seconds",
    &["extension_point", "status", "profile"],
    POINT_BUCKETS,
    "Time of the parts of attempts: Filter (the whole search, from PreFilter to Score), PostFilter, Reserve, Permit; PreBind and Bind are requests to the API server, of which PreBind has one for each object that is written.",
)
.advice("`Filter` and `PostFilter` long: constraints that concern every node. `PreBind` and `Bind` long: the API server is slow; see `rest_client_request_duration_seconds`.");

pub(super) const PLUGIN_EXECUTION: Description = Description::histogram(
    "scheduler_plugin_execution_duration_seconds",
    &["plugin", "extension_point", "status"],
    PLUGIN_BUCKETS,
    "Time that a plugin takes at an extension point, in every tenth attempt. PreFilter and PreScore: what is asked anew, since the rest is kept. Filter and Score: one node, the one that was found or one that was refused last, asked once more; scores that compare nodes with each other have PreScore alone. PreBind: without requests to the API server.",
)
.advice("A plugin whose `PreFilter`, `PreScore` or `PostFilter` is long looks at the whole cluster: find the constraints of pods that make it. `Filter` and `Score` count once for each node that is asked.");

/// The scheduler's own metrics: kube-scheduler's, then Koordinator's.
pub const METRICS: &[Description] = &{
    let [
        timeouts,
        evaluated,
        feasible,
        jobs,
        batches,
        quota_process,
        quota_hooks,
        quota_status,
        phase,
        reserved,
        spec,
        amounts,
        gangs,
    ] = super::koordinator::METRICS;
    let [preemptions, invalidations, rescheduled, retries, deletion, interrupted, events, intervals, methods] =
        super::workloads::METRICS;
    [
        ATTEMPTS,
        ATTEMPT_DURATION,
        DECISION,
        POD_ATTEMPTS,
        POD_DURATION,
        PENDING,
        INCOMING,
        PREEMPTIONS,
        VICTIMS,
        PERMIT_WAIT,
        CACHE_SIZE,
        UNSCHEDULABLE,
        MISMATCHES,
        AUDITED,
        CONFLICTS,
        ELSEWHERE,
        DECIDING,
        DISAGREEMENTS,
        STALE,
        REQUESTS,
        GIVEN_TWICE,
        OVERCOMMITTED,
        UNCOUNTED,
        EXTENSION_POINTS,
        PLUGIN_EXECUTION,
        timeouts,
        evaluated,
        feasible,
        jobs,
        batches,
        quota_process,
        quota_hooks,
        quota_status,
        phase,
        reserved,
        spec,
        amounts,
        gangs,
        preemptions,
        invalidations,
        rescheduled,
        retries,
        deletion,
        interrupted,
        events,
        intervals,
        methods,
    ]
};

/// A part of the queue as a label.
pub(super) const fn part(part: Part) -> &'static str {
    match part {
        Part::Active => "active",
        Part::Backoff => "backoff",
        Part::Parked => "unschedulable",
    }
}

/// A cause as a label.
pub(super) fn cause(cause: Cause) -> Cow<'static, str> {
    let text = match cause {
        Cause::PodAdded => "UnschedulablePodAdd",
        Cause::PodChanged => "UnschedulablePodUpdate",
        Cause::AttemptFailed => "ScheduleAttemptFailure",
        Cause::PauseOver => "BackoffComplete",
        Cause::TriedEarly => "PopFromBackoffQ",
        Cause::Activated => "ForceActivate",
        Cause::TimeOver => "UnschedulableTimeout",
        Cause::NodeAdded => "NodeAdd",
        Cause::NodeRemoved => "NodeDelete",
        Cause::NodeAllocatable => "NodeUpdateNodeAllocatable",
        Cause::NodeLabels => "NodeUpdateNodeLabel",
        Cause::NodeTaints => "NodeUpdateNodeTaint",
        Cause::PodAssigned => "AssignedPodAdd",
        Cause::PodRemoved => "AssignedPodDelete",
        Cause::PodScaledDown => "AssignedPodUpdatePodScaleDown",
        Cause::PodRelabelled => "AssignedPodUpdatePodLabel",
        Cause::Object(type_, change) => {
            let happened = match change {
                Change::Added => "Add",
                Change::Changed => "Update",
                Change::Deleted => "Delete",
            };
            return format!("{}{happened}", object::name_in_events(type_)).into();
        }
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
    use koord_types::{pod_group::PodGroup, reservation::Reservation};

    use super::*;

    #[test]
    fn objects_are_named_as_kube_scheduler_and_plugins_name_their_events() {
        let label = |type_: TypeId| cause(Cause::Object(type_, Change::Changed)).into_owned();
        assert_eq!(label(TypeId::of::<PersistentVolumeClaim>()), "PersistentVolumeClaimUpdate");
        assert_eq!(label(TypeId::of::<Namespace>()), "NamespaceUpdate");
        assert_eq!(label(TypeId::of::<Reservation>()), "reservations.v1alpha1.scheduling.koordinator.shUpdate");
        assert_eq!(label(TypeId::of::<PodGroup>()), "podgroups.v1alpha1.scheduling.sigs.k8s.ioUpdate");
        assert_eq!(label(TypeId::of::<u8>()), "ObjectUpdate", "of a plugin from elsewhere");
        assert_eq!(cause(Cause::Object(TypeId::of::<Namespace>(), Change::Deleted)), "NamespaceDelete");
    }
}
