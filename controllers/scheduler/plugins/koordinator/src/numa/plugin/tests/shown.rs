//! What is answered about a node.

use koord_scheduler_framework::ServiceEndpoint as _;

use super::*;

fn shown(world: &World, path: &[&str]) -> Result<Value, ServiceError> {
    let plugin = NodeNumaResource::new(NodeNumaResourceArgs::default());
    plugin.serve(path, &Query::default(), world.engine.cluster())
}

#[test]
fn the_cpus_of_a_node_are_shown_with_who_has_them() {
    let kubelet = ("kubelet.koordinator.sh/cpu-manager-policy", r#"{"policy":"static","reservedCPUs":"15"}"#);
    let mut world = World::of(&[Machine::reporting(kubelet.0, kubelet.1)]);
    let apart = r#"{"preferredCPUBindPolicy":"FullPCPUs","preferredCPUExclusivePolicy":"PCPULevel"}"#;
    assert_eq!(world.create("a", ("LSR", "2", &[(SPEC, apart)])), cpus("0-1"));
    let mut node = shown(&world, &["nodes", "n1"]).unwrap();
    let details = node["cpuTopology"]["cpuDetails"].take();
    assert_eq!(
        (details.as_object().unwrap().len(), &details["9"]),
        (16, &json!({"cpuID": 9, "coreID": 4, "nodeID": 1, "socketID": 0, "refCount": 0, "exclusivePolicy": ""}))
    );
    let of_a = |id: u32| json!({"cpuID": id, "coreID": 0, "nodeID": 0, "socketID": 0, "refCount": 1, "exclusivePolicy": "PCPULevel"});
    let zone = |node: u32, cpu: &str| json!({"node": node, "resources": {"cpu": cpu, "memory": "32Gi"}});
    let all = json!([zone(0, "8"), zone(1, "7")]);
    let expected = json!({
        "name": "n1",
        "cpuTopology": {"numCPUs": 16, "numCores": 8, "numNodes": 2, "numSockets": 1, "cpuDetails": null},
        "reservedCPUs": "15", "maxRefCount": 1, "policy": {"policy": "static", "reservedCPUs": "15"},
        "numaTopologyPolicy": "", "numaNodeResources": all, "remainingNUMANodeResources": all,
        "allocatedNUMANodeResources": null, "availableCPUs": "2-14", "allocatedCPUs": {"0": of_a(0), "1": of_a(1)},
        "allocatedPods": [
            {"uid": "a", "namespace": "ns", "name": "a", "cpuset": "0-1", "cpuExclusivePolicy": "PCPULevel"},
        ],
        "cpuBindPolicy": null,
    });
    assert_eq!(node, expected);
}

#[test]
fn the_numa_nodes_of_a_node_are_shown_with_who_has_them() {
    let mut world = World::of(&[Machine { labels: json!({KEEP: "SingleNUMANode"}), ..Machine::amplified() }]);
    assert_eq!(world.create("a", ("LS", "4", &[])), shares("", &[(0, "4", "1Gi")]));
    let node = shown(&world, &["nodes", "n1"]).unwrap();
    let zone = |node: u32, cpu: &str, memory: &str| json!({"node": node, "resources": {"cpu": cpu, "memory": memory}});
    assert_eq!(node["numaTopologyPolicy"], json!("SingleNUMANode"));
    assert_eq!(node["amplificationRatios"], json!({"cpu": 1.5}));
    assert_eq!(node["numaNodeResources"], json!([zone(0, "12", "32Gi"), zone(1, "12", "32Gi")]));
    assert_eq!(node["remainingNUMANodeResources"], json!([zone(0, "8", "31Gi"), zone(1, "12", "32Gi")]));
    assert_eq!(node["allocatedNUMANodeResources"], json!([zone(0, "4", "1Gi")]));
    let pod = json!({
        "uid": "a", "namespace": "ns", "name": "a", "cpuset": "", "numaNodeResources": [zone(0, "4", "1Gi")],
    });
    assert_eq!((&node["allocatedPods"], &node["allocatedCPUs"]), (&json!([pod]), &json!({})));
}

#[test]
fn a_node_that_is_unknown_or_reports_no_cpus_is_an_error() {
    let world = World::of(&[Machine { name: "n2", numa_nodes: 0, ..Machine::default() }]);
    let failed = |text: &str| Err(ServiceError::Failed(text.to_owned()));
    let invalid = "invalid topology, please check the NodeResourceTopology object";
    assert_eq!(shown(&world, &["nodes", "n2"]), failed(invalid));
    assert_eq!(shown(&world, &["nodes", "n3"]), failed("node \"n3\" not found"));
    assert_eq!(shown(&world, &["nodes"]), Err(ServiceError::UnknownPath));
}
