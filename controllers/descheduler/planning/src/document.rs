//! Steps of a plan for programs.

use koord_descheduler_framework::{Cluster, Eviction, Outlook, Step, Successor};
use serde_json::{Value, json};

/// A step, with what it frees on its node and what it leads to.
pub fn document(step: &Step, cluster: &Cluster) -> Value {
    match step {
        Step::Evict(eviction) => {
            let mut document = eviction_document(eviction, cluster);
            document["action"] = json!("evict");
            document
        }
        Step::Cordon { node } => json!({"action": "cordon", "node": node}),
        Step::Uncordon { node } => json!({"action": "uncordon", "node": node}),
        Step::SetDeletionCost { pod, cost } => {
            json!({"action": "setDeletionCost", "pod": pod.key.as_str(), "uid": pod.uid, "node": pod.node, "cost": cost})
        }
    }
}

/// An eviction, with what it frees on its node and what it leads to.
pub fn eviction_document(eviction: &Eviction, cluster: &Cluster) -> Value {
    let mut document = json!({
        "pod": eviction.pod.key.as_str(), "uid": eviction.pod.uid, "node": eviction.pod.node, "profile": eviction.profile,
        "strategy": eviction.plugin, "reason": eviction.reason.document(), "by": eviction.means.as_str(),
        "frees": freed(eviction, cluster),
    });
    let Outlook { successor, objection } = &eviction.outlook;
    match successor {
        Some(Successor::On(node) | Successor::ComesBack(node)) => document["successor"] = json!({"node": node}),
        Some(Successor::Pending(why)) => document["successor"] = json!({"pending": why}),
        Some(Successor::None) => document["successor"] = Value::Null,
        Some(Successor::Unknown(why)) => document["successor"] = json!({"unknown": why}),
        None => {}
    }
    if let Some(objection) = objection {
        let reason = objection.reason();
        let remedy = objection.code.remedy();
        document["objection"] = json!({"code": objection.code.as_str(), "text": reason.text, "remedy": remedy});
    }
    document
}

fn freed(eviction: &Eviction, cluster: &Cluster) -> Value {
    let pod = cluster.pod_id(eviction.pod.key.as_str());
    pod.map_or_else(|| json!({}), |pod| json!(cluster.resources().list(cluster.requests(pod))))
}
