//! What is written beside attempts.

use koord_core::write::Action;
use koord_engine::pod::{FurtherOwner, Owner};

use super::*;

/// The writes that are wanted: key, subresource and patch.
fn wanted(world: &World) -> Vec<(String, &'static str, Value)> {
    let writes = world.engine.upkeep().writes.into_iter();
    let shown = writes.map(|write| match write.action {
        Action::Patch { subresource, patch } => (write.key.to_string(), subresource, patch),
        _ => unreachable!(),
    });
    shown.collect()
}

#[test]
fn the_status_of_a_pod_group_follows_its_pods() {
    let mut world = World::new(&[8]);
    world.pod_group("g", 2);
    let phase = |world: &World| wanted(world)[0].2["status"]["phase"].clone();
    assert_eq!(phase(&world), "Pending");
    world.create(&["p1", "p2"], 1, &json!({"podGroup": "g"}));
    assert_eq!(phase(&world), "PreScheduling", "they are not bound yet");
    let owner = Owner { name: "j".into(), ..Owner::default() };
    for name in ["p1", "p2"] {
        let pod = Pod {
            node: Some("n1".into()),
            scheduled: Some(7),
            controller: Some(Arc::new(owner.clone())),
            ..Pod::clone(&world.pods[name])
        };
        world.engine.set_pod(Arc::new(pod.clone()), world.now);
        world.pods.insert(name.to_owned(), Arc::new(pod));
    }
    let status = json!({
        "phase": "Scheduled", "occupiedBy": "ns/j", "scheduled": 2, "running": null, "succeeded": null, "failed": null,
        "scheduleStartTime": "1970-01-01T00:00:07Z",
    });
    let patch = json!({"metadata": {"uid": "g"}, "status": status});
    assert_eq!(wanted(&world), [("ns/g".to_owned(), "", patch)]);
    for name in ["p1", "p2"] {
        let pod = Pod { is_running: true, ..Pod::clone(&world.pods[name]) };
        world.engine.set_pod(Arc::new(pod), world.now);
    }
    let status = wanted(&world)[0].2["status"].clone();
    assert_eq!((&status["phase"], &status["running"]), (&json!("Running"), &json!(2)));
    // What is written is not wanted again.
    let there: serde_json::Map<String, Value> =
        status.as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
    let value: PodGroup = serde_json::from_value(json!({"spec": {"minMember": 2}, "status": there})).unwrap();
    let key = ObjectKey::new("ns", "g");
    world.engine.set_object(Object::new(key, Uid::from("g"), false, Arc::new(value)), world.now);
    assert_eq!(wanted(&world), []);
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
    let occupied_by = |world: &World| wanted(world)[0].2["status"]["occupiedBy"].clone();
    owned(&mut world, "p1", Some("z"), &["b", "a"]);
    assert_eq!(occupied_by(&world), json!(null), "it has too few pods");
    owned(&mut world, "p2", Some("other"), &[]);
    assert_eq!(occupied_by(&world), "ns/a,ns/b,ns/z");
    owned(&mut world, "p1", None, &["only"]);
    assert_eq!(occupied_by(&world), "ns/only", "nobody controls it");
}

#[test]
fn the_status_of_the_network_lists_its_places() {
    let world = super::network::world(&json!({}));
    let [(key, subresource, patch)] = &wanted(&world)[..] else { panic!() };
    assert_eq!((key.as_str(), *subresource), ("default", "status"));
    let places: Vec<&str> = patch["status"]["detailStatus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["topologyInfo"]["topologyName"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["", "s1", "b1", "b2", "s2", "b3"]);
    assert_eq!(wanted(&World::new(&[8])), []);
}
