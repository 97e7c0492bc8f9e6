//! ClusterColocationProfile: what the webhook changes in pods that match, so that they run colocated.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use koord_resource::{IntOrString, Resource, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{qos::QosClass, word};

/// Labels, annotations, QoS, priority and scheduler for pods that match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "config.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "ccp"))]
#[koord(hardened(column(name = "QoS", type = "string", path = ".spec.qosClass")))]
#[koord(hardened(column(name = "PriorityClass", type = "string", path = ".spec.priorityClassName")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ClusterColocationProfile {
    /// Name, labels and annotations. The annotation `config.koordinator.sh/skip-update-resources` leaves resources as they are.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which pods, and what is changed in them.
    #[serde(default)]
    pub spec: ClusterColocationProfileSpec,
    /// Nothing yet.
    #[serde(default)]
    pub status: ClusterColocationProfileStatus,
}

/// Which pods, and what is changed in them.
///
/// Texts that are empty are not written, because the schema refuses an empty `qosClass`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterColocationProfileSpec {
    /// Labels of the namespaces whose pods are changed; absent for all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of the pods that are changed; absent for all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The share of matching pods that are changed: a percentage such as `50%`, or the number of percent. Absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<IntOrString>,
    /// The QoS class that the pods get, as their label `koordinator.sh/qosClass`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub qos_class: Option<QosClass>,
    /// The PriorityClass that the pods get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority_class_name: String,
    /// The priority among pods of one PriorityClass, as their label `koordinator.sh/priority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub koordinator_priority: Option<i32>,
    /// Labels that the pods get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations that the pods get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// New labels by the existing label whose value they take: the key names the existing one, the value the new one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_keys_mapping: BTreeMap<String, String>,
    /// New annotations by the existing annotation whose value they take.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotation_keys_mapping: BTreeMap<String, String>,
    /// Texts that are appended to the values of labels, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_suffixes: BTreeMap<String, String>,
    /// The scheduler that the pods get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// A strategic merge patch of the pods, applied after everything else.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
}

/// Nothing yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterColocationProfileStatus {}
