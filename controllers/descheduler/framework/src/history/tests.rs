use koord_core::key::ObjectKey;
use koord_scheduler_framework::pod::Owner;

use super::*;
use crate::{
    outlook::{Outlook, Successor},
    pod::OwnerReference,
    reason::ReasonCode,
    step::EvictedPod,
};

const COOL_DOWN: CoolDown = CoolDown { initial: Duration::from_mins(10), maximum: Duration::from_mins(30) };

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

/// A pod of the ReplicaSet `rs`, created at this minute.
fn pod(name: &str, minute: i64) -> Pod {
    let owner =
        Owner { api_version: "apps/v1".into(), kind: "ReplicaSet".into(), name: "rs".into(), uid: Uid::from("rs") };
    Pod {
        key: ObjectKey::new("default", name),
        uid: Uid::from(name),
        node: Some("n1".into()),
        owners: [OwnerReference { owner: owner.into(), is_controller: true }].into(),
        created: minute * 60,
        ..Pod::default()
    }
}

fn eviction(pod: &Pod) -> Eviction {
    Eviction {
        pod: EvictedPod { key: pod.key.clone(), uid: pod.uid.clone(), node: pod.node.clone() },
        profile: "p".into(),
        plugin: "LowNodeLoad",
        reason: ReasonCode::NodeOverutilized.reason("hot"),
        recorded_reason: String::new(),
        means: Means::Eviction { delete_options: None },
        outlook: Outlook { successor: Some(Successor::On("n2".into())), objection: None },
    }
}

fn evict(history: &mut History, pod: &Pod, minute: i64) {
    history.add(pod, &eviction(pod), COOL_DOWN, at(minute));
}

/// Until which minute a pod stays that is looked at in a minute.
fn held_until(history: &History, pod: &Pod, minute: i64) -> Option<i64> {
    let past = history.cooling_down(pod, "LowNodeLoad", "NodeOverutilized", COOL_DOWN, at(minute))?;
    Some(past.cools_down_until(COOL_DOWN).as_second() / 60)
}

#[test]
fn a_pod_that_has_replaced_an_evicted_one_stays_for_a_while_and_longer_each_time() {
    let mut history = History::default();
    evict(&mut history, &pod("a", 0), 100);
    assert_eq!(held_until(&history, &pod("b", 100), 105), Some(110));
    assert_eq!(held_until(&history, &pod("b", 100), 110), None);
    evict(&mut history, &pod("b", 100), 111);
    assert_eq!(held_until(&history, &pod("c", 112), 115), Some(131));
    evict(&mut history, &pod("c", 112), 132);
    assert_eq!(held_until(&history, &pod("d", 133), 134), Some(162), "the longest pause is 30 minutes");
}

#[test]
fn siblings_of_an_evicted_pod_may_go_too() {
    let mut history = History::default();
    evict(&mut history, &pod("a", 0), 100);
    assert_eq!(held_until(&history, &pod("sibling", 1), 101), None);
    evict(&mut history, &pod("sibling", 1), 101);
    assert_eq!(history.evictions().last().unwrap().round, 1);
}

#[test]
fn another_reason_strategy_or_controller_is_another_matter() {
    let mut history = History::default();
    evict(&mut history, &pod("a", 0), 100);
    let successor = pod("b", 100);
    let held = |pod: &Pod, strategy, reason| history.cooling_down(pod, strategy, reason, COOL_DOWN, at(101)).is_some();
    assert!(held(&successor, "LowNodeLoad", "NodeOverutilized"));
    assert!(!held(&successor, "LowNodeUtilization", "NodeOverutilized"));
    assert!(!held(&successor, "LowNodeLoad", "TaintNotTolerated"));
    let other = Pod { key: ObjectKey::new("other", "b"), ..successor.clone() };
    assert!(!held(&other, "LowNodeLoad", "NodeOverutilized"));
    assert!(!held(&Pod { owners: [].into(), ..successor }, "LowNodeLoad", "NodeOverutilized"));
}

#[test]
fn after_a_quiet_time_the_first_pause_counts_again() {
    let mut history = History::default();
    evict(&mut history, &pod("a", 0), 100);
    evict(&mut history, &pod("b", 101), 111);
    assert_eq!(history.evictions().last().unwrap().round, 2);
    evict(&mut history, &pod("c", 112), 152);
    assert_eq!(history.evictions().last().unwrap().round, 1);
}

#[test]
fn the_latest_evictions_are_remembered_and_come_back_from_text() {
    let mut history = History::default();
    for minute in 0..600 {
        evict(&mut history, &pod("a", minute), minute);
    }
    assert_eq!(history.evictions().count(), EVICTIONS_MAX);
    assert_eq!(history.evictions().next().unwrap().at, at(100));
    let text = history.to_json().to_string();
    assert!(text.len() < 400 * 1024, "a ConfigMap takes 1 MiB, and this is {}", text.len());
    assert_eq!(History::from_json(&text).unwrap(), history);
}

#[test]
fn a_dry_run_and_a_pod_without_a_controller_are_not_remembered() {
    let mut history = History::default();
    let dry = Eviction { means: Means::DryRun, ..eviction(&pod("a", 0)) };
    history.add(&pod("a", 0), &dry, COOL_DOWN, at(1));
    evict(&mut history, &Pod { owners: [].into(), ..pod("a", 0) }, 1);
    assert_eq!(history.evictions().count(), 0);
}

#[test]
fn each_successor_is_found_once_as_soon_as_it_has_a_node() {
    let mut history = History::default();
    evict(&mut history, &pod("a", 0), 100);
    evict(&mut history, &pod("b", 0), 100);
    let mut cluster = Cluster::default();
    cluster.set_pod(pod("sibling", 1).into());
    cluster.set_pod(Pod { node: None, ..pod("c", 100) }.into());
    assert!(!history.find_successors(&cluster, at(101)));
    cluster.set_pod(Pod { node: Some("n2".into()), ..pod("c", 100) }.into());
    cluster.set_pod(Pod { node: Some("n3".into()), ..pod("d", 101) }.into());
    assert!(history.find_successors(&cluster, at(102)));
    let to: Vec<_> = history.evictions().map(|past| (past.pod.as_str(), past.to.as_deref().unwrap())).collect();
    assert_eq!(to, [("a", "n2"), ("b", "n3")]);
    assert!(!history.find_successors(&cluster, at(103)), "all are found");
}

#[test]
fn pauses_do_not_overflow() {
    assert_eq!(CoolDown::default().pause(u32::MAX), CoolDown::default().maximum);
    assert_eq!(CoolDown::default().pause(0), CoolDown::default().initial);
}
