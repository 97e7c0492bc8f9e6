//! Shares, quotas and memory limits: batch resources and CPU normalization.

use std::sync::Arc;

use koord_koordlet_framework::{Precedence, Target};
use koord_koordlet_hooks::Hook;
use koord_koordlet_system::Resource;
use serde_json::json;

use crate::fixture::{EXTENDED, GIB, NodeOfTest, STATUS, batch, be, limits, plain, pod};

#[test]
fn be_pods_and_containers_have_their_batch_resources() {
    let half = json!([batch(1000, "1Gi"), {"name": "c1", "resources": {"requests": {"kubernetes.io/batch-cpu": 500}}}]);
    let side = json!({"name": "side", "restartPolicy": "Always", "resources": {
        "requests": {"kubernetes.io/batch-cpu": 500},
        "limits": {"kubernetes.io/batch-cpu": 500, "kubernetes.io/batch-memory": "256Mi"}}});
    let prepare = json!({"name": "prep", "resources": {
        "requests": {"kubernetes.io/batch-cpu": 4000}, "limits": {"kubernetes.io/batch-cpu": 4000}}});
    let negative =
        json!([batch(1000, "1Gi"), {"name": "c1", "resources": {"requests": {"kubernetes.io/batch-cpu": -500}}}]);
    for (name, containers, init, of_pod, of_containers) in [
        ("basic", json!([batch(1500, "1Gi")]), json!([]), [1536, 150_000, GIB], vec![[1536, 150_000, GIB]]),
        (
            "huge",
            json!([batch(300_000, "1Ti")]),
            json!([]),
            [262_144, 30_000_000, 1 << 40],
            vec![[262_144, 30_000_000, 1 << 40]],
        ),
        ("tiny", json!([batch(1, "1Mi")]), json!([]), [2, 1000, 1 << 20], vec![[2, 1000, 1 << 20]]),
        ("whole CPUs by mistake", json!([batch(8, "1Gi")]), json!([]), [8, 1000, GIB], vec![[8, 1000, GIB]]),
        ("half limited", half, json!([]), [1536, -1, -1], vec![[1024, 100_000, GIB], [512, -1, -1]]),
        ("negative", negative, json!([]), [1024, -1, -1], vec![[1024, 100_000, GIB], [2, -1, -1]]),
        // The original leaves the sidecar out of the sums of the pod.
        (
            "sidecar",
            json!([batch(1000, "1Gi")]),
            json!([side, prepare]),
            [1536, 150_000, GIB + (256 << 20)],
            vec![[1024, 100_000, GIB], [512, 50_000, 256 << 20], [4096, 400_000, -1]],
        ),
    ] {
        let pod = be(&containers, &init);
        let outcome = NodeOfTest::new(&[Hook::BatchResource]).reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup), of_pod.map(Some), "{name}");
        for (container, expected) in pod.containers.iter().zip(of_containers) {
            assert_eq!(
                limits(&outcome, container.cgroup.as_ref().unwrap()),
                expected.map(Some),
                "{name} {}",
                container.name
            );
        }
    }
}

#[test]
fn each_value_names_the_resource_that_it_follows_from() {
    let pod = be(&json!([batch(1500, "1Gi")]), &json!([]));
    let outcome = NodeOfTest::new(&[Hook::BatchResource]).reconcile(&[Arc::clone(&pod)]);
    let setting = |resource: Resource| {
        let target = Target::Cgroup { cgroup: pod.cgroup.clone(), resource };
        outcome.constraints.0.iter().find(|constraint| constraint.target == target).unwrap().reason.setting
    };
    let settings = [Resource::CpuShares, Resource::CpuQuota, Resource::MemoryLimit].map(setting);
    assert_eq!(settings, ["kubernetes.io/batch-cpu", "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"]);
}

#[test]
fn pods_that_are_not_be_or_have_no_batch_resources_are_left_alone() {
    let containers = json!([batch(1000, "1Gi")]);
    let pods = [
        pod("ls", "LS", "Burstable", &[], &containers, &json!([])),
        plain("bare", "BE", "BestEffort", &[]),
        pod("none", "", "BestEffort", &[], &containers, &json!([])),
    ];
    let outcome = NodeOfTest::new(&[Hook::BatchResource]).reconcile(&pods);
    assert_eq!((outcome.constraints.0.len(), outcome.refused.len()), (0, 0));
}

#[test]
fn batch_resources_of_the_specification_go_before_the_annotation() {
    let annotation = r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"500"},"limits":{"kubernetes.io/batch-cpu":"500","kubernetes.io/batch-memory":null}}}}"#;
    let node = || NodeOfTest::new(&[Hook::BatchResource]);
    let annotated = plain("be", "BE", "BestEffort", &[(EXTENDED, annotation)]);
    let outcome = node().reconcile(&[Arc::clone(&annotated)]);
    assert_eq!(limits(&outcome, &annotated.cgroup), [Some(512), Some(50_000), Some(-1)]);
    let both = pod("be", "BE", "BestEffort", &[(EXTENDED, annotation)], &json!([batch(1500, "1Gi")]), &json!([]));
    let outcome = node().reconcile(&[Arc::clone(&both)]);
    assert_eq!(limits(&outcome, &both.cgroup), [Some(1536), Some(150_000), Some(GIB)]);
}

#[test]
fn quotas_of_be_pods_follow_ratio_and_suppression() {
    let cfs_quota =
        |enable| json!({"resourceUsedThresholdWithBE": {"enable": enable, "cpuSuppressPolicy": "cfsQuota"}});
    for (slo, ratio, quota) in [
        (json!({}), None, 150_000),
        (json!({}), Some("1.5"), 100_000),
        (json!({}), Some("1.2"), 125_000),
        (json!({}), Some("0.5"), 150_000),
        (json!({}), Some("fast"), 150_000),
        (cfs_quota(true), None, -1),
        (cfs_quota(true), Some("1.5"), -1),
        (cfs_quota(false), None, 150_000),
    ] {
        let pod = be(&json!([batch(1500, "1Gi")]), &json!([]));
        let mut node = NodeOfTest { ratio, ..NodeOfTest::new(&[Hook::BatchResource]).slo(slo.clone()) };
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(quota), "{slo} {ratio:?}");
        assert_eq!(limits(&outcome, pod.containers[0].cgroup.as_ref().unwrap())[1], Some(quota), "{slo} {ratio:?}");
        assert_eq!(outcome.refused.len(), usize::from(ratio == Some("fast")));
    }
}

#[test]
fn a_ratio_that_cannot_be_read_keeps_its_last_value() {
    let pod = be(&json!([batch(1500, "1Gi")]), &json!([]));
    let mut node = NodeOfTest::new(&[Hook::BatchResource]);
    for (ratio, quota, refused) in [
        ("1.5", 100_000, vec![]),
        ("x", 100_000, vec!["node: node.koordinator.sh/cpu-normalization-ratio"]),
        ("1.505", 100_000, vec![]),
        ("1.2", 125_000, vec![]),
    ] {
        node.ratio = Some(ratio);
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(quota), "{ratio}");
        let found: Vec<String> = outcome.refused.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), refused.len());
        assert!(found.iter().zip(refused).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
    }
}

#[test]
fn quotas_of_ls_pods_are_normalized() {
    let limited = |name: &str, qos: &str, cpu: Option<&str>, annotations: &[(&str, &str)]| {
        let limits = cpu.map_or(json!({}), |cpu| json!({"cpu": cpu}));
        pod(
            name,
            qos,
            "Burstable",
            annotations,
            &json!([{"name": "main", "resources": {"limits": limits}}]),
            &json!([]),
        )
    };
    let own_cpus = [(STATUS, r#"{"cpuset":"0"}"#)];
    for (pod, ratio, quota) in [
        (limited("ls", "LS", Some("2"), &[]), "1.30", Some(153_847)),
        (limited("none", "", Some("1500m"), &[]), "1.30", Some(115_385)),
        (limited("ls", "LS", Some("1"), &own_cpus), "1.30", Some(76_924)),
        (limited("none", "", Some("1"), &own_cpus), "1.30", None),
        (limited("lsr", "LSR", Some("2"), &[]), "1.30", None),
        (limited("ls", "LS", None, &[]), "1.30", None),
        (limited("ls", "LS", Some("2"), &[]), "1.0", Some(200_000)),
        (limited("ls", "LS", Some("2"), &[]), "0.5", Some(200_000)),
        (limited("ls", "LS", Some("2"), &[]), "fast", None),
    ] {
        let mut node = NodeOfTest { ratio: Some(ratio), ..NodeOfTest::new(&[Hook::CpuNormalization]) };
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        let container = pod.containers[0].cgroup.as_ref().unwrap();
        assert_eq!(
            [&pod.cgroup, container].map(|cgroup| limits(&outcome, cgroup)[1]),
            [quota, quota],
            "{} {ratio}",
            pod.name
        );
    }
}

#[test]
fn quotas_are_restored_when_the_ratio_goes() {
    let pod = pod(
        "ls",
        "LS",
        "Burstable",
        &[],
        &json!([{"name": "main", "resources": {"limits": {"cpu": "2"}}}]),
        &json!([]),
    );
    let mut node = NodeOfTest { ratio: Some("2.0"), ..NodeOfTest::new(&[Hook::CpuNormalization]) };
    assert_eq!(limits(&node.reconcile(&[Arc::clone(&pod)]), &pod.cgroup)[1], Some(100_000));
    node.ratio = None;
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(200_000));
    assert!(outcome.constraints.0.iter().all(|constraint| constraint.precedence == Precedence::Default));
    assert_eq!(NodeOfTest::new(&[Hook::CpuNormalization]).reconcile(&[pod]).constraints.0.len(), 0);
}
