//! What is written into Reservations.

use super::*;

/// A pod of so many cores that is bound to a node and says that it uses `r`.
pub(super) fn bound(name: &str, cpus: u32, node: &str) -> Arc<Pod> {
    let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#)];
    let pod = World::of(name, cpus, &[("app", "x")], "");
    Arc::new(Pod { node: Some(node.into()), given: given.into_iter().collect(), ..pod })
}

#[test]
fn an_owner_is_written_wherever_it_runs() {
    let mut world = World::new(&[8, 8]);
    assert_eq!(world.reserve("r", 4, &json!({"allocateOnce": false, "nodeName": "n1"})), "n1");
    for (name, node) in [("p", "n2"), ("q", "n1")] {
        world.engine.set_pod(bound(name, 2, node), world.now);
        assert_eq!(world.status_updates(), 1, "{name}");
    }
    let owners = world.objects["r"]["status"]["currentOwners"].as_array().unwrap();
    assert_eq!(owners.iter().map(|owner| owner["name"].as_str().unwrap()).collect::<Vec<_>>(), ["p", "q"]);
}

#[test]
fn an_owner_whose_annotation_is_gone_or_cannot_be_read_is_one_no_more() {
    for text in ["", "{"] {
        let mut world = World::new(&[8]);
        world.reserve("r", 4, &json!({"allocateOnce": false}));
        let owner = bound("p", 3, "n1");
        world.engine.set_pod(Arc::clone(&owner), world.now);
        assert_eq!(world.status_updates(), 1, "{text:?}");
        let given = [("scheduling.koordinator.sh/reservation-allocated", text)].into_iter();
        let given = given.filter(|(_, text)| !text.is_empty()).collect();
        world.engine.set_pod(Arc::new(Pod { given, ..Pod::clone(&owner) }), world.now);
        assert_eq!(world.status_updates(), 1, "{text:?}");
        assert_eq!(world.objects["r"]["status"]["currentOwners"][0], Value::Null, "{text:?}");
    }
}

#[test]
fn one_owner_is_the_end_where_that_is_said_later_with_the_next_change() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    world.engine.set_pod(bound("p", 2, "n1"), world.now);
    assert_eq!(world.status_updates(), 1);
    world.update("r", &|object| object["spec"]["allocateOnce"] = json!(true));
    assert_eq!((world.status_updates(), world.status("r")), (0, "Available Scheduled=True Ready=True".to_owned()));
    world.engine.remove_pod(&Uid::from("p"), world.now);
    assert_eq!((world.status_updates(), world.status("r")), (1, "Succeeded Scheduled=True Ready=False".to_owned()));
    assert_eq!(world.objects["r"]["status"]["currentOwners"][0], Value::Null);
}

#[test]
fn a_reservation_that_is_being_deleted_and_is_held_is_used_up_and_expires() {
    let deleted = |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({}));
    world.update("r", &deleted);
    world.engine.set_pod(bound("p", 2, "n1"), world.now);
    assert_eq!(world.engine.urgent_of(|_| true).len(), 1);
    assert_eq!((world.status_updates(), world.status("r")), (1, "Succeeded Scheduled=True Ready=False".to_owned()));

    let mut world = World::of_plugin(Reservation::new(&ReservationArgs::default(), |_| false), &[8]);
    world.reserve("r", 4, &json!({"expires": "1960-01-01T00:00:00Z"}));
    world.update("r", &deleted);
    assert_eq!((world.status_updates(), world.status("r")), (1, "Failed Scheduled=True Ready=False".to_owned()));
    // Since when it is over is not said, so that it would be deleted at once.
    world.update("r", &|object| object["status"]["conditions"][1]["lastTransitionTime"] = Value::Null);
    assert_eq!(world.engine.status_updates().writes, []);
    world.update("r", &|object| object["metadata"]["deletionTimestamp"] = Value::Null);
    assert_eq!(world.engine.status_updates().writes.len(), 1);
}

#[test]
fn a_reservation_without_amounts_in_its_status_reserves_the_requests_of_its_template() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    world.update("r", &|object| object["status"]["allocatable"] = json!({}));
    assert_eq!(world.pod("other", 4, &[], ""), FULL);
    assert_eq!(world.owner("p", 6, ""), "n1 in r");
}

#[test]
fn a_reservation_whose_template_has_a_reservation_affinity_reports_that_it_has_no_node() {
    let mut world = World::new(&[8]);
    world.create("r", 9, &json!({}));
    let annotations = json!({"scheduling.koordinator.sh/reservation-affinity": r#"{"name":"other"}"#});
    world.update("r", &|object| object["spec"]["template"]["metadata"]["annotations"] = annotations.clone());
    assert!(world.attempt().starts_with("0/1 nodes are available"));
    assert_eq!(world.status("r"), "- Scheduled=False");
}
