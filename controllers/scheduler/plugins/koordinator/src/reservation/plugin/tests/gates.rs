//! What feature gates change.

use super::*;

fn world(gate: &'static str, cpus: &[u32]) -> World {
    World::of_plugin(Reservation::new(&ReservationArgs::default(), |name| name == gate), cpus)
}

#[test]
fn affinities_see_the_labels_of_nodes_unless_a_gate_says_otherwise() {
    let selector = r#"{"reservationSelector":{"kubernetes.io/hostname":"n1"}}"#;
    let with = |gate| {
        let mut world = world(gate, &[8]);
        world.reserve("r", 4, &json!({}));
        world.owner("p", 2, selector)
    };
    assert_eq!(with(""), "n1 in r", "affinity-node-labels");
    assert!(with("OmitNodeLabelsForReservation").contains("1 Reservation(s) didn't match affinity rules"));
}

#[test]
fn a_node_may_be_trusted_to_have_what_other_filters_found() {
    let with = |gate| {
        let mut world = world(gate, &[8]);
        world.reserve("r", 8, &json!({"allocateOnce": false}));
        let withheld = json!({"node.koordinator.sh/reservation": r#"{"resources":{"cpu":"2"}}"#});
        world.update("r", &|object| object["metadata"]["annotations"] = withheld.clone());
        world.owner("p", 8, "")
    };
    assert!(with("").contains("Insufficient cpu by node"));
    assert_eq!(with("SkipReservationFitsNode"), "n1 in r");
}

#[test]
fn owners_of_reservations_that_are_gone_are_written_so_with_a_gate() {
    let with = |gate| {
        let mut world = world(gate, &[8]);
        world.reserve("r", 4, &json!({"allocateOnce": false}));
        let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#)];
        let owner = World::of("p", 3, &[("app", "x")], "");
        let owner = Arc::new(Pod { node: Some("n1".into()), given: given.into_iter().collect(), ..owner });
        world.engine.set_pod(Arc::clone(&owner), world.now);
        world.status_updates();
        let before = world.engine.status_updates().writes.len();
        world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), "r", world.now);
        let writes = world.engine.status_updates().writes;
        world.engine.set_pod(Arc::new(Pod { given: Labels::default(), ..Pod::clone(&owner) }), world.now);
        (before, writes, world.engine.status_updates().writes.len())
    };
    let (before, writes, after) = with("CleanExpiredReservationAllocated");
    assert_eq!((before, writes.len(), after), (0, 1, 0));
    let Action::Patch { patch, .. } = &writes[0].action else { panic!("{writes:?}") };
    assert_eq!(patch["metadata"]["annotations"], json!({"scheduling.koordinator.sh/reservation-allocated": null}));
    assert_eq!((writes[0].key.as_str(), &patch["metadata"]["uid"]), ("ns/p", &json!("p")));
    assert_eq!(with("").1, []);
}

#[test]
fn the_owner_of_an_operating_pod_is_written_with_the_gate_too() {
    let mut world = world("CleanExpiredReservationAllocated", &[8]);
    world.engine.set_pod(Arc::new(pods::keeping("op", 4)), world.now);
    let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"op","uid":"op"}"#)];
    let owner = World::of("p", 3, &[("app", "x")], "");
    let owner = Pod { node: Some("n1".into()), given: given.into_iter().collect(), ..owner };
    world.engine.set_pod(Arc::new(owner), world.now);
    assert_eq!(world.engine.status_updates().writes, []);
}
