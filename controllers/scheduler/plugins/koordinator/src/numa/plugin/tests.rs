mod devices;
mod given;
mod ranks;
mod reasons;
mod reserved;
mod scores;
mod shown;
mod world;

use std::time::Duration;

use koord_core::uid::Uid;
use koord_scheduler_engine::Outcome;
use koord_scheduler_framework::{AttemptState, Score as _};
use serde_json::json;

use self::world::{CpuRequest, Machine, World, pod};
use super::*;

const BIND: &str = "node.koordinator.sh/cpu-bind-policy";
const KEEP: &str = "node.koordinator.sh/numa-topology-policy";
const SPEC: &str = "scheduling.koordinator.sh/resource-spec";
const NUMA: &str = "scheduling.koordinator.sh/numa-topology-spec";
const STATUS: &str = "scheduling.koordinator.sh/resource-status";

const FULL: (&str, &str) = (SPEC, r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#);
const SPREAD: (&str, &str) = (SPEC, r#"{"preferredCPUBindPolicy":"SpreadByPCPUs"}"#);
const MUST_SPREAD: (&str, &str) = (SPEC, r#"{"requiredCPUBindPolicy":"SpreadByPCPUs"}"#);

fn refused(reason: &str) -> String {
    format!("0/1 nodes are available: 1 {reason}.")
}

fn cpus(cpus: &str) -> String {
    format!(r#"n1 {{"cpuset":"{cpus}"}}"#)
}

/// A status with these CPUs and `node:cpu/memory` shares.
fn shares(cpus: &str, shares: &[(u32, &str, &str)]) -> String {
    let cpus = if cpus.is_empty() { String::new() } else { format!(r#""cpuset":"{cpus}","#) };
    let share = |(node, cpu, memory): &(u32, &str, &str)| {
        format!(r#"{{"node":{node},"resources":{{"cpu":"{cpu}","memory":"{memory}"}}}}"#)
    };
    let shares = shares.iter().map(share).collect::<Vec<_>>().join(",");
    format!(r#"n1 {{{cpus}"numaNodeResources":[{shares}]}}"#)
}

/// One after the other on one machine: what each pod wants, and what it gets.
fn play(machine: Machine, pods: &[(CpuRequest<'_>, String)]) {
    let mut world = World::of(&[machine]);
    for (index, (cpu_request, expected)) in pods.iter().enumerate() {
        assert_eq!(world.create(&format!("p{index}"), *cpu_request), *expected, "pod {index}: {cpu_request:?}");
    }
    assert_eq!(world.engine.cluster().discrepancies(), []);
}

#[test]
fn exclusive_pods_get_cpus_of_their_own() {
    let written = format!(r#"{} {{"preferredCPUBindPolicy":"FullPCPUs"}}"#, cpus("0-3"));
    play(Machine::default(), &[(("LSR", "4", &[]), written)]);
    play(Machine::default(), &[(("LSR", "4", &[FULL]), cpus("0-3")), (("LSR", "8", &[FULL]), cpus("8-15"))]);
    play(Machine::default(), &[(("LSR", "4", &[SPREAD]), cpus("0,2,4,6"))]);
    play(Machine::default(), &[(("LSE", "10", &[FULL]), cpus("0-9"))]);
    play(Machine::default(), &[(("LSR", "3", &[FULL]), cpus("0-2")), (("LSR", "3", &[FULL]), cpus("8-10"))]);
    play(Machine::default(), &[(("LS", "4", &[]), "n1".to_owned()), (("LSR", "8", &[FULL]), cpus("0-7"))]);
    let halves =
        [(("LSR", "8", &[MUST_SPREAD][..]), cpus("0,2,4,6,8,10,12,14")), (("LSR", "2", &[FULL][..]), cpus("1,3"))];
    play(Machine::default(), &halves);
    let mut world = World::of(&[Machine::default()]);
    assert_eq!(world.create_with("batch", ("LSR", "4", &[]), 5500, "1Gi"), "n1");
}

#[test]
fn what_is_left_of_a_failed_binding_is_removed() {
    let left = (STATUS, r#"{"cpuset":"0-3","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}}]}"#);
    for (annotations, expected) in [(&[left][..], Some(None)), (&[], None)] {
        let mut world = World::of(&[Machine::default()]);
        world.engine.set_pod(pod("p", ("LS", "4", annotations), 9500, "1Gi", None), world.now);
        let attempt = world.engine.attempt(world.now).unwrap();
        let Outcome::Bind { patch, .. } = attempt.outcome else { panic!("{attempt:?}") };
        assert_eq!(patch.annotations.get(STATUS).cloned(), expected);
    }
}

#[test]
fn the_label_of_a_node_says_which_numa_node_is_filled_first() {
    let packed = Machine::labelled("node.koordinator.sh/numa-allocate-strategy", "MostAllocated");
    play(packed, &[(("LSR", "2", &[FULL]), cpus("0-1")), (("LSR", "2", &[FULL]), cpus("2-3"))]);
    play(Machine::default(), &[(("LSR", "2", &[FULL]), cpus("0-1")), (("LSR", "2", &[FULL]), cpus("8-9"))]);
}

#[test]
fn pods_that_do_not_share_cores_keep_away_from_each_other() {
    let apart = (SPEC, r#"{"preferredCPUBindPolicy":"SpreadByPCPUs","preferredCPUExclusivePolicy":"PCPULevel"}"#);
    let pods = [
        (("LSR", "2", &[apart][..]), cpus("0,2")),
        (("LSR", "2", &[apart][..]), cpus("8,10")),
        (("LSR", "2", &[SPREAD][..]), cpus("1,3")),
    ];
    play(Machine::default(), &pods);
}

#[test]
fn cpus_that_others_give_out_are_not_given_to_pods() {
    let written = format!(r#"{} {{"preferredCPUBindPolicy":"FullPCPUs"}}"#, cpus("8-11"));
    let of_kubelet = r#"[{"uid":"u","cpuset":"0-3","managedByKubelet":true}]"#;
    play(Machine::reporting("node.koordinator.sh/pod-cpu-allocs", of_kubelet), &[(("LSR", "4", &[]), written.clone())]);
    let system = Machine::reporting("node.koordinator.sh/system-qos-resource", r#"{"cpuset":"0-1"}"#);
    play(system, &[(("LSR", "4", &[]), written)]);
}

#[test]
fn numa_nodes_count_though_the_report_of_their_cpus_cannot_be_read() {
    let bad = json!({"node.koordinator.sh/cpu-topology": "{bad"});
    let machine = Machine { reports_cpus: false, reported: bad, ..Machine::labelled(KEEP, "SingleNUMANode") };
    let invalid = refused("node(s) invalid CPU Topology");
    play(machine, &[(("LS", "2", &[]), shares("", &[(0, "2", "1Gi")])), (("LSR", "2", &[]), invalid)]);
}

#[test]
fn a_node_that_binds_binds_all_pods_or_refuses_them() {
    let binding = || Machine::labelled(BIND, "FullPCPUsOnly");
    let written = format!(r#"{} {{"requiredCPUBindPolicy":"FullPCPUs"}}"#, cpus("0-3"));
    play(binding(), &[(("LS", "4", &[]), written)]);
    play(binding(), &[(("LS", "1500m", &[]), refused("the requested CPUs must be integer"))]);
    let odd = refused("node(s) requested cpus not multiple cpus per core");
    play(binding(), &[(("LSR", "3", &[]), odd.clone())]);
    let conflict = refused("node(s) cpu bind policy conflicts with pod's required cpu bind policy");
    play(binding(), &[(("LSR", "4", &[MUST_SPREAD]), conflict)]);
    play(Machine::labelled(BIND, "None"), &[(("LS", "4", &[]), "n1".to_owned())]);
    let full_only = r#"{"policy":"static","options":{"full-pcpus-only":"true"}}"#;
    let of_kubelet = Machine::reporting("kubelet.koordinator.sh/cpu-manager-policy", full_only);
    play(of_kubelet, &[(("LSR", "3", &[]), odd.clone())]);
    let both = Machine {
        reported: json!({"kubelet.koordinator.sh/cpu-manager-policy": full_only}),
        ..Machine::labelled(BIND, "SpreadByPCPUs")
    };
    let written = r#"{"requiredCPUBindPolicy":"FullPCPUs","preferredCPUBindPolicy":"SpreadByPCPUs"}"#;
    play(both, &[(("LSR", "3", &[]), odd), (("LSR", "2", &[SPREAD]), format!("{} {written}", cpus("0-1")))]);
}

#[test]
fn a_pod_that_makes_no_sense_is_refused_as_a_whole() {
    let json = "running PreFilter plugin \"NodeNUMAResource\": \
                invalid character 'b' looking for beginning of object key string";
    play(Machine::default(), &[(("LSR", "2", &[(SPEC, "{bad")]), json.to_owned())]);
    let fraction = "0/1 nodes are available: the requested CPUs must be integer.";
    play(Machine::default(), &[(("LSR", "1500m", &[]), fraction.to_owned())]);
    let left = "0/1 nodes are available: invalid character 'b' looking for beginning of object key string.";
    play(Machine::default(), &[(("LSR", "1500m", &[(STATUS, "{bad")]), left.to_owned())]);
}

#[test]
fn required_cpus_are_there_or_the_node_is_refused() {
    let short = refused("not enough cpus available to satisfy request");
    play(Machine::default(), &[(("LSR", "10", &[MUST_SPREAD]), short.clone())]);
    let must_full = (SPEC, r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#);
    play(Machine::default(), &[(("LSR", "4", &[must_full]), cpus("0-3"))]);
    let no_topology = Machine { numa_nodes: 0, ..Machine::default() };
    play(no_topology, &[(("LSR", "2", &[]), refused("node(s) invalid CPU Topology"))]);
}

#[test]
fn a_node_without_enough_cpus_is_refused_before_it_is_chosen() {
    let reserved = || {
        Machine::reporting(
            "node.koordinator.sh/pod-cpu-allocs",
            r#"[{"uid":"u","cpuset":"0-11","managedByKubelet":true}]"#,
        )
    };
    let short = refused("not enough cpus available to satisfy request");
    play(reserved(), &[(("LSR", "6", &[FULL]), short)]);
    // The other node is fuller, and less liked by scores.
    let mut world = World::of(&[reserved(), Machine { name: "n2", ..Machine::default() }]);
    world.engine.set_pod(pod("filler", ("LS", "8", &[]), 9500, "40Gi", Some("n2")), world.now);
    assert_eq!(world.create("p", ("LSR", "6", &[FULL])), r#"n2 {"cpuset":"0-5"}"#);
}

#[test]
fn no_preemption_for_what_reserve_would_refuse() {
    let reserved = Machine::reporting(
        "node.koordinator.sh/pod-cpu-allocs",
        r#"[{"uid":"u","cpuset":"0-11","managedByKubelet":true}]"#,
    );
    let short = refused("not enough cpus available to satisfy request");
    let no_victims = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    let must_full = (SPEC, r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#);
    let mut world = World::that_preempts(&reserved);
    assert_eq!(world.create("prefers", ("LSR", "6", &[FULL])), short);
    assert_eq!(world.create("requires", ("LSR", "6", &[must_full])), format!("{short} {no_victims}"));
    let unknown = |policy| Machine { numa_nodes: 0, ..Machine::labelled(KEEP, policy) };
    let missing = refused("node(s) missing NUMA resources");
    assert_eq!(World::that_preempts(&unknown("BestEffort")).create("p", ("LS", "4", &[])), missing);
    let hopeless = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let restricted = World::that_preempts(&unknown("Restricted")).create("p", ("LS", "4", &[]));
    assert_eq!(restricted, format!("{missing} {hopeless}"));
}

#[test]
fn amplified_cpus_are_more_but_bound_ones_cost_more() {
    play(Machine::amplified(), &[(("LS", "20", &[]), "n1".to_owned())]);
    play(Machine::amplified(), &[(("LS", "10", &[]), "n1".to_owned()), (("LSR", "8", &[FULL]), cpus("0-7"))]);
    let short = refused("Insufficient amplified cpu");
    play(Machine::amplified(), &[(("LS", "14", &[]), "n1".to_owned()), (("LSR", "8", &[FULL]), short)]);
    let zones = Machine { cpu: 12, labels: json!({KEEP: "SingleNUMANode"}), ..Machine::amplified() };
    let pods = [
        (("LS", "10", &[][..]), shares("", &[(0, "10", "1Gi")])),
        (("LSR", "6", &[FULL][..]), shares("8-13", &[(1, "6", "1Gi")])),
        (("LS", "4", &[][..]), shares("", &[(1, "4", "1Gi")])),
    ];
    play(zones, &pods);
}

#[test]
fn resources_are_aligned_as_the_policy_says() {
    let with = |policy: &str| Machine::labelled(KEEP, policy);
    let fits = || (("LS", "4", &[][..]), shares("", &[(0, "4", "1Gi")]));
    for policy in ["BestEffort", "Restricted", "SingleNUMANode"] {
        play(with(policy), &[fits()]);
    }
    let two = || shares("", &[(0, "6", "512Mi"), (1, "6", "512Mi")]);
    play(with("BestEffort"), &[(("LS", "12", &[]), two())]);
    play(with("Restricted"), &[(("LS", "12", &[]), two())]);
    let unaligned = refused("Unaligned NUMA Hint cause cpu prefer [11] among [11],memory prefer [11] among [11]");
    play(with("SingleNUMANode"), &[(("LS", "12", &[]), unaligned.clone())]);
    let of_kubelet = Machine { policies: json!(["SingleNUMANodePodLevel"]), ..Machine::default() };
    play(of_kubelet, &[(("LS", "12", &[]), unaligned.clone())]);
    let fragmented = |last: String| {
        [
            (("LS", "5", &[][..]), shares("", &[(0, "5", "1Gi")])),
            (("LS", "5", &[][..]), shares("", &[(1, "5", "1Gi")])),
            (("LS", "4", &[][..]), last),
        ]
    };
    play(with("Restricted"), &fragmented(shares("", &[(0, "2", "512Mi"), (1, "2", "512Mi")])));
    play(with("SingleNUMANode"), &fragmented(unaligned));
    play(with("Restricted"), &[(("LSR", "6", &[FULL]), shares("0-5", &[(0, "6", "1Gi")]))]);
}

#[test]
fn shares_of_numa_nodes_count_where_the_cpus_of_the_node_are_not_reported() {
    let machine = Machine { reports_cpus: false, ..Machine::labelled(KEEP, "SingleNUMANode") };
    let unaligned = refused("Unaligned NUMA Hint cause cpu prefer [11] among [11],memory prefer [11] among [11]");
    let on = |node: u32| (("LS", "6", &[][..]), shares("", &[(node, "6", "1Gi")]));
    play(machine, &[on(0), on(1), (("LS", "4", &[]), unaligned)]);
}

#[test]
fn a_policy_needs_numa_nodes_that_are_reported() {
    for policy in ["BestEffort", "Restricted", "SingleNUMANode"] {
        let machine = Machine { numa_nodes: 0, ..Machine::labelled(KEEP, policy) };
        play(machine, &[(("LS", "4", &[]), refused("node(s) missing NUMA resources"))]);
    }
}

#[test]
fn a_policy_in_other_words_is_none() {
    for policy in ["None", "restricted"] {
        play(Machine::labelled(KEEP, policy), &[(("LS", "12", &[]), "n1".to_owned())]);
    }
}

#[test]
fn memory_may_decide_about_the_numa_node() {
    let machine = Machine { memory: "8Gi", ..Machine::labelled(KEEP, "SingleNUMANode") };
    let mut world = World::of(&[machine]);
    let mut create = |name, memory| world.create_with(name, ("LS", "1", &[]), 9500, memory);
    assert_eq!(create("a", "6Gi"), shares("", &[(0, "1", "6Gi")]));
    assert_eq!(create("b", "6Gi"), shares("", &[(1, "1", "6Gi")]));
    let unaligned = "Unaligned NUMA Hint cause cpu prefer [11] among [11],memory prefer [11] among [11]";
    assert_eq!(create("w", "4Gi"), refused(unaligned));
}

#[test]
fn a_pod_may_say_its_policy_itself() {
    let single = (NUMA, r#"{"numaTopologyPolicy":"SingleNUMANode"}"#);
    play(Machine::default(), &[(("LS", "4", &[single]), shares("", &[(0, "4", "1Gi")]))]);
    let conflict = refused("node(s) NUMA Topology policy not match");
    play(Machine::labelled(KEEP, "BestEffort"), &[(("LS", "4", &[single]), conflict)]);
    // A pod that spans both NUMA nodes keeps apart from one that sits on one of them.
    let restricted = (NUMA, r#"{"numaTopologyPolicy":"Restricted"}"#);
    let unaligned = "Unaligned NUMA Hint cause cpu prefer [11] among [11] & memory prefer [11] among [11]";
    let pods = [
        (("LSR", "4", &[single, FULL][..]), shares("0-3", &[(0, "4", "1Gi")])),
        (("LSR", "10", &[restricted, FULL][..]), refused(unaligned)),
    ];
    play(Machine::default(), &pods);
}

#[test]
fn the_node_where_a_pod_fits_one_numa_node_is_chosen() {
    let large = Machine {
        name: "n2",
        numa_nodes: 1,
        cpu: 12,
        allocatable: json!({"cpu": "12", "memory": "64Gi", "pods": "110"}),
        ..Machine::labelled(KEEP, "SingleNUMANode")
    };
    let mut world = World::of(&[Machine::labelled(KEEP, "SingleNUMANode"), large]);
    // Of the only NUMA node nothing is recorded.
    assert_eq!(world.create("p", ("LS", "10", &[])), "n2 {}");
}

#[test]
fn pods_are_packed_where_the_configuration_packs() {
    let strategy = json!({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]});
    let mut world = World::new(json!({"scoringStrategy": strategy, "numaScoringStrategy": strategy}));
    world.add(&Machine { numa_nodes: 4, ..Machine::labelled(KEEP, "SingleNUMANode") });
    let first: Vec<String> = ["a", "b", "c"].iter().map(|name| world.create(name, ("LS", "2", &[]))).collect();
    assert_eq!(first, vec![shares("", &[(0, "2", "1Gi")]); 3]);
    let mut spread = World::of(&[Machine { numa_nodes: 4, ..Machine::labelled(KEEP, "SingleNUMANode") }]);
    assert_eq!(spread.create("a", ("LS", "2", &[])), shares("", &[(0, "2", "1Gi")]));
    assert_eq!(spread.create("b", ("LS", "2", &[])), shares("", &[(1, "2", "1Gi")]));
}

#[test]
fn running_pods_keep_their_cpus_after_a_restart() {
    let mut world = World::new(json!({}));
    let running = pod("a", ("LSR", "4", &[FULL, (STATUS, r#"{"cpuset":"0-3"}"#)]), 9500, "1Gi", Some("n1"));
    // Pods may be known before their node and its CPUs are.
    world.engine.set_pod(running, world.now);
    world.add(&Machine::labelled("node.koordinator.sh/numa-allocate-strategy", "MostAllocated"));
    assert_eq!(world.create("b", ("LSR", "4", &[FULL])), cpus("4-7"));
}

#[test]
fn what_is_released_is_given_to_those_that_wait() {
    let mut world = World::of(&[Machine::default()]);
    assert_eq!(world.create("a", ("LSR", "8", &[FULL])), cpus("0-7"));
    assert_eq!(world.create("b", ("LSR", "8", &[FULL])), cpus("8-15"));
    assert_eq!(world.create("w", ("LSR", "4", &[FULL])), refused("Insufficient cpu"));
    world.engine.remove_pod(&Uid::from("a"), world.now);
    world.now = world.now + Duration::from_secs(20);
    assert_eq!(world.tried(), cpus("0-3"));
    assert_eq!(world.engine.cluster().discrepancies(), []);
}

#[test]
fn a_topology_that_is_reported_later_wakes_those_that_wait() {
    let machine = Machine::default();
    let mut world = World::of(&[Machine { numa_nodes: 0, ..Machine::default() }]);
    assert_eq!(world.create("p", ("LSR", "4", &[FULL])), refused("node(s) invalid CPU Topology"));
    world.now = world.now + Duration::from_secs(20);
    assert_eq!(world.tried(), "");
    world.engine.set_object(machine.topology(), world.now);
    assert_eq!(world.tried(), cpus("0-3"));
}

#[test]
fn a_new_node_wakes_those_that_wait_when_its_cpus_are_reported() {
    let silent = |name| Machine { name, numa_nodes: 0, ..Machine::default() };
    let mut world = World::of(&[silent("n1")]);
    assert_eq!(world.create("p", ("LSR", "4", &[FULL])), refused("node(s) invalid CPU Topology"));
    world.now = world.now + Duration::from_secs(20);
    world.add(&silent("n2"));
    assert_eq!(world.tried(), "");
    world.engine.set_object(Machine { name: "n2", ..Machine::default() }.topology(), world.now);
    assert_eq!(world.tried(), r#"n2 {"cpuset":"0-3"}"#);
}

#[test]
fn a_pod_without_requests_has_no_part_in_this() {
    let mut world = World::of(&[Machine { numa_nodes: 0, ..Machine::labelled(KEEP, "SingleNUMANode") }]);
    assert_eq!(world.create_with("p", ("LSR", "0", &[FULL]), 9500, "0"), "n1");
    let refused = world.create_with("q", ("LSR", "0", &[(SPEC, "{bad")]), 9500, "0");
    assert!(refused.starts_with("running PreFilter plugin \"NodeNUMAResource\": "), "{refused}");
    assert_eq!(world.create_with("s", ("LSR", "0", &[(STATUS, "{bad")]), 9500, "0"), "n1");
}

#[test]
fn trials_are_undone_without_a_trace() {
    let mut world = World::of(&[Machine::default()]);
    assert_eq!(world.create("a", ("LSR", "4", &[FULL])), cpus("0-3"));
    let mut cluster = world.engine.cluster().clone();
    let row = cluster.row("n1").unwrap();
    let before = NodeInCluster::of(&cluster, row).unwrap().node.clone();
    let mut trial = cluster.trial();
    trial.remove(&Uid::from("a"));
    assert_eq!(NodeInCluster::of(&trial, row).unwrap().node.ledger.cpu_count(), 0);
    drop(trial);
    assert_eq!(*NodeInCluster::of(&cluster, row).unwrap().node, before);
}

/// The score of a node with a running pod of 4 cpus and 16Gi of memory, for one of 16Gi.
fn score(machine: Machine, cpu_request: CpuRequest<'_>, args: serde_json::Value) -> i64 {
    score_beside(("LS", "4", &[]), machine, cpu_request, args)
}

/// The score of a node with a running pod of 16Gi of memory, for one of 16Gi.
fn score_beside(
    running: CpuRequest<'_>,
    machine: Machine,
    cpu_request: CpuRequest<'_>,
    args: serde_json::Value,
) -> i64 {
    let mut world = World::of(&[machine]);
    world.engine.set_pod(pod("old", running, 9500, "16Gi", Some("n1")), world.now);
    let pod = pod("new", cpu_request, 9500, "16Gi", None);
    let mut cluster = world.engine.cluster().clone();
    let class = cluster.class(&pod.template);
    let plugin = NodeNumaResource::new(serde_json::from_value(args).unwrap());
    let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let row = cluster.row("n1").unwrap();
    plugin.prepare_score(&request, &cluster).unwrap().score(&cluster, row)
}

#[test]
fn nodes_are_scored_by_what_is_left_and_numa_nodes_by_what_the_pod_gets() {
    let score = |machine, cpu_request| score(machine, cpu_request, json!({}));
    // cpu 8 of 16, memory 32 of 64.
    assert_eq!(score(Machine::default(), ("LS", "4", &[])), 50);
    // The running pod has nothing of a NUMA node: cpu 4 of 8, memory 16 of 32.
    assert_eq!(score(Machine::labelled(KEEP, "SingleNUMANode"), ("LS", "4", &[])), 50);
    assert_eq!(score(Machine::labelled(KEEP, "SingleNUMANode"), ("LS", "2", &[])), 62);
    // Of which NUMA nodes is decided when the node is chosen: cpu 8 of 16, memory 32 of 64.
    assert_eq!(score(Machine::labelled(KEEP, "BestEffort"), ("LS", "4", &[])), 50);
    assert_eq!(score(Machine::labelled(KEEP, "SingleNUMANode"), ("LS", "12", &[])), 0, "it gets nothing there");
    // Bound: cpu 4 and 6 of 24, memory 32 of 64.
    assert_eq!(score(Machine::amplified(), ("LSR", "4", &[FULL])), 54);
}

#[test]
fn numa_nodes_are_compared_by_the_resources_of_nodes() {
    let strategy = |name| json!({"type": "LeastAllocated", "resources": [{"name": name, "weight": 1}]});
    let args = json!({"scoringStrategy": strategy("cpu"), "numaScoringStrategy": strategy("memory")});
    // cpu 2 of 8, not memory 16 of 32.
    assert_eq!(score(Machine::labelled(KEEP, "SingleNUMANode"), ("LS", "2", &[]), args), 75);
}
