//! PodMigrationJob: moves one pod to another node, by eviction once its new place is reserved.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Time},
};
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::{self, words};

/// Moves one pod to another node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
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
pub struct PodMigrationJob {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which pod, and how.
    #[serde(default)]
    pub spec: PodMigrationJobSpec,
    /// How far it got.
    #[serde(default)]
    pub status: PodMigrationJobStatus,
}

/// Which pod, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobSpec {
    /// Whether the job waits until this is false again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How long the job may take, as a duration such as `5m`; absent leaves it to the descheduler, `0s` is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Whether the new place is reserved before the pod is evicted: `ReservationFirst` or `EvictDirectly`. Absent leaves it
    /// to the descheduler.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub mode: Option<PodMigrationJobMode>,
    /// The pod.
    pub pod_ref: ObjectReference,
    /// How the new place is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_options: Option<PodMigrateReservationOptions>,
    /// How the pod is deleted or evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_options: Option<DeleteOptions>,
}

words! {
    /// Whether the new place is reserved first.
    pub open enum PodMigrationJobMode {
        /// The pod is evicted once its new place is reserved.
        ReservationFirst = "ReservationFirst",
        /// The pod is evicted at once.
        EvictDirectly = "EvictDirectly",
    }
}

/// How the new place is reserved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrateReservationOptions {
    /// An existing Reservation; absent to make one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_ref: Option<ObjectReference>,
    /// The Reservation to make: its `metadata` and `spec`. What is absent is taken from the pod.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// Reserved for later use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_options: Option<PodMigrationJobPreemptionOptions>,
}

/// Reserved for later use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PodMigrationJobPreemptionOptions {}

/// How far the job got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobStatus {
    /// The phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Aborted`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<PodMigrationJobPhase>,
    /// The last step, as one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Why the job is in its phase, as one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the job is in its phase, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// One entry per step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodMigrationJobCondition>,
    /// The pod that took the place of the one that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ref: Option<ObjectReference>,
    /// Pods that had to leave the new place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted_pods_ref: Vec<ObjectReference>,
    /// How the pods that had to leave move on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted_pods_reservation: Vec<PodMigrationJobPreemptedReservation>,
    /// The node that the pod moves to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

words! {
    /// Phase of a job.
    pub open enum PodMigrationJobPhase {
        /// Not begun.
        Pending = "Pending",
        /// Under way.
        Running = "Running",
        /// The pod moved.
        Succeeded = "Succeeded",
        /// The pod did not move.
        Failed = "Failed",
        /// Given up.
        Aborted = "Aborted",
    }
}

words! {
    /// A step of a job.
    pub open enum PodMigrationJobConditionType {
        /// The Reservation exists.
        ReservationCreated = "ReservationCreated",
        /// The Reservation has a node.
        ReservationScheduled = "ReservationScheduled",
        /// Other pods had to leave.
        Preemption = "Preemption",
        /// The pod was evicted.
        Eviction = "Eviction",
        /// The new pod has a node.
        PodScheduled = "PodScheduled",
        /// The new pod uses the Reservation.
        PodBoundReservation = "PodBoundReservation",
        /// The new pod is ready.
        BoundPodReady = "BoundPodReady",
        /// The Reservation is used.
        ReservationBound = "ReservationBound",
    }
}

words! {
    /// Why a step is where it is.
    pub open enum PodMigrationJobReason {
        /// It took longer than `ttl`.
        Timeout = "Timeout",
        /// The Reservation could not be made.
        FailedCreateReservation = "FailedCreateReservation",
        /// The Reservation expired.
        ReservationExpired = "ReservationExpired",
        /// No node fits.
        Unschedulable = "Unschedulable",
        /// The pod may not be moved.
        ForbiddenMigratePod = "ForbiddenMigratePod",
        /// The pod is gone.
        MissingPod = "MissingPod",
        /// The Reservation is gone.
        MissingReservation = "MissingReservation",
        /// Other pods are leaving.
        Preempting = "Preempting",
        /// Other pods have left.
        PreemptComplete = "PreemptComplete",
        /// The pod is being evicted.
        Evicting = "Evicting",
        /// The pod could not be evicted.
        FailedEvict = "FailedEvict",
        /// The pod was evicted.
        EvictComplete = "EvictComplete",
        /// No pod uses the Reservation yet.
        WaitForPodBindReservation = "WaitForPodBindReservation",
        /// The new pod is not ready yet.
        WaitForBoundPodReady = "WaitForBoundPodReady",
    }
}

/// One step of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobCondition {
    /// Which step: `ReservationCreated`, `ReservationScheduled`, `Preemption`, `Eviction`, `PodScheduled`,
    /// `PodBoundReservation`, `BoundPodReady` or `ReservationBound`.
    #[serde(rename = "type")]
    pub type_: PodMigrationJobConditionType,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the step was last looked at.
    #[koord(nullable)]
    #[serde(default)]
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    #[koord(nullable)]
    #[serde(default)]
    pub last_transition_time: Option<Time>,
    /// Why, as one word.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub reason: Option<PodMigrationJobReason>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a pod that had to leave moves on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMigrationJobPreemptedReservation {
    /// Namespace of the Reservation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the Reservation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// Its phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The pod that had to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_pod_ref: Option<ObjectReference>,
    /// The pods that use the Reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_ref: Vec<ObjectReference>,
}
