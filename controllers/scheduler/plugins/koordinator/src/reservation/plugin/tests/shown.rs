//! What is answered about the reservations of a node.

use super::*;

fn shown(world: &World, node: &str) -> Value {
    let plugin = Reservation::default();
    plugin.serve(&["nodeReservations", node], &Query::default(), world.engine.cluster()).unwrap()
}

#[test]
fn the_reservations_of_a_node_are_shown_as_the_original_shows_them() {
    let mut world = World::new(&[8]);
    let spec = json!({"allocateOnce": false, "allocatePolicy": "Restricted", "hostPort": 80});
    world.reserve("r", 4, &spec);
    world.owner("p", 3, "");
    let amounts = |cpu: i64| json!({"MilliCPU": cpu, "Memory": 0, "EphemeralStorage": 0, "AllowedPodNumber": 0, "ScalarResources": null});
    let expected = json!({"items": [{
        "name": "r", "uid": "r", "kind": "Reservation", "available": true,
        "allocatable": {"cpu": "4"}, "allocated": {"cpu": "3"},
        "allocatablePorts": {"0.0.0.0": [{"Protocol": "TCP", "Port": 80}]},
        "availableResource": amounts(1000), "allocatedResource": amounts(3000),
        "owners": [{"labelSelector": {"matchLabels": {"app": "x"}}}], "allocatePolicy": "Restricted",
        "assignedPods": [{"Namespace": "ns", "Name": "p", "UID": "p", "Requests": {"cpu": "3"}, "Ports": null}],
        "isMatchable": true,
    }]});
    assert_eq!(shown(&world, "n1"), expected);
    assert_eq!(shown(&world, "n2"), json!({}));
}

#[test]
fn an_operating_pod_is_shown_like_a_reservation() {
    let world = pods::with(&[4], pods::keeping("op", 4));
    let items = &shown(&world, "n1")["items"];
    let item = &items[0];
    assert_eq!([&item["name"], &item["namespace"], &item["kind"]], [&json!("op"), &json!("ns"), &json!("Pod")]);
    assert_eq!((&item["allocateOnce"], &item["allocatePolicy"]), (&json!(true), &json!("Aligned")));
    assert_eq!(item["owners"], json!([{"labelSelector": {"matchLabels": {"app": "x"}}}]));
    assert_eq!((item.get("allocated"), item.get("assignedPods")), (None, None), "nobody uses it");
}
