use koord_koordlet_metrics::{Measure, Subject};
use serde_json::{Value as Json, json};

use super::*;
use crate::testing::{Fixture, class, container, notes};

fn batch(milli: &str) -> Json {
    container(&json!({"kubernetes.io/batch-cpu": milli}), &json!({"kubernetes.io/batch-cpu": milli}))
}

fn opted_in(class: &str) -> Json {
    json!({"labels": {"koordinator.sh/qosClass": class, "koordinator.sh/eviction-enabled": "true"}})
}

fn fixture(feature: Feature, threshold: &Json) -> Fixture {
    let mut fixture = Fixture::new(feature);
    let mut threshold = threshold.clone();
    threshold["enable"] = json!(true);
    fixture.slo(&json!({"resourceUsedThresholdWithBE": threshold}));
    fixture
}

fn strategy() -> CpuEvict {
    CpuEvict::new(Duration::from_secs(20), Moment::at(Duration::ZERO))
}

/// Samples of seven seconds: usage and limit of BE pods, each second.
fn best_effort(fixture: &mut Fixture, usage: f64, limit: f64) {
    for _ in 0..7 {
        fixture.advance(1);
        fixture.sample(Subject::BestEffort, Measure::BestEffortUsage, usage);
        fixture.sample(Subject::BestEffort, Measure::BestEffortRequest, 8000.0);
        fixture.sample(Subject::BestEffort, Measure::BestEffortRealLimit, limit);
        fixture.cpu(&[("be-a", 0.9), ("be-b", 0.5), ("be-c", 0.6)]);
    }
}

fn satisfaction() -> Json {
    json!({"cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 60, "cpuEvictTimeWindowSeconds": 6})
}

fn with_be_pods(threshold: &Json) -> Fixture {
    let mut fixture = fixture(Feature::BeCpuEvict, threshold);
    fixture.pod("be-a", "BestEffort", &class("BE"), Some(5500), &batch("3000"));
    fixture.pod("be-b", "BestEffort", &class("BE"), Some(5100), &batch("3000"));
    fixture.pod("be-c", "BestEffort", &class("BE"), Some(5999), &batch("2000"));
    fixture
}

fn evicted(fixture: &mut Fixture, strategy: &mut CpuEvict) -> Vec<String> {
    let outcome = strategy.run(&fixture.input());
    let Some(mut round) = outcome.evictions else { return Vec::new() };
    let evicted = fixture.evict(&mut round, &[]);
    strategy.finish(&round, fixture.now);
    evicted
}

#[test]
fn be_pods_are_evicted_when_they_can_use_too_little_of_what_they_request() {
    for (name, usage, limit, change, expected) in [
        ("limit 2 of 8 requested: 2800m", 2000.0, 2000.0, json!({}), vec!["be-b"]),
        ("satisfied", 4000.0, 4000.0, json!({}), vec![]),
        ("the limit is not used", 1000.0, 2000.0, json!({}), vec![]),
        ("upper 100 is invalid", 2000.0, 2000.0, json!({"cpuEvictBESatisfactionUpperPercent": 100}), vec![]),
        ("disabled", 2000.0, 2000.0, json!({"enable": false}), vec![]),
        ("no batch CPU on the node", 2000.0, 2000.0, json!({"cpuEvictPolicy": "evictByAllocatable"}), vec![]),
        (
            "two CPUs released by two pods",
            2000.0,
            1000.0,
            json!({"cpuEvictBESatisfactionUpperPercent": 60}),
            vec!["be-b", "be-a"],
        ),
    ] {
        let mut threshold = satisfaction();
        threshold.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let enable = threshold["enable"].clone();
        let mut fixture = with_be_pods(&threshold);
        if enable == json!(false) {
            fixture.slo(&json!({"resourceUsedThresholdWithBE": threshold}));
        }
        best_effort(&mut fixture, usage, limit);
        assert_eq!(evicted(&mut fixture, &mut strategy()), expected, "{name}");
    }
}

#[test]
fn the_formula_of_an_eviction_has_its_numbers() {
    let mut fixture = with_be_pods(&satisfaction());
    best_effort(&mut fixture, 2000.0, 2000.0);
    let mut round = strategy().run(&fixture.input()).evictions.unwrap();
    let eviction = round.next_eviction().unwrap();
    assert_eq!(
        &*eviction.reason.formula,
        "8000m requested × (60 % − 2000m usable / 8000m) = 2800m, as satisfaction is at most 40 % and 2000m are in use"
    );
    assert_eq!(eviction.releases, [Release { kind: ReleaseKind::Requested, resource: BATCH_CPU, amount: 3000 }]);
    assert_eq!(eviction.trigger(), "trigger by koordlet feature BECPUEvict");
}

#[test]
fn a_window_with_too_few_samples_evicts_nobody() {
    let mut fixture = with_be_pods(&json!({
        "cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 60, "cpuEvictTimeWindowSeconds": 60
    }));
    best_effort(&mut fixture, 2000.0, 2000.0);
    assert!(evicted(&mut fixture, &mut strategy()).is_empty(), "7 samples of at least 20");
}

#[test]
fn the_youngest_samples_may_ask_for_less() {
    let mut fixture = with_be_pods(&satisfaction());
    best_effort(&mut fixture, 2000.0, 2000.0);
    fixture.advance(1);
    fixture.sample(Subject::BestEffort, Measure::BestEffortUsage, 4000.0);
    fixture.sample(Subject::BestEffort, Measure::BestEffortRequest, 8000.0);
    fixture.sample(Subject::BestEffort, Measure::BestEffortRealLimit, 4000.0);
    assert!(evicted(&mut fixture, &mut strategy()).is_empty());
}

#[test]
fn within_one_priority_the_pod_that_uses_most_of_its_request_goes_first() {
    let mut fixture = fixture(Feature::BeCpuEvict, &satisfaction());
    fixture.pod("be-a", "BestEffort", &class("BE"), Some(5500), &batch("3000"));
    fixture.pod("be-b", "BestEffort", &class("BE"), Some(5500), &batch("3000"));
    fixture.pod("be-c", "BestEffort", &class("BE"), Some(5500), &batch("2000"));
    best_effort(&mut fixture, 2000.0, 2000.0);
    // 0.9 of 3000m and 0.6 of 2000m are alike, 0.5 of 3000m is less: by name in descending order.
    assert_eq!(evicted(&mut fixture, &mut strategy()), ["be-c", "be-a"]);
}

fn with_usage(threshold: &Json) -> Fixture {
    let mut fixture = fixture(Feature::CpuEvict, threshold);
    fixture.pod("be-a", "BestEffort", &opted_in("BE"), Some(5500), &batch("1000"));
    fixture.pod("be-b", "BestEffort", &opted_in("BE"), Some(5100), &batch("1000"));
    fixture.pod("be-c", "BestEffort", &class("BE"), Some(5999), &batch("1000"));
    fixture.pod("ls-a", "Burstable", &opted_in("LS"), Some(9500), &container(&json!({"cpu": "1"}), &json!({})));
    fixture.cpu(&[("node", 6.0), ("be-a", 1.5), ("be-b", 0.6), ("be-c", 1.0), ("ls-a", 1.0)]);
    fixture
}

#[test]
fn pods_are_evicted_by_priority_when_the_node_uses_too_much() {
    for (name, threshold, expected) in [
        // 8000m × (75 % − 60 %) = 1200m
        (
            "75 % of 70/60",
            json!({"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 60, "evictEnabledPriorityThreshold": 5999}),
            vec!["be-b", "be-a"],
        ),
        // 8000m × (75 % − 68 %) = 560m
        (
            "the lower one is two below",
            json!({"cpuEvictThresholdPercent": 70, "evictEnabledPriorityThreshold": 5999}),
            vec!["be-b"],
        ),
        (
            "at the threshold",
            json!({"cpuEvictThresholdPercent": 75, "evictEnabledPriorityThreshold": 5999}),
            vec!["be-b"],
        ),
        (
            "below",
            json!({"cpuEvictThresholdPercent": 80, "cpuEvictLowerPercent": 60, "evictEnabledPriorityThreshold": 5999}),
            vec![],
        ),
        ("without a priority", json!({"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 60}), vec![]),
        (
            "up to 5100",
            json!({"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 60, "evictEnabledPriorityThreshold": 5100}),
            vec!["be-b"],
        ),
    ] {
        let mut fixture = with_usage(&threshold);
        assert_eq!(evicted(&mut fixture, &mut strategy()), expected, "{name}");
    }
}

#[test]
fn pods_are_evicted_when_more_is_requested_than_allocatable() {
    for (name, threshold, allocatable, expected) in [
        // 8000 − 80 % × 6000 = 3200
        ("8000 of 6000", json!({}), Some("6000"), vec!["be-b", "be-c"]),
        ("as much as the threshold", json!({}), Some("8000"), vec![]),
        ("nothing allocatable", json!({}), None, vec!["be-b", "be-c", "be-a"]),
        ("zero allocatable", json!({}), Some("0"), vec!["be-b", "be-c", "be-a"]),
        ("a priority of prod", json!({"allocatableEvictPriorityThreshold": 8000}), Some("6000"), vec![]),
        ("lower not below", json!({"cpuAllocatableEvictLowerPercent": 100}), Some("6000"), vec![]),
    ] {
        let mut settings = json!({
            "allocatableEvictPriorityThreshold": 5999, "cpuAllocatableEvictLowerPercent": 80, "cpuAllocatableEvictThresholdPercent": 100
        });
        settings.as_object_mut().unwrap().extend(threshold.as_object().unwrap().clone());
        let mut fixture = fixture(Feature::CpuAllocatableEvict, &settings);
        let mut amounts = vec![("cpu", "8"), ("memory", "16Gi")];
        amounts.extend(allocatable.map(|amount| (BATCH_CPU, amount)));
        fixture.node(&[("cpu", "8")], &amounts);
        fixture.pod("be-a", "BestEffort", &opted_in("BE"), Some(5500), &batch("3000"));
        fixture.pod("be-b", "BestEffort", &opted_in("BE"), Some(5100), &batch("3000"));
        fixture.pod("be-c", "BestEffort", &opted_in("BE"), Some(5100), &batch("2000"));
        assert_eq!(evicted(&mut fixture, &mut strategy()), expected, "{name}");
    }
}

/// In the original they count as long as the kubelet lists them.
#[test]
fn pods_that_have_ended_request_nothing() {
    let settings = json!({
        "allocatableEvictPriorityThreshold": 5999, "cpuAllocatableEvictLowerPercent": 80, "cpuAllocatableEvictThresholdPercent": 100
    });
    let mut fixture = fixture(Feature::CpuAllocatableEvict, &settings);
    fixture.node(&[("cpu", "8")], &[("cpu", "8"), (BATCH_CPU, "4000")]);
    fixture.pod("be-a", "BestEffort", &opted_in("BE"), Some(5500), &batch("3000"));
    let spec = json!({"priority": 5500, "containers": batch("3000")});
    fixture.any_pod("done", "BestEffort", &opted_in("BE"), &spec, "Succeeded");
    assert!(evicted(&mut fixture, &mut strategy()).is_empty());
}

#[test]
fn the_first_seconds_and_those_after_an_eviction_evict_nobody() {
    let threshold =
        json!({"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 69, "evictEnabledPriorityThreshold": 5999});
    let mut fixture = with_usage(&threshold);
    let mut strategy = CpuEvict::new(Duration::from_secs(20), fixture.now);
    let mut evictions = Vec::new();
    for second in 1..50 {
        fixture.advance(1);
        fixture.cpu(&[("node", 6.0), ("be-a", 1.5), ("be-b", 0.6), ("be-c", 1.0), ("ls-a", 1.0)]);
        for name in evicted(&mut fixture, &mut strategy) {
            evictions.push((second, name.clone()));
            // It is gone at once, yet the node is as busy as before.
            fixture.pods.retain(|pod| *pod.name != *name);
            fixture.evicted.retain(&fixture.pods);
        }
    }
    assert_eq!(evictions, [(20, "be-b".to_owned()), (40, "be-a".to_owned())]);
}

#[test]
fn a_round_without_an_accepted_eviction_does_not_begin_the_time_anew() {
    let threshold =
        json!({"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 69, "evictEnabledPriorityThreshold": 5100});
    let mut fixture = with_usage(&threshold);
    let mut strategy = strategy();
    let mut round = strategy.run(&fixture.input()).evictions.unwrap();
    assert!(strategy.run(&fixture.input()).evictions.is_none(), "the first round has not come back");
    assert!(fixture.evict(&mut round, &["be-b"]).is_empty());
    strategy.finish(&round, fixture.now);
    assert_eq!(evicted(&mut fixture, &mut strategy), ["be-b"], "tried again at once");
}

#[test]
fn a_setting_that_makes_no_sense_is_noted_and_harms_its_feature_alone() {
    let mut fixture = with_usage(&json!({"cpuEvictThresholdPercent": 70, "evictEnabledPriorityThreshold": 5999}));
    fixture.features = fixture.features.with(Feature::BeCpuEvict).with(Feature::CpuAllocatableEvict);
    let outcome = strategy().run(&fixture.input());
    assert_eq!(notes(&outcome).len(), 2);
    assert!(notes(&outcome)[0].reason.starts_with("BECPUEvict: the bounds of satisfaction"));
    assert!(notes(&outcome)[1].reason.starts_with("CPUAllocatableEvict"));
    assert!(outcome.evictions.is_some());
}
