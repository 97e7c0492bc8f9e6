//! ScheduleExplanation: explains why a pod, or a group of pods, cannot be scheduled.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Mutate, Resource, Schema, Time, Validate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Explains why a pod, or a group of pods, cannot be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(
    group = "scheduling.koordinator.sh",
    version = "v1alpha1",
    scope = "Namespaced",
    status,
    short_name = "sched-exp"
)]
#[koord(hardened(category = "koordinator"))]
#[koord(hardened(column(name = "Schedulable", type = "boolean", path = ".status.schedulable")))]
#[koord(hardened(column(name = "Message", type = "string", path = ".status.failedMessage")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ScheduleExplanation {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The pods to explain.
    #[serde(default)]
    pub spec: ScheduleExplanationSpec,
    /// The explanation.
    #[serde(default)]
    pub status: ScheduleExplanationStatus,
}

/// The pods to explain: existing ones, or a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanationSpec {
    /// The value of the label `scheduling.koordinator.sh/questioned-object-key` of the pods to explain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question_object_key: String,
    /// A template of pods that do not exist.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_object_template: Option<Value>,
    /// How long the explanation is kept, as a duration such as `24h`.
    #[koord(default = "24h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// The explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanationStatus {
    /// Whether all pods can be scheduled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Whether all pods can be scheduled after lower-priority pods are preempted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable_after_preemption: bool,
    /// Why the pods cannot be scheduled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// Explanations by topology domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detailed_explanation: Vec<DetailedExplanation>,
    /// Last time the explanation was updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
}

/// The explanation for one topology domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct DetailedExplanation {
    /// Name of the topology domain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topology_domain: String,
    /// Whether all pods can be scheduled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Whether all pods can be scheduled after lower-priority pods are preempted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable_after_preemption: bool,
    /// Why the pods cannot be scheduled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// Result of scheduling without preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_explanation: Option<ScheduleResult>,
    /// Result of scheduling with preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_explanation: Option<ScheduleResult>,
    /// The pods that would be preempted, by node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_possible_victims: Vec<NodePossibleVictims>,
}

/// Result of one scheduling attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleResult {
    /// Whether a feasible node was found for every pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Why the attempt failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// The pods with a feasible node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feasible_scheduling_result: Vec<FeasiblePod>,
    /// Why nodes were filtered out, ordered by plugin and reason; those where preemption might help come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_failed_details: Vec<NodeFailedDetail>,
}

/// A pod with a feasible node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct FeasiblePod {
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The feasible node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

/// Nodes that were filtered out for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailedDetail {
    /// The plugin that filtered them out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_plugin: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether preemption of lower-priority pods might help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preempt_might_help: bool,
    /// Names of the nodes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_nodes: Vec<String>,
}

/// The pods that would be preempted on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct NodePossibleVictims {
    /// Name of the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The pods that would be preempted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible_victims: Vec<PossibleVictim>,
}

/// A pod that would be preempted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct PossibleVictim {
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Whether it only has the node nominated, and does not run there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_nominated_pod: bool,
}

impl ScheduleResult {
    /// Puts the details into their documented order.
    pub fn sort(&mut self) {
        for detail in &mut self.node_failed_details {
            detail.failed_nodes.sort();
        }
        self.node_failed_details.sort_by(|a, b| {
            let order = a.failed_plugin.cmp(&b.failed_plugin).then_with(|| a.reason.cmp(&b.reason));
            order.then_with(|| b.preempt_might_help.cmp(&a.preempt_might_help))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_ordered_by_plugin_reason_and_hope() {
        let detail = |plugin: &str, reason: &str, helps, nodes: &[&str]| NodeFailedDetail {
            failed_plugin: plugin.to_owned(),
            reason: reason.to_owned(),
            preempt_might_help: helps,
            failed_nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        };
        let mut result = ScheduleResult {
            node_failed_details: vec![
                detail("B", "x", false, &[]),
                detail("A", "y", false, &["n2", "n1"]),
                detail("A", "y", true, &[]),
                detail("A", "x", false, &[]),
            ],
            ..ScheduleResult::default()
        };
        result.sort();
        let order: Vec<_> =
            result.node_failed_details.iter().map(|d| (&*d.failed_plugin, &*d.reason, d.preempt_might_help)).collect();
        assert_eq!(order, [("A", "x", false), ("A", "y", true), ("A", "y", false), ("B", "x", false)]);
        assert_eq!(result.node_failed_details[2].failed_nodes, ["n1", "n2"]);
    }
}
