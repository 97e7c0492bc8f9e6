use koord_koordlet_framework::SystemCpus;
use koord_koordlet_metrics::{Measure, Subject};
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    outcome::NoteKind,
    testing::{Fixture, LAYOUT, class, constraints, container, notes, wanted, wanted_amount, wanted_value},
};

/// Cores in use by name.
type Usage<'a> = &'a [(&'a str, f64)];
type Change = fn(&mut Fixture);

fn be() -> Json {
    container(&json!({"kubernetes.io/batch-cpu": "2000"}), &json!({"kubernetes.io/batch-cpu": "2000"}))
}

/// A node with an LS pod and a BE pod.
fn fixture(threshold: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::BeCpuSuppress);
    fixture.slo(&json!({"resourceUsedThresholdWithBE": threshold}));
    fixture.pod("ls-1", "Burstable", &class("LS"), Some(9500), &container(&json!({"cpu": "2"}), &json!({})));
    fixture.pod("be-1", "BestEffort", &class("BE"), Some(5500), &be());
    set_cpus(&mut fixture, "0-7");
    fixture
}

fn set_cpus(fixture: &mut Fixture, cpus: &str) {
    let root = LAYOUT.qos(QosFolder::BestEffort);
    fixture.kernel.set(&root, Resource::Cpuset, Value::Cpus(cpus.parse().unwrap()));
}

fn set_quota(fixture: &mut Fixture, quota: Value) {
    fixture.kernel.set(&LAYOUT.qos(QosFolder::BestEffort), Resource::CpuQuota, quota);
}

fn enabled() -> Json {
    json!({"enable": true, "cpuSuppressThresholdPercent": 65})
}

fn root() -> CgroupPath {
    LAYOUT.qos(QosFolder::BestEffort)
}

#[test]
fn be_pods_get_what_others_leave_at_all_levels() {
    let mut fixture = fixture(&enabled());
    fixture.cpu(&[("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)]);
    let outcome = CpuSuppress::default().run(&fixture.input());
    fixture.apply(&outcome);
    // 5200m − 2000m − 1000m = 2200m
    for cgroup in [root(), fixture.cgroup("be-1"), fixture.container("be-1", "main")] {
        assert_eq!(fixture.cpuset(&cgroup), "0,2,4", "{cgroup}");
    }
    assert_eq!(fixture.cpuset(&fixture.cgroup("ls-1")), "-");
    let reason = &wanted(&outcome, &root(), Resource::Cpuset).unwrap().reason;
    assert_eq!(
        &*reason.formula,
        "8000m × 65 % − 2000m (pods that are not BE) − 1000m (system) = 2200m: 3 CPUs, in steps of a tenth of the node"
    );
    assert_eq!(reason.setting, "NodeSLO resourceUsedThresholdWithBE.cpuSuppressThresholdPercent");
    let values: Vec<(&str, f64)> = outcome.gauges.iter().flatten().map(|gauge| (gauge.name, gauge.value)).collect();
    assert_eq!(
        values,
        [
            ("koordlet_be_suppress_cpu_cores", 2.2),
            ("koordlet_be_suppress_ls_used_cpu_cores", 2.0),
            ("koordlet_be_suppress_be_used_cpu_cores", 1.0),
        ]
    );
}

#[test]
fn the_budget_follows_from_usage_and_settings() {
    let cases: [(&str, Usage<'_>, Json, i64); 8] = [
        (
            "thresholds of section 5.1",
            &[("node", 12.0), ("ls-1", 8.0), ("be-1", 2.0)],
            json!({"cpuSuppressThresholdPercent": 70}),
            4000,
        ),
        (
            "an unknown pod is not BE",
            &[("node", 11.0), ("gone", 8.0), ("be-1", 4.0)],
            json!({"cpuSuppressThresholdPercent": 70}),
            6000,
        ),
        (
            "nothing below zero",
            &[("node", 20.0), ("ls-1", 19.0), ("be-1", 1.0)],
            json!({"cpuSuppressThresholdPercent": 70}),
            -5000,
        ),
        (
            "threshold zero",
            &[("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)],
            json!({"cpuSuppressThresholdPercent": 0}),
            -3000,
        ),
        ("a minimum", &[("node", 20.0), ("ls-1", 19.0), ("be-1", 1.0)], json!({"cpuSuppressMinPercent": 45}), 9000),
        (
            "a minimum below the budget",
            &[("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)],
            json!({"cpuSuppressMinPercent": 10}),
            10_000,
        ),
        ("system usage is not negative", &[("node", 1.0), ("ls-1", 2.0), ("be-1", 1.0)], json!({}), 11_000),
        ("without samples of pods", &[("node", 3.0)], json!({}), 10_000),
    ];
    for (name, usage, mut threshold, expected) in cases {
        threshold["enable"] = json!(true);
        let mut fixture = fixture(&threshold);
        fixture.node(&[("cpu", "20")], &[("cpu", "20")]);
        fixture.cpu(usage);
        let mut strategy = CpuSuppress::default();
        strategy.refresh(&fixture.input());
        let (node, slo) = (fixture.node.as_ref().unwrap(), fixture.slo.as_ref().unwrap());
        let budget = Budget::of(&fixture.input(), node, slo, &strategy.is_be).unwrap();
        assert_eq!(budget.milli(), expected, "{name}: {budget}");
    }
}

#[test]
fn host_applications_count_unless_they_are_be_below_the_folder_of_be_pods() {
    let in_be = json!({"base": "KubepodsBesteffort", "relativePath": "app"});
    for (application, cpus) in [
        (json!({"name": "app", "qos": "LS"}), "0,2,4"),
        (json!({"name": "app", "qos": "BE"}), "0,2,4"),
        (json!({"name": "app", "qos": "BE", "cgroupPath": in_be}), "0,2,4,6"),
    ] {
        let mut fixture = fixture(&enabled());
        fixture.slo(&json!({"resourceUsedThresholdWithBE": enabled(), "hostApplications": [application]}));
        let node = if cpus.len() > 5 { 4.2 } else { 3.7 };
        fixture.cpu(&[("node", node), ("ls-1", 1.0), ("be-1", 1.0)]);
        fixture.sample(Subject::HostApplication("app"), Measure::Cpu, 1.5);
        let outcome = CpuSuppress::default().run(&fixture.input());
        fixture.apply(&outcome);
        assert_eq!(fixture.cpuset(&root()), cpus, "{application}");
    }
}

#[test]
fn what_is_reserved_counts_as_used_by_the_system() {
    let mut fixture = fixture(&enabled());
    fixture.node(&[("cpu", "8")], &[("cpu", "6500m")]);
    fixture.cpu(&[("node", 3.2), ("ls-1", 2.0), ("be-1", 1.0)]);
    let outcome = CpuSuppress::default().run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&root()), "0,4");
}

#[test]
fn cpus_of_lse_pods_and_reserved_ones_are_never_used_and_those_of_lsr_pods_in_proportion() {
    for (class_name, reserved, cpus) in
        [("LSE", "", "2-3,6-7"), ("LSR", "", "0,2,4,6"), ("LS", "", "0,2,4,6"), ("LSR", "0,4", "1,2,6,7")]
    {
        let mut fixture = fixture(&enabled());
        let meta = json!({
            "labels": {"koordinator.sh/qosClass": class_name},
            "annotations": {"scheduling.koordinator.sh/resource-status": r#"{"cpuset":"0,1,4,5"}"#},
        });
        fixture.pod("own", "Guaranteed", &meta, Some(9500), &container(&json!({"cpu": "4"}), &json!({"cpu": "4"})));
        fixture.topology.as_mut().unwrap().reserved = reserved.parse().unwrap();
        fixture.cpu(&[("node", 2.4), ("ls-1", 0.5), ("own", 0.2), ("be-1", 1.0)]);
        let outcome = CpuSuppress::default().run(&fixture.input());
        fixture.apply(&outcome);
        let chosen = fixture.cpuset(&root());
        if reserved.is_empty() {
            assert_eq!(chosen, cpus, "{class_name}");
        } else {
            assert!(!chosen.contains('0') && !chosen.contains('4'), "{chosen}");
        }
    }
}

/// The original divides by zero.
#[test]
fn without_a_cpu_for_be_pods_they_keep_what_they_have() {
    let mut fixture = fixture(&enabled());
    fixture.topology.as_mut().unwrap().reserved = "0-7".parse().unwrap();
    fixture.cpu(&[("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)]);
    let mut strategy = CpuSuppress::default();
    for _ in 0..2 {
        let outcome = strategy.run(&fixture.input());
        assert!(wanted(&outcome, &root(), Resource::Cpuset).is_none());
        assert_eq!(notes(&outcome)[0].kind, NoteKind::Degraded);
        assert!(notes(&outcome)[0].reason.contains("no CPU is left for BE pods"));
    }
}

#[test]
fn fewer_free_cpus_than_the_budget_are_all_used() {
    let mut fixture = fixture(&enabled());
    fixture.topology.as_mut().unwrap().reserved = "0-5".parse().unwrap();
    fixture.node(&[("cpu", "8")], &[("cpu", "8")]);
    fixture.cpu(&[("node", 0.2), ("ls-1", 0.1), ("be-1", 0.1)]);
    let outcome = CpuSuppress::default().run(&fixture.input());
    assert_eq!(wanted_value(&outcome, &root(), Resource::Cpuset).unwrap().to_string(), "6-7");
}

#[test]
fn cpus_of_pods_that_the_kubelet_pinned_are_never_used() {
    let mut fixture = fixture(&json!({"enable": false}));
    let topology = fixture.topology.as_mut().unwrap();
    topology.is_kubelet_static = true;
    topology.be_shared_pools =
        vec![koord_koordlet_framework::CpuPool { cpus: "4-7".parse().unwrap(), ..Default::default() }];
    topology.system = Some(SystemCpus { cpus: "7".parse().unwrap(), is_exclusive: true });
    let outcome = CpuSuppress::default().run(&fixture.input());
    assert_eq!(wanted_value(&outcome, &root(), Resource::Cpuset).unwrap().to_string(), "4-6");
}

#[test]
fn with_a_static_kubelet_only_containers_are_bound() {
    let mut fixture = fixture(&enabled());
    fixture.topology.as_mut().unwrap().is_kubelet_static = true;
    fixture.cpu(&[("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)]);
    let outcome = CpuSuppress::default().run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&root()), "0-7");
    assert_eq!(fixture.cpuset(&fixture.cgroup("be-1")), "0-7");
    assert_eq!(fixture.cpuset(&fixture.container("be-1", "main")), "0,2,4");
}

#[test]
fn cpus_become_more_in_steps_of_a_tenth_of_the_node_and_fewer_at_once() {
    let mut fixture = fixture(&enabled());
    fixture.topology(16);
    fixture.node(&[("cpu", "16")], &[("cpu", "16")]);
    set_cpus(&mut fixture, "0-1");
    let mut strategy = CpuSuppress::default();
    // 10400m − 1500m − 400m = 8500m: 9 CPUs, two more each round.
    let mut steps = Vec::new();
    for _ in 0..6 {
        fixture.cpu(&[("node", 2.9), ("ls-1", 1.5), ("be-1", 1.0)]);
        let outcome = strategy.run(&fixture.input());
        fixture.apply(&outcome);
        steps.push(fixture.cpuset(&root()).parse::<CpuSet>().unwrap().len());
        fixture.advance(1);
    }
    assert_eq!(steps, [4, 6, 8, 9, 9, 9]);
    assert_eq!(fixture.cpuset(&root()), "0-2,4-5,8-9,12-13");
    fixture.cpu(&[("node", 15.0), ("ls-1", 14.0), ("be-1", 1.0)]);
    let outcome = strategy.run(&fixture.input());
    assert_eq!(wanted_value(&outcome, &root(), Resource::Cpuset).unwrap().to_string(), "0,8");
}

#[test]
fn the_quota_grows_in_steps_shrinks_at_once_and_ignores_small_changes() {
    let by_quota = json!({"enable": true, "cpuSuppressPolicy": "cfsQuota"});
    for (name, cores, current, usage, expected) in [
        ("without a quota the budget holds at once", 8, Value::Unlimited, 2.0, 220_000),
        ("the smallest quota", 8, Value::Amount(800_000), 7.0, 2000),
        ("the smallest quota is written even if the change is small", 8, Value::Amount(2500), 7.0, 2000),
        ("a step of a tenth", 8, Value::Amount(100_000), 2.0, 180_000),
        ("19.8 to 20 of 80 CPUs is skipped", 80, Value::Amount(1_980_000), 31.0, 1_980_000),
        ("19 to 20 of 80 CPUs is not", 80, Value::Amount(1_900_000), 31.0, 2_000_000),
    ] {
        let mut fixture = fixture(&by_quota);
        let cpu = cores.to_string();
        fixture.node(&[("cpu", &cpu)], &[("cpu", &cpu)]);
        set_quota(&mut fixture, current);
        fixture.cpu(&[("node", usage + 2.0), ("ls-1", usage), ("be-1", 1.0)]);
        let outcome = CpuSuppress::default().run(&fixture.input());
        assert_eq!(wanted_amount(&outcome, &root(), Resource::CpuQuota), Some(expected), "{name}");
        assert_eq!(wanted_value(&outcome, &root(), Resource::Cpuset).unwrap().to_string(), "0-7", "{name}");
    }
}

#[test]
fn a_quota_reaches_its_target_in_four_steps() {
    let mut fixture = fixture(&json!({"enable": true, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressMinPercent": 50}));
    set_quota(&mut fixture, Value::Amount(100_000));
    let mut strategy = CpuSuppress::default();
    let mut quotas = Vec::new();
    for _ in 0..6 {
        fixture.cpu(&[("node", 7.0), ("ls-1", 6.0), ("be-1", 0.5)]);
        let outcome = strategy.run(&fixture.input());
        fixture.apply(&outcome);
        quotas.extend(wanted_amount(&outcome, &root(), Resource::CpuQuota));
        fixture.advance(1);
    }
    assert_eq!(quotas, [180_000, 260_000, 340_000, 400_000]);
}

#[test]
fn what_is_off_is_undone_at_once() {
    let mut fixture = fixture(&json!({"enable": false}));
    set_cpus(&mut fixture, "0-1");
    set_quota(&mut fixture, Value::Amount(100_000));
    let mut strategy = CpuSuppress::default();
    let outcome = strategy.run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&root()), "0-7");
    assert_eq!(wanted_value(&outcome, &root(), Resource::CpuQuota), Some(Value::Unlimited));
    assert!(constraints(&outcome).iter().all(|constraint| constraint.precedence == Precedence::Default));
    // From cpuset to quota: the CPUs are given back in the same round.
    fixture.slo(&json!({"resourceUsedThresholdWithBE": enabled()}));
    fixture.cpu(&[("node", 7.0), ("ls-1", 6.0), ("be-1", 0.5)]);
    let outcome = strategy.run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&root()), "0,4");
    fixture.slo(&json!({"resourceUsedThresholdWithBE": {"enable": true, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressMinPercent": 50}}));
    let outcome = strategy.run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&root()), "0-7");
    assert_eq!(wanted_amount(&outcome, &root(), Resource::CpuQuota), Some(400_000));
}

#[test]
fn with_the_manager_containers_of_pods_with_own_cpus_are_left_alone() {
    let mut fixture = fixture(&enabled());
    fixture.features = fixture.features.with(Feature::BeCpuManager);
    let meta = json!({
        "labels": {"koordinator.sh/qosClass": "BE"},
        "annotations": {"scheduling.koordinator.sh/resource-status": r#"{"numaNodeResources":[{"node":0}]}"#},
    });
    fixture.pod("be-numa", "BestEffort", &meta, Some(5500), &be());
    let outcome = CpuSuppress::default().run(&fixture.input());
    fixture.apply(&outcome);
    assert_eq!(fixture.cpuset(&fixture.cgroup("be-numa")), "0-7");
    assert_eq!(fixture.cpuset(&fixture.container("be-numa", "main")), "-");
    assert_eq!(fixture.cpuset(&fixture.container("be-1", "main")), "0-7");
}

#[test]
fn a_missing_input_skips_the_round_and_resets_nothing() {
    let usage = [("node", 4.0), ("ls-1", 2.0), ("be-1", 1.0)];
    let missing: [(&str, Change); 4] = [
        ("no NodeSLO was received yet", |fixture| fixture.slo = None),
        ("no Node was received yet", |fixture| fixture.node = None),
        ("the kubelet has listed no pods", |fixture| fixture.pods.clear()),
        ("there is no recent sample of the node's CPU usage", |fixture| fixture.advance(3)),
    ];
    for (reason, remove) in missing {
        let mut fixture = fixture(&enabled());
        fixture.cpu(&usage);
        remove(&mut fixture);
        let outcome = CpuSuppress::default().run(&fixture.input());
        assert_eq!(outcome.constraints, None, "{reason}");
        assert_eq!(notes(&outcome)[0].reason, reason);
    }
    let mut fixture = fixture(&enabled());
    fixture.features = fixture.features.without(Feature::BeCpuSuppress);
    fixture.cpu(&usage);
    assert_eq!(CpuSuppress::default().run(&fixture.input()).constraints, None);
}

#[test]
fn constraints_are_named_only_when_something_changes() {
    let mut fixture = fixture(&enabled());
    let mut strategy = CpuSuppress::default();
    let mut named = Vec::new();
    for second in 0..12 {
        // The budget moves a little, the number of CPUs does not.
        fixture.cpu(&[("node", 4.0 + f64::from(second) / 100.0), ("ls-1", 2.0), ("be-1", 1.0)]);
        let outcome = strategy.run(&fixture.input());
        fixture.apply(&outcome);
        if outcome.constraints.is_some() {
            named.push(second);
        }
        fixture.advance(1);
    }
    assert_eq!(named, [0, 5, 10], "and when folders are listed anew");
}
