//! What pods that run were given, as their annotations say it.

use super::*;

const OWN: (&str, &str) = (STATUS, r#"{"cpuset":"0-1"}"#);

fn run(world: &mut World, annotations: &[(&str, &str)]) -> Option<NumaHold> {
    world.engine.set_pod(pod("p", ("LS", "2", annotations), 9500, "1Gi", Some("n1")), world.now);
    world.engine.cluster().pod(&Uid::from("p")).unwrap().holds.get::<NumaHold>().cloned()
}

#[test]
fn the_exclusive_policy_of_a_pod_holds_whatever_its_class() {
    let exclusive = |annotations: &[(&str, &str)]| {
        run(&mut World::of(&[Machine::default()]), annotations).map(|hold| hold.exclusive)
    };
    let apart = (SPEC, r#"{"preferredCPUExclusivePolicy":"PCPULevel"}"#);
    assert_eq!(exclusive(&[OWN, apart]), Some(Exclusive::Pcpu));
    assert_eq!(exclusive(&[OWN]), Some(Exclusive::None));
}

#[test]
fn annotations_that_cannot_be_read_change_nothing() {
    let no_set = (STATUS, r#"{"cpuset":"x","numaNodeResources":[{"node":0,"resources":{"cpu":"2"}}]}"#);
    for annotations in [&[no_set][..], &[(STATUS, "{")], &[OWN, (SPEC, "{")]] {
        let mut world = World::of(&[Machine::default()]);
        assert_eq!(run(&mut world, annotations), None, "{annotations:?}");
        let hold = run(&mut world, &[OWN]);
        assert!(hold.is_some());
        assert_eq!(run(&mut world, annotations), hold, "{annotations:?}");
    }
}

#[test]
fn cpus_of_an_annotation_that_is_removed_or_names_none_are_free() {
    for annotations in [&[(STATUS, "{}")][..], &[]] {
        let mut world = World::of(&[Machine::default()]);
        assert!(run(&mut world, &[OWN]).is_some());
        assert_eq!(run(&mut world, annotations).unwrap_or_default(), NumaHold::default(), "{annotations:?}");
        assert_eq!(world.create("q", ("LSR", "2", &[FULL])), cpus("0-1"), "{annotations:?}");
    }
}
