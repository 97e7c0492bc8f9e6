//! Gangs that want the same room: none keeps another from running for ever, and none is tried without end.

use super::*;

#[test]
fn two_gangs_that_fit_half_each_do_not_keep_each_other_out_nor_busy() {
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
fn groups_that_arrive_mixed_run_as_room_comes() {
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
