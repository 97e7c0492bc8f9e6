//! Reservation: reserves node resources for pods that match its owners.

use k8s_openapi::{
    api::core::v1::{ObjectReference, PodTemplateSpec, Taint},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use koord_resource::{
    Mutate, Resource, ResourceList, Schema, Time, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    attached::{duration, not_negative, selector_parses},
    word::{self, words},
};

/// Reserves node resources for pods that match its owners. The scheduler places a Reservation like a pod; pods that match
/// an owner may then use the reserved resources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "scheduling.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(column(name = "Phase", type = "string", path = ".status.phase"))]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Node", type = "string", path = ".status.nodeName"))]
#[koord(column(name = "TTL", type = "string", path = ".spec.ttl"))]
#[koord(column(name = "Expires", type = "string", path = ".spec.expires"))]
#[koord(hardened(category = "koordinator", short_name = "rsv"))]
#[koord(check_update(template_is_fixed_once_available))]
#[koord(admission(
    mutate(
        path = "/mutate-reservation",
        name = "mreservation-create.koordinator.sh",
        on = [Create],
        gate = "ReservationMutatingWebhook",
        failure_policy = Fail,
        snapshot
    ),
    validate(
        path = "/validate-scheduling-koordinator-sh-v1alpha1-reservation",
        name = "vreservation.koordinator.sh",
        on = [Create, Update],
        gate = "DeclaredWebhooks"
    )
))]
pub struct Reservation {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The resources to reserve, and the pods that may use them.
    #[serde(default)]
    pub spec: ReservationSpec,
    /// The node that the resources are reserved on, and their current use.
    #[serde(default)]
    pub status: ReservationStatus,
}

/// The resources to reserve, and the pods that may use them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSpec {
    /// A pod template. Its resource requests are reserved, and its node name, affinity and tolerations select the node.
    #[koord(schemaless, preserve_unknown_fields, check(requests_are_legal))]
    pub template: Value,
    /// The pods that may use the reserved resources. A pod that matches any owner may.
    #[koord(min_items = 1)]
    pub owners: Vec<ReservationOwner>,
    /// How long the Reservation lasts, as a duration such as `24h`; `0s` never expires. Ignored when `expires` is set.
    #[koord(default = "24h", check(duration))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// The time at which the Reservation expires. Takes precedence over `ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Whether resources of running pods may be reserved, for use once those pods are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pre_allocation: bool,
    /// How the running pods for `preAllocation` are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_allocation_policy: Option<PreAllocationPolicy>,
    /// Whether the Reservation succeeds, and releases its resources, once one owner was allocated. Defaults to true.
    #[koord(default = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocate_once: Option<bool>,
    /// How owners allocate resources: `Aligned` from the Reservation first and then from the node, `Restricted` from the
    /// Reservation alone for the resources that it reserves. Defaults to `Aligned`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub allocate_policy: Option<ReservationAllocatePolicy>,
    /// Whether no further pod may be scheduled to the Reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Taints that owner pods must tolerate to use the Reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl ReservationSpec {
    /// The pod template as a typed object. Times in its metadata say nothing of the pod and are left out where a typed object could
    /// not have them.
    pub fn pod_template(&self) -> serde_json::Result<PodTemplateSpec> {
        let is_late = |name: &&&str| {
            let time = self.template["metadata"][**name].as_str().and_then(|text| text.parse::<Time>().ok());
            time.is_some_and(|time| Time::from(time.at()) != time)
        };
        let late: Vec<&&str> = ["creationTimestamp", "deletionTimestamp"].iter().filter(is_late).collect();
        if late.is_empty() {
            return PodTemplateSpec::deserialize(&self.template);
        }
        let mut template = self.template.clone();
        if let Some(metadata) = template["metadata"].as_object_mut() {
            metadata.retain(|name, _| !late.iter().any(|late| **late == name));
        }
        PodTemplateSpec::deserialize(template)
    }

    /// Whether the Reservation succeeds once one owner was allocated.
    pub fn is_allocate_once(&self) -> bool {
        self.allocate_once.unwrap_or(true)
    }
}

/// Selects pods that may use the reserved resources. All fields that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
#[koord(min_properties = 1)]
pub struct ReservationOwner {
    /// The pod with this namespace, name and uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,
    /// Pods owned by this controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ReservationControllerReference>,
    /// Pods that match this label selector.
    #[koord(check(selector_parses))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Refers to a controller of pods, such as a ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
#[koord(map_type = "atomic")]
pub struct ReservationControllerReference {
    /// API version of the controller.
    pub api_version: String,
    /// Whether foreground deletion of the controller waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
    /// Whether the reference is to the managing controller of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Kind of the controller.
    pub kind: String,
    /// Name of the controller.
    pub name: String,
    /// UID of the controller; empty matches any.
    pub uid: String,
    /// Namespace of the controller and its pods; empty matches any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// How the running pods for `preAllocation` are selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PreAllocationPolicy {
    /// Which pods are candidates: `Default` those that match the owners, `Cluster` all pods labeled as pre-allocatable.
    #[koord(default = "Default")]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub mode: Option<PreAllocationMode>,
    /// Whether the resources of several pods may be combined.
    #[koord(default = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_multiple: Option<bool>,
}

words! {
    /// Which running pods are candidates for pre-allocation.
    pub enum PreAllocationMode {
        /// Pods that match the owners.
        Default = "Default",
        /// All pods labeled as pre-allocatable.
        Cluster = "Cluster",
    }
}

words! {
    /// How owners allocate resources.
    pub enum ReservationAllocatePolicy {
        /// From the Reservation first, and from the node for what it lacks.
        Aligned = "Aligned",
        /// From the Reservation alone, for the resources that it reserves.
        Restricted = "Restricted",
    }
}

/// The node that the resources are reserved on, and their current use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ReservationStatus {
    /// The phase: `Pending`, `Available`, `Succeeded`, `Waiting` or `Failed`.
    #[koord(default = "Pending")]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<ReservationPhase>,
    /// The conditions `Scheduled` and `Ready`, and with a feature gate of koord-scheduler `Accepted` and `Matched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ReservationCondition>,
    /// The pods that currently use the Reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub current_owners: Vec<ObjectReference>,
    /// The node that the resources are reserved on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The reserved resources.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub allocatable: ResourceList,
    /// The reserved resources that owners use.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub allocated: ResourceList,
}

words! {
    /// Phase of a reservation.
    pub open enum ReservationPhase {
        /// Not scheduled yet.
        Pending = "Pending",
        /// Scheduled; owners may use it.
        Available = "Available",
        /// Allocated to its owner, and released.
        Succeeded = "Succeeded",
        /// Waits for pre-allocated pods to terminate.
        Waiting = "Waiting",
        /// Expired, or its node was deleted.
        Failed = "Failed",
    }
}

words! {
    /// Type of a Reservation's condition.
    pub open enum ReservationConditionType {
        /// Whether it was scheduled.
        Scheduled = "Scheduled",
        /// Whether owners may use it.
        Ready = "Ready",
        /// Whether it makes sense, its owners above all.
        Accepted = "Accepted",
        /// Whether pods use it.
        Matched = "Matched",
    }
}

words! {
    /// Reason of a Reservation's condition.
    pub open enum ReservationReason {
        /// It was scheduled.
        Scheduled = "Scheduled",
        /// No node fits.
        Unschedulable = "Unschedulable",
        /// Owners may use it.
        Available = "Available",
        /// It was allocated to its owner.
        Succeeded = "Succeeded",
        /// It expired.
        Expired = "Expired",
        /// It makes sense.
        Accepted = "Accepted",
        /// It makes no sense, as the message says.
        Invalid = "Invalid",
        /// Pods use it.
        Used = "Used",
        /// No pod uses it.
        Unused = "Unused",
    }
}

/// An observed condition of a Reservation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCondition {
    /// Type of the condition: `Scheduled`, `Ready`, `Accepted` or `Matched`.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<ReservationConditionType>,
    /// `True`, `False` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Machine-readable reason of the last transition.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub reason: Option<ReservationReason>,
    /// Human-readable message about the last transition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Last time the condition was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// Last time the status changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

// === attached rules ===

/// The template is kept as it was written, so its requests are read as plain JSON.
fn requests_are_legal(template: &Value, at: &Path<'_>, errors: &mut Errors) {
    let spec = at.child("spec");
    let mut has_containers = false;
    for name in ["initContainers", "containers"] {
        let list = spec.child(name);
        let containers = template.get("spec").and_then(|spec| spec.get(name)).and_then(Value::as_array);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            has_containers |= name == "containers";
            let at = list.index(index);
            let at = at.child("resources");
            for name in ["requests", "limits"] {
                let at = at.child(name);
                let Some(amounts) = container.get("resources").and_then(|resources| resources.get(name)) else {
                    continue;
                };
                match Option::<ResourceList>::deserialize(amounts) {
                    Ok(amounts) => not_negative(&amounts.unwrap_or_default(), &at, errors),
                    Err(error) => errors.invalid(&at, amounts, error.to_string()),
                }
            }
        }
    }
    if !has_containers {
        let detail = "the template must have the containers whose resources are reserved";
        errors.required(&spec.child("containers"), detail);
    }
}

fn template_is_fixed_once_available(new: &Reservation, old: &Reservation, at: &Path<'_>, errors: &mut Errors) {
    if old.status.phase == Some(ReservationPhase::Available) && new.spec.template != old.spec.template {
        let detail = "field is immutable once the reservation is Available";
        errors.forbidden(&at.child("spec").child("template"), detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reservation_may_have_the_last_time_that_can_be_written_wherever_it_has_one() {
        let never = "9999-12-31T23:59:59Z";
        let conditions = json!([{"type": "Ready", "lastProbeTime": never, "lastTransitionTime": never}]);
        let metadata = json!({"name": "p", "creationTimestamp": never, "deletionTimestamp": "2026-01-02T03:04:05Z"});
        let reservation: Reservation = serde_json::from_value(json!({
            "metadata": {"name": "r"},
            "spec": {"expires": never, "owners": [], "template": {"metadata": metadata, "spec": {"containers": []}}},
            "status": {"conditions": conditions},
        }))
        .unwrap();
        assert_eq!(serde_json::to_value(reservation.spec.expires).unwrap(), json!(never));
        assert_eq!(serde_json::to_value(reservation.status.conditions[0].last_probe_time).unwrap(), json!(never));
        let template = reservation.spec.pod_template().unwrap().metadata.unwrap();
        assert_eq!((template.name.as_deref(), template.creation_timestamp), (Some("p"), None));
        assert!(template.deletion_timestamp.is_some());
    }
}
