use koord_koordlet_system::{Layout, Version};
use serde_json::{Value as Json, json};

use super::*;
use crate::testing::{Fixture, GI, LAYOUT, class, constraints, container, notes, wanted_amount, wanted_value};

fn fixture(qos: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::CgroupReconcile);
    fixture.slo(&json!({"resourceQOSStrategy": qos}));
    fixture
}

fn memory(request: &str, limit: &str) -> Json {
    container(&json!({"memory": request}), &json!({"memory": limit}))
}

fn batch(memory: &str) -> Json {
    container(&json!({"kubernetes.io/batch-memory": memory}), &json!({"kubernetes.io/batch-memory": memory}))
}

fn with_three_pods(qos: &Json) -> Fixture {
    let mut fixture = fixture(qos);
    fixture.pod("lsr-1", "Guaranteed", &class("LSR"), None, &memory("2Gi", "2Gi"));
    fixture.pod("ls-1", "Burstable", &class("LS"), None, &memory("1Gi", "2Gi"));
    fixture.pod("be-1", "BestEffort", &class("BE"), None, &batch("1Gi"));
    fixture
}

fn run(fixture: &Fixture) -> Outcome {
    CgroupReconcile::default().run(&fixture.input())
}

fn min_low(outcome: &Outcome, cgroup: &CgroupPath) -> [i64; 2] {
    [Resource::MemoryMin, Resource::MemoryLow].map(|resource| wanted_amount(outcome, cgroup, resource).unwrap())
}

#[test]
fn protection_of_pods_adds_up_and_the_folder_of_all_has_the_sum_of_all() {
    let fixture = with_three_pods(&json!({
        "lsrClass": {"memoryQOS": {"enable": true, "minLimitPercent": 100, "lowLimitPercent": 100}},
        "lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 40, "lowLimitPercent": 60}},
        "beClass": {"memoryQOS": {"enable": true, "minLimitPercent": 10, "lowLimitPercent": 20}},
    }));
    let outcome = run(&fixture);
    let be = [107_374_182, 214_748_364];
    let ls = [429_496_729, 644_245_094];
    let lsr = [2 * GI, 2 * GI];
    for (cgroup, expected) in [
        (fixture.cgroup("be-1"), be),
        (fixture.container("be-1", "main"), be),
        (LAYOUT.qos(QosFolder::BestEffort), be),
        (fixture.cgroup("ls-1"), ls),
        (LAYOUT.qos(QosFolder::Burstable), ls),
        (fixture.container("lsr-1", "main"), lsr),
        (LAYOUT.kubepods(), [be[0] + ls[0] + lsr[0], be[1] + ls[1] + lsr[1]]),
    ] {
        assert_eq!(min_low(&outcome, &cgroup), expected, "{cgroup}");
    }
}

/// The original lifts memory.low of pods and containers, and leaves that of the folders of classes below memory.min.
#[test]
fn low_is_at_least_min_at_all_levels() {
    let fixture = with_three_pods(&json!({
        "lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 60, "lowLimitPercent": 40}},
    }));
    let outcome = run(&fixture);
    for cgroup in
        [fixture.container("ls-1", "main"), fixture.cgroup("ls-1"), LAYOUT.qos(QosFolder::Burstable), LAYOUT.kubepods()]
    {
        assert_eq!(min_low(&outcome, &cgroup), [644_245_094; 2], "{cgroup}");
    }
}

#[test]
fn classes_have_their_recommended_values_when_they_are_enabled_and_are_undone_when_not() {
    let values = |qos: &Json, pod: &str| {
        let fixture = with_three_pods(qos);
        let outcome = run(&fixture);
        let cgroup = fixture.container(pod, "main");
        [Resource::MemoryWmarkRatio, Resource::MemoryWmarkScaleFactor, Resource::MemoryWmarkMinAdj]
            .map(|resource| wanted_amount(&outcome, &cgroup, resource).unwrap())
    };
    let enabled = json!({"memoryQOS": {"enable": true}});
    let all = json!({"lsrClass": enabled, "lsClass": enabled, "beClass": enabled});
    assert_eq!(values(&all, "lsr-1"), [95, 20, -25]);
    assert_eq!(values(&all, "ls-1"), [95, 20, -25]);
    assert_eq!(values(&all, "be-1"), [95, 20, 50]);
    let disabled = json!({"lsClass": {"memoryQOS": {"enable": false, "wmarkRatio": 50}}});
    for pod in ["lsr-1", "ls-1", "be-1"] {
        assert_eq!(values(&disabled, pod), [0, 50, 0], "{pod}");
        assert_eq!(values(&json!({}), pod), [0, 50, 0], "{pod}");
    }
}

#[test]
fn annotations_overlay_the_class_or_what_is_recommended() {
    let ls = json!({"lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 50, "throttlingPercent": 50, "wmarkRatio": 80}}});
    let half = GI / 2;
    for (name, qos, text, min, ratio, high) in [
        ("default", &ls, r#"{"policy":"default","minLimitPercent":90}"#, 966_367_641, 80, Some(1_610_612_736)),
        ("without a policy", &ls, r#"{"minLimitPercent":90,"priority":3}"#, 966_367_641, 80, Some(1_610_612_736)),
        ("none", &ls, r#"{"policy":"none","minLimitPercent":90}"#, 0, 0, None),
        ("malformed", &ls, r#"{"policy":"#, half, 80, Some(1_610_612_736)),
        ("a wrong type", &ls, r#"{"minLimitPercent":"x"}"#, half, 80, Some(1_610_612_736)),
        ("auto with a disabled class", &json!({}), r#"{"policy":"auto","minLimitPercent":50}"#, half, 95, None),
        ("auto with an enabled class", &ls, r#"{"policy":"auto"}"#, 0, 95, None),
    ] {
        let mut fixture = fixture(qos);
        let meta =
            json!({"labels": {"koordinator.sh/qosClass": "LS"}, "annotations": {"koordinator.sh/memoryQOS": text}});
        fixture.pod("ls-1", "Burstable", &meta, None, &memory("1Gi", "2Gi"));
        let outcome = run(&fixture);
        let container = fixture.container("ls-1", "main");
        assert_eq!(wanted_amount(&outcome, &container, Resource::MemoryMin), Some(min), "{name}");
        assert_eq!(wanted_amount(&outcome, &container, Resource::MemoryWmarkRatio), Some(ratio), "{name}");
        let expected = high.map_or(Value::Unlimited, Value::Amount);
        assert_eq!(wanted_value(&outcome, &container, Resource::MemoryHigh), Some(expected), "{name}");
        assert_eq!(notes(&outcome).len(), usize::from(matches!(name, "malformed" | "a wrong type")), "{name}");
    }
}

#[test]
fn an_unlabelled_pod_has_the_class_of_its_kubernetes_qos() {
    let mut fixture = fixture(&json!({
        "lsrClass": {"memoryQOS": {"enable": true, "minLimitPercent": 80}},
        "lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 50}},
        "beClass": {"memoryQOS": {"enable": true, "minLimitPercent": 20}},
        "systemClass": {"memoryQOS": {"enable": true, "minLimitPercent": 30, "wmarkRatio": 70, "throttlingPercent": 60}},
    }));
    fixture.pod("g-1", "Guaranteed", &json!({}), None, &memory("1Gi", "1Gi"));
    fixture.pod("b-1", "Burstable", &json!({}), None, &container(&json!({"memory": "1Gi"}), &json!({})));
    fixture.pod("e-1", "BestEffort", &json!({}), None, &container(&json!({}), &json!({})));
    fixture.pod("sys-1", "Burstable", &class("SYSTEM"), None, &memory("1Gi", "2Gi"));
    fixture.pod("lse-1", "Guaranteed", &class("LSE"), None, &memory("1Gi", "1Gi"));
    let outcome = run(&fixture);
    for (pod, min) in
        [("g-1", 858_993_459), ("b-1", 536_870_912), ("e-1", 0), ("sys-1", 322_122_547), ("lse-1", 858_993_459)]
    {
        assert_eq!(wanted_amount(&outcome, &fixture.cgroup(pod), Resource::MemoryMin), Some(min), "{pod}");
    }
    let system = fixture.container("sys-1", "main");
    assert_eq!(wanted_amount(&outcome, &system, Resource::MemoryHigh), Some(1_717_985_280));
    assert_eq!(wanted_amount(&outcome, &system, Resource::MemoryWmarkRatio), Some(70));
}

#[test]
fn sidecars_count_for_their_pod_and_have_no_values_of_their_own() {
    let enabled = json!({"memoryQOS": {"enable": true, "minLimitPercent": 100}});
    let mut fixture = fixture(&json!({"beClass": enabled, "lsClass": enabled}));
    let sidecar =
        |requests: Json| json!([{"name": "side", "restartPolicy": "Always", "resources": {"requests": requests}}]);
    let be =
        json!({"containers": batch("1Gi"), "initContainers": sidecar(json!({"kubernetes.io/batch-memory": "512Mi"}))});
    fixture.any_pod("be-1", "BestEffort", &class("BE"), &be, "Running");
    let ls = json!({"containers": memory("1Gi", "2Gi"), "initContainers": sidecar(json!({"memory": "512Mi"}))});
    fixture.any_pod("ls-1", "Burstable", &class("LS"), &ls, "Running");
    let outcome = run(&fixture);
    for pod in ["be-1", "ls-1"] {
        assert_eq!(wanted_amount(&outcome, &fixture.cgroup(pod), Resource::MemoryMin), Some(GI * 3 / 2), "{pod}");
        assert_eq!(wanted_amount(&outcome, &fixture.container(pod, "main"), Resource::MemoryMin), Some(GI), "{pod}");
        assert_eq!(wanted_amount(&outcome, &fixture.container(pod, "side"), Resource::MemoryMin), None, "{pod}");
    }
}

#[test]
fn the_order_of_kills_is_set_at_all_levels() {
    let fixture = with_three_pods(&json!({
        "lsClass": {"memoryQOS": {"enable": true, "priority": 6, "priorityEnable": 1, "oomKillGroup": 0}},
        "lsrClass": {"memoryQOS": {"enable": true, "priority": 12, "priorityEnable": 1, "oomKillGroup": 1}},
    }));
    let outcome = run(&fixture);
    for (cgroup, expected) in [
        (LAYOUT.kubepods(), [12, 1, 1]),
        (fixture.cgroup("lsr-1"), [12, 1, 1]),
        (LAYOUT.qos(QosFolder::Burstable), [6, 1, 0]),
        (fixture.container("ls-1", "main"), [6, 1, 0]),
        (LAYOUT.qos(QosFolder::BestEffort), [0, 0, 0]),
    ] {
        let values = [Resource::MemoryPriority, Resource::MemoryUsePriorityOom, Resource::MemoryOomGroup]
            .map(|resource| wanted_amount(&outcome, &cgroup, resource).unwrap());
        assert_eq!(values, expected, "{cgroup}");
    }
}

#[test]
fn a_class_whose_last_pod_has_gone_protects_nothing() {
    let qos = json!({"lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 100}}});
    let mut fixture = with_three_pods(&qos);
    let mut strategy = CgroupReconcile::default();
    let outcome = strategy.run(&fixture.input());
    let burstable = LAYOUT.qos(QosFolder::Burstable);
    assert_eq!(min_low(&outcome, &burstable), [GI, 0]);
    assert!(strategy.run(&fixture.input()).constraints.is_none(), "nothing has changed");
    fixture.pods.remove(1);
    fixture.generations.pods += 1;
    let outcome = strategy.run(&fixture.input());
    assert_eq!(min_low(&outcome, &burstable), [0, 0]);
}

#[test]
fn on_a_kernel_without_the_files_what_is_set_is_noted() {
    let plain = Layout { version: Version::V2, ..LAYOUT };
    let mut fixture = Fixture::with_layout(Feature::CgroupReconcile, plain);
    for resource in [
        Resource::MemoryWmarkRatio,
        Resource::MemoryWmarkScaleFactor,
        Resource::MemoryWmarkMinAdj,
        Resource::MemoryPriority,
    ] {
        fixture.kernel.lack(resource);
    }
    fixture.slo(
        &json!({"resourceQOSStrategy": {"lsClass": {"memoryQOS": {"enable": true, "wmarkMinAdj": 0, "priority": 3}}}}),
    );
    fixture.pod("ls-1", "Burstable", &class("LS"), None, &memory("1Gi", "2Gi"));
    let outcome = run(&fixture);
    let [note] = notes(&outcome) else { panic!("{:?}", notes(&outcome)) };
    assert_eq!(
        note.reason,
        "this kernel's cgroups have no memory.priority, memory.wmark_ratio, memory.wmark_scale_factor"
    );
    fixture.slo(&json!({}));
    assert!(notes(&run(&fixture)).is_empty(), "nothing is set, nothing is missed");
}

#[test]
fn every_constraint_has_a_setting_and_a_formula() {
    let fixture = with_three_pods(
        &json!({"lsClass": {"memoryQOS": {"enable": true, "throttlingPercent": 70, "minLimitPercent": 50}}}),
    );
    let outcome = run(&fixture);
    assert!(
        constraints(&outcome)
            .iter()
            .all(|wanted| !wanted.reason.setting.is_empty() && !wanted.reason.formula.is_empty())
    );
    let high = crate::testing::wanted(&outcome, &fixture.container("ls-1", "main"), Resource::MemoryHigh).unwrap();
    assert_eq!(
        &*high.reason.formula,
        "request 1073741824 + (2147483648 − 1073741824) × 70 %, whole pages, at least memory.min"
    );
}
