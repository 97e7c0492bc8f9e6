//! ScheduleExplanation: why a pod, or a group of pods, has no node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a pod, or a group of pods, has no node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
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
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is asked.
    #[serde(default)]
    pub spec: ScheduleExplanationSpec,
    /// The answer.
    #[serde(default)]
    pub status: ScheduleExplanationStatus,
}

/// What is asked: about an existing object, or about a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanationSpec {
    /// The value of the label `scheduling.koordinator.sh/questioned-object-key` of the pods in question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question_object_key: String,
    /// An object that does not exist yet.
    #[koord(schemaless, preserve_unknown_fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_object_template: Option<Value>,
    /// How long the answer is kept, as a duration such as `24h`.
    #[koord(default = "24h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanationStatus {
    /// Whether there is room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Whether there would be room if less important pods left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable_after_preemption: bool,
    /// Why there is no room.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// One entry per place in the network that was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detailed_explanation: Vec<DetailedExplanation>,
    /// When the answer was last computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
}

/// The answer for one place in the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct DetailedExplanation {
    /// Name of the place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topology_domain: String,
    /// Whether there is room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Whether there would be room if less important pods left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable_after_preemption: bool,
    /// Why there is no room.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// What came out without preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_explanation: Option<ScheduleResult>,
    /// What came out with preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_explanation: Option<ScheduleResult>,
    /// The pods that would leave, by node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_possible_victims: Vec<NodePossibleVictims>,
}

/// What came out of one attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleResult {
    /// Whether every pod found a node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schedulable: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_message: String,
    /// The pods that found a node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feasible_scheduling_result: Vec<FeasiblePod>,
    /// Why nodes did not fit, ordered by plugin, by reason, and those first where preemption might help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_failed_details: Vec<NodeFailedDetail>,
}

/// A pod that found a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
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
    /// The node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

/// Nodes that did not fit for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailedDetail {
    /// The plugin that refused them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_plugin: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether they might fit if less important pods left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preempt_might_help: bool,
    /// Names of the nodes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_nodes: Vec<String>,
}

/// The pods of one node that would leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodePossibleVictims {
    /// The node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible_victims: Vec<PossibleVictim>,
}

/// A pod that would leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
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
