//! What is known of the CPUs and NUMA nodes of a node, for people.

use koord_resource::ResourceList;
use koord_scheduler_allocation::numa::{
    ledger::Held,
    node::NumaNode,
    policy::{Exclusive, Policy},
    state::{NumaHold, NumaState},
    zone::NumaZone,
};
use koord_scheduler_framework::{Operands, ReasonCode, ServiceError, cluster::Cluster, pod::Pod, shown};
use koord_scheduling::{Cpu, ResourceVector};
use koord_types::{
    node_annotations::{AmplificationRatios, RESOURCE_AMPLIFICATION_RATIO},
    node_resource_topology::v1alpha1::NodeResourceTopology,
    numa::KUBELET_CPU_MANAGER_POLICY,
};
use serde_json::{Map, Value, json};

use super::pre_filter_state::{NodeInCluster, PreFilterState};

/// What of a node that is refused by this code is left, or what it does not report.
pub(super) fn details(code: ReasonCode, pre_filter_state: &PreFilterState, place: NodeInCluster<'_>) -> Operands {
    match code {
        ReasonCode::CpuTopologyMissing => vec![("cause", missing(place).to_owned())],
        ReasonCode::NumaUnavailable | ReasonCode::CpusUnavailable => {
            let policy = pre_filter_state.options.policy_on(place.node).unwrap_or_default().word();
            vec![("policy", policy.to_owned()), ("free_per_numa", free(pre_filter_state, place))]
        }
        _ => Operands::new(),
    }
}

/// What the report of a node lacks.
fn missing(NodeInCluster { cluster, row, state, node }: NodeInCluster<'_>) -> &'static str {
    let is_reported = cluster.node(row).is_some_and(|node| state.is_reported(&node.name));
    match (is_reported, node.cpus_per_core()) {
        (false, _) => "NoNodeResourceTopology",
        (true, 0) => "NoCpuTopology",
        (true, _) => "NoNumaNodes",
    }
}

/// What is left of each NUMA node of what the pod requests, and the CPUs that it can have for itself: `0:cpu=2,cpus=1;1:cpu=4,cpus=4`.
fn free(pre_filter_state: &PreFilterState, NodeInCluster { state, node, .. }: NodeInCluster<'_>) -> String {
    let requests = &pre_filter_state.template.requests;
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

/// What a node has, which CPUs and parts of NUMA nodes are given out, and to whom, in the shape of the original's.
pub(super) fn on_node(state: &NumaState, cluster: &Cluster, name: &str) -> Result<Value, ServiceError> {
    let known = cluster.row(name).and_then(|row| Some((row, cluster.node(row)?)));
    let (row, reported) = known.ok_or_else(|| ServiceError::Failed(format!("node \"{name}\" not found")))?;
    let node = state.node(row).filter(|node| node.cpus.counts().iter().all(|count| *count > 0));
    let invalid = || ServiceError::Failed("invalid topology, please check the NodeResourceTopology object".to_owned());
    let node = node.ok_or_else(invalid)?;
    let report = cluster.objects().get::<NodeResourceTopology>(name);
    let annotations = report.and_then(|report| report.metadata.annotations.clone()).unwrap_or_default();
    let [cores, nodes, sockets, cpus] = node.cpus.counts();
    let details: Map<String, Value> =
        node.cpus.cpus().iter().map(|id| (id.to_string(), cpu(node, id, &Held::default()))).collect();
    let allocated: Map<String, Value> =
        node.ledger.held().iter().map(|(id, held)| (id.to_string(), cpu(node, *id, held))).collect();
    // Of what a NUMA node has, all is named: what is left may be 0.
    let amounts = |zone: &NumaZone, of: &ResourceVector| -> ResourceList {
        shown::quantities(zone.total.iter().map(|(resource, _)| (state.names().name(resource), of.get(resource))))
    };
    let zones = |of: fn(&NumaZone) -> &ResourceVector| -> Vec<Value> {
        let zones = node.zones.iter();
        zones.map(|zone| json!({"node": zone.number, "resources": amounts(zone, of(zone))})).collect()
    };
    let taken = node.zones.iter().filter(|zone| zone.allocated.iter().next().is_some());
    let taken = taken.map(|zone| json!({"node": zone.number, "resources": amounts(zone, &zone.allocated)}));
    let pods = cluster.pods_on(row).filter_map(|placed| Some(allocation(&placed.pod, placed.holds.get::<NumaHold>()?)));
    let mut answer = json!({
        "name": name,
        "cpuTopology": {
            "numCPUs": cpus, "numCores": cores, "numNodes": nodes, "numSockets": sockets, "cpuDetails": details,
        },
        "reservedCPUs": node.reserved.to_string(),
        "maxRefCount": node.refs_max,
        "numaTopologyPolicy": if node.policy == Policy::None { "" } else { node.policy.word() },
        "numaNodeResources": zones(|zone| &zone.total),
        "remainingNUMANodeResources": some(zones(|zone| &zone.free)),
        "allocatedNUMANodeResources": some(taken.collect()),
        "availableCPUs": node.available_cpus().to_string(),
        "allocatedCPUs": allocated,
        "allocatedPods": some(pods.collect()),
        "cpuBindPolicy": node.bind.map(|bind| bind.word().as_str().to_owned()),
    });
    if let Some(policy) = KUBELET_CPU_MANAGER_POLICY.get(&annotations).ok().flatten() {
        answer["policy"] = json!(policy);
    }
    let ratios = reported.annotations.get(RESOURCE_AMPLIFICATION_RATIO.name());
    let ratios = ratios.and_then(|text| RESOURCE_AMPLIFICATION_RATIO.read(text).ok());
    if let Some(AmplificationRatios(ratios)) = ratios.filter(|ratios| !ratios.0.is_empty()) {
        answer["amplificationRatios"] = json!(ratios);
    }
    Ok(answer)
}

/// A CPU and how many pods have it. QUIRK: its NUMA node is numbered within the socket, unlike in amounts
/// (`the_cpus_of_a_node_are_shown_with_who_has_them`).
fn cpu(node: &NumaNode, id: u32, held: &Held) -> Value {
    let place = node.cpus.get(id).unwrap_or(Cpu { id, core: 0, node: 0, socket: 0 });
    let policies = [Exclusive::NumaNode, Exclusive::Pcpu];
    let exclusive = policies.into_iter().find(|exclusive| held.is_exclusive(*exclusive)).unwrap_or_default();
    json!({
        "cpuID": id, "coreID": place.core, "nodeID": (place.socket << 16) | place.node, "socketID": place.socket,
        "refCount": held.refs(), "exclusivePolicy": exclusive.word(),
    })
}

/// What a pod has.
fn allocation(pod: &Pod, hold: &NumaHold) -> Value {
    let shares = hold.shares.iter().map(|(node, resources)| json!({"node": node, "resources": resources}));
    let mut shown = shown::without_empty(json!({
        "uid": pod.uid.to_string(), "namespace": pod.key.namespace(), "name": pod.key.name(),
        "cpuExclusivePolicy": hold.exclusive.word(), "numaNodeResources": shares.collect::<Vec<_>>(),
    }));
    shown["cpuset"] = hold.cpus.to_string().into();
    shown
}

/// A list; null where it is empty.
fn some(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { list.into() }
}
