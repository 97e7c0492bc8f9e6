//! What is read of a pod, as it stands in the text. Nothing is copied that pods of a workload have in common.

use std::borrow::Cow;

use koord_runtime::projection::Text;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::resize::ContainerStatus;

#[derive(Deserialize)]
pub(crate) struct PodMembers<'a> {
    #[serde(borrow)]
    pub(super) spec: Spec<'a>,
    #[serde(default, borrow)]
    pub(super) status: Status<'a>,
}

/// A pod's spec. What is serialized of it is what its template is made of; it has nothing that only one pod of a workload has.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec<'a> {
    #[serde(borrow, skip_serializing)]
    pub(super) node_name: Option<Text<'a>>,
    #[serde(borrow, skip_serializing)]
    pub(super) scheduling_gates: Option<Vec<Gate<'a>>>,
    #[serde(borrow)]
    pub(super) containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) init_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    volumes: Volumes<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    affinity: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    node_selector: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    tolerations: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    topology_spread_constraints: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    overhead: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    resources: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    resource_claims: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    priority: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    preemption_policy: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    scheduler_name: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Gate<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container<'a> {
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    image: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) resources: Option<Resources<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    ports: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    restart_policy: Option<&'a RawValue>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Resources<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    limits: Option<&'a RawValue>,
}

/// A volume, with the sources that bind a pod to nodes.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Volume<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    persistent_volume_claim: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    ephemeral: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    gce_persistent_disk: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    aws_elastic_block_store: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    azure_disk: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    cinder: Option<&'a RawValue>,
    #[serde(borrow, rename = "portworxVolume", skip_serializing_if = "Option::is_none")]
    portworx: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    iscsi: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    rbd: Option<&'a RawValue>,
}

impl Volume<'_> {
    /// Others have names that differ from pod to pod, such as those of tokens.
    fn matters(&self) -> bool {
        let sources = [
            self.persistent_volume_claim,
            self.ephemeral,
            self.gce_persistent_disk,
            self.aws_elastic_block_store,
            self.azure_disk,
            self.cinder,
            self.portworx,
            self.iscsi,
            self.rbd,
        ];
        sources.iter().any(Option::is_some)
    }
}

/// Volumes, of which those are serialized that matter.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Volumes<'a>(#[serde(borrow)] Option<Vec<Volume<'a>>>);

impl Serialize for Volumes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flatten().filter(|volume| volume.matters()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status<'a> {
    #[serde(borrow)]
    pub(super) phase: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) nominated_node_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) start_time: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) conditions: Option<Vec<Condition<'a>>>,
    #[serde(borrow)]
    pub(super) container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow)]
    pub(super) init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
    /// As Kubernetes before 1.33 says what the condition `PodResizePending` says now.
    #[serde(borrow)]
    pub(super) resize: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) resource_claim_statuses: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition<'a> {
    #[serde(borrow, default, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) last_transition_time: Option<Text<'a>>,
}

impl Status<'_> {
    /// A condition that has this status.
    pub(super) fn condition(&self, type_: &str, status: &str) -> Option<&Condition<'_>> {
        self.conditions.iter().flatten().find(|known| known.type_ == type_ && known.status == status)
    }

    /// The reason of a condition, whatever its status.
    pub(super) fn reason_of(&self, type_: &str) -> Option<&str> {
        let known = self.conditions.iter().flatten().find(|known| known.type_ == type_)?;
        Some(known.reason.as_deref().unwrap_or_default())
    }
}

/// The controller of an object, as it stands in the text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner<'a> {
    #[serde(borrow, default)]
    pub(super) api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) uid: Cow<'a, str>,
    pub(super) controller: Option<bool>,
}
