//! Gangs that want the same room: none keeps another from running for ever, and none is tried without end.

use koord_scheduler_plugins_kubernetes::InterPodAffinity;

use super::*;

#[test]
fn two_gangs_that_half_fit_neither_block_each_other_nor_are_tried_without_end() {
    let other = json!({"name": "h", "min-available": "2"});
    let mut world = World::new(&[4]);
    for (name, gang) in [("g1", of(2)), ("h1", other.clone()), ("g2", of(2)), ("h2", other)] {
        world.put(name, 2, &gang);
    }
    assert_eq!(world.run().bound(), "g1:2 g2:2");
    world.bind();
    let attempts = world.attempts;
    assert_eq!(world.wait(250).attempts, attempts);
    world.add_node("n2", 4);
    assert_eq!(world.wait(12).bound(), "g1:2 g2:2 h1:2 h2:2");
    // Neither fits: they do not wake each other.
    let mut world = World::new(&[3]);
    world.create(&["g1", "g2"], 2, &of(2)).create(&["h1", "h2"], 2, &json!({"name": "h", "min-available": "2"}));
    let attempts = world.attempts;
    assert_eq!((world.wait(250).attempts, world.bound()), (attempts, String::new()));
}

#[test]
fn groups_that_arrive_mixed_are_placed_whole() {
    let of = |name: &str, group: &str| json!({"name": name, "min-available": "1", "groups": group});
    let (ab, cd) = (r#"["ns/A","ns/B"]"#, r#"["ns/C","ns/D"]"#);
    let mut world = World::new(&[2]);
    world.put("a", 1, &of("A", ab));
    world.put("c", 1, &of("C", cd));
    world.put("b", 1, &of("B", ab));
    world.put("d", 1, &of("D", cd));
    assert_eq!(world.run().bound(), "a:2 b:2");
}

#[test]
fn pod_groups_without_a_timeout_that_fit_half_each_run_one_after_the_other() {
    let member = |name: &str| json!({"podGroup": name});
    let mut world = World::new(&[4]);
    world.pod_group("g", 2).pod_group("h", 2);
    for (name, group) in [("g1", "g"), ("h1", "h"), ("g2", "g"), ("h2", "h")] {
        world.put(name, 2, &member(group));
    }
    assert_eq!(world.run().bound(), "g1:2 g2:2");
    let attempts = world.bind().attempts;
    assert_eq!(world.wait(250).attempts, attempts);
    assert_eq!(world.delete("g1").wait(12).bound(), "g2:2", "half of the room is no room");
    assert_eq!(world.delete("g2").wait(12).bound(), "h1:2 h2:2");
}

#[test]
fn groups_that_arrive_mixed_run_as_capacity_comes() {
    let of = |name: &str, group: &str| json!({"name": name, "min-available": "1", "groups": group});
    let (ab, cd) = (r#"["ns/A","ns/B"]"#, r#"["ns/C","ns/D"]"#);
    let mut world = World::new(&[1]);
    for (name, gang, group) in [("a", "A", ab), ("c", "C", cd), ("b", "B", ab), ("d", "D", cd)] {
        world.create(&[name], 1, &of(gang, group));
    }
    assert_eq!(world.wait(20).bound(), "", "no part of a group runs");
    world.add_node("n2", 1);
    let first = world.wait(20).bound();
    assert!(matches!(&*first, "a:2 b:2" | "c:2 d:2"), "{first}");
    world.add_node("n3", 2);
    assert_eq!(world.bind().wait(20).bound(), "a:2 b:2 c:2 d:2");
}

/// A world of one zone with pod affinity, and a member of a gang of two that wants to be near to a pod of the app `db`.
fn beside_a_neighbour() -> (World, Value) {
    let mut world = World::beside(Some(Arc::new(InterPodAffinity::default())), Coscheduling::default(), &[]);
    world.add_node_at("n1", 8, &json!({"zone": "a"}));
    let term = json!({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"});
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let mut near = of(2);
    near["spec"] = json!({ "affinity": affinity });
    (world, near)
}

#[test]
fn what_helps_the_member_that_was_in_the_way_has_its_gang_tried() {
    let refused = || {
        let (mut world, near) = beside_a_neighbour();
        world.create(&["p2"], 1, &near).create(&["p1"], 1, &of(2));
        let message = &world.messages["p1"];
        assert!(message.contains("due to member Pod \"ns/p2\""), "p1 is tried for both, and had a place: {message}");
        let attempts = world.attempts;
        assert_eq!((world.wait(20).attempts, world.bound()), (attempts, String::new()));
        world
    };
    let mut world = refused();
    world.put("db", 1, &json!({"label": "app=db", "node": "n1"}));
    assert_eq!(world.wait(1).bound(), "p1:2 p2:2", "it was bound");
    let mut world = refused();
    let attempts = world.attempts;
    world.put("db", 1, &json!({"label": "app=other", "node": "n1"}));
    assert_eq!(world.wait(20).attempts, attempts, "it helps nobody");
    world.put("db", 1, &json!({"label": "app=db", "node": "n1"}));
    assert_eq!(world.wait(1).bound(), "p1:2 p2:2", "it was relabelled");
}

#[test]
fn what_helps_a_member_while_its_gang_is_tried_has_the_gang_tried_again() {
    let (mut world, near) = beside_a_neighbour();
    let mut first = of(2);
    first["priority"] = json!(1);
    world.put("p2", 1, &near);
    world.put("p3", 100, &of(2));
    world.put("p1", 1, &first);
    let tried = [(); 2].map(|()| world.engine.attempt(world.now).unwrap().pod.uid.to_string());
    assert_eq!(tried, ["p1", "p2"], "p3 might be enough");
    world.put("db", 1, &json!({"label": "app=db", "node": "n1"}));
    assert_eq!(world.wait(2).bound(), "p1:2 p2:2");
}
