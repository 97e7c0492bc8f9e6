use koord_scheduler_framework::columns::Row;
use koord_scheduler_testing::{resident, scored_pod, world};
use serde_json::{Value, json};

use super::pod_topology_spread::{over, spec, spread};
use crate::PodTopologySpread;

const NONE: Value = Value::Null;
/// Four nodes in two zones, where each node is a host.
const HOSTS: [&str; 4] = [
    "zone=1,kubernetes.io/hostname=a",
    "zone=1,kubernetes.io/hostname=b",
    "zone=2,kubernetes.io/hostname=x",
    "zone=2,kubernetes.io/hostname=y",
];
const HOST: &str = "kubernetes.io/hostname";

/// A preference over pods with a label of this key; the second text is added to it as JSON.
fn soft(text: &str, others: &Value) -> Value {
    let mut constraint = over(&text.replace("host ", &format!("{HOST} ")), others);
    constraint["whenUnsatisfiable"] = json!("ScheduleAnyway");
    constraint
}

fn scores(
    nodes: &[&str],
    pods: &[(usize, &str, Value)],
    labels: &str,
    spec: &Value,
    left: &[usize],
) -> Option<Vec<i64>> {
    let mut cluster = world(nodes, pods);
    let rows: Vec<Row> = left.iter().map(|node| cluster.row(&format!("n{node}")).unwrap()).collect();
    scored_pod(&PodTopologySpread::default(), &mut cluster, &resident("tried", labels, spec), &rows)
}

#[test]
fn a_score_falls_with_the_pods_of_the_domain() {
    const ALL: &[usize] = &[0, 1, 2, 3];
    for (what, pods, labels, constraints, left, expected) in [
        ("nobody is there", spread(&[]), "app", vec![soft("host 1 app", &NONE)], ALL, vec![100; 4]),
        ("others do not count", vec![(0, "x", NONE)], "app", vec![soft("host 1 app", &NONE)], ALL, vec![100; 4]),
        // By count times ln 6.
        (
            "1/0/2/4 over hosts",
            spread(&[1, 0, 2, 4]),
            "app",
            vec![soft("host 1 app", &NONE)],
            ALL,
            vec![71, 100, 42, 0],
        ),
        // The same whether or not the pod itself is meant.
        (
            "1/0/2/4 over hosts, of others",
            spread(&[1, 0, 2, 4]),
            "x",
            vec![soft("host 1 app", &NONE)],
            ALL,
            vec![71, 100, 42, 0],
        ),
        // By count times ln 6 and 4: 6, 4, 8 and 11.
        (
            "1/0/2/4 over hosts, with skew 5",
            spread(&[1, 0, 2, 4]),
            "app",
            vec![soft("host 5 app", &NONE)],
            ALL,
            vec![81, 100, 63, 36],
        ),
        // By 1 and 6 times ln 4: 1 and 8.
        ("1/6 over zones", spread(&[1, 0, 2, 4]), "app", vec![soft("zone 1 app", &NONE)], ALL, vec![100, 100, 12, 12]),
        // Of one zone alone, which has 6: times ln 3.
        ("one zone is left", spread(&[1, 0, 2, 4]), "app", vec![soft("zone 1 app", &NONE)], &[2, 3], vec![100, 100]),
        // Hosts that are left count for the weight: 1 and 4 times ln 4.
        ("two hosts are left", spread(&[1, 0, 2, 4]), "app", vec![soft("host 1 app", &NONE)], &[0, 3], vec![100, 16]),
        // 1 times ln 4 and 1 times ln 6; 1 and 0; 6 and 2; 6 and 4: 3, 1, 12 and 15.
        (
            "zones and hosts",
            spread(&[1, 0, 2, 4]),
            "app",
            vec![soft("zone 1 app", &NONE), soft("host 1 app", &NONE)],
            ALL,
            vec![86, 100, 26, 6],
        ),
        // The second constraint is about others, of whom y has one.
        (
            "zones and hosts about different pods",
            vec![(0, "app", NONE), (1, "app", NONE), (3, "x", NONE)],
            "app",
            vec![soft("zone 1 app", &NONE), soft("host 1 x", &NONE)],
            ALL,
            vec![0, 0, 100, 33],
        ),
        // Too few domains do not matter to a preference.
        (
            "fewer domains than wanted",
            spread(&[1, 0, 2, 4]),
            "app",
            vec![soft("host 1 app", &json!({"minDomains": 9}))],
            ALL,
            vec![71, 100, 42, 0],
        ),
        (
            "the own revision",
            vec![(0, "app,rev=1", NONE), (1, "app,rev=2", NONE), (1, "app,rev=2", NONE)],
            "app,rev=1",
            vec![soft("host 1 app", &json!({"matchLabelKeys": ["rev"]}))],
            &[0, 1],
            vec![0, 100],
        ),
        (
            "the own revision, of all pods",
            vec![(0, "rev=1", NONE), (1, "rev=2", NONE), (1, "rev=2", NONE)],
            "rev=1",
            vec![soft("host 1 all", &json!({"matchLabelKeys": ["rev"]}))],
            &[0, 1],
            vec![0, 100],
        ),
        (
            "another namespace",
            vec![(0, "other/app", NONE), (1, "app", NONE)],
            "app",
            vec![soft("host 1 app", &NONE)],
            &[0, 1],
            vec![100, 0],
        ),
        (
            "pods that are going",
            vec![(0, "app!", NONE), (1, "app", NONE)],
            "app",
            vec![soft("host 1 app", &NONE)],
            &[0, 1],
            vec![100, 0],
        ),
    ] {
        assert_eq!(scores(&HOSTS, &pods, labels, &spec(&constraints, &NONE), left), Some(expected), "{what}");
    }
    let hard = spec(&[over("zone 1 app", &NONE)], &NONE);
    assert_eq!(scores(&HOSTS, &spread(&[1]), "app", &hard, ALL), None, "a demand is no preference");
    assert_eq!(scores(&HOSTS, &spread(&[1]), "app", &spec(&[], &NONE), ALL), None, "nothing is said, and no service");
}

#[test]
fn affinity_and_taints_narrow_the_pods_that_count() {
    const NODES: [&str; 3] = ["zone=1,pick", "zone=1", "zone=2,pick"];
    const TAINTED: [&str; 3] = ["zone=1", "zone=1,tainted", "zone=2"];
    let affinity = |policy: &str| soft("zone 1 app", &json!({"nodeAffinityPolicy": policy}));
    let taints = |policy: &str| soft("zone 1 app", &json!({"nodeTaintsPolicy": policy}));
    let selector = json!({"nodeSelector": {"pick": ""}});
    let expression = json!({"matchExpressions": [{"key": "pick", "operator": "Exists"}]});
    let required = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expression]},
    }}});
    // By zones 2/3, and where the node in the middle does not count 1/3: times ln 4.
    for (what, nodes, constraint, others, expected) in [
        ("the selector counts", NODES, affinity("Honor"), &selector, vec![100, 25]),
        ("the selector does not count", NODES, affinity("Ignore"), &selector, vec![100, 75]),
        ("the affinity counts", NODES, affinity("Honor"), &required, vec![100, 25]),
        ("the affinity does not count", NODES, affinity("Ignore"), &required, vec![100, 75]),
        ("taints count", TAINTED, taints("Honor"), &NONE, vec![100, 25]),
        ("taints do not count", TAINTED, taints("Ignore"), &NONE, vec![100, 75]),
    ] {
        let spec = spec(&[constraint], others);
        assert_eq!(scores(&nodes, &spread(&[1, 1, 3]), "app", &spec, &[0, 2]), Some(expected), "{what}");
    }
}
