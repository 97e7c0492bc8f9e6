//! What is known of the CPUs and NUMA nodes of a node, for people.

use koord_engine::{cluster::Cluster, columns::Row};
use koord_scheduling::ResourceVector;
use serde_json::{Map, Value, json};

use super::state::{NumaHold, NumaState};

/// What a node has, which CPUs and parts of NUMA nodes are given out, and to whom.
pub(super) fn on_node(state: &NumaState, cluster: &Cluster, row: Row) -> Option<Value> {
    let node = state.node(row)?;
    let amounts = |vector: &ResourceVector| -> Value {
        vector.iter().map(|(resource, amount)| (state.names().name(resource).to_owned(), json!(amount))).collect()
    };
    let allocated: Map<String, Value> = node
        .ledger
        .held()
        .iter()
        .map(|(id, held)| {
            let place = node.cpus.get(*id);
            let cpu = json!({
                "core": place.map(|cpu| cpu.core), "node": place.map(|cpu| cpu.node), "socket": place.map(|cpu| cpu.socket),
                "refCount": held.refs(),
            });
            (id.to_string(), cpu)
        })
        .collect();
    let free = node.free_shares();
    let zones = node.zones.iter().map(|(zone, has)| {
        json!({
            "node": zone, "cpus": node.cpus_of(*zone).to_string(), "allocatable": amounts(has),
            "allocated": amounts(&node.allocated(*zone)), "free": free.get(zone).map(&amounts),
        })
    });
    let pods = cluster.pods_on(row).filter_map(|placed| {
        let (_, status) = placed.holds.get::<NumaHold>()?.status();
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        Some(json!({"pod": placed.pod.key.to_string(), "resourceStatus": status}))
    });
    Some(json!({
        "node": cluster.node(row).map(|node| &*node.name),
        "topologyPolicy": node.policy.word(),
        "cpuBindPolicy": node.bind.map(|bind| bind.word().as_str().to_owned()),
        "cpuAmplificationRatio": node.cpu_ratio,
        "maxRefCount": node.refs_max,
        "reservedCPUs": node.reserved.to_string(),
        "availableCPUs": node.available_cpus().to_string(),
        "allocated": allocated,
        "numaNodes": zones.collect::<Vec<_>>(),
        "pods": pods.collect::<Vec<_>>(),
    }))
}
