//! Several constraints that count the same pods, and many pods.

use std::{collections::BTreeMap, time::Instant};

use koord_descheduler_framework::{Cluster, Input, Memory, Node, Pod, Step};
use koord_descheduler_testing::descheduler;

use super::*;

const HOST: &str = "kubernetes.io/hostname";

/// Pods on the nodes of racks: `counts[rack][host]`. The node `r0h1` is the second one of the first rack.
fn racks(counts: &[&[usize]], constraints: &[Value]) -> Vec<Value> {
    let mut objects = Vec::new();
    for (rack, hosts) in counts.iter().enumerate() {
        for (host, count) in hosts.iter().enumerate() {
            let name = format!("r{rack}h{host}");
            objects.push(in_zone(&name, &format!("r{rack}")));
            objects.extend(spread(&format!("{name}-"), &name, *count, constraints));
        }
    }
    objects
}

/// How many pods leave each rack, and each node.
fn leaving(evicted: &[String]) -> [BTreeMap<String, usize>; 2] {
    let mut by = [BTreeMap::new(), BTreeMap::new()];
    for name in evicted {
        *by[0].entry(name[..2].to_owned()).or_default() += 1;
        *by[1].entry(name[..4].to_owned()).or_default() += 1;
    }
    by
}

#[test]
fn one_pod_serves_all_constraints_that_count_it() {
    let constraints = [constraint("zone", 1), constraint(HOST, 1)];
    let racks = racks(&[&[6, 6, 5, 4], &[6, 5, 5, 5], &[0, 0, 0, 0], &[6, 6, 5, 5]], &constraints);
    let evicted = evicts(&[&racks]);
    assert_eq!(evicted.len(), 16, "the original evicts 26");
    let [of_racks, of_hosts] = leaving(&evicted);
    assert_eq!(
        of_racks.into_iter().collect::<Vec<_>>(),
        [("r0", 5), ("r1", 5), ("r3", 6)].map(|(rack, count)| (rack.to_owned(), count))
    );
    let expected = [
        ("r0h0", 2),
        ("r0h1", 2),
        ("r0h2", 1),
        ("r1h0", 2),
        ("r1h1", 1),
        ("r1h2", 1),
        ("r1h3", 1),
        ("r3h0", 2),
        ("r3h1", 2),
        ("r3h2", 1),
        ("r3h3", 1),
    ];
    assert_eq!(
        of_hosts.into_iter().collect::<Vec<_>>(),
        expected.map(|(host, count)| (host.to_owned(), count)),
        "the fullest hosts give"
    );
}

#[test]
fn a_pod_stays_where_another_constraint_would_get_worse() {
    // Rack 1 has one node with 2 pods, rack 0 has four with one each: racks differ by 2, hosts by 1.
    let both = [constraint("zone", 1), constraint(HOST, 1)];
    let objects = racks(&[&[1, 1, 1, 1], &[2]], &both);
    assert_eq!(evicts(&[&objects]), [""; 0]);
    assert_eq!(codes(&[&objects], "r0h0-1"), [ReasonCode::AnotherConstraintWorsens, ReasonCode::SpreadConstraintHolds]);
    assert_eq!(evicts_with(&json!({"topologyBalanceNodeFit": false}), &[&objects]), [""; 0]);
    assert_eq!(evicts(&[&racks(&[&[1, 1, 1, 1], &[2]], &both[..1])]).len(), 1, "with one of them a pod goes");
    // An empty node in rack 1 is where it can go.
    assert_eq!(evicts(&[&racks(&[&[1, 1, 1, 1], &[2, 0]], &both)]).len(), 1);
}

#[test]
fn a_pod_does_not_go_where_a_constraint_has_no_domain() {
    let both = [constraint("zone", 1), constraint(HOST, 1)];
    let bare = with(&in_zone("r1h0", "r1"), &json!({"metadata": {"labels": {HOST: null}}}));
    let objects = [racks(&[&[2, 2]], &both), vec![bare]].concat();
    assert_eq!(evicts(&[&objects]), [""; 0], "the node has no host name");
    assert_eq!(evicts(&[&racks(&[&[2, 2], &[0]], &both)]).len(), 2);
}

/// Nodes in zones and pods of workloads with one template each, whose constraints are over zones and, for each third workload, over hosts.
fn large(nodes: usize, workloads: usize, pods: usize, is_even: bool) -> Cluster {
    let mut cluster = Cluster::default();
    for number in 0..nodes {
        let node = in_zone(&format!("n{number:05}"), &format!("z{}", number % 3));
        cluster.set_node(Arc::new(Node::of(&serde_json::from_value(node).unwrap()).unwrap()));
    }
    for workload in 0..workloads {
        let app = format!("app-{workload}");
        let selector = json!({"labelSelector": {"matchLabels": {"app": app}}});
        let constraints = [constraint("zone", 1), constraint(HOST, 1)].map(|constraint| with(&constraint, &selector));
        let constraints = &constraints[..if workload % 3 == 0 { 2 } else { 1 }];
        let namespace = format!("ns-{}", workload % 30);
        let patch = json!({"metadata": {"namespace": namespace, "labels": {"app": app}}});
        let object = with(&with(&spread("p", "n00000", 1, constraints)[0], &patch), &requesting("10m"));
        let like =
            Pod::of(&serde_json::from_value(object).unwrap(), &mut koord_core::intern::Interner::default()).unwrap();
        for number in 0..pods / workloads {
            let mut pod = like.clone();
            pod.key = koord_core::key::ObjectKey::new(&namespace, &format!("p-{workload}-{number}"));
            // Where pods are not even, one zone has none of them.
            let on = workload * 7 + number;
            let on = if is_even { on % nodes } else { on * 3 / 2 % nodes / 3 * 3 + number % 2 };
            pod.node = Some(format!("n{:05}", on.min(nodes - 1)).into());
            cluster.set_pod(Arc::new(pod));
        }
    }
    cluster
}

#[test]
fn workloads_are_spread_each_for_itself() {
    for (is_even, expected) in [(true, 0), (false, 6 * 20)] {
        let plan = plan(strategy(&json!({})), &large(90, 20, 20 * 18, is_even), 0);
        assert_eq!(plan.steps.len(), expected, "{is_even}");
    }
}

#[test]
#[ignore = "measures: cargo test --release -p koord-descheduler-strategies-kubernetes -- --ignored --nocapture"]
fn a_pass_over_a_large_cluster_takes_milliseconds() {
    for is_even in [true, false] {
        let cluster = large(1000, 600, 30_000, is_even);
        let descheduler =
            descheduler(strategy(&json!({})), DefaultEvictor::new(&args("DefaultEvictor", &json!({}))).unwrap());
        let (memory, now) = (Memory::default(), jiff::Timestamp::UNIX_EPOCH);
        for _ in 0..3 {
            let start = Instant::now();
            let plan = descheduler.pass(&Input::new(&cluster, &memory, now));
            let evictions = plan.steps.iter().filter_map(Step::eviction).count();
            println!("even {is_even}: {evictions} evictions, {:?}", start.elapsed());
        }
    }
}
