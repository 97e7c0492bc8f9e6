//! Who says what is lacking, of several reservations and several plugins.

use super::{
    parts::{RESTRICTED, cpu, gpu, machine},
    *,
};

const BOTH: &str = r#"{"reservationSelector":{"kept":"yes"}}"#;

#[test]
fn each_reservation_that_is_too_small_counts() {
    let mut world = World::new(&[16]);
    let small = json!({"allocateOnce": false, "allocatePolicy": "Restricted", "labels": {"kept": "yes"}});
    for name in ["r1", "r2"] {
        assert_eq!(world.reserve(name, 4, &small), "n1");
    }
    assert_eq!(
        world.owner("p", 6, BOTH),
        "0/1 nodes are available: 2 Reservation(s) Insufficient cpu. 2 Reservation(s) matched owner total"
    );
    let event = "0/2 reservations are available: 2 Reservation(s) Insufficient cpu.";
    assert_eq!(world.events, [("FailedScheduling-Reservation", event.to_owned())]);
    // Those that lack something themselves are not kept from the pod by their node.
    let said = world.owner("q", 13, BOTH);
    assert!(
        said.contains("1 Insufficient cpu by node, 2 Reservation(s) Insufficient cpu. 2 Reservation(s) matched"),
        "{said}"
    );
}

#[test]
fn a_reservation_that_takes_no_more_pods_says_with_how_many_it_is_full() {
    let mut world = World::new(&[16]);
    let spec = json!({"allocateOnce": false, "allocatePolicy": "Restricted"});
    world.reserve("r", 8, &spec);
    world.update("r", &|object| object["status"]["allocatable"] = json!({"cpu": "8", "pods": "1"}));
    assert_eq!(world.owner("p", 2, r#"{"name":"r"}"#), "n1 in r");
    let said = world.owner("q", 2, r#"{"name":"r"}"#);
    assert!(said.contains("1 Reservation(s) Too many pods, requested: 1, used: 1, capacity: 1."), "{said}");
}

#[test]
fn devices_are_filtered_in_a_reservation_that_is_short_of_other_resources() {
    let mut requests = gpu(100);
    requests["cpu"] = json!("4");
    let mut world = machine(1, "", "gpu0@0/0 gpu1@0/0 gpu2@0/1 gpu3@0/1");
    assert_eq!(world.keep("r", "x", &requests, RESTRICTED), "n1: 0-3 gpu0");
    let named = r#"{"name":"r"}"#;
    let said = world.take("p", "x", &gpu(200), named);
    assert!(said.starts_with("0/1 nodes are available: 1 Reservation(s) Insufficient GPU Devices. "), "{said}");
    requests["cpu"] = json!("6");
    let said = world.take("q", "x", &requests, named);
    let full = "1 Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000. ";
    assert!(said.starts_with(&format!("0/1 nodes are available: {full}")), "{said}");
}

#[test]
fn what_no_reservation_holds_is_lacking_on_the_node() {
    let mut world = machine(1, "", "gpu0@0/0 gpu1@0/0 gpu2@0/1 gpu3@0/1");
    assert_eq!(world.keep("r", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    for name in ["a", "b", "c"] {
        world.take(name, "y", &gpu(60), "");
    }
    let said = world.take("p", "x", &gpu(200), r#"{"name":"r"}"#);
    assert!(said.starts_with("0/1 nodes are available: 1 Insufficient GPU Devices. "), "{said}");
}

#[test]
fn where_node_and_reservation_are_too_small_that_is_said_and_not_what_cpus_and_devices_lack() {
    let mut world = machine(1, "", "");
    assert_eq!(world.keep("r", "x", &cpu(4), RESTRICTED), "n1: 0-3");
    let said = world.take("p", "x", &cpu(6), "");
    assert!(
        said.starts_with("0/1 nodes are available: 1 Insufficient cpu by node. 1 Reservation(s) for node reason"),
        "{said}"
    );
    let mut world = machine(1, "", "gpu0@0/0 gpu1@0/0 gpu2@0/1 gpu3@0/1");
    assert_eq!(world.keep("r", "x", &gpu(200), RESTRICTED), "n1: gpu0 gpu1");
    let said = world.take("p", "x", &gpu(400), "");
    assert!(said.starts_with("0/1 nodes are available: 1 Insufficient koordinator.sh/gpu-core by node, "), "{said}");
}

#[test]
fn a_reservation_that_restricts_its_owners_in_words_that_cannot_be_read_has_none() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"allocatePolicy": "Restricted"}));
    world.update("r", &|object| {
        object["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/reservation-restricted-options": "{bad"});
    });
    let said = world.owner("p", 2, r#"{"name":"r"}"#);
    assert!(said.contains("no reservations match reservation affinity"), "{said}");
}

#[test]
fn a_reservation_takes_over_pods_that_its_owners_select_by_labels_though_it_is_unschedulable() {
    let over = |owners: Value| {
        let mut world = World::new(&[4]);
        let running = World::of("p", 4, &[("app", "x")], "");
        world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..running }), world.now);
        world.reserve(
            "r",
            4,
            &json!({
                "allocatePolicy": "Restricted", "preAllocation": true, "unschedulable": true, "owners": owners,
                "labels": {"scheduling.koordinator.sh/pre-allocation-required": "true"},
            }),
        )
    };
    let no_pod = "0/1 nodes are available: node(s) no pod match reservation with pre allocation required.";
    assert_eq!([over(json!([{}])), over(json!([{"object": {"name": "p"}}]))], [no_pod; 2]);
    assert_eq!(over(json!([{"labelSelector": {"matchLabels": {"app": "x"}}}])), "n1");
}

#[test]
fn an_annotation_that_cannot_be_read_is_named_for_programs() {
    for name in ["reservation-affinity", "exact-match-reservation"] {
        let key = format!("scheduling.koordinator.sh/{name}");
        let pod = World::of("p", 2, &[("app", "x")], "");
        let annotations = [(key.as_str(), "{bad")].into_iter().collect();
        let template = Arc::new(Template { annotations, ..Template::clone(&pod.template) });
        let mut world = World::new(&[8]);
        world.engine.set_pod(Arc::new(Pod { template, ..pod }), world.now);
        let why = world.engine.why(&Uid::from("p"), world.now).unwrap();
        let (plugin, rejection) = why.decision.unwrap().rejected.unwrap();
        assert_eq!((plugin, rejection.reasons[0].operand("annotation")), ("Reservation", Some(key.as_str())));
    }
}
