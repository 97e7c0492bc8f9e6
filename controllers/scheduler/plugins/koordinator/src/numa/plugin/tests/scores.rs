//! Which nodes are best.

use super::*;

/// NodeNUMAResource compares by these resources alike.
fn by(type_: &str, resources: &[&str]) -> Value {
    let resources: Vec<Value> = resources.iter().map(|name| json!({"name": name, "weight": 1})).collect();
    json!({"type": type_, "resources": resources})
}

#[test]
fn a_node_is_scored_as_a_whole_where_no_numa_node_gives_anything() {
    let score = |machine, cpu_request| score(machine, cpu_request, json!({}));
    // One NUMA node, of which nothing is recorded: cpu 6 of 16 and not 2 of 8, memory 32 of 64.
    let one = Machine { numa_nodes: 1, ..Machine::labelled(KEEP, "SingleNUMANode") };
    assert_eq!(score(one, ("LS", "2", &[])), i64::midpoint(62, 50));
    // Cpu 16 of 16.
    assert_eq!(score(Machine::labelled(KEEP, "BestEffort"), ("LS", "12", &[])), i64::midpoint(0, 50));
    // Beside exclusive CPUs, those of other pods count: cpu 4 of 16, and 20 are not there.
    assert_eq!(score(Machine::labelled(KEEP, "BestEffort"), ("LSR", "4", &[FULL])), i64::midpoint(75, 50));
    assert_eq!(score(Machine::labelled(KEEP, "BestEffort"), ("LSR", "20", &[FULL])), 0);
}

#[test]
fn a_node_with_a_policy_is_chosen_where_it_is_emptier() {
    let second = Machine { name: "n2", ..Machine::default() };
    let mut world = World::of(&[Machine::labelled(KEEP, "BestEffort"), second]);
    world.engine.set_pod(pod("old", ("LS", "8", &[]), 9500, "1Gi", Some("n2")), world.now);
    assert_eq!(world.create("new", ("LS", "4", &[])), shares("", &[(0, "4", "1Gi")]));
}

#[test]
fn beside_cpus_of_its_own_all_those_of_the_node_count() {
    let kept = |machine: Machine| Machine { labels: json!({KEEP: "SingleNUMANode"}), ..machine };
    let beside = |machine, cpu_request| {
        let running = ("LSR", "4", &[FULL, (STATUS, r#"{"cpuset":"8-11"}"#)][..]);
        score_beside(running, kept(machine), cpu_request, json!({}))
    };
    // On NUMA node 0: cpu 4 and 4 of 8, memory 16 of 32; amplified 6 and 3 of 12.
    assert_eq!(beside(Machine::default(), ("LSR", "4", &[FULL])), i64::midpoint(0, 50));
    assert_eq!(beside(Machine::amplified(), ("LSR", "2", &[FULL])), i64::midpoint(25, 50));
    // For a pod that shares its cpu, none is recorded there: cpu 2 of 8.
    assert_eq!(beside(Machine::default(), ("LS", "2", &[])), i64::midpoint(75, 50));
}

#[test]
fn cpus_of_their_own_cost_amplified_ones_in_the_score_of_pods_that_request_cpu() {
    let beside = |running, cpu_request| score_beside(running, Machine::amplified(), cpu_request, json!({}));
    let own = [(STATUS, r#"{"cpuset":"0-3"}"#)];
    // Cpu 2, 2 more for the 4 CPUs, though that is more than what is requested, and 4 of 24; memory 32 of 64.
    assert_eq!(beside(("LS", "2", &own[..]), ("LS", "4", &[])), i64::midpoint(66, 50));
    // Cpu 4 of 24.
    assert_eq!(beside(("LS", "4", &own[..]), ("LS", "0", &[])), i64::midpoint(83, 50));
}

#[test]
fn nodes_are_compared_by_the_strategy_of_nodes_under_a_policy_too() {
    let args = json!({
        "scoringStrategy": by("MostAllocated", &["cpu"]), "numaScoringStrategy": by("LeastAllocated", &["cpu"]),
    });
    // Cpu 2 of 8.
    assert_eq!(score(Machine::labelled(KEEP, "SingleNUMANode"), ("LS", "2", &[]), args), 25);
}

#[test]
fn a_resource_counts_where_the_node_has_it_though_the_pod_requests_none_unless_it_is_extended() {
    let score = |offered: &Value| {
        let mut allocatable = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        for (name, amount) in offered.as_object().unwrap() {
            allocatable[name] = amount.clone();
        }
        let args = json!({"scoringStrategy": by("LeastAllocated", &["cpu", "ephemeral-storage", "example.com/x"])});
        score(Machine { allocatable, ..Machine::default() }, ("LS", "4", &[]), args)
    };
    assert_eq!(score(&json!({})), 50);
    assert_eq!(score(&json!({"ephemeral-storage": "100Gi"})), i64::midpoint(50, 100));
    assert_eq!(score(&json!({"example.com/x": "4"})), 50);
}
