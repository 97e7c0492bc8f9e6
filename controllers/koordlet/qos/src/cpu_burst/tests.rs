use koord_koordlet_system::{Version, quota_of_milli_cpu};
use koord_types::node_annotations::CPU_NORMALIZATION_RATIO;
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    outcome::NoteKind,
    testing::{Fixture, LAYOUT, class, constraints, container, notes, wanted, wanted_amount},
};

const QUOTA_FILE: Resource = Resource::CpuQuota;

fn limited(cpu: &str) -> Json {
    container(&json!({"cpu": "1"}), &json!({"cpu": cpu}))
}

/// A node with an LS pod of two CPUs, whose files say what its limits say.
fn fixture(strategy: &Json) -> Fixture {
    with_pod(strategy, &class("LS"), &limited("2"))
}

fn with_pod(strategy: &Json, meta: &Json, containers: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::CpuBurst);
    fixture.slo(&json!({"cpuBurstStrategy": strategy}));
    fixture.pod("ls-1", "Burstable", meta, Some(9500), containers);
    let pod = Arc::clone(&fixture.pods[0]);
    for container in pod.regular_containers() {
        let quota = quota_of_milli_cpu(container.limit("cpu").unwrap_or_default());
        fixture.kernel.set(container.cgroup.as_ref().unwrap(), QUOTA_FILE, quota);
    }
    let quota = pod_base(&pod, 1.0).map_or(Value::Unlimited, Value::Amount);
    fixture.kernel.set(&pod.cgroup, QUOTA_FILE, quota);
    fixture
}

fn set_quota(fixture: &mut Fixture, quota: i64) {
    let (container, pod) = (fixture.container("ls-1", "main"), fixture.cgroup("ls-1"));
    for cgroup in [container, pod] {
        fixture.kernel.set(&cgroup, QUOTA_FILE, Value::limit(quota));
    }
}

/// Samples of a second: the node, the container's use of CPUs, and its share of throttled periods.
fn sample(fixture: &mut Fixture, node: f64, cores: f64, throttled: f64) {
    fixture.advance(1);
    fixture.cpu(&[("node", node), ("ls-1", cores)]);
    let id = "containerd://ls-1-main";
    fixture.sample(Subject::Container(id), Measure::Cpu, cores);
    fixture.sample(Subject::Container(id), Measure::Throttled, throttled);
}

/// Quotas of container and pod after some rounds, as they change.
fn quotas(fixture: &mut Fixture, strategy: &mut CpuBurst, rounds: usize, node: f64, cores: f64) -> Vec<(i64, i64)> {
    let (container, pod) = (fixture.container("ls-1", "main"), fixture.cgroup("ls-1"));
    let mut quotas: Vec<(i64, i64)> = Vec::new();
    for _ in 0..rounds {
        sample(fixture, node, cores, 0.5);
        let outcome = strategy.run(&fixture.input());
        fixture.apply(&outcome);
        let quota = |cgroup| wanted_amount(&outcome, cgroup, QUOTA_FILE);
        if let (Some(container), Some(pod)) = (quota(&container), quota(&pod)) {
            quotas.push((container, pod));
        }
    }
    quotas.dedup();
    quotas
}

fn burst(outcome: &Outcome, cgroup: &CgroupPath) -> Option<i64> {
    wanted_amount(outcome, cgroup, Resource::CpuBurst)
}

#[test]
fn a_throttled_container_grows_by_a_fifth_a_round_on_an_idle_node() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    let mut strategy = CpuBurst::new(0);
    let quotas = quotas(&mut fixture, &mut strategy, 9, 1.0, 0.5);
    let grown: Vec<i64> = quotas.iter().map(|(container, _)| *container).collect();
    assert_eq!(grown, [240_000, 288_000, 345_600, 414_720, 497_664, 597_196, 600_000]);
    assert!(quotas.iter().all(|(container, pod)| container == pod));
}

#[test]
fn a_quota_outside_of_its_range_is_brought_into_it() {
    for (name, strategy, current, expected) in [
        ("above the ceiling", json!({"policy": "auto", "cfsQuotaBurstPercent": 200}), 900_000, 400_000),
        ("below the base", json!({"policy": "auto"}), 100_000, 200_000),
        ("policy none", json!({"policy": "none"}), 300_000, 200_000),
        ("without growth", json!({"policy": "auto", "cfsQuotaBurstPercent": 100}), 200_000, 200_000),
    ] {
        let mut fixture = fixture(&strategy);
        set_quota(&mut fixture, current);
        sample(&mut fixture, 1.0, 0.5, 0.0);
        let outcome = CpuBurst::new(0).run(&fixture.input());
        for cgroup in [fixture.container("ls-1", "main"), fixture.cgroup("ls-1")] {
            assert_eq!(wanted_amount(&outcome, &cgroup, QUOTA_FILE), Some(expected), "{name}");
        }
    }
}

/// In the original the pod's quota becomes 400001: the base plus one is added to it.
#[test]
fn a_container_without_a_quota_gets_its_base_and_the_pod_keeps_its_own() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    fixture.kernel.set(&fixture.container("ls-1", "main"), QUOTA_FILE, Value::Unlimited);
    sample(&mut fixture, 1.0, 0.5, 0.0);
    let outcome = CpuBurst::new(0).run(&fixture.input());
    assert_eq!(wanted_amount(&outcome, &fixture.container("ls-1", "main"), QUOTA_FILE), Some(200_000));
    assert_eq!(wanted_amount(&outcome, &fixture.cgroup("ls-1"), QUOTA_FILE), Some(200_000));
}

#[test]
fn a_busy_node_shrinks_quotas_and_a_cooling_one_keeps_them() {
    for (node, current, expected) in [
        (5.0, 400_000, vec![(320_000, 320_000), (256_000, 256_000), (204_800, 204_800), (200_000, 200_000)]),
        (3.8, 250_000, vec![(250_000, 250_000)]),
    ] {
        let mut fixture = fixture(&json!({"policy": "auto"}));
        set_quota(&mut fixture, current);
        assert_eq!(quotas(&mut fixture, &mut CpuBurst::new(0), 8, node, 0.5), expected, "{node}");
    }
}

#[test]
fn without_samples_of_the_node_nothing_grows() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    let id = "containerd://ls-1-main";
    fixture.sample(Subject::Container(id), Measure::Throttled, 0.5);
    let outcome = CpuBurst::new(0).run(&fixture.input());
    assert_eq!(wanted_amount(&outcome, &fixture.container("ls-1", "main"), QUOTA_FILE), Some(200_000));
    assert!(notes(&outcome).iter().any(|note| note.kind == NoteKind::Skipped));
}

#[test]
fn cpus_and_use_of_pods_with_own_cpus_are_no_part_of_the_shared_ones() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    fixture.pod("lsr-1", "Guaranteed", &class("LSR"), None, &container(&json!({"cpu": "4"}), &json!({"cpu": "4"})));
    fixture.pod("be-1", "BestEffort", &class("BE"), None, &container(&json!({}), &json!({})));
    let pool = |fixture: &Fixture| SharePool::of(&fixture.input(), None);
    fixture.cpu(&[("node", 5.5), ("lsr-1", 3.5), ("be-1", 1.0), ("ls-1", 0.5)]);
    assert_eq!(pool(&fixture), SharePool::Idle, "(5.5 − 3.5 − 1) of 4");
    fixture.advance(20);
    fixture.cpu(&[("node", 5.5), ("ls-1", 0.5)]);
    assert_eq!(pool(&fixture), SharePool::Overloaded, "without their samples");
}

#[test]
fn with_a_period_the_limiter_refuses_growth_under_full_use() {
    let mut fixture = fixture(&json!({"policy": "auto", "cfsQuotaBurstPeriodSeconds": 4}));
    set_quota(&mut fixture, 300_000);
    let mut strategy = CpuBurst::new(1);
    let last = quotas(&mut fixture, &mut strategy, 20, 3.0, 2.8);
    assert_eq!(last.last(), Some(&(200_000, 200_000)));
}

#[test]
fn bursts_are_limits_times_percent_and_pods_have_the_sum() {
    let two = json!([
        {"name": "main", "resources": {"limits": {"cpu": "2"}}},
        {"name": "side", "resources": {"limits": {"cpu": "500m"}}},
    ]);
    let unlimited = json!([{"name": "main", "resources": {"requests": {"cpu": "1"}}}]);
    for (name, strategy, containers, expected) in [
        ("ten times by default", json!({"policy": "auto"}), limited("2"), vec![2_000_000, 2_000_000]),
        ("two containers", json!({"policy": "cpuBurstOnly"}), two, vec![2_000_000, 500_000, 2_500_000]),
        ("without a limit", json!({"policy": "auto"}), unlimited, vec![0, 0]),
        ("quotas only", json!({"policy": "cfsQuotaBurstOnly"}), limited("2"), vec![0, 0]),
        ("policy none", json!({"policy": "none"}), limited("2"), vec![0, 0]),
        // The file takes at most 100 000 000: whoever writes refuses it with the reason.
        (
            "beyond the range",
            json!({"policy": "cpuBurstOnly", "cpuBurstPercent": 10000}),
            limited("11"),
            vec![110_000_000, 110_000_000],
        ),
    ] {
        let fixture = with_pod(&strategy, &class("LS"), &containers);
        let outcome = CpuBurst::new(0).run(&fixture.input());
        let bursts: Vec<i64> = (constraints(&outcome).iter())
            .filter(|constraint| matches!(constraint.target, Target::Cgroup { resource: Resource::CpuBurst, .. }))
            .filter_map(|constraint| constraint.value.amount())
            .collect();
        assert_eq!(bursts, expected, "{name}");
    }
}

#[test]
fn a_burst_above_the_quota_is_noted_and_a_kernel_without_the_file_too() {
    let ours = fixture(&json!({"policy": "auto"}));
    let outcome = CpuBurst::new(0).run(&ours.input());
    assert!(notes(&outcome)[0].reason.contains("mainline kernels take bursts up to the CFS quota only"));
    let at_most = fixture(&json!({"policy": "auto", "cpuBurstPercent": 100}));
    let outcome = CpuBurst::new(0).run(&at_most.input());
    assert!(notes(&outcome).iter().all(|note| note.kind != NoteKind::Degraded));
    let mut lacking = fixture(&json!({"policy": "auto"}));
    lacking.kernel.lack(Resource::CpuBurst);
    let outcome = CpuBurst::new(0).run(&lacking.input());
    assert_eq!(burst(&outcome, &lacking.cgroup("ls-1")), None);
    assert!(notes(&outcome)[0].reason.contains("no cpu.cfs_burst_us"));
}

#[test]
fn pods_of_lse_lsr_and_be_are_left_alone() {
    for (class_name, is_touched) in
        [("LSE", false), ("LSR", false), ("BE", false), ("LS", true), ("SYSTEM", true), ("", true)]
    {
        let mut fixture = with_pod(&json!({"policy": "auto"}), &class(class_name), &limited("2"));
        sample(&mut fixture, 1.0, 0.5, 0.5);
        let outcome = CpuBurst::new(0).run(&fixture.input());
        assert_eq!(!constraints(&outcome).is_empty(), is_touched, "{class_name}");
    }
}

#[test]
fn an_annotation_goes_before_the_node_and_a_malformed_one_is_noted() {
    let annotated = |text: &str| json!({"labels": {"koordinator.sh/qosClass": "LS"}, "annotations": {"koordinator.sh/cpuBurst": text}});
    for (name, node, text, expected_burst, expected_quota) in [
        (
            "auto over none",
            json!({"policy": "none"}),
            r#"{"policy":"auto","cpuBurstPercent":200,"cfsQuotaBurstPercent":110}"#,
            400_000,
            220_000,
        ),
        ("none over auto", json!({"policy": "auto"}), r#"{"policy":"none"}"#, 0, 200_000),
        ("malformed", json!({"policy": "cpuBurstOnly"}), "x", 2_000_000, 200_000),
    ] {
        let mut fixture = with_pod(&node, &annotated(text), &limited("2"));
        sample(&mut fixture, 1.0, 0.5, 0.5);
        let outcome = CpuBurst::new(0).run(&fixture.input());
        let container = fixture.container("ls-1", "main");
        assert_eq!(burst(&outcome, &container), Some(expected_burst), "{name}");
        assert_eq!(wanted_amount(&outcome, &container, QUOTA_FILE), Some(expected_quota), "{name}");
        let is_malformed = notes(&outcome).iter().any(|note| note.kind == NoteKind::Invalid);
        assert_eq!(is_malformed, text == "x", "{name}");
    }
}

#[test]
fn a_container_without_a_limit_leaves_its_pod_without_a_quota() {
    let containers = json!([
        {"name": "main", "resources": {"limits": {"cpu": "1"}}},
        {"name": "side", "resources": {"requests": {"cpu": "1"}}},
    ]);
    let mut fixture = with_pod(&json!({"policy": "auto"}), &class("LS"), &containers);
    let mut strategy = CpuBurst::new(0);
    for _ in 0..9 {
        sample(&mut fixture, 1.0, 0.5, 0.5);
        let outcome = strategy.run(&fixture.input());
        assert_eq!(wanted(&outcome, &fixture.cgroup("ls-1"), QUOTA_FILE), None);
        fixture.apply(&outcome);
    }
    let quota = koord_koordlet_system::Kernel::value(&fixture.kernel, &fixture.container("ls-1", "main"), QUOTA_FILE);
    assert_eq!(quota.unwrap(), Value::Amount(300_000));
}

#[test]
fn a_container_that_does_not_run_keeps_its_quota() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    let pod = Arc::make_mut(&mut fixture.pods[0]);
    pod.containers[0].state = koord_koordlet_framework::ContainerState::Terminated;
    sample(&mut fixture, 1.0, 0.5, 0.5);
    let outcome = CpuBurst::new(0).run(&fixture.input());
    assert_eq!(wanted(&outcome, &fixture.container("ls-1", "main"), QUOTA_FILE), None);
    assert_eq!(burst(&outcome, &fixture.cgroup("ls-1")), Some(2_000_000));
}

#[test]
fn quotas_grow_from_the_normalized_base() {
    let mut fixture = with_pod(&json!({"policy": "auto"}), &class("LS"), &limited("4"));
    fixture.features = fixture.features.with(Feature::CpuNormalization);
    let name = CPU_NORMALIZATION_RATIO.name().to_owned();
    fixture.node.as_mut().unwrap().annotations = Some([(name, "1.25".to_owned())].into());
    set_quota(&mut fixture, 320_000);
    let quotas = quotas(&mut fixture, &mut CpuBurst::new(0), 20, 1.0, 0.5);
    assert_eq!(quotas[0], (384_000, 384_000));
    assert!(quotas.is_sorted() && quotas.last() == Some(&(960_000, 960_000)), "{quotas:?}");
    let own = json!({"annotations": {"scheduling.koordinator.sh/resource-status": r#"{"cpuset":"0-1"}"#}});
    for (meta, expected) in [(class("LS"), true), (json!({}), true), (class("SYSTEM"), false), (own, false)] {
        let fixture = with_pod(&json!({}), &meta, &limited("4"));
        assert_eq!(is_normalized(&fixture.pods[0]), expected, "{meta}");
    }
}

#[test]
fn bursts_and_resets_differ_in_precedence() {
    let mut fixture = fixture(&json!({"policy": "auto"}));
    sample(&mut fixture, 1.0, 0.5, 0.5);
    let outcome = CpuBurst::new(0).run(&fixture.input());
    let container = wanted(&outcome, &fixture.container("ls-1", "main"), QUOTA_FILE).unwrap();
    assert_eq!(container.precedence, Precedence::Measured);
    assert_eq!(&*container.reason.formula, "240000 µs from 200000 to 600000 µs (× 1.2 as it is throttled)");
    fixture.slo(&json!({"cpuBurstStrategy": {"policy": "none"}}));
    let outcome = CpuBurst::new(0).run(&fixture.input());
    let pod = wanted(&outcome, &fixture.cgroup("ls-1"), QUOTA_FILE).unwrap();
    assert_eq!(pod.precedence, Precedence::Default, "other strategies may decide");
}

#[test]
fn without_a_policy_nothing_is_looked_at_until_an_object_changes() {
    let mut fixture = fixture(&json!({"policy": "none"}));
    let mut strategy = CpuBurst::new(0);
    assert!(strategy.run(&fixture.input()).constraints.is_some());
    for _ in 0..5 {
        sample(&mut fixture, 1.0, 0.5, 0.5);
        let outcome = strategy.run(&fixture.input());
        assert!(outcome.constraints.is_none() && outcome.gauges.is_none());
    }
    fixture.generations.pods += 1;
    assert!(strategy.run(&fixture.input()).constraints.is_some());
}

#[test]
fn gauges_have_the_bursts_and_the_quotas_that_changed() {
    let mut fixture =
        Fixture::with_layout(Feature::CpuBurst, koord_koordlet_system::Layout { version: Version::V2, ..LAYOUT });
    fixture.slo(&json!({"cpuBurstStrategy": {"policy": "auto"}}));
    fixture.pod("ls-1", "Burstable", &class("LS"), None, &limited("2"));
    fixture.kernel.set(&fixture.container("ls-1", "main"), QUOTA_FILE, Value::Amount(200_000));
    let mut strategy = CpuBurst::new(0);
    sample(&mut fixture, 1.0, 0.5, 0.5);
    let series = strategy.run(&fixture.input()).gauges.unwrap();
    let values: Vec<(&str, f64)> = series.iter().map(|gauge| (gauge.name, gauge.value)).collect();
    assert_eq!(
        values,
        [
            ("koordlet_container_scaled_cfs_burst_us", 2_000_000.0),
            ("koordlet_container_scaled_cfs_quota_us", 240_000.0)
        ]
    );
    let labels: Vec<String> = series[0].labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        labels,
        ["pod_namespace=test", "pod_name=ls-1", "container_id=containerd://ls-1-main", "container_name=main"]
    );
    sample(&mut fixture, 1.0, 0.5, 0.0);
    assert_eq!(strategy.run(&fixture.input()).gauges.unwrap().len(), 1, "nothing was scaled");
    sample(&mut fixture, 1.0, 0.5, 0.0);
    assert_eq!(strategy.run(&fixture.input()).gauges, None);
}
