//! The conditions that a feature gate adds.

use super::{written::bound, *};

fn world(cpus: &[u32]) -> World {
    World::of_plugin(Reservation::new(&ReservationArgs::default(), |gate| gate == "ReservationConditions"), cpus)
}

/// What a condition of `r` says.
fn said(world: &World, type_: &str) -> String {
    let conditions = world.objects["r"]["status"]["conditions"].as_array().unwrap();
    let one = conditions.iter().find(|one| one["type"] == type_).unwrap();
    let words = ["status", "reason", "message"].map(|member| one[member].as_str().unwrap_or("-"));
    words.join(" ")
}

fn pass(world: &mut World) {
    let time = world.engine.cluster().time();
    world.engine.tick(time + Duration::from_mins(1));
}

const SHARED: &str = "Available Scheduled=True Ready=True Accepted=True Matched=False";
const UNUSED: &str = "False Unused no pod uses it";

#[test]
fn a_reservation_says_which_pod_uses_it() {
    let mut world = self::world(&[8]);
    world.reserve("r", 6, &json!({"allocateOnce": false}));
    assert_eq!(world.status("r"), SHARED);
    assert_eq!([said(&world, "Accepted"), said(&world, "Matched")], ["True Accepted -", UNUSED]);
    assert_eq!(world.status_updates(), 0, "everything was said with its node");
    for (name, expected) in [("q", "True Used ns/q uses it"), ("p", "True Used ns/p and 1 more use it")] {
        world.engine.set_pod(bound(name, 2, "n1"), world.now);
        assert_eq!((world.status_updates(), said(&world, "Matched")), (1, expected.to_owned()));
    }
    for name in ["p", "q"] {
        world.engine.remove_pod(&Uid::from(name), world.now);
    }
    assert_eq!((world.status_updates(), said(&world, "Matched")), (1, UNUSED.to_owned()));
}

#[test]
fn the_conditions_are_added_to_a_reservation_that_has_its_node() {
    let mut world = self::world(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    world.update("r", &|object| object["status"]["conditions"].as_array_mut().unwrap().truncate(2));
    assert_eq!(world.status("r"), "Available Scheduled=True Ready=True");
    assert_eq!((world.status_updates(), world.status("r")), (1, SHARED.to_owned()));
}

#[test]
fn the_last_pod_that_was_refused_says_why_it_does_not_use_a_reservation() {
    let unmatched = r#"{"reservationSelector":{"k":"v"}}"#;
    let named = r#"{"name":"r"}"#;
    let full = "False Unschedulable ns/p: 0/1 nodes are available: 1 Insufficient cpu.";
    for (cpus, app, affinity, expected) in [
        (2, "x", unmatched, "False ReservationNotMatched ns/p: the Reservation didn't match affinity rules"),
        (2, "y", named, "False ReservationOwnerMismatch ns/p: spec.owners[0].labelSelector does not match the pod"),
        (9, "x", "", full),
        (9, "y", "", UNUSED),
        (2, "x", r#"{"name":"other"}"#, UNUSED),
    ] {
        let mut world = self::world(&[8]);
        world.reserve("r", 4, &json!({"allocateOnce": false}));
        pass(&mut world);
        let refused = world.pod("p", cpus, &[("app", app)], affinity);
        assert!(refused.starts_with("0/1 nodes are available"), "{refused}");
        world.status_updates();
        assert_eq!(said(&world, "Matched"), expected);
        assert_eq!(world.status_updates(), 0, "it is said once");
    }
}

#[test]
fn another_reason_is_written_once_a_minute() {
    let mut world = self::world(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    let at = |world: &World| world.engine.cluster().time() + Duration::from_mins(1);
    let next = at(&world);
    world.owner("p", 9, "");
    let status_updates = world.engine.status_updates();
    assert_eq!((status_updates.writes.len(), status_updates.again), (0, Some(next)));
    pass(&mut world);
    assert_eq!(world.engine.cluster().time(), next);
    assert_eq!(world.status_updates(), 1);
    world.owner("q", 9, "");
    let status_updates = world.engine.status_updates();
    assert_eq!((status_updates.writes.len(), status_updates.again), (0, Some(at(&world))));
    assert!(said(&world, "Matched").contains(" ns/p: "));
    world.engine.set_pod(bound("s", 2, "n1"), world.now);
    assert_eq!(
        (world.status_updates(), said(&world, "Matched")),
        (1, "True Used ns/s uses it".to_owned()),
        "this waits for nothing"
    );
    world.engine.remove_pod(&Uid::from("s"), world.now);
    assert_eq!(
        (world.status_updates(), said(&world, "Matched")),
        (1, UNUSED.to_owned()),
        "what was before does not count"
    );
}

#[test]
fn a_reservation_that_makes_no_sense_is_not_accepted() {
    let mut world = self::world(&[8]);
    world.reserve("r", 4, &json!({"owners": []}));
    assert_eq!(world.status("r"), "- Scheduled=False Accepted=False");
    assert_eq!(said(&world, "Accepted"), "False Invalid the reservation misses the owner spec");

    let mut world = self::world(&[8]);
    let none = json!([{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}]);
    assert_eq!(world.reserve("r", 4, &json!({"owners": none})), "n1", "it is placed, and nobody may use it");
    assert!(said(&world, "Accepted").starts_with("False Invalid spec.owners: "), "{}", said(&world, "Accepted"));
    assert_eq!(world.status_updates(), 0);

    let mut world = self::world(&[8]);
    world.create("r", 4, &json!({}));
    world.update("r", &|object| object["spec"]["template"]["spec"]["containers"] = json!("none"));
    assert_eq!((world.status_updates(), world.status("r")), (1, "- Scheduled=False Accepted=False".to_owned()));
    assert!(said(&world, "Accepted").starts_with("False Invalid spec.template: "), "{}", said(&world, "Accepted"));
    assert_eq!(world.status_updates(), 0, "it is said once");
}

#[test]
fn a_reservation_without_a_node_is_accepted_and_not_said_to_be_unused() {
    let mut world = self::world(&[2]);
    let said = world.reserve("r", 4, &json!({"allocateOnce": false}));
    assert!(said.starts_with(FULL), "{said}");
    assert_eq!(world.status("r"), "- Scheduled=False Accepted=True");
    assert_eq!(world.status_updates(), 0);
}

#[test]
fn the_conditions_of_an_expired_reservation_stay() {
    let mut world = self::world(&[8]);
    world.reserve("r", 4, &json!({}));
    world.engine.set_pod(bound("p", 2, "n1"), world.now);
    let over = "Succeeded Scheduled=True Ready=False Accepted=True Matched=True";
    assert_eq!((world.status_updates(), world.status("r")), (1, over.to_owned()));
    world.engine.remove_pod(&Uid::from("p"), world.now);
    assert_eq!((world.status_updates(), world.status("r")), (0, over.to_owned()));
}
