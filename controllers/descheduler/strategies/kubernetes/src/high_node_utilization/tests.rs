use koord_descheduler_testing::{args, cluster, evicted, node, plan, pod, verdicts, with};
use serde_json::{Value, json};

use super::*;

fn strategy(arguments: &Value) -> HighNodeUtilization {
    HighNodeUtilization::new(args("HighNodeUtilization", arguments)).unwrap()
}

/// Up to 30 % of cpu a node is to be emptied.
fn cpu() -> Value {
    json!({"thresholds": {"cpu": 30}})
}

fn sized(name: &str, cpu: &str) -> Value {
    with(&node(name), &json!({"status": {"allocatable": {"cpu": cpu}}}))
}

fn ten(name: &str) -> Value {
    sized(name, "10")
}

fn cordoned(name: &str) -> Value {
    with(&ten(name), &json!({"spec": {"unschedulable": true}}))
}

fn requesting(name: &str, node: &str, requests: &Value) -> Value {
    let container = json!({"name": "c", "image": "app:1", "resources": {"requests": requests}});
    with(&pod(name, node), &json!({"spec": {"containers": [container]}}))
}

/// Pods with one core each.
fn ones(prefix: &str, node: &str, count: usize) -> Vec<Value> {
    (1..=count).map(|number| requesting(&format!("{prefix}{number}"), node, &json!({"cpu": "1"}))).collect()
}

fn evicts(arguments: &Value, objects: &[&[Value]]) -> Vec<String> {
    evicted(strategy(arguments), &cluster(&objects.concat()), 0)
}

fn codes(arguments: &Value, objects: &[&[Value]], name: &str) -> Vec<ReasonCode> {
    let verdicts = verdicts(strategy(arguments), &cluster(&objects.concat()), 0);
    verdicts.into_iter().filter(|(pod, _)| pod == name).map(|(_, code)| code).collect()
}

#[test]
fn a_node_at_or_below_the_threshold_is_emptied() {
    let nodes = [ten("n1"), ten("n2")];
    let filled = ones("q", "n2", 4);
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 2), &filled]), ["p1", "p2"]);
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 3), &filled]).len(), 3, "30 % is not above 30 %");
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 4), &filled]), [""; 0]);
    assert_eq!(codes(&cpu(), &[&nodes, &ones("p", "n1", 4), &filled], "p1"), [ReasonCode::NodeNotUnderutilized]);
    assert_eq!(evicts(&cpu(), &[&[cordoned("n1"), ten("n2")], &ones("p", "n1", 2), &filled]), ["p1", "p2"]);
}

#[test]
fn the_emptiest_node_is_emptied_first() {
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let pods = [ones("p", "n1", 2), ones("q", "n2", 4), ones("r", "n3", 1)].concat();
    assert_eq!(evicts(&cpu(), &[&nodes, &pods]), ["r1", "p1", "p2"]);
}

#[test]
fn nothing_is_done_without_nodes_to_empty_and_nodes_to_fill() {
    let nodes = [ten("n1"), ten("n2")];
    let at_least = with(&cpu(), &json!({"numberOfNodes": 1}));
    let seventy = json!({"thresholds": {"cpu": 70}});
    for (arguments, nodes, filled, expected) in [
        (cpu(), &nodes, 2, ReasonCode::AllNodesUnderutilized),
        // Never towards the emptier one.
        (seventy, &nodes, 6, ReasonCode::AllNodesUnderutilized),
        (cpu(), &[ten("n1"), cordoned("n2")], 4, ReasonCode::NoTargetNodes),
        (at_least, &nodes, 4, ReasonCode::TooFewNodesUnderutilized),
    ] {
        let objects = [&nodes[..], &ones("p", "n1", 2), &ones("q", "n2", filled)];
        assert_eq!(evicts(&arguments, &objects), [""; 0]);
        assert_eq!(codes(&arguments, &objects, "p1"), [expected]);
    }
}

#[test]
fn a_node_is_emptied_as_far_as_there_is_room_for_each_pod() {
    let filled = ones("q", "n2", 4);
    let nodes = [ten("n1"), sized("n2", "5")];
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 3), &filled]), ["p1"]);
    assert_eq!(codes(&cpu(), &[&nodes, &ones("p", "n1", 3), &filled], "p2"), [ReasonCode::TargetsFull]);
    // Two targets have a core and a half each.
    let nodes = [ten("n1"), sized("n2", "5500m"), sized("n3", "5500m")];
    let filled = [filled, ones("r", "n3", 4)].concat();
    let pods = ["2", "1"].map(|cpu| requesting(&format!("p{cpu}"), "n1", &json!({"cpu": cpu})));
    assert_eq!(evicts(&cpu(), &[&nodes, &pods, &filled]), ["p1"]);
    assert_eq!(codes(&cpu(), &[&nodes, &pods, &filled], "p2"), [ReasonCode::PodOverloadsTargets]);
}

#[test]
fn a_threshold_on_a_resource_that_no_target_has_evicts_nothing() {
    let arguments = json!({"thresholds": {"cpu": 30, "example.com/gpu": 30}});
    let objects = [&[ten("n1"), ten("n2")][..], &ones("p", "n1", 2), &ones("q", "n2", 4)];
    assert_eq!(evicts(&arguments, &objects), [""; 0]);
    assert_eq!(codes(&arguments, &objects, "p1"), [ReasonCode::TargetsFull]);
}

#[test]
fn only_pods_that_request_a_resource_with_a_threshold_go_if_asked_for() {
    let nodes = [ten("n1"), ten("n2")];
    let init = json!({"name": "i", "image": "i:1", "resources": {"requests": {"cpu": "1"}}});
    let pods = [
        requesting("a", "n1", &json!({"cpu": "1"})),
        requesting("b", "n1", &json!({"memory": "1Gi"})),
        with(&pod("c", "n1"), &json!({"spec": {"initContainers": [init]}})),
        with(&pod("d", "n1"), &json!({"spec": {"overhead": {"cpu": "100m"}}})),
        pod("e", "n1"),
    ];
    let only = with(&cpu(), &json!({"evictionModes": ["OnlyThresholdingResources"]}));
    let filled = ones("q", "n2", 4);
    let mut all = evicts(&cpu(), &[&nodes, &pods, &filled]);
    all.sort();
    assert_eq!(all, ["a", "b", "c", "d", "e"]);
    assert_eq!(evicts(&only, &[&nodes, &pods, &filled]), ["a", "c"]);
    assert_eq!(codes(&only, &[&nodes, &pods, &filled], "b"), [ReasonCode::RequestsNoThresholdResource]);
}

#[test]
fn namespaces_can_be_kept() {
    let nodes = [ten("n1"), ten("n2")];
    let other = with(&ones("p", "n1", 1)[0], &json!({"metadata": {"namespace": "team-a"}}));
    let arguments = with(&cpu(), &json!({"evictableNamespaces": {"exclude": ["team-a"]}}));
    assert_eq!(evicts(&arguments, &[&nodes, &[other], &ones("o", "n1", 1), &ones("q", "n2", 4)]), ["o1"]);
}

#[test]
fn the_reason_has_the_numbers() {
    let objects = [vec![ten("n1"), ten("n2")], ones("p", "n1", 2), ones("q", "n2", 4)].concat();
    let plan = plan(strategy(&cpu()), &cluster(&objects), 0);
    let reason = &plan.steps[0].eviction().unwrap().reason;
    assert_eq!(
        (reason.code, &*reason.text),
        (ReasonCode::NodeUnderutilized, "the node is at 20.0 % of cpu and is emptied")
    );
    assert_eq!(["used", "thresholds"].map(|name| reason.operand(name)), ["20.0 % of cpu", "30.0 % of cpu"].map(Some));
}
