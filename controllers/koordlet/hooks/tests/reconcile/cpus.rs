//! CPUs of containers and sandboxes.

use std::sync::Arc;

use koord_koordlet_framework::{NodeTopology, Pod, SystemCpus};
use koord_koordlet_hooks::Hook;
use serde_json::json;

use crate::fixture::{NodeOfTest, STATUS, cpus, limits, plain, pod};

#[test]
fn containers_and_sandboxes_have_their_cpus() {
    let numa = |node: i32, resource: &str| {
        format!(r#"{{"numaNodeResources":[{{"node":{node},"resources":{{"{resource}":"2"}}}}]}}"#)
    };
    let batch_cpu = numa(0, "kubernetes.io/batch-cpu");
    for (name, pod, taken, binds, expected, quota) in [
        (
            "lsr-v1",
            plain("a", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]),
            "0,4",
            false,
            Some("0,4"),
            Some(-1),
        ),
        (
            "lse",
            plain("a", "LSE", "Guaranteed", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            Some(-1),
        ),
        (
            "none with cpus",
            plain("a", "", "Guaranteed", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            Some(-1),
        ),
        (
            "ls with cpus",
            plain("a", "LS", "Burstable", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            None,
        ),
        ("pools", plain("a", "LS", "Burstable", &[]), "0-1,4-5", false, Some("2-3,6-7"), None),
        ("pools", plain("a", "", "Burstable", &[]), "0,4", false, Some("1-3,5-7"), None),
        ("pools", plain("a", "", "BestEffort", &[]), "0,4", false, None, None),
        ("pools", plain("a", "BE", "BestEffort", &[]), "0,4", false, None, None),
        ("numa", plain("a", "LS", "Burstable", &[(STATUS, &numa(1, "cpu"))]), "", false, Some("2-3,6-7"), None),
        (
            "numa, memory only",
            plain("a", "LS", "Burstable", &[(STATUS, &numa(1, "memory"))]),
            "",
            false,
            Some("0-7"),
            None,
        ),
        ("numa", plain("a", "BE", "BestEffort", &[(STATUS, &batch_cpu)]), "", false, None, None),
        ("numa-bemanager", plain("a", "BE", "BestEffort", &[(STATUS, &batch_cpu)]), "", true, Some("0-1,4-5"), None),
        ("SYSTEM", plain("a", "SYSTEM", "Burstable", &[]), "", false, Some("0-7"), None),
    ] {
        let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology(taken);
        node.options.binds_be_to_nodes = binds;
        node.add(&[Arc::clone(&pod)]);
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        let (container, sandbox) = (pod.containers[0].cgroup.clone().unwrap(), pod.cgroup.child("sandbox"));
        for cgroup in [&container, &sandbox] {
            assert_eq!(cpus(&outcome, cgroup).as_deref(), expected, "{name} {cgroup}");
        }
        assert_eq!(cpus(&outcome, &pod.cgroup), None, "{name}");
        assert_eq!([&pod.cgroup, &container].map(|cgroup| limits(&outcome, cgroup)[1]), [quota, quota], "{name}");
        assert_eq!(limits(&outcome, &sandbox)[1], None, "{name}");
    }
}

#[test]
fn cpus_follow_the_topology() {
    let (ls, none, system) = (
        plain("ls", "LS", "Burstable", &[]),
        plain("none", "", "Guaranteed", &[]),
        plain("sys", "SYSTEM", "Burstable", &[]),
    );
    let pods = [Arc::clone(&ls), Arc::clone(&none), Arc::clone(&system)];
    let found = |node: &mut NodeOfTest| {
        let outcome = node.reconcile(&pods);
        [&ls, &none, &system].map(|pod| cpus(&outcome, pod.containers[0].cgroup.as_ref().unwrap()))
    };
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned));
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]);
    // Without a topology only CPUs of the scheduler are set.
    assert_eq!(found(&mut node), texts([None, None, None]));
    node = node.topology("0,4");
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), Some("1-3,5-7"), Some("1-3,5-7")]));
    let with = |change: fn(&mut NodeTopology), node: &NodeOfTest| {
        let mut topology = NodeTopology::clone(node.topology.as_ref().unwrap());
        change(&mut topology);
        Some(Arc::new(topology))
    };
    node.topology = with(|topology| topology.is_kubelet_static = true, &node);
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), None, None]));
    node.topology =
        with(|topology| topology.system = Some(SystemCpus { cpus: "7".parse().unwrap(), is_exclusive: true }), &node);
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), None, Some("7")]));
}

#[test]
fn sidecars_and_init_containers_have_the_cpus_of_their_pod() {
    let init = json!([{"name": "side", "restartPolicy": "Always"}, {"name": "prep"}]);
    let pod = pod("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"2-3"}"#)], &json!([{"name": "main"}]), &init);
    let outcome = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("2-3").reconcile(&[Arc::clone(&pod)]);
    for container in &pod.containers {
        assert_eq!(cpus(&outcome, container.cgroup.as_ref().unwrap()).as_deref(), Some("2-3"), "{}", container.name);
    }
}

#[test]
fn a_malformed_annotation_harms_its_pod_alone_and_keeps_what_could_be_read_last() {
    let (ls, good) =
        (plain("ls", "LS", "Burstable", &[]), plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]));
    let bad = plain("lsr", "LSR", "Guaranteed", &[(STATUS, "{")]);
    let bad_cpus = plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0-x"}"#)]);
    let container = good.containers[0].cgroup.clone().unwrap();
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("0,4");
    let outcome = node.reconcile(&[Arc::clone(&ls), Arc::clone(&bad)]);
    assert_eq!(cpus(&outcome, &container), None);
    assert_eq!(cpus(&outcome, ls.containers[0].cgroup.as_ref().unwrap()).as_deref(), Some("1-3,5-7"));
    assert_eq!(outcome.refused.len(), 1);
    assert!(
        outcome.refused[0]
            .to_string()
            .starts_with("pod shop/lsr: scheduling.koordinator.sh/resource-status: \"{\" is wrong")
    );
    node.reconcile(&[Arc::clone(&ls), good]);
    for bad in [bad, bad_cpus] {
        let outcome = node.reconcile(&[Arc::clone(&ls), bad]);
        assert_eq!(cpus(&outcome, &container).as_deref(), Some("0,4"));
        assert_eq!((limits(&outcome, &container)[1], outcome.refused.len()), (Some(-1), 1));
    }
}

#[test]
fn a_sandbox_that_comes_later_is_found() {
    let pod = plain("ls", "LS", "Burstable", &[]);
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("");
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(
        outcome.unknown_sandboxes[0].to_string(),
        "the sandbox of pod shop/ls is not known: 0 of the cgroups in kubepods/burstable/podls may be it, not one"
    );
    node.add(&[Arc::clone(&pod)]);
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(
        (outcome.unknown_sandboxes.len(), cpus(&outcome, &pod.cgroup.child("sandbox")).as_deref()),
        (0, Some("0-7"))
    );
}

#[test]
fn pods_in_virtual_machines_have_no_containers_here() {
    let mut pod = Pod::clone(&plain("ls", "LS", "Burstable", &[]));
    pod.runtime_class = Some("kata".into());
    let outcome = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("").reconcile(&[Arc::new(pod)]);
    assert_eq!((outcome.constraints.0.len(), outcome.unknown_sandboxes.len()), (0, 0));
}
