//! Nodes that keep something for the owners of a Reservation.

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{AttemptState, Score as _, object::Object};

use super::*;

/// A Reservation of so much cpu on the first node for pods of class LSR, and what it was given there.
fn reservation(cpu: &str, status: &str) -> Object {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let owners = json!([{"labelSelector": {"matchLabels": {"koordinator.sh/qosClass": "LSR"}}}]);
    let object: Reservation = serde_json::from_value(json!({
        "metadata": {"name": "r", "uid": "r", "annotations": {STATUS: status}},
        "spec": {"allocateOnce": false, "owners": owners, "template": {"spec": {"containers": [container]}}},
        "status": {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": cpu}},
    }))
    .unwrap();
    Object::new(ObjectKey::cluster("r"), Uid::from("r"), false, Arc::new(object))
}

#[test]
fn an_owner_finds_amplified_cpu_where_its_reservation_has_the_cpus() {
    let allocatable = json!({"cpu": "12", "memory": "64Gi", "pods": "110"});
    let mut world = World::that_reserves(&Machine { allocatable, ..Machine::amplified() });
    world.engine.set_object(reservation("4", r#"{"cpuset":"0-3"}"#), world.now);
    world.engine.set_pod(pod("other", ("LS", "5", &[]), 9500, "1Gi", Some("n1")), world.now);
    // 6 amplified ones of 12, of which 5 are used; with those of the Reservation, 7 would be.
    assert_eq!(world.create("owner", ("LSR", "4", &[FULL])), cpus("0-3"));
}

#[test]
fn what_owners_have_of_a_numa_node_counts_once_when_it_is_scored() {
    let mut world = World::that_reserves(&Machine::labelled(KEEP, "SingleNUMANode"));
    let share = |node: u32, cpu: u32| {
        json!({"numaNodeResources": [{"node": node, "resources": {"cpu": cpu.to_string()}}]}).to_string()
    };
    world.engine.set_object(reservation("4", &share(0, 4)), world.now);
    let allocated = ("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#);
    let (of_owner, of_other) = (share(0, 2), share(1, 8));
    let owner = pod("owner", ("LSR", "2", &[(STATUS, &*of_owner), allocated]), 9500, "1Gi", Some("n1"));
    let other = pod("other", ("LS", "8", &[(STATUS, &*of_other)]), 9500, "1Gi", Some("n1"));
    for pod in [owner, other] {
        world.engine.set_pod(pod, world.now);
    }
    let pod = pod("new", ("LS", "2", &[]), 9500, "16Gi", None);
    let mut cluster = world.engine.cluster().clone();
    let (class, row) = (cluster.class(&pod.template), cluster.row("n1").unwrap());
    let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let plugin = NodeNumaResource::new(NodeNumaResourceArgs::default());
    // On NUMA node 0: cpu 4 and 2 of 8, memory 16 of 32.
    assert_eq!(plugin.prepare_score(&request, &cluster).unwrap().score(&cluster, row), i64::midpoint(25, 50));
}
