//! Reservation: room on a node that is kept for pods to come.

use k8s_openapi::{
    api::core::v1::{ObjectReference, PodTemplateSpec, Taint},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time},
};
use koord_resource::{Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::{self, words};

/// Room on a node that is kept for its owners.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(column(name = "Phase", type = "string", path = ".status.phase"))]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Node", type = "string", path = ".status.nodeName"))]
#[koord(column(name = "TTL", type = "string", path = ".spec.ttl"))]
#[koord(column(name = "Expires", type = "string", path = ".spec.expires"))]
#[koord(hardened(category = "koordinator", short_name = "rsv"))]
pub struct Reservation {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How much is kept, and for whom.
    #[serde(default)]
    pub spec: ReservationSpec,
    /// Where it is kept, and who uses it.
    #[serde(default)]
    pub status: ReservationStatus,
}

/// How much is kept, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSpec {
    /// A pod template: the room that such a pod needs is kept, on a node where it could run.
    #[koord(schemaless, preserve_unknown_fields)]
    pub template: Value,
    /// Who may use the room. A pod that matches any owner may.
    #[koord(min_items = 1)]
    pub owners: Vec<ReservationOwner>,
    /// How long the room is kept, as a duration such as `24h`; `0s` is for ever. `expires` goes before it.
    #[koord(default = "24h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Until when the room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Whether the room is kept where pods already run that will be moved away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pre_allocation: bool,
    /// How such pods are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_allocation_policy: Option<PreAllocationPolicy>,
    /// Whether the room is given up once its first owner has left. Absent is true.
    #[koord(default = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocate_once: Option<bool>,
    /// Whether owners may use more than the room has: `Aligned` lets them use free room of the node as well, `Restricted`
    /// does not. Absent is `Aligned`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub allocate_policy: Option<ReservationAllocatePolicy>,
    /// Whether no further owner may use the room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Taints that owners must tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl ReservationSpec {
    /// The pod template as a typed object.
    pub fn pod_template(&self) -> serde_json::Result<PodTemplateSpec> {
        PodTemplateSpec::deserialize(&self.template)
    }

    /// Whether the room is given up once its first owner has left.
    pub fn is_allocate_once(&self) -> bool {
        self.allocate_once.unwrap_or(true)
    }
}

/// Pods that may use the room. All conditions that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[koord(min_properties = 1)]
pub struct ReservationOwner {
    /// This very pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,
    /// Pods of this controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ReservationControllerReference>,
    /// Pods with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// A controller of pods, such as a ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[koord(map_type = "atomic")]
pub struct ReservationControllerReference {
    /// API version of the controller.
    pub api_version: String,
    /// Whether the owner stays until this object is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
    /// Whether it is the managing controller of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Kind of the controller.
    pub kind: String,
    /// Name of the controller.
    pub name: String,
    /// UID of the controller; empty for any.
    pub uid: String,
    /// Namespace of the controller and its pods; empty for any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// How pods are chosen whose room is kept before they are moved away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PreAllocationPolicy {
    /// Where such pods are looked for: `Default` among those that match the owners, `Cluster` everywhere.
    #[koord(default = "Default")]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub mode: Option<PreAllocationMode>,
    /// Whether the room of several pods may be put together.
    #[koord(default = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_multiple: Option<bool>,
}

words! {
    /// Where pods are looked for whose room is kept.
    pub enum PreAllocationMode {
        /// Among the pods that match the owners.
        Default = "Default",
        /// Among all pods that are marked as such.
        Cluster = "Cluster",
    }
}

words! {
    /// Whether owners may use more than the room has.
    pub enum ReservationAllocatePolicy {
        /// They may use free room of the node as well.
        Aligned = "Aligned",
        /// Of the resources that the reservation has they may use only its own.
        Restricted = "Restricted",
    }
}

/// Where the room is kept, and who uses it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationStatus {
    /// The phase: `Pending`, `Available`, `Succeeded`, `Waiting` or `Failed`.
    #[koord(default = "Pending")]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<ReservationPhase>,
    /// Whether it is scheduled and ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ReservationCondition>,
    /// The pods that use the room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub current_owners: Vec<ObjectReference>,
    /// The node that the room is on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// How much is kept.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub allocatable: ResourceList,
    /// How much of it is used.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub allocated: ResourceList,
}

words! {
    /// Phase of a reservation.
    pub open enum ReservationPhase {
        /// Not on a node yet.
        Pending = "Pending",
        /// Ready for its owners.
        Available = "Available",
        /// Used up.
        Succeeded = "Succeeded",
        /// Waits for the pods whose room it keeps to leave.
        Waiting = "Waiting",
        /// Expired, or its node is gone.
        Failed = "Failed",
    }
}

words! {
    /// What a condition of a reservation is about.
    pub open enum ReservationConditionType {
        /// Whether it has a node.
        Scheduled = "Scheduled",
        /// Whether owners may use it.
        Ready = "Ready",
    }
}

words! {
    /// Why a condition of a reservation has its status.
    pub open enum ReservationReason {
        /// It has a node.
        Scheduled = "Scheduled",
        /// No node fits.
        Unschedulable = "Unschedulable",
        /// Owners may use it.
        Available = "Available",
        /// It is used up.
        Succeeded = "Succeeded",
        /// Its time is over.
        Expired = "Expired",
    }
}

/// One aspect of a reservation's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCondition {
    /// Which aspect: `Scheduled` or `Ready`.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<ReservationConditionType>,
    /// `True`, `False` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Why, as one word.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub reason: Option<ReservationReason>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the aspect was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}
