//! Pods of quotas that use more than they may.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::elastic_quota::{Overuse, Running, revoked};

#[test]
fn a_quota_loses_pods_only_after_it_has_used_too_much_for_long() {
    let mut world = World::of([cores("q1", 30, 100, json!({})), cores("q2", 60, 100, json!({}))]);
    world.arrive("q1", cpu(70));
    let mut overuse = Overuse::default();
    let looks = |overuse: &mut Overuse, world: &World, now| {
        let now = Timestamp::from_second(now).unwrap();
        overuse.late(world.forest(), now, SignedDuration::from_secs(3)).len()
    };
    assert_eq!(looks(&mut overuse, &world, 0), 0);
    world.arrive("q2", cpu(60));
    assert_eq!([10, 13, 14, 15, 18].map(|now| looks(&mut overuse, &world, now)), [0, 0, 1, 0, 1]);
    world.leave("q1", cpu(70));
    assert_eq!(looks(&mut overuse, &world, 30), 0);
    assert_eq!(overuse, Overuse::default());
}

#[test]
fn the_default_quota_loses_no_pods() {
    let mut world = World::of([cores("koordinator-default-quota", 0, 5, json!({}))]);
    world.arrive("koordinator-default-quota", cpu(7));
    let mut overuse = Overuse::default();
    let looks = [0, 60].map(|now| {
        overuse.late(world.forest(), Timestamp::from_second(now).unwrap(), SignedDuration::from_secs(3)).len()
    });
    assert_eq!(looks, [0, 0]);
}

#[test]
fn the_least_important_pods_go_until_the_others_fit() {
    let revoked = |limit: i64, pods: &[(i64, bool)]| {
        let running = pods.iter().enumerate().map(|(index, (cores, is_preemptible))| Running {
            pod: index,
            used: list(cpu(*cores)),
            is_preemptible: *is_preemptible,
        });
        let used = list(json!({"cpu": pods.iter().map(|(cores, _)| cores).sum::<i64>().to_string()}));
        revoked(running.collect(), &used, &list(json!({"cpu": limit.to_string()})))
    };
    assert_eq!(revoked(40, &[(40, true), (30, true)]), [0]);
    assert_eq!(revoked(70, &[(40, true), (30, true)]), [0; 0]);
    assert_eq!(revoked(40, &[(40, false), (30, true)]), [1], "pods that do not give way stay");
    // 10 and 40 were taken; the 10 fits again.
    assert_eq!(revoked(40, &[(10, true), (40, true), (30, true)]), [1]);
    assert_eq!(revoked(5, &[(10, true), (20, true)]), [1, 0]);
}
