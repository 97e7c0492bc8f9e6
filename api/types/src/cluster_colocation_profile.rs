//! ClusterColocationProfile: how the webhook mutates matching pods so that they run colocated.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use koord_resource::{IntOrString, Resource, Schema, Validate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{qos::QosClass, word};

/// Sets labels, annotations, QoS class, priority and scheduler of matching pods when they are created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "config.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "ccp"))]
#[koord(hardened(column(name = "QoS", type = "string", path = ".spec.qosClass")))]
#[koord(hardened(column(name = "PriorityClass", type = "string", path = ".spec.priorityClassName")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ClusterColocationProfile {
    /// Standard object metadata. With the annotation `config.koordinator.sh/skip-update-resources`, resources are not translated.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The pods to match, and how they are mutated.
    #[serde(default)]
    pub spec: ClusterColocationProfileSpec,
    /// Unused.
    #[serde(default)]
    pub status: ClusterColocationProfileStatus,
}

/// The pods to match, and how they are mutated.
///
/// Empty strings are treated as unset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct ClusterColocationProfileSpec {
    /// Selects namespaces by their labels. Defaults to all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Selects pods by their labels. Defaults to all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The probability that a matching pod is mutated: a percentage such as `50%`, or an integer percentage. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<IntOrString>,
    /// The QoS class of the pods, set as the label `koordinator.sh/qosClass`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub qos_class: Option<QosClass>,
    /// The PriorityClass of the pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority_class_name: String,
    /// The sub-priority of the pods within their PriorityClass, set as the label `koordinator.sh/priority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub koordinator_priority: Option<i32>,
    /// Labels to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels to copy: each key names an existing label, its value the label that receives the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_keys_mapping: BTreeMap<String, String>,
    /// Annotations to copy: each key names an existing annotation, its value the annotation that receives the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotation_keys_mapping: BTreeMap<String, String>,
    /// Suffixes to append to the values of labels, by label key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_suffixes: BTreeMap<String, String>,
    /// The scheduler of the pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// A strategic merge patch to apply to the pods after all other fields.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
}

/// Unused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ClusterColocationProfileStatus {}
