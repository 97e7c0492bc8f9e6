//! What is written beside attempts.

use koord_core::write::Action;
use koord_scheduler_framework::pod::{FurtherOwner, Owner};

use super::*;
use crate::coscheduling::statuses::GONE_AFTER;

/// The writes that are wanted: key, subresource and patch.
fn status_writes(world: &World) -> Vec<(String, &'static str, Value)> {
    let writes = world.engine.status_updates().writes.into_iter();
    let shown = writes.map(|write| match write.action {
        Action::Patch { subresource, patch } => (write.key.to_string(), subresource, patch),
        _ => unreachable!(),
    });
    shown.collect()
}

fn set(world: &mut World, min: i32, status: &Value) {
    let value: PodGroup = serde_json::from_value(json!({"spec": {"minMember": min}, "status": status})).unwrap();
    let object = Object::new(ObjectKey::new("ns", "g"), Uid::from("g"), false, Arc::new(value));
    world.engine.set_object(object, world.now);
}

/// The PodGroup `g` needs so many pods, and what is wanted of its status is written. Gives its phase and how many pods are scheduled
/// and run.
fn follow(world: &mut World, min: i32) -> (String, i32, i32) {
    let known = |world: &World| {
        let group = world.engine.cluster().objects().get::<PodGroup>("ns/g");
        group.map(|group| group.status.clone()).unwrap_or_default()
    };
    let status = json!(known(world));
    set(world, min, &status);
    while let Some((.., patch)) = status_writes(world.run()).pop() {
        let members = patch["status"].as_object().unwrap().clone().into_iter();
        let status: serde_json::Map<String, Value> = members.filter(|(_, value)| !value.is_null()).collect();
        set(world, min, &status.into());
    }
    let status = known(world);
    (status.phase.map(|phase| phase.as_str().to_owned()).unwrap_or_default(), status.scheduled, status.running)
}

fn bind(world: &mut World, name: &str, is_running: bool) {
    let pod = Pod { node: Some("n1".into()), is_running, ..Pod::clone(&world.pods[name]) };
    world.engine.set_pod(Arc::new(pod), world.now);
}

fn is(phase: &str, scheduled: i32, running: i32) -> (String, i32, i32) {
    (phase.to_owned(), scheduled, running)
}

#[test]
fn the_status_of_a_pod_group_follows_its_pods() {
    let mut world = World::new(&[8]);
    assert_eq!(follow(&mut world, 2), is("Pending", 0, 0));
    for name in ["p1", "p2"] {
        world.put(name, 1, &json!({"podGroup": "g"}));
        let owner = Owner { name: "j".into(), ..Owner::default() };
        let pod = Pod { controller: Some(Arc::new(owner)), ..Pod::clone(&world.pods[name]) };
        world.pods.insert(name.to_owned(), Arc::new(pod.clone()));
        world.engine.set_pod(Arc::new(pod), world.now);
    }
    world.run();
    let status = json!({
        "phase": "Scheduling", "occupiedBy": "ns/j", "scheduled": null, "running": null, "succeeded": null, "failed": null,
        "scheduleStartTime": "1970-01-01T00:00:00Z",
    });
    let patch = json!({"metadata": {"uid": "g"}, "status": status});
    assert_eq!(status_writes(&world), [("ns/g".to_owned(), "", patch)]);
    assert_eq!(follow(&mut world, 2), is("Scheduling", 0, 0), "they are not bound yet");
    for name in ["p1", "p2"] {
        bind(&mut world, name, false);
    }
    assert_eq!(follow(&mut world, 2), is("Scheduled", 2, 0));
    for name in ["p1", "p2"] {
        bind(&mut world, name, true);
    }
    assert_eq!(follow(&mut world, 2), is("Running", 2, 2));
    world.delete("p1");
    assert_eq!(status_writes(&world), [], "one may take its place");
    world.create(&["p3"], 16, &json!({"podGroup": "g"}));
    assert_eq!(follow(&mut world, 2), is("Scheduling", 1, 1), "the one in its place does not fit");
    world.delete("p2").delete("p3");
    let then = world.engine.cluster().time() + GONE_AFTER;
    assert_eq!((status_writes(&world), world.engine.status_updates().again), (vec![], Some(then)));
    world.engine.tick(then);
    assert_eq!((status_writes(&world).len(), world.engine.status_updates().again), (1, None));
    assert_eq!(follow(&mut world, 2), is("Pending", 1, 1));
}

#[test]
fn a_pod_group_that_does_not_fit_or_needs_more_pods_is_being_scheduled() {
    let member = json!({"podGroup": "g"});
    let mut world = World::new(&[8]);
    follow(&mut world, 3);
    world.create(&["p1", "p2", "p3"], 4, &member);
    assert_eq!(follow(&mut world, 3), is("Scheduling", 0, 0));
    assert_eq!((follow(&mut world, 2), world.bind().bound()), (is("Scheduling", 0, 0), "p1:2 p3:2".to_owned()));
    assert_eq!((follow(&mut world, 2), follow(&mut world, 3)), (is("Scheduled", 2, 0), is("Scheduling", 2, 0)));
}

#[test]
fn nothing_is_counted_of_a_pod_group_that_never_has_enough_pods() {
    for (min, names) in [(3, &["p1", "p2"][..]), (0, &["p1"])] {
        let mut world = World::new(&[8]);
        for name in names {
            world.put(name, 1, &json!({"podGroup": "g"}));
            bind(&mut world, name, true);
        }
        assert_eq!(follow(&mut world, min), is("Pending", 0, 0), "{min}");
    }
}

#[test]
fn a_pod_group_that_becomes_known_before_its_pods_is_looked_at_with_them() {
    let mut world = World::new(&[8]);
    set(&mut world, 2, &json!({"phase": "Running", "scheduled": 2, "running": 2}));
    world.put("p1", 1, &json!({"podGroup": "g"}));
    bind(&mut world, "p1", true);
    assert_eq!(follow(&mut world, 2), is("Scheduling", 1, 1), "the other one has ended");
}

#[test]
fn a_pod_group_is_occupied_by_all_owners_of_its_first_pod() {
    let mut world = World::new(&[8]);
    world.pod_group("g", 2);
    let owned = |world: &mut World, name: &str, controller: Option<&str>, further: &[&str]| {
        world.put(name, 1, &json!({"podGroup": "g"}));
        let owner = |name: &str| Arc::new(Owner { name: name.into(), ..Owner::default() });
        let further = further.iter().map(|name| FurtherOwner { owner: owner(name), controller: None });
        let pod = Pod {
            controller: controller.map(owner),
            further_owners: further.collect(),
            ..Pod::clone(&world.pods[name])
        };
        world.engine.set_pod(Arc::new(pod), world.now);
    };
    let occupied_by = |world: &World| status_writes(world)[0].2["status"]["occupiedBy"].clone();
    owned(&mut world, "p1", Some("z"), &["b", "a"]);
    assert_eq!(occupied_by(&world), json!(null), "it has too few pods");
    owned(&mut world, "p2", Some("other"), &[]);
    assert_eq!(occupied_by(&world), "ns/a,ns/b,ns/z");
    owned(&mut world, "p1", None, &["only"]);
    assert_eq!(occupied_by(&world), "ns/only", "nobody controls it");
}

#[test]
fn a_reservation_counts_as_a_member_of_its_pod_group() {
    let mut world = World::new(&[8]);
    world.put("p1", 1, &json!({"podGroup": "g"}));
    world.put("r", 1, &json!({"podGroup": "g", "reservation": "r"}));
    assert_eq!(follow(&mut world, 2), is("Scheduling", 0, 0));
    bind(&mut world, "r", true);
    assert_eq!(follow(&mut world, 2), is("Scheduling", 1, 1));
}

#[test]
fn the_status_of_the_network_lists_its_places() {
    let world = super::network::world(&json!({}));
    let [(key, subresource, patch)] = &status_writes(&world)[..] else { panic!() };
    assert_eq!((key.as_str(), *subresource), ("default", "status"));
    let places: Vec<&str> = patch["status"]["detailStatus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["topologyInfo"]["topologyName"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["", "s1", "b1", "b2", "s2", "b3"]);
    assert_eq!(status_writes(&World::new(&[8])), []);
}
