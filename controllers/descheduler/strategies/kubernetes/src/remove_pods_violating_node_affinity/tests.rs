use serde_json::{Value, json};

use super::*;
use koord_descheduler_testing::{args, cluster, evicted, node, pod, verdicts, with};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Which pods the strategy evicts, in this order.
fn evicts(arguments: &Value, nodes: &[Value], pods: &[Value]) -> Vec<String> {
    let arguments = args("RemovePodsViolatingNodeAffinity", arguments);
    let objects: Vec<Value> = nodes.iter().chain(pods).cloned().collect();
    evicted(RemovePodsViolatingNodeAffinity::new(&arguments).unwrap(), &cluster(&objects), 0)
}

fn of_type(types: &[&str]) -> Value {
    json!({"nodeAffinityType": types})
}

fn zoned(name: &str, zone: &str) -> Value {
    with(&node(name), &json!({"metadata": {"labels": {"zone": zone}}}))
}

fn expression(operator: &str, key: &str, values: &Value) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

fn requiring(name: &str, node: &str, terms: &[Value]) -> Value {
    let affinity = json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}});
    with(&pod(name, node), &json!({"spec": {"affinity": affinity}}))
}

fn in_zone(name: &str, node: &str, zone: &str) -> Value {
    requiring(name, node, &[expression("In", "zone", &json!([zone]))])
}

fn preferring(name: &str, node: &str, weights: &[(&str, i32)]) -> Value {
    let term = |(zone, weight): &(&str, i32)| json!({"weight": weight, "preference": expression("In", "zone", &json!([zone]))});
    let terms: Vec<Value> = weights.iter().map(term).collect();
    with(&pod(name, node), &json!({"spec": {"affinity": {"nodeAffinity": {PREFERRED: terms}}}}))
}

#[test]
fn a_pod_goes_when_its_node_is_not_selected_and_another_is() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    let selector = |pod: Value| with(&pod, &json!({"spec": {"nodeSelector": {"zone": "b"}}}));
    let pods = [
        in_zone("wrong", "n1", "b"),
        in_zone("right", "n1", "a"),
        in_zone("nowhere", "n1", "c"),
        pod("without", "n1"),
        selector(pod("selector-alone", "n1")),
        with(&in_zone("ended", "n1", "b"), &json!({"status": {"phase": "Failed"}})),
        preferring("preferring", "n1", &[("b", 5)]),
    ];
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &pods), ["wrong"]);
    let both = selector(requiring("both", "n1", &[expression("Exists", "zone", &json!(null))]));
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &[both]), ["both"], "the node selector counts beside an affinity");
}

#[test]
fn terms_are_alternatives_and_their_operators_those_of_the_scheduler() {
    let of_generation = |name: &str, labels: Value| with(&node(name), &json!({"metadata": {"labels": labels}}));
    let nodes =
        [of_generation("n1", json!({"gen": "3", "zone": "a"})), of_generation("n2", json!({"gen": "7", "ssd": ""}))];
    let above = |bound: &str| expression("Gt", "gen", &json!([bound]));
    for (terms, expected) in [
        (vec![expression("NotIn", "zone", &json!(["a"]))], 1),
        (vec![expression("Exists", "ssd", &json!(null))], 1),
        (vec![expression("DoesNotExist", "zone", &json!(null))], 1),
        (vec![above("5")], 1),
        (vec![above("2")], 0),
        (vec![above("5"), expression("In", "zone", &json!(["a"]))], 0),
        (vec![], 0),
    ] {
        let found = evicts(&of_type(&[REQUIRED]), &nodes, &[requiring("a", "n1", &terms)]);
        assert_eq!(found.len(), expected, "{terms:?}");
    }
}

#[test]
fn a_pod_stays_where_no_selected_node_takes_it() {
    let other = zoned("n2", "b");
    let full = with(&other, &json!({"status": {"allocatable": {"cpu": "1"}}}));
    let slots = with(&other, &json!({"status": {"allocatable": {"pods": "1"}}}));
    let cordoned = with(&other, &json!({"spec": {"unschedulable": true}}));
    let tainted = |value: &str| {
        with(&other, &json!({"spec": {"taints": [{"key": "k", "value": value, "effect": "NoSchedule"}]}}))
    };
    let spec = json!({"spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        "tolerations": [{"key": "k", "operator": "Gt", "value": "4"}],
    }});
    let wrong = with(&in_zone("a", "n1", "b"), &spec);
    for (other, expected) in
        [(other.clone(), 1), (full, 0), (slots, 0), (cordoned, 0), (tainted("4"), 0), (tainted("5"), 1)]
    {
        let found = evicts(&of_type(&[REQUIRED]), &[zoned("n1", "a"), other.clone()], &[wrong.clone(), pod("q", "n2")]);
        assert_eq!(found.len(), expected, "{other}");
    }
}

#[test]
fn a_pod_stays_where_its_anti_affinity_forbids_the_only_node() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    let apart = json!([{"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": "kubernetes.io/hostname"}]);
    let apart = json!({"spec": {"affinity": {"podAntiAffinity": {REQUIRED: apart}}}});
    let x = with(&in_zone("x", "n1", "b"), &apart);
    let y = |name: &str, node: &str| with(&pod(name, node), &json!({"metadata": {"labels": {"app": "y"}}}));
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &[x.clone(), y("y", "n2")]), [""; 0]);
    let both = [x.clone(), y("y", "n2"), y("z", "n1")];
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &both), [""; 0], "a conflict on its own node does not hide that");
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &[x, y("z", "n1")]), ["x"]);
}

#[test]
fn a_pod_goes_when_it_fits_a_node_with_a_higher_sum_of_weights() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    let pods = [
        preferring("better", "n1", &[("b", 5)]),
        preferring("best", "n2", &[("b", 5)]),
        preferring("equal", "n1", &[("a", 5), ("b", 5)]),
        preferring("less", "n1", &[("a", 6), ("b", 5)]),
        preferring("sum", "n1", &[("a", 6), ("b", 5), ("b", 2)]),
        preferring("nowhere", "n1", &[("c", 5)]),
        in_zone("required", "n1", "b"),
    ];
    assert_eq!(evicts(&of_type(&[PREFERRED]), &nodes, &pods), ["better", "sum"]);
}

#[test]
fn the_node_that_a_pod_fits_has_to_be_better_than_its_own() {
    let small =
        |name: &str, zone: &str, cpu: &str| with(&zoned(name, zone), &json!({"status": {"allocatable": {"cpu": cpu}}}));
    let pods = |weights: &[(&str, i32)]| {
        let spec = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}});
        [with(&preferring("a", "n1", weights), &spec)]
    };
    // The original evicts wherever some node is better, and it fits some node: here it would come back for ever.
    let nodes = [zoned("n1", "a"), small("n2", "b", "1"), small("n3", "a", "4")];
    assert_eq!(evicts(&of_type(&[PREFERRED]), &nodes, &pods(&[("b", 5)])), [""; 0]);
    let nodes = [zoned("n1", "a"), small("n2", "b", "1"), small("n3", "c", "4")];
    assert_eq!(evicts(&of_type(&[PREFERRED]), &nodes, &pods(&[("b", 5), ("c", 2)])), ["a"], "not the best, but better");
    assert_eq!(evicts(&of_type(&[PREFERRED]), &nodes, &pods(&[("b", 5), ("c", 2), ("a", 2)])), [""; 0]);
}

#[test]
fn both_types_are_processed_in_their_order() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    let pods = [in_zone("r", "n1", "b"), preferring("p", "n1", &[("b", 5)])];
    assert_eq!(evicts(&of_type(&[REQUIRED, PREFERRED]), &nodes, &pods), ["r", "p"]);
    assert_eq!(evicts(&of_type(&[PREFERRED, REQUIRED]), &nodes, &pods), ["p", "r"]);
}

#[test]
fn types_that_do_not_exist_do_nothing() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    assert_eq!(evicts(&of_type(&["required", REQUIRED]), &nodes, &[in_zone("r", "n1", "b")]), ["r"]);
    assert_eq!(evicts(&of_type(&["required"]), &nodes, &[in_zone("r", "n1", "b")]), [""; 0]);
}

#[test]
fn namespaces_and_labels_choose() {
    let nodes = [zoned("n1", "a"), zoned("n2", "b")];
    let labelled = with(&in_zone("a", "n1", "b"), &json!({"metadata": {"labels": {"app": "x"}}}));
    let found = |change: &Value| {
        evicts(&with(&of_type(&[REQUIRED]), change), &nodes, &[labelled.clone(), in_zone("b", "n1", "b")])
    };
    assert_eq!(found(&json!({"labelSelector": {"matchLabels": {"app": "x"}}})), ["a"]);
    assert_eq!(found(&json!({"namespaces": {"exclude": ["default"]}})), [""; 0]);
    assert_eq!(found(&json!({"namespaces": {"include": ["default"]}})), ["a", "b"]);
}

#[test]
fn why_a_pod_stays_is_known() {
    let objects = [
        zoned("n1", "a"),
        zoned("n2", "b"),
        in_zone("a", "n1", "c"),
        in_zone("b", "n1", "a"),
        preferring("c", "n1", &[("a", 5)]),
        with(&in_zone("d", "n1", "b"), &json!({"status": {"phase": "Failed"}})),
    ];
    let strategy = |name: &str| RemovePodsViolatingNodeAffinity::new(&args("", &of_type(&[name]))).unwrap();
    let expected =
        |codes: [ReasonCode; 4]| ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(codes).collect::<Vec<_>>();
    let (holds, ended) = (ReasonCode::NodeAffinityHolds, ReasonCode::NotInState);
    let required = verdicts(strategy(REQUIRED), &cluster(&objects), 0);
    assert_eq!(required, expected([ReasonCode::NoOtherNodeFits, holds, holds, ended]));
    let preferred = verdicts(strategy(PREFERRED), &cluster(&objects), 0);
    assert_eq!(preferred, expected([holds, holds, ReasonCode::NoBetterNode, ended]));
}

#[test]
fn pods_do_not_reserve_what_they_will_take() {
    let nodes = [zoned("n1", "a"), with(&zoned("n2", "b"), &json!({"status": {"allocatable": {"cpu": "3"}}}))];
    let spec = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}});
    let pods = ["a", "b"].map(|name| with(&in_zone(name, "n1", "b"), &spec));
    assert_eq!(evicts(&of_type(&[REQUIRED]), &nodes, &pods), ["a", "b"], "there is room for one of them");
}
