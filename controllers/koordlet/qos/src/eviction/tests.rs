use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::Reason;
use serde_json::{Value as Json, json};

use super::*;
use crate::testing::{Fixture, class, container};

fn opted_in(annotations: &Json, label: &str) -> Json {
    json!({
        "labels": {"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true", "koordinator.sh/priority": label},
        "annotations": annotations,
    })
}

fn fixture(pods: &[(&str, Json, i32)]) -> Fixture {
    let mut fixture = Fixture::new(Feature::CpuEvict);
    for (name, meta, priority) in pods {
        fixture.pod(name, "BestEffort", meta, Some(*priority), &container(&json!({}), &json!({})));
    }
    fixture
}

fn amount(pod: &Pod) -> i64 {
    pod.name.rsplit('-').next().unwrap().parse().unwrap()
}

fn used(amount: i64) -> Release {
    Release { kind: ReleaseKind::Used, resource: "cpu", amount }
}

/// A task over pods whose names end with what they release.
fn task(pods: &[Arc<Pod>], required: i64) -> Task<'static> {
    Task {
        feature: Feature::CpuEvict,
        reason: Reason::new("a setting", "a formula"),
        required: vec![used(required)],
        pods: pods.to_vec(),
        release: Box::new(|pod| vec![used(amount(pod))]),
    }
}

fn round(fixture: &Fixture, required: i64) -> EvictionRound {
    EvictionRound::new(vec![task(&fixture.pods, required)], &fixture.evicted).unwrap()
}

#[test]
fn pods_are_evicted_until_enough_is_released() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0), ("c-300", json!({}), 0)]);
    let mut round = round(&fixture, 250);
    assert_eq!(fixture.evict(&mut round, &[]), ["a-100", "b-200"]);
    assert_eq!(round.accepted().len(), 2);
    assert!(EvictionRound::new(vec![task(&fixture.pods, 0)], &fixture.evicted).is_none(), "nothing is required");
}

#[test]
fn a_refused_eviction_does_not_count_and_the_next_pod_is_tried() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0), ("c-300", json!({}), 0)]);
    let mut first = round(&fixture, 100);
    assert_eq!(fixture.evict(&mut first, &["a-100"]), ["b-200"]);
    // It is tried again in the next round, as nobody has evicted it.
    fixture.evicted = Ledger::default();
    let mut second = round(&fixture, 100);
    assert_eq!(fixture.evict(&mut second, &[]), ["a-100"]);
}

/// The original may take a second pod while the first one is still terminating.
#[test]
fn an_evicted_pod_counts_until_it_is_gone_wherever_it_stands_in_the_order() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0)]);
    let last = Arc::clone(&fixture.pods[1]);
    fixture.evicted.accept(&last, Means::Api, fixture.now);
    for _ in 0..30 {
        fixture.advance(1);
        fixture.evicted.retain(&fixture.pods);
        let mut round = round(&fixture, 200);
        assert_eq!(fixture.evict(&mut round, &[]), [""; 0]);
        assert_eq!(round.accepted().len(), 0, "nothing new was evicted");
    }
    fixture.pods.pop();
    fixture.evicted.retain(&fixture.pods);
    assert!(fixture.evicted.is_empty());
    let mut round = round(&fixture, 200);
    assert_eq!(fixture.evict(&mut round, &[]), ["a-100"]);
}

#[test]
fn a_pod_that_another_strategy_evicted_meanwhile_is_not_evicted_again() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0), ("c-300", json!({}), 0)]);
    let mut waiting = round(&fixture, 150);
    fixture.evicted.accept(&fixture.pods[0], Means::Api, fixture.now);
    waiting.count_pending(&fixture.evicted);
    assert_eq!(fixture.evict(&mut waiting, &[]), ["b-200"]);
}

#[test]
fn an_eviction_by_another_strategy_in_the_middle_of_a_round_ends_it_when_it_releases_enough() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0), ("c-300", json!({}), 0)]);
    let mut round = round(&fixture, 350);
    let first = round.next_eviction().unwrap();
    round.report(&first, &Answer::Accepted(Means::Api), &mut fixture.evicted, fixture.now);
    fixture.evicted.accept(&fixture.pods[2], Means::Api, fixture.now);
    round.count_pending(&fixture.evicted);
    assert!(round.next_eviction().is_none(), "100 and 300 are released");
    assert_eq!(round.accepted().len(), 1, "the cool-down of this strategy follows its own evictions");
}

#[test]
fn a_terminating_pod_is_not_evicted_and_counts() {
    let mut fixture = fixture(&[("a-100", json!({}), 0)]);
    let meta = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    fixture.pod("b-200", "BestEffort", &meta, None, &container(&json!({}), &json!({})));
    let mut enough = round(&fixture, 200);
    assert_eq!(fixture.evict(&mut enough, &[]), [""; 0]);
    let mut more = round(&fixture, 201);
    assert_eq!(fixture.evict(&mut more, &[]), ["a-100"]);
}

/// In the original a pod counts as evicted although no container could be stopped, and is never waited for.
#[test]
fn stopped_containers_count_until_they_have_stopped() {
    let fixture = fixture(&[("a-100", json!({}), 0)]);
    let running = Arc::clone(&fixture.pods[0]);
    let mut ledger = Ledger::default();
    ledger.accept(&running, Means::StoppedContainers, fixture.now);
    ledger.retain(&fixture.pods);
    assert!(ledger.is_pending(&running) && ledger.accepted_at("uid-a-100") == Some(fixture.now));
    // The kubelet has started another container in its place.
    let mut restarted = (*running).clone();
    restarted.containers[0].id = Some(ContainerId::parse("containerd://new").unwrap());
    ledger.retain(&[Arc::new(restarted)]);
    assert!(!ledger.is_pending(&running));
}

#[test]
fn containers_are_stopped_up_to_the_first_that_does_not_run() {
    let mut fixture = Fixture::new(Feature::CpuEvict);
    let containers = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    fixture.pod("pod-1", "BestEffort", &class("BE"), None, &containers);
    let mut pod = (*fixture.pods[0]).clone();
    let stop = |pod: &Pod| {
        let eviction = Eviction {
            pod: Arc::new(pod.clone()),
            feature: Feature::BeMemoryEvict,
            reason: Reason::new("", ""),
            releases: Vec::new(),
        };
        eviction.containers_to_stop().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let all = ["containerd://pod-1-a", "containerd://pod-1-b", "containerd://pod-1-c"];
    assert_eq!(stop(&pod), all);
    pod.containers[1].state = koord_koordlet_framework::ContainerState::Terminated;
    assert_eq!(stop(&pod), all[..1]);
    pod.containers[0].state = koord_koordlet_framework::ContainerState::Waiting;
    assert_eq!(stop(&pod), all[..0]);
}

#[test]
fn amounts_of_several_tasks_are_merged_by_the_larger_one_and_kinds_never_mix() {
    let mut fixture = fixture(&[("a-100", json!({}), 0), ("b-200", json!({}), 0)]);
    let mut larger = task(&fixture.pods, 150);
    larger.release = Box::new(|_| vec![used(150)]);
    let mut requested = task(&fixture.pods, 50);
    requested.required = vec![Release { kind: ReleaseKind::Requested, resource: "cpu", amount: 50 }];
    requested.release = Box::new(|_| vec![Release { kind: ReleaseKind::Requested, resource: "cpu", amount: 50 }]);
    // The first pod releases 150 by the second task: both are satisfied with it, and so is the third.
    let mut round = EvictionRound::new(vec![task(&fixture.pods, 120), larger, requested], &fixture.evicted).unwrap();
    assert_eq!(fixture.evict(&mut round, &[]), ["a-100"]);
    let mut only_used = task(&fixture.pods, 100);
    only_used.required.push(Release { kind: ReleaseKind::Requested, resource: "cpu", amount: 1 });
    fixture.evicted = Ledger::default();
    let mut round = EvictionRound::new(vec![only_used], &fixture.evicted).unwrap();
    assert_eq!(fixture.evict(&mut round, &[]), ["a-100", "b-200"], "use does not satisfy requests");
}

#[test]
fn the_message_of_an_event_is_koordinators() {
    let mut fixture = fixture(&[("be-1", json!({}), 0)]);
    let mut round = round(&fixture, 1);
    let eviction = round.next_eviction().unwrap();
    let message = "evict Pod:test/be-1, reason: evicted, message: trigger by koordlet feature CPUEvict, kill pod: be-1";
    assert_eq!(eviction.message(&Answer::Accepted(Means::Api)), message);
    let failed = Answer::Failed { error: r#"pods "be-1" not found"#.into() };
    assert_eq!(eviction.message(&failed), format!("{message}, error pods \"be-1\" not found"));
    round.report(&eviction, &failed, &mut fixture.evicted, Moment::at(Duration::ZERO));
    assert!(fixture.evicted.is_empty());
}

#[test]
fn the_owner_of_a_pod_names_the_features_that_may_evict_it() {
    for (annotation, expected) in [
        (None, true),
        (Some(r#"["CPUEvict"]"#), true),
        (Some(r#"["BECPUEvict"]"#), false),
        (Some("[]"), false),
        (Some("oops"), false),
        (Some("{}"), false),
    ] {
        let annotations = annotation.map_or(json!({}), |text| json!({"koordinator.sh/eviction-policy": text}));
        let fixture = fixture(&[("a-1", json!({"annotations": annotations}), 0)]);
        assert_eq!(may_evict(&fixture.pods[0], Feature::CpuEvict), expected, "{annotation:?}");
    }
}

#[test]
fn victims_are_ordered_by_their_priorities_and_then_by_what_they_use() {
    let order = |pods: &[(&str, Json, i32)]| {
        let fixture = fixture(pods);
        let victims = by_priority(&fixture.pods, Feature::CpuEvict, 5999, |pod| Some(amount(pod)));
        victims.into_iter().map(|(pod, _)| pod.name.to_string()).collect::<Vec<_>>()
    };
    let with = |priority: &str| opted_in(&json!({"koordinator.sh/eviction-priority": priority}), "");
    let plain = || json!({"labels": {"koordinator.sh/eviction-enabled": "true"}});
    let sub = |label: &str| opted_in(&json!({}), label);
    assert_eq!(order(&[("a-1", plain(), 5500), ("b-2", plain(), 5100), ("c-3", plain(), 5999)]), ["b-2", "a-1", "c-3"]);
    assert_eq!(
        order(&[("a-1", with("5"), 5000), ("b-1", with("-5"), 5900), ("c-1", with("x"), 5500)]),
        ["b-1", "c-1", "a-1"]
    );
    assert_eq!(
        order(&[("a-1", sub("9999"), 5500), ("b-1", sub("1"), 5500), ("c-1", plain(), 5500)]),
        ["b-1", "c-1", "a-1"]
    );
    assert_eq!(order(&[("a-1", plain(), 5500), ("b-3", plain(), 5500), ("c-3", plain(), 5500)]), ["b-3", "c-3", "a-1"]);
    let not_opted_in = json!({});
    assert_eq!(order(&[("a-1", not_opted_in, 5500), ("b-1", plain(), 6000), ("c-1", plain(), 5999)]), ["c-1"]);
}
