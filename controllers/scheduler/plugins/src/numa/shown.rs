//! What is known of the CPUs and NUMA nodes of a node, for people.

use koord_engine::{
    cluster::Cluster,
    columns::Row,
    plugin::{Operands, ReasonCode},
};
use koord_scheduling::ResourceVector;
use serde_json::{Map, Value, json};

use super::{
    asked::{Asked, Place},
    state::{NumaHold, NumaState},
    zone::NumaZone,
};

/// What of a node that is refused by this code is left, or what it does not report.
pub(super) fn details(code: ReasonCode, asked: &Asked, place: Place<'_>) -> Operands {
    match code {
        ReasonCode::CpuTopologyMissing => vec![("cause", missing(place).to_owned())],
        ReasonCode::NumaUnavailable | ReasonCode::CpusUnavailable => {
            let policy = asked.wanted.policy_on(place.node).unwrap_or_default().word();
            vec![("policy", policy.to_owned()), ("free_per_numa", free(asked, place))]
        }
        _ => Operands::new(),
    }
}

/// What the report of a node lacks.
fn missing(Place { cluster, row, state, node }: Place<'_>) -> &'static str {
    let is_reported = cluster.node(row).is_some_and(|node| state.is_reported(&node.name));
    match (is_reported, node.cpus_per_core()) {
        (false, _) => "NoNodeResourceTopology",
        (true, 0) => "NoCpuTopology",
        (true, _) => "NoNumaNodes",
    }
}

/// What is left of each NUMA node of what the pod requests, and the CPUs that it can have for itself: `0:cpu=2,cpus=1;1:cpu=4,cpus=4`.
fn free(asked: &Asked, Place { state, node, .. }: Place<'_>) -> String {
    let requests = &asked.template.requests;
    let available = node.available_cpus();
    let of_node = |zone: &NumaZone| {
        let amounts = requests.iter().filter_map(|(name, requested)| {
            let id = state.names().get(name)?;
            Some(format!("{name}={}", koord_scheduling::quantity(name, zone.free.get(id), requested.format())))
        });
        let cpus = available.common(&zone.cpus);
        let cpus = (node.cpus_per_core() > 0).then(|| format!("cpus={cpus}"));
        format!("{}:{}", zone.number, amounts.chain(cpus).collect::<Vec<_>>().join(","))
    };
    node.zones.iter().map(of_node).collect::<Vec<_>>().join(";")
}

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
    let zones = node.zones.iter().map(|zone| {
        json!({
            "node": zone.number, "cpus": zone.cpus.to_string(), "allocatable": amounts(&zone.total),
            "allocated": amounts(&zone.allocated), "free": amounts(&zone.free),
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
