//! What is known of the reservations of a node, for people.

use koord_engine::{cluster::Cluster, columns::Row};
use serde_json::{Value, json};

use super::{Amounts, kept::Kept};

/// The reservations of a node: what they keep, and who uses them.
pub(super) fn on_node(kept: &Kept, cluster: &Cluster, row: Row) -> Value {
    let Some(node) = cluster.node(row) else { return json!([]) };
    let amounts = |amounts: &Amounts| -> Value {
        amounts.iter().map(|(name, amount)| (name.to_string(), json!(amount))).collect()
    };
    let reservations = kept.on_node(&node.name).map(|info| {
        let pod = |uid| cluster.pod(uid).map_or_else(|| uid.to_string(), |placed| placed.pod.key.to_string());
        json!({
            "name": *info.name,
            "uid": info.uid.to_string(),
            "isPod": info.is_pod,
            "isAssumed": info.is_assumed,
            "isMatchable": info.is_matchable(),
            "allocatable": amounts(&info.allocatable),
            "allocated": amounts(info.allocated()),
            "withheld": amounts(&info.withheld),
            "owners": info.assigned().map(pod).collect::<Vec<_>>(),
        })
    });
    reservations.collect()
}
