//! `webhookConfiguration`: what API servers do around the webhooks.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WebhookConfiguration {
    /// What API servers do while no manager answers: Ignore admits a request unchecked, Fail refuses it.
    failure_policy: FailurePolicies,
    /// How long API servers wait for an answer, in seconds.
    #[schemars(range(min = 1, max = 30))]
    timeout_seconds: u8,
    /// Added. Namespaces whose pods are neither changed nor checked, beside those labelled control-plane and the installation's own.
    excluded_namespaces: Vec<String>,
    /// Added. Further conditions in CEL that a pod must meet to be sent to the webhooks: [{name: …, expression: …}].
    #[schemars(length(max = 63))]
    match_conditions: Vec<MatchCondition>,
}

impl Default for WebhookConfiguration {
    fn default() -> Self {
        Self {
            failure_policy: FailurePolicies::default(),
            timeout_seconds: 30,
            excluded_namespaces: vec!["kube-system".to_owned()],
            match_conditions: Vec::new(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MatchCondition {
    name: String,
    expression: String,
}

#[derive(Debug, Serialize, JsonSchema)]
enum FailurePolicy {
    Ignore,
    Fail,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct FailurePolicies {
    /// For pods and their bindings.
    pods: FailurePolicy,
    /// For ElasticQuotas.
    elasticquotas: FailurePolicy,
    /// For the status of nodes.
    node_status: FailurePolicy,
    /// For nodes.
    nodes: FailurePolicy,
    /// For Reservations.
    reservations: FailurePolicy,
    /// Added. For the ConfigMap slo-controller-config, with the gate ConfigMapValidatingWebhook.
    configmaps: FailurePolicy,
}

impl Default for FailurePolicies {
    fn default() -> Self {
        Self {
            pods: FailurePolicy::Ignore,
            elasticquotas: FailurePolicy::Ignore,
            node_status: FailurePolicy::Ignore,
            nodes: FailurePolicy::Ignore,
            reservations: FailurePolicy::Ignore,
            configmaps: FailurePolicy::Fail,
        }
    }
}

/// Which value sets the failure policy of entries for a resource; none where the entry's own policy is fixed.
pub(crate) fn failure_policy_of(resource: &str) -> Option<&'static str> {
    match resource {
        "pods" => Some("pods"),
        "elasticquotas" => Some("elasticquotas"),
        "nodes/status" => Some("nodeStatus"),
        "nodes" => Some("nodes"),
        "reservations" => Some("reservations"),
        "configmaps" => Some("configmaps"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_failure_policy_sets_that_of_an_entry() {
        let entries = koord_webhook_handlers::HANDLERS.iter().flat_map(|handler| handler.entries);
        let set: BTreeSet<&str> =
            entries.flat_map(|entry| entry.resources).filter_map(|resource| failure_policy_of(resource)).collect();
        let Value::Object(values) = serde_json::to_value(FailurePolicies::default()).unwrap() else { panic!() };
        assert_eq!(values.keys().map(String::as_str).collect::<BTreeSet<_>>(), set);
    }
}
