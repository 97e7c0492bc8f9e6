//! Taints that keep pods off a node: of one that is cordoned, and of one whose conditions are bad.
//!
//! In a real cluster the node lifecycle controller of kube-controller-manager keeps them. A server does so after
//! [`ApiServer::maintain_taints`].

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::ApiServer;
use crate::{environment, metadata, registry::ResourceDef, store::CollectionId};

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Which taint a condition with this status stands for.
const OF_CONDITIONS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

impl ApiServer {
    /// Keeps the taints of all nodes from now on.
    pub fn maintain_taints(&mut self) {
        let Some(nodes) = self.registry.any_version("", "nodes").cloned() else { return };
        self.follow_all(&nodes);
        self.tainted = Some(nodes);
        self.follow_changes();
    }

    /// Brings the taints of changed nodes up to date.
    pub(super) fn reconcile_taints(&mut self, changed: &[(CollectionId, String)]) {
        let Some(nodes) = self.tainted.clone() else { return };
        for (_, name) in changed.iter().filter(|(collection, _)| *collection == nodes.collection) {
            self.reconcile_taints_of(&nodes, name);
        }
    }

    fn reconcile_taints_of(&mut self, nodes: &Arc<ResourceDef>, name: &str) {
        let Some(mut node) = self.object(nodes, "", name) else { return };
        let now = environment::time_text(self.environment.now());
        let known = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let taints = desired(&node, &known, &now);
        if taints == known {
            return;
        }
        if let Some(spec) = node["spec"].as_object_mut() {
            if taints.is_empty() {
                spec.remove("taints");
            } else {
                spec.insert("taints".to_owned(), Value::Array(taints));
            }
        }
        self.write_own(Method::PUT, &format!("/api/v1/nodes/{}", metadata::text(&node, "name")), &node);
    }
}

/// The taints that a node should have: those that are not ours to keep, those of ours that are still due, and the new ones.
fn desired(node: &Value, known: &[Value], now: &str) -> Vec<Value> {
    let conditions = node["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |kind: &str, status: &str| {
        conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == status)
    };
    let of_conditions = OF_CONDITIONS.iter().filter(|(kind, status, _)| has(kind, status)).map(|(_, _, key)| *key);
    let cordoned = (node["spec"]["unschedulable"] == true).then_some(UNSCHEDULABLE);
    // Whether it is not ready or not reachable also drives away the pods that are there.
    let evicting = OF_CONDITIONS.iter().filter(|(kind, status, _)| *kind == "Ready" && has(kind, status));
    let evicting = evicting.map(|(_, _, key)| (*key, "NoExecute"));
    let due: Vec<(&str, &str)> = of_conditions.chain(cordoned).map(|key| (key, "NoSchedule")).chain(evicting).collect();
    // A node that has never reported is not ready, as its admission says.
    let has_reported = conditions.iter().any(|condition| condition["type"] == "Ready");
    let is_ours = |taint: &Value| {
        let key = taint["key"].as_str().unwrap_or_default();
        match taint["effect"].as_str() {
            Some("NoSchedule") => {
                let is_of_condition = OF_CONDITIONS.iter().any(|(_, _, known)| *known == key);
                key == UNSCHEDULABLE || (is_of_condition && (has_reported || key != NOT_READY))
            }
            Some("NoExecute") => has_reported && matches!(key, NOT_READY | UNREACHABLE),
            _ => false,
        }
    };
    let is_due = |taint: &Value| due.iter().any(|(key, effect)| taint["key"] == *key && taint["effect"] == *effect);
    let mut taints: Vec<Value> = known.iter().filter(|taint| !is_ours(taint) || is_due(taint)).cloned().collect();
    for (key, effect) in due {
        if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": now}));
        }
    }
    taints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(node: &Value) -> Vec<String> {
        let known = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let taints = desired(node, &known, "t");
        taints.iter().map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "")).collect()
    }

    #[test]
    fn taints_follow_from_cordons_and_conditions_and_others_stay() {
        let not_ready = json!({"key": NOT_READY, "effect": "NoSchedule"});
        let evicts = json!({"key": NOT_READY, "effect": "NoExecute"});
        let own = json!({"key": "dedicated", "effect": "NoSchedule"});
        let new = json!({"spec": {"taints": [not_ready]}});
        assert_eq!(keys(&new), ["node.kubernetes.io/not-ready:NoSchedule"], "it has not reported");
        let ready = json!({"spec": {"taints": [not_ready, evicts, own]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(keys(&ready), ["dedicated:NoSchedule"]);
        let cordoned = json!({"spec": {"unschedulable": true, "taints": [own]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "True"}]}});
        let expected = [
            "dedicated:NoSchedule",
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/disk-pressure:NoSchedule",
            "node.kubernetes.io/unschedulable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
        ];
        assert_eq!(keys(&cordoned), expected);
        let uncordoned = json!({"spec": {"taints": [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]}});
        assert!(keys(&uncordoned).is_empty());
    }
}
