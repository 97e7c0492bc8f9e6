//! Which NUMA nodes come first, and what of a node cannot be read.

use super::*;

#[test]
fn whole_cores_are_taken_where_most_of_them_are() {
    let mut world = World::of(&[Machine::default()]);
    assert_eq!(world.create("a", ("LSR", "3", &[SPREAD])), cpus("0,2,4"));
    assert_eq!(world.create("b", ("LSR", "4", &[FULL])), cpus("8-11"));
    // The first NUMA node has five CPUs left, but one whole core; the second has two.
    assert_eq!(world.create("c", ("LSR", "2", &[FULL])), cpus("12-13"));
}

#[test]
fn the_strategy_of_numa_nodes_decides_which_are_filled_first() {
    let of = |member: &str, label: &str| {
        let strategy = json!({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]});
        let mut world = World::new(json!({ member: strategy }));
        world.add(&Machine::labelled("node.koordinator.sh/numa-allocate-strategy", label));
        ["a", "b"].map(|name| world.create(name, ("LSR", "2", &[FULL])))
    };
    let (packed, apart) = ([cpus("0-1"), cpus("2-3")], [cpus("0-1"), cpus("8-9")]);
    assert_eq!(of("numaScoringStrategy", ""), packed, "an empty label says nothing");
    assert_eq!(of("numaScoringStrategy", "LeastAllocated"), apart);
    assert_eq!(of("scoringStrategy", ""), apart);
}

#[test]
fn a_ratio_that_cannot_be_read_refuses_pods_that_request_cpu() {
    let annotations = json!({"node.koordinator.sh/resource-amplification-ratio": r#"{"cpu":"x"}"#});
    let mut world = World::of(&[Machine { annotations, ..Machine::default() }]);
    let said = world.create("p", ("LSR", "2", &[FULL]));
    assert_eq!(said, refused("node(s) invalid CPU amplification ratio"));
    assert_eq!(world.create_with("q", ("LS", "0", &[]), 9500, "1Gi"), "n1");
}

#[test]
fn a_ratio_that_cannot_be_read_counts_as_none_for_pods_without_cpu_under_a_policy() {
    for policy in ["BestEffort", "Restricted", "SingleNUMANode"] {
        let annotations = json!({"node.koordinator.sh/resource-amplification-ratio": r#"{"cpu":"x"}"#});
        let mut world = World::of(&[Machine { annotations, ..Machine::labelled(KEEP, policy) }]);
        let pod = world::requesting("q", ("LS", &[]), 9500, &json!({"memory": "1Gi"}), None);
        world.engine.set_pod(pod, world.now);
        let expected = r#"n1 {"numaNodeResources":[{"node":0,"resources":{"memory":"1Gi"}}]}"#;
        assert_eq!(world.tried(), expected, "{policy}");
    }
}

#[test]
fn an_amplified_node_that_gave_away_more_cpu_than_it_has_takes_pods_that_request_none() {
    let mut world = World::of(&[Machine {
        allocatable: json!({"cpu": "16", "memory": "64Gi", "pods": "110"}),
        ..Machine::amplified()
    }]);
    world.engine.set_pod(pod("filler", ("LS", "20", &[]), 9500, "1Gi", Some("n1")), world.now);
    assert_eq!(world.create("p", ("LS", "1", &[])), refused("Insufficient cpu"));
    assert_eq!(world.create_with("q", ("LS", "0", &[]), 9500, "1Gi"), "n1");
}

#[test]
fn an_amplified_node_whose_report_lacks_its_cpus_is_refused() {
    let mut world = World::that_preempts(&Machine { reports_cpus: false, ..Machine::amplified() });
    let hopeless = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let invalid = refused("node(s) invalid CPU Topology");
    assert_eq!(world.create("p", ("LS", "2", &[])), format!("{invalid} {hopeless}"));
    assert_eq!(world.create_with("q", ("LS", "0", &[]), 9500, "1Gi"), "n1");
    play(Machine { numa_nodes: 0, ..Machine::amplified() }, &[(("LS", "2", &[]), "n1".to_owned())]);
    play(Machine { reports_cpus: false, ..Machine::default() }, &[(("LS", "2", &[]), "n1".to_owned())]);
}

#[test]
fn cpus_that_are_recorded_for_no_numa_node_are_not_taken_off_one() {
    let single = (NUMA, r#"{"numaTopologyPolicy":"SingleNUMANode"}"#);
    let pods = [
        (("LSR", "4", &[FULL][..]), cpus("0-3")),
        // 12 amplified ones, though 4 CPUs are gone.
        (("LS", "12", &[single][..]), shares("", &[(0, "12", "1Gi")])),
    ];
    play(Machine::amplified(), &pods);
}

#[test]
fn a_share_of_a_numa_node_that_is_gone_leaves_nothing_behind() {
    let single = (NUMA, r#"{"numaTopologyPolicy":"SingleNUMANode"}"#);
    let mut world = World::of(&[Machine::amplified()]);
    assert_eq!(world.create("bound", ("LSR", "4", &[FULL])), cpus("0-3"));
    assert_eq!(world.create("share", ("LS", "2", &[single])), shares("", &[(0, "2", "1Gi")]));
    world.engine.remove_pod(&Uid::from("share"), world.now);
    assert_eq!(world.create("next", ("LS", "12", &[single])), shares("", &[(0, "12", "1Gi")]));
}

#[test]
fn all_that_a_numa_node_has_left_is_written_as_the_node_writes_it() {
    let mut world = World::of(&[Machine { memory: "4Gi", ..Machine::labelled(KEEP, "SingleNUMANode") }]);
    let mut create = |name, memory| world.create_with(name, ("LS", "1", &[]), 9500, memory);
    assert_eq!(create("all", "4294967296"), shares("", &[(0, "1", "4Gi")]));
    assert_eq!(create("part", "1073741824"), shares("", &[(1, "1", "1073741824")]));
}
