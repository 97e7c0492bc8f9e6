//! PodMigrationJob: migrates one pod to another node, by default after resources for its replacement are reserved.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta},
};
use koord_resource::{
    Mutate, Resource, Schema, Time, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    attached::duration,
    word::{self, words},
};

/// Migrates one pod to another node: its resources are reserved there, and then the pod is evicted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster", status, short_name = "pmj")]
#[koord(column(name = "Phase", type = "string", path = ".status.phase"))]
#[koord(column(name = "Status", type = "string", path = ".status.status"))]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Node", type = "string", path = ".status.nodeName"))]
#[koord(column(name = "Reservation", type = "string", path = ".spec.reservationOptions.reservationRef.name"))]
#[koord(column(name = "PodNamespace", type = "string", path = ".spec.podRef.namespace"))]
#[koord(column(name = "Pod", type = "string", path = ".spec.podRef.name"))]
#[koord(column(name = "NewPod", type = "string", path = ".status.podRef.name"))]
#[koord(column(name = "TTL", type = "string", path = ".spec.ttl"))]
#[koord(hardened(category = "koordinator"))]
#[koord(admission(
    mutate(
        path = "/mutate-scheduling-koordinator-sh-v1alpha1-podmigrationjob",
        name = "mpodmigrationjob.koordinator.sh",
        on = [Create],
        gate = "DeclaredWebhooks"
    ),
    validate(
        path = "/validate-scheduling-koordinator-sh-v1alpha1-podmigrationjob",
        name = "vpodmigrationjob.koordinator.sh",
        on = [Create, Update],
        gate = "DeclaredWebhooks"
    )
))]
pub struct PodMigrationJob {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The pod to migrate, and how.
    #[serde(default)]
    pub spec: PodMigrationJobSpec,
    /// The progress of the migration.
    #[serde(default)]
    pub status: PodMigrationJobStatus,
}

/// The pod to migrate, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobSpec {
    /// Whether the job is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How long the job may take, as a duration such as `5m`; `0s` sets no limit. Defaults to the descheduler's setting.
    #[koord(check(duration), admission(default = "5m0s"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Whether resources are reserved before the pod is evicted: `ReservationFirst` or `EvictDirectly`. Defaults to the
    /// descheduler's setting.
    #[koord(admission(default = "ReservationFirst", enumeration("ReservationFirst", "EvictDirectly")))]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub mode: Option<PodMigrationJobMode>,
    /// The pod to migrate.
    #[koord(check(names_a_pod), check_update(same_pod))]
    pub pod_ref: ObjectReference,
    /// How resources for the replacement pod are reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_options: Option<PodMigrateReservationOptions>,
    /// Options of the pod's deletion or eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_options: Option<DeleteOptions>,
}

words! {
    /// Whether resources are reserved before the pod is evicted.
    pub open enum PodMigrationJobMode {
        /// The pod is evicted once resources for its replacement are reserved.
        ReservationFirst = "ReservationFirst",
        /// The pod is evicted without a reservation.
        EvictDirectly = "EvictDirectly",
    }
}

/// How resources for the replacement pod are reserved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrateReservationOptions {
    /// An existing Reservation to use; absent to create one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_ref: Option<ObjectReference>,
    /// The `metadata` and `spec` of the Reservation to create. Absent fields are derived from the pod.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// Reserved for later use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_options: Option<PodMigrationJobPreemptionOptions>,
}

/// Reserved for later use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct PodMigrationJobPreemptionOptions {}

/// The progress of the migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobStatus {
    /// The phase of the job: `Pending`, `Running`, `Succeeded`, `Failed` or `Aborted`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<PodMigrationJobPhase>,
    /// Machine-readable status of the current step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Machine-readable reason for the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Human-readable message about the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The conditions of the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodMigrationJobCondition>,
    /// The replacement pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ref: Option<ObjectReference>,
    /// Pods that were preempted for the Reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted_pods_ref: Vec<ObjectReference>,
    /// The Reservations of preempted pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted_pods_reservation: Vec<PodMigrationJobPreemptedReservation>,
    /// The node that the Reservation is scheduled to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

words! {
    /// Phase of a job.
    pub open enum PodMigrationJobPhase {
        /// Not started.
        Pending = "Pending",
        /// In progress.
        Running = "Running",
        /// The pod was migrated.
        Succeeded = "Succeeded",
        /// The pod was not migrated.
        Failed = "Failed",
        /// Canceled.
        Aborted = "Aborted",
    }
}

words! {
    /// A step of a PodMigrationJob.
    pub open enum PodMigrationJobConditionType {
        /// The Reservation exists.
        ReservationCreated = "ReservationCreated",
        /// The Reservation was scheduled.
        ReservationScheduled = "ReservationScheduled",
        /// Other pods were preempted.
        Preemption = "Preemption",
        /// The pod was evicted.
        Eviction = "Eviction",
        /// The replacement pod was scheduled.
        PodScheduled = "PodScheduled",
        /// The replacement pod was bound to the Reservation.
        PodBoundReservation = "PodBoundReservation",
        /// The replacement pod is ready.
        BoundPodReady = "BoundPodReady",
        /// The Reservation was bound.
        ReservationBound = "ReservationBound",
    }
}

words! {
    /// Reason of a step's condition.
    pub open enum PodMigrationJobReason {
        /// It took longer than `ttl`.
        Timeout = "Timeout",
        /// The Reservation could not be created.
        FailedCreateReservation = "FailedCreateReservation",
        /// The Reservation expired.
        ReservationExpired = "ReservationExpired",
        /// No node fits.
        Unschedulable = "Unschedulable",
        /// The pod may not be migrated.
        ForbiddenMigratePod = "ForbiddenMigratePod",
        /// The pod does not exist.
        MissingPod = "MissingPod",
        /// The Reservation does not exist.
        MissingReservation = "MissingReservation",
        /// Other pods are being preempted.
        Preempting = "Preempting",
        /// Other pods were preempted.
        PreemptComplete = "PreemptComplete",
        /// The pod is being evicted.
        Evicting = "Evicting",
        /// The pod could not be evicted.
        FailedEvict = "FailedEvict",
        /// The pod was evicted.
        EvictComplete = "EvictComplete",
        /// The replacement pod was not bound to the Reservation yet.
        WaitForPodBindReservation = "WaitForPodBindReservation",
        /// The replacement pod is not ready yet.
        WaitForBoundPodReady = "WaitForBoundPodReady",
    }
}

/// The condition of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobCondition {
    /// Type of the condition: `ReservationCreated`, `ReservationScheduled`, `Preemption`, `Eviction`, `PodScheduled`,
    /// `PodBoundReservation`, `BoundPodReady` or `ReservationBound`.
    #[serde(rename = "type")]
    pub type_: PodMigrationJobConditionType,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Last time the condition was probed.
    #[koord(nullable)]
    #[serde(default)]
    pub last_probe_time: Option<Time>,
    /// Last time the status changed.
    #[koord(nullable)]
    #[serde(default)]
    pub last_transition_time: Option<Time>,
    /// Machine-readable reason of the last transition.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub reason: Option<PodMigrationJobReason>,
    /// Human-readable message about the last transition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The Reservation of a preempted pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobPreemptedReservation {
    /// Namespace of the Reservation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the Reservation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The node that the Reservation is scheduled to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// Phase of the Reservation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The preempted pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_pod_ref: Option<ObjectReference>,
    /// The pods bound to the Reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_ref: Vec<ObjectReference>,
}

// === attached rules ===

fn names_a_pod(pod: &ObjectReference, at: &Path<'_>, errors: &mut Errors) {
    for (name, value) in [("namespace", &pod.namespace), ("name", &pod.name)] {
        if value.as_deref().unwrap_or_default().is_empty() {
            errors.required(&at.child(name), "the job must name the pod that it moves");
        }
    }
}

/// The uid may be added once the pod was found.
fn same_pod(new: &ObjectReference, old: &ObjectReference, at: &Path<'_>, errors: &mut Errors) {
    let known = old.uid.as_deref().is_some_and(|uid| !uid.is_empty());
    if new.namespace != old.namespace || new.name != old.name || (known && new.uid != old.uid) {
        errors.forbidden(at, "field is immutable; create another job for another pod");
    }
}
