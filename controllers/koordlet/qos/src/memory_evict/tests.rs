use serde_json::{Value as Json, json};

use super::*;
use crate::testing::{Fixture, GI, class, container};

fn batch(memory: &str) -> Json {
    container(&json!({"kubernetes.io/batch-memory": memory}), &json!({"kubernetes.io/batch-memory": memory}))
}

fn opted_in(class: &str) -> Json {
    json!({"labels": {"koordinator.sh/qosClass": class, "koordinator.sh/eviction-enabled": "true"}})
}

/// 12 of 16 GiB are in use.
fn fixture(feature: Feature, threshold: &Json, meta: fn(&str) -> Json) -> Fixture {
    let mut fixture = Fixture::new(feature);
    let mut threshold = threshold.clone();
    threshold["enable"] = json!(true);
    fixture.slo(&json!({"resourceUsedThresholdWithBE": threshold}));
    fixture.pod("be-a", "BestEffort", &meta("BE"), Some(5500), &batch("1536Mi"));
    fixture.pod("be-b", "BestEffort", &meta("BE"), Some(5500), &batch("512Mi"));
    fixture.pod("be-c", "BestEffort", &meta("BE"), Some(5000), &batch("1Gi"));
    fixture.pod("ls-a", "Burstable", &meta("LS"), Some(9500), &container(&json!({"memory": "1Gi"}), &json!({})));
    fixture.memory(&[("node", 12 * GI), ("be-a", GI), ("be-b", 2 * GI), ("be-c", 200 << 20), ("ls-a", 4 * GI)]);
    fixture
}

fn evicted(fixture: &mut Fixture, refused: &[&str]) -> Vec<String> {
    let mut strategy = MemoryEvict::new(Duration::from_secs(4));
    let Some(mut round) = strategy.run(&fixture.input()).evictions else { return Vec::new() };
    fixture.evict(&mut round, refused)
}

#[test]
fn be_pods_are_evicted_when_the_node_uses_too_much() {
    for (name, threshold, expected) in [
        // 16 GiB × (75 % − 65 %)
        (
            "lower priority first, then more memory",
            json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 65}),
            vec!["be-c", "be-b"],
        ),
        ("the default: two below 70 %", json!({}), vec!["be-c", "be-b"]),
        ("at the threshold", json!({"memoryEvictThresholdPercent": 75}), vec!["be-c", "be-b"]),
        ("below", json!({"memoryEvictThresholdPercent": 76}), vec![]),
        (
            "lower and threshold alike",
            json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 70}),
            vec![],
        ),
        ("lower above", json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 80}), vec![]),
        (
            "all of them are not enough",
            json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 10}),
            vec!["be-c", "be-b", "be-a"],
        ),
    ] {
        let mut fixture = fixture(Feature::BeMemoryEvict, &threshold, class);
        assert_eq!(evicted(&mut fixture, &[]), expected, "{name}");
    }
}

#[test]
fn a_pod_that_is_gone_is_passed_over() {
    let threshold = json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 65});
    let mut fixture = fixture(Feature::BeMemoryEvict, &threshold, class);
    assert_eq!(evicted(&mut fixture, &["be-c"]), ["be-b"]);
}

#[test]
fn pods_without_a_label_or_a_sample_come_last_or_not_at_all() {
    let threshold = json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 10});
    let mut fixture = fixture(Feature::BeMemoryEvict, &threshold, |_| json!({}));
    assert!(evicted(&mut fixture, &[]).is_empty(), "BestEffort pods without the label are no victims");
    let mut fixture = Fixture::new(Feature::BeMemoryEvict);
    fixture.slo(&json!({"resourceUsedThresholdWithBE": {"enable": true, "memoryEvictLowerPercent": 10}}));
    for name in ["a", "b", "c"] {
        fixture.pod(name, "BestEffort", &class("BE"), None, &batch("1Gi"));
    }
    fixture.memory(&[("node", 12 * GI), ("b", GI)]);
    assert_eq!(evicted(&mut fixture, &[]), ["b", "c", "a"]);
}

/// The original counts used memory a thousandfold, so that one victim ends the round.
#[test]
fn pods_by_priority_release_what_they_use() {
    let threshold = json!({
        "memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 60, "evictEnabledPriorityThreshold": 5999
    });
    // 16 GiB × (75 % − 60 %) = 2.4 GiB
    let mut all = fixture(Feature::MemoryEvict, &threshold, opted_in);
    assert_eq!(evicted(&mut all, &[]), ["be-c", "be-b", "be-a"]);
    let mut none = fixture(Feature::MemoryEvict, &json!({"memoryEvictThresholdPercent": 70}), opted_in);
    assert!(evicted(&mut none, &[]).is_empty(), "without a priority threshold");
}

#[test]
fn pods_are_evicted_when_more_is_requested_than_allocatable() {
    let threshold = json!({
        "allocatableEvictPriorityThreshold": 5999, "memoryAllocatableEvictLowerPercent": 90, "memoryAllocatableEvictThresholdPercent": 100
    });
    let mut fixture = fixture(Feature::MemoryAllocatableEvict, &threshold, opted_in);
    fixture.node(&[("memory", "16Gi")], &[("memory", "16Gi"), ("kubernetes.io/batch-memory", "2Gi")]);
    // 3 GiB − 90 % × 2 GiB = 1.2 GiB
    assert_eq!(evicted(&mut fixture, &[]), ["be-c", "be-a"]);
}

#[test]
fn the_numbers_of_a_large_node() {
    let mut fixture = Fixture::new(Feature::BeMemoryEvict);
    fixture.slo(&json!({"resourceUsedThresholdWithBE": {"enable": true, "memoryEvictThresholdPercent": 80}}));
    fixture.node(&[("memory", "120G")], &[("memory", "120G")]);
    fixture.pod("be", "BestEffort", &class("BE"), None, &batch("1Gi"));
    fixture.memory(&[("node", 115_000_000_000), ("be", GI)]);
    let mut round = MemoryEvict::new(Duration::ZERO).run(&fixture.input()).evictions.unwrap();
    let eviction = round.next_eviction().unwrap();
    assert!(
        eviction.reason.formula.starts_with("120000000000 × (95 % − 78 %) = 20400000000 bytes"),
        "{:?}",
        eviction.reason
    );
}

#[test]
fn the_first_round_may_evict_and_then_four_seconds_do_not() {
    let mut fixture = fixture(Feature::BeMemoryEvict, &json!({}), class);
    let mut strategy = MemoryEvict::new(Duration::from_secs(4));
    let mut rounds = Vec::new();
    for second in 0..10 {
        fixture.memory(&[("node", 12 * GI), ("be-a", GI), ("be-b", 2 * GI), ("be-c", 200 << 20)]);
        if let Some(mut round) = strategy.run(&fixture.input()).evictions {
            let evicted = fixture.evict(&mut round, &[]);
            strategy.finish(&round, fixture.now);
            if !evicted.is_empty() {
                rounds.push((second, evicted.len()));
            }
            fixture.pods.retain(|pod| !evicted.contains(&pod.name.to_string()));
        }
        fixture.advance(1);
    }
    assert_eq!(rounds, [(0, 2), (4, 1)]);
}
