//! What the values of every Deployment say of its pods.

use std::collections::BTreeMap;

use koord_resource::document::{NONROOT, restricted_container, restricted_pod};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::forms::{CountOrPercent, Object};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pods {
    /// Resource requirements of the container.
    resources: Object,
    /// Node selector of the pods.
    node_selector: BTreeMap<String, String>,
    /// Node affinity of the pods.
    node_affinity: Object,
    /// Tolerations of the pods.
    tolerations: Vec<Object>,
    /// Added. PriorityClass of the pods; empty for none. The class must exist; koord-prod is part of the chart.
    priority_class_name: String,
    /// Added. Security context of the pods; the default is what the Pod Security Standard "restricted" requires.
    pod_security_context: Object,
    /// Added. Security context of the container; the default is what the Pod Security Standard "restricted" requires.
    security_context: Object,
    pod_disruption_budget: PodDisruptionBudget,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            resources: Object::from_iter([
                ("limits".to_owned(), json!({"cpu": "1000m", "memory": "1Gi"})),
                ("requests".to_owned(), json!({"cpu": "500m", "memory": "256Mi"})),
            ]),
            node_selector: BTreeMap::new(),
            node_affinity: Object::new(),
            tolerations: Vec::new(),
            priority_class_name: "koord-prod".to_owned(),
            pod_security_context: restricted_pod(NONROOT),
            security_context: restricted_container(),
            pod_disruption_budget: PodDisruptionBudget::default(),
        }
    }
}

/// Added. The PodDisruptionBudget of the pods, so that draining nodes takes one replica at a time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct PodDisruptionBudget {
    /// Whether the chart creates it.
    enabled: bool,
    /// How many pods, or which percentage of them, may be unavailable.
    max_unavailable: CountOrPercent,
}

impl Default for PodDisruptionBudget {
    fn default() -> Self {
        Self { enabled: true, max_unavailable: CountOrPercent(1) }
    }
}
