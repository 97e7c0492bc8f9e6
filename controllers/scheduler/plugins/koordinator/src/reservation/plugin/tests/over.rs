//! Reservations over the resources of running pods.

use super::*;

const NO_POD_MATCHES: &str = "node(s) no pod match reservation with pre allocation required.";

/// A Reservation that is made over running pods or not at all, with these further members.
fn over(members: &Value) -> Value {
    let mut spec = json!({
        "allocatePolicy": "Restricted", "preAllocation": true,
        "labels": {"scheduling.koordinator.sh/pre-allocation-required": "true"},
    });
    for (key, value) in members.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

#[test]
fn pods_on_nodes_that_a_reservation_does_not_select_are_not_taken_over() {
    let with = |selected: &str| {
        let mut world = World::new(&[4, 4]);
        let owner = World::of("p", 4, &[("app", "x")], "");
        world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..owner }), world.now);
        world.create("r", 4, &over(&json!({})));
        let selector = json!({"kubernetes.io/hostname": selected});
        world.update("r", &|object| object["spec"]["template"]["spec"]["nodeSelector"] = selector.clone());
        world.attempt()
    };
    assert_eq!([with("n1"), with("n2")], ["n1".to_owned(), format!("0/2 nodes are available: {NO_POD_MATCHES}")]);
}

#[test]
fn a_pod_that_uses_a_reservation_is_taken_over_by_no_other() {
    let pre_allocation = koord_config::scheduler::PreAllocation { enable_cluster_mode: true, ..Default::default() };
    let args = ReservationArgs { pre_allocation_config: pre_allocation, ..ReservationArgs::default() };
    let of_cluster = over(&json!({"preAllocationPolicy": {"mode": "Cluster"}}));
    let with = |given: &[(&str, &str)]| {
        let mut world = World::of_plugin(Reservation::new(&args, |_| false), &[8]);
        world.reserve("first", 4, &json!({"allocatePolicy": "Restricted", "allocateOnce": false}));
        let pod = World::of("p", 4, &[("pod.koordinator.sh/is-pre-allocatable", "true")], "");
        let pod = Pod { node: Some("n1".into()), given: given.iter().copied().collect(), ..pod };
        world.engine.set_pod(Arc::new(pod), world.now);
        world.reserve("r", 4, &of_cluster)
    };
    let first = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"first","uid":"first"}"#)];
    assert_eq!([with(&[]), with(&first)], ["n1".to_owned(), format!("0/1 nodes are available: {NO_POD_MATCHES}")]);
}

#[test]
fn a_reservation_that_takes_over_nothing_and_must_is_not_placed() {
    let mut world = World::new(&[8]);
    let owner = World::of("p", 4, &[("app", "x")], "");
    world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..owner }), world.now);
    let no_pod = format!("0/1 nodes are available: {NO_POD_MATCHES}");
    assert_eq!(world.reserve("r", 4, &over(&json!({"preAllocation": false}))), no_pod, "the label alone is read");
    assert_eq!(world.reserve("s", 4, &over(&json!({"preAllocation": false, "labels": {}}))), "n1");
}
