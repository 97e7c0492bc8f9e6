use koord_descheduler_testing::{args, cluster, evicted, node, plan, pod, verdicts, with};
use serde_json::{Value, json};

use super::*;

fn strategy(arguments: &Value) -> RemoveDuplicates {
    RemoveDuplicates::new(args("RemoveDuplicates", arguments)).unwrap()
}

fn evicts_with(arguments: &Value, objects: &[&[Value]]) -> Vec<String> {
    evicted(strategy(arguments), &cluster(&objects.concat()), 0)
}

fn evicts(objects: &[&[Value]]) -> Vec<String> {
    evicts_with(&json!({}), objects)
}

fn codes(objects: &[&[Value]], name: &str) -> Vec<ReasonCode> {
    let verdicts = verdicts(strategy(&json!({})), &cluster(&objects.concat()), 0);
    verdicts.into_iter().filter(|(pod, _)| pod == name).map(|(_, code)| code).collect()
}

fn two() -> Vec<Value> {
    vec![node("n1"), node("n2")]
}

/// Pods of one owner on a node: `p1`, `p2` and so on.
fn pods(prefix: &str, node: &str, count: usize) -> Vec<Value> {
    (1..=count).map(|number| pod(&format!("{prefix}{number}"), node)).collect()
}

fn each(pods: &[Value], patch: &Value) -> Vec<Value> {
    pods.iter().map(|pod| with(pod, patch)).collect()
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid})
}

fn owned(name: &str, owners: &[Value]) -> Value {
    with(&pod(name, "n1"), &json!({"metadata": {"ownerReferences": owners}}))
}

fn images(name: &str, images: &[&str]) -> Value {
    let containers: Vec<Value> = images.iter().map(|image| json!({"name": image, "image": image})).collect();
    with(&pod(name, "n1"), &json!({"spec": {"containers": containers}}))
}

fn requesting(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}]}})
}

#[test]
fn each_node_keeps_its_share() {
    for (on_each, expected) in [
        (&[2, 0][..], &["a2"][..]),
        (&[1, 1], &[]),
        // Three may stay, the first pod is one of them.
        (&[5, 0], &["a4", "a5"]),
        (&[3, 1], &["a3"]),
        (&[3, 2], &[]),
        (&[4, 1, 0], &["a3", "a4"]),
        (&[7, 0, 0], &["a4", "a5", "a6", "a7"]),
        (&[4, 4, 1], &["a4", "b4"]),
    ] {
        let names = ["a", "b", "c"];
        let nodes: Vec<Value> = (0..on_each.len()).map(|at| node(&format!("n{at}"))).collect();
        let of_node = |(at, count): (usize, &usize)| pods(names[at], &format!("n{at}"), *count);
        let pods: Vec<Value> = on_each.iter().enumerate().flat_map(of_node).collect();
        assert_eq!(evicts(&[&nodes, &pods]), expected, "{on_each:?}");
    }
    assert_eq!(codes(&[&two(), &pods("p", "n1", 5)], "p2"), [ReasonCode::WithinShare]);
    assert_eq!(codes(&[&two(), &pods("p", "n1", 5)], "p1"), [ReasonCode::NoDuplicate]);
    assert_eq!(codes(&[&two(), &pods("p", "n1", 1)], "p1"), [ReasonCode::NoDuplicate]);
}

#[test]
fn pods_are_alike_by_namespace_owners_and_images() {
    let rs = |name: &str, uid: &str| owner("ReplicaSet", name, uid);
    let other_namespace = with(&pod("b", "n1"), &json!({"metadata": {"namespace": "other"}}));
    for (one, other, expected) in [
        (images("a", &["app:1"]), images("b", &["app:1"]), &["b"][..]),
        (images("a", &["app:1"]), images("b", &["app:2"]), &[]),
        (images("a", &["u:1", "v:1"]), images("b", &["v:1", "u:1"]), &["b"]),
        (images("a", &["u:1", "v:1"]), images("b", &["u:1"]), &[]),
        (owned("a", &[rs("x", "1")]), owned("b", &[rs("x", "2")]), &["b"]),
        (owned("a", &[rs("x", "1")]), owned("b", &[rs("y", "1")]), &[]),
        (owned("a", &[rs("x", "1")]), owned("b", &[owner("StatefulSet", "x", "1")]), &[]),
        (owned("a", &[rs("x", "1"), rs("y", "2")]), owned("b", &[rs("y", "2"), rs("x", "1")]), &["b"]),
        (owned("a", &[rs("x", "1"), rs("y", "2")]), owned("b", &[rs("x", "1")]), &[]),
        (owned("a", &[]), owned("b", &[]), &[]),
        (pod("a", "n1"), other_namespace, &[]),
    ] {
        assert_eq!(evicts(&[&two(), &[one.clone(), other.clone()]]), expected, "{one}\n{other}");
    }
}

#[test]
fn ended_pods_and_excluded_ones_are_not_looked_at() {
    let failed = with(&pod("a", "n1"), &json!({"status": {"phase": "Failed"}}));
    assert_eq!(evicts(&[&two(), &[failed, pod("b", "n1")]]), [""; 0]);
    let arguments = json!({"excludeOwnerKinds": ["ReplicaSet"]});
    assert_eq!(evicts_with(&arguments, &[&two(), &pods("p", "n1", 2)]), [""; 0]);
    let arguments = json!({"namespaces": {"exclude": ["default"]}});
    assert_eq!(evicts_with(&arguments, &[&two(), &pods("p", "n1", 2)]), [""; 0]);
}

#[test]
fn pods_that_may_not_be_evicted_are_no_duplicates_and_do_not_count() {
    let protected = each(&pods("p", "n1", 3), &json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}));
    let evictor = crate::DefaultEvictor::new(&args("DefaultEvictor", &json!({}))).unwrap();
    let objects = [two(), protected, pods("q", "n1", 1)].concat();
    let evicted = koord_descheduler_testing::evicted_through(strategy(&json!({})), evictor, &cluster(&objects), 0);
    assert_eq!(evicted, [""; 0]);
}

#[test]
fn only_nodes_that_the_pods_may_use_share_them() {
    let tainted = with(&node("n2"), &json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}));
    assert_eq!(evicts(&[&[node("n1"), tainted.clone()], &pods("p", "n1", 2)]), [""; 0]);
    assert_eq!(codes(&[&[node("n1"), tainted.clone()], &pods("p", "n1", 2)], "p2"), [ReasonCode::TooFewTargetNodes]);
    let tolerating = each(&pods("p", "n1", 2), &json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}));
    assert_eq!(evicts(&[&[node("n1"), tainted], &tolerating]), ["p2"]);
    let selecting = each(&pods("p", "n1", 2), &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
    assert_eq!(evicts(&[&two(), &selecting]), [""; 0]);
}

#[test]
fn a_cordoned_node_is_no_target() {
    let cordoned = |name: &str| with(&node(name), &json!({"spec": {"unschedulable": true}}));
    assert_eq!(evicts(&[&[node("n1"), cordoned("n2")], &pods("p", "n1", 2)]), [""; 0]);
    // Pods leave it, for it has them.
    assert_eq!(evicts(&[&[cordoned("n1"), node("n2")], &pods("p", "n1", 2)]), ["p2"]);
    // It has its share, and takes no other.
    let nodes = [node("n1"), cordoned("n2"), cordoned("n3")];
    assert_eq!(evicts(&[&nodes, &pods("p", "n1", 3), &pods("q", "n2", 1)]), [""; 0]);
    assert_eq!(
        codes(&[&nodes, &pods("p", "n1", 3), &pods("q", "n2", 1)], "p3"),
        [ReasonCode::NoNodeBelowShare],
        "two nodes have the pods, and the other takes none"
    );
}

#[test]
fn a_full_node_is_no_target() {
    let sized = |name: &str, cpu: &str| with(&node(name), &json!({"status": {"allocatable": {"cpu": cpu}}}));
    let large = each(&pods("p", "n1", 2), &requesting("2"));
    assert_eq!(evicts(&[&[node("n1"), sized("n2", "1")], &large]), [""; 0]);
    assert_eq!(evicts(&[&[node("n1"), sized("n2", "2")], &large]), ["p2"]);
    // With the third node 2 pods would be the share of each, without it 3.
    let six = [each(&pods("p", "n1", 3), &requesting("2")), each(&pods("q", "n2", 3), &requesting("2"))].concat();
    assert_eq!(evicts(&[&[node("n1"), node("n2"), sized("n3", "1")], &six]), [""; 0]);
    assert_eq!(evicts(&[&[node("n1"), node("n2"), sized("n3", "4")], &six]), ["p3", "q3"]);
    assert_eq!(evicts(&[&[node("n1"), node("n2"), sized("n3", "2")], &six]), ["p3"], "it has room for one");
    let no_slots = with(&node("n2"), &json!({"status": {"allocatable": {"pods": "0"}}}));
    assert_eq!(evicts(&[&[node("n1"), no_slots], &pods("p", "n1", 2)]), [""; 0]);
}

#[test]
fn pods_that_fit_different_nodes_share_all_of_them() {
    let zone = |name: &str, zone: &str| with(&node(name), &json!({"metadata": {"labels": {"zone": zone}}}));
    let nodes = [zone("n1", "a"), zone("n2", "a"), zone("n3", "b"), zone("n4", "b")];
    let in_zone =
        |name: &str, node: &str, zone: &str| with(&pod(name, node), &json!({"spec": {"nodeSelector": {"zone": zone}}}));
    let pods = [in_zone("a1", "n1", "a"), in_zone("a2", "n1", "a"), in_zone("b1", "n3", "b"), in_zone("b2", "n3", "b")];
    assert_eq!(evicts(&[&nodes, &pods]), ["a2", "b2"]);
    // The pods of zone b have nowhere else to go.
    assert_eq!(evicts(&[&nodes[..3], &pods]), [""; 0], "the share is 2");
}

#[test]
fn pods_of_two_owners_count_for_both() {
    let owners = [owner("ReplicaSet", "x", "1"), owner("ReplicaSet", "y", "2")];
    let objects = [owned("a", &owners), owned("b", &owners), owned("c", &owners[..1]), owned("d", &owners[..1])];
    assert_eq!(evicts(&[&two(), &objects]), ["d", "b"], "one of x, whose share is 2, and one of y, whose share is 1");
    assert_eq!(evicts(&[&two(), &objects[..2]]), ["b"], "once, not twice");
}

#[test]
fn the_reason_has_the_numbers() {
    let objects = [two(), pods("p", "n1", 2)].concat();
    let plan = plan(strategy(&json!({})), &cluster(&objects), 0);
    let reason = &plan.steps[0].eviction().unwrap().reason;
    assert_eq!(reason.code, ReasonCode::DuplicatePod);
    assert_eq!(reason.text, "the node has 2 pods of ReplicaSet rs, and 1 of them is its share");
    assert_eq!(["pods", "share", "nodes"].map(|name| reason.operand(name)), ["2", "1", "2"].map(Some));
}
