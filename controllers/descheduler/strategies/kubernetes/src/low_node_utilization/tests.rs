use koord_descheduler_testing::{args, cluster, evicted, node, plan, pod, verdicts, with};
use serde_json::{Value, json};

use super::*;

fn strategy(arguments: &Value) -> LowNodeUtilization {
    LowNodeUtilization::new(args("LowNodeUtilization", arguments)).unwrap()
}

/// Below 20 % of cpu a node is underutilized, above 50 % it is overutilized.
fn cpu() -> Value {
    json!({"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}})
}

/// A node with 10 cores, 10 Gi of memory and 20 pods.
fn ten(name: &str) -> Value {
    with(&node(name), &json!({"status": {"allocatable": {"cpu": "10", "memory": "10Gi", "pods": "20"}}}))
}

fn sized(name: &str, cpu: &str) -> Value {
    with(&ten(name), &json!({"status": {"allocatable": {"cpu": cpu}}}))
}

fn tainted(name: &str, taints: &[(&str, &str)]) -> Value {
    let taints: Vec<Value> = taints.iter().map(|(key, effect)| json!({"key": key, "effect": effect})).collect();
    with(&ten(name), &json!({"spec": {"taints": taints}}))
}

fn requesting(name: &str, node: &str, requests: &Value) -> Value {
    let container = json!({"name": "c", "image": "app:1", "resources": {"requests": requests}});
    with(&pod(name, node), &json!({"spec": {"containers": [container]}}))
}

/// Pods with one core each: `p1`, `p2` and so on.
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
fn a_node_is_relieved_down_to_its_target() {
    let thresholds = |percent: i32| json!({"cpu": percent, "memory": percent, "pods": percent});
    let arguments = json!({"thresholds": thresholds(20), "targetThresholds": thresholds(50)});
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    assert_eq!(evicts(&arguments, &[&nodes, &ones("p", "n1", 8)]), ["p1", "p2", "p3"]);
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 5)]), [""; 0], "50 % is not above 50 %");
    let pods: Vec<Value> =
        (1..8).map(|number| requesting(&format!("p{number}"), "n1", &json!({"memory": "1Gi"}))).collect();
    assert_eq!(evicts(&arguments, &[&nodes, &pods]).len(), 2, "one resource above its target is enough");
}

#[test]
fn a_node_at_the_lower_threshold_takes_pods_and_a_cordoned_one_does_not() {
    let nodes = [ten("n1"), ten("n2")];
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 6), &ones("q", "n2", 2)]), ["p1"]);
    assert_eq!(evicts(&cpu(), &[&nodes, &ones("p", "n1", 6), &ones("q", "n2", 3)]), [""; 0]);
    let cordoned = [ten("n1"), with(&ten("n2"), &json!({"spec": {"unschedulable": true}}))];
    assert_eq!(evicts(&cpu(), &[&cordoned, &ones("p", "n1", 6)]), [""; 0]);
}

#[test]
fn thresholds_can_be_distances_from_the_average() {
    let distance = |low: f64, high: f64| json!({"thresholds": {"cpu": low}, "targetThresholds": {"cpu": high}, "useDeviationThresholds": true});
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    // 80 %, 10 % and 0 %, on average 30 %.
    let pods = [ones("p", "n1", 8), ones("q", "n2", 1)].concat();
    assert_eq!(evicts(&distance(10.0, 10.0), &[&nodes, &pods]).len(), 4);
    assert_eq!(evicts(&distance(10.0, 30.0), &[&nodes, &pods]).len(), 2, "down to 60 %");
    assert_eq!(evicts(&distance(40.0, 10.0), &[&nodes, &pods]).len(), 4, "not below 0 %: the third node is");
    assert_eq!(evicts(&distance(10.0, 60.0), &[&nodes, &pods]).len(), 0);
}

#[test]
fn nothing_is_done_without_nodes_to_relieve_and_nodes_to_fill() {
    let (two, three) = ([ten("n1"), ten("n2")], [ten("n1"), ten("n2"), ten("n3")]);
    let at_least = |count: i32| with(&cpu(), &json!({"numberOfNodes": count}));
    for (arguments, objects, expected) in [
        (cpu(), [&three[..], &ones("p", "n1", 1), &[]], ReasonCode::AllNodesUnderutilized),
        (cpu(), [&two, &ones("p", "n1", 6), &ones("q", "n2", 3)], ReasonCode::NoTargetNodes),
        (cpu(), [&two, &ones("p", "n1", 4), &[]], ReasonCode::NodeNotOverutilized),
        (at_least(2), [&three, &ones("p", "n1", 8), &[]], ReasonCode::TooFewNodesUnderutilized),
    ] {
        assert_eq!(evicts(&arguments, &objects), [""; 0]);
        assert_eq!(codes(&arguments, &objects, "p1"), [expected]);
    }
    assert_eq!(evicts(&at_least(1), &[&three, &ones("p", "n1", 8)]).len(), 3, "one more than the number is enough");
}

#[test]
fn all_targets_together_must_have_something_left() {
    let two = [ten("n1"), sized("n2", "2")];
    assert_eq!(evicts(&cpu(), &[&two, &ones("p", "n1", 9)]), ["p1"]);
    assert_eq!(codes(&cpu(), &[&two, &ones("p", "n1", 9)], "p2"), [ReasonCode::TargetsFull]);
    // Two sources share what one target has.
    let three = [ten("n1"), ten("n2"), sized("n3", "4")];
    assert_eq!(evicts(&cpu(), &[&three, &ones("p", "n1", 8), &ones("q", "n2", 6)]), ["p1", "p2"]);
    assert_eq!(codes(&cpu(), &[&three, &ones("p", "n1", 8), &ones("q", "n2", 6)], "q1"), [ReasonCode::TargetsFull]);
    assert_eq!(codes(&cpu(), &[&[ten("n1"), ten("n2")], &ones("p", "n1", 6)], "p2"), [ReasonCode::NodeRelieved]);
}

#[test]
fn a_pod_that_would_overload_every_target_stays() {
    // Each of the targets has 5 cores left, together they have 10.
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let pods = |cpus: &[&str]| -> Vec<Value> {
        let pods = cpus.iter().enumerate();
        pods.map(|(index, cpu)| requesting(&format!("p{index}"), "n1", &json!({"cpu": cpu}))).collect()
    };
    for (cpus, expected) in [
        (&["7500m"][..], &[][..]),
        (&["6", "3"], &["p1"]),
        (&["5", "4"], &["p0"]),
        // The second pod goes to the other target, and then none has room for a third one, although together they have 2 left.
        (&["4", "4", "2"], &["p0", "p1"]),
    ] {
        assert_eq!(evicts(&cpu(), &[&nodes, &pods(cpus)]), expected, "{cpus:?}");
    }
    assert_eq!(codes(&cpu(), &[&nodes, &pods(&["7500m"])], "p0"), [ReasonCode::PodOverloadsTargets]);
    let low = json!({"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}});
    let pods = pods(&["2", "2", "2", "2", "2"]);
    assert_eq!(evicts(&low, &[&nodes, &pods]), ["p0", "p1"], "one pod for each target");
    assert_eq!(codes(&low, &[&nodes, &pods], "p2"), [ReasonCode::PodOverloadsTargets]);
}

#[test]
fn a_pod_goes_only_where_taints_are_tolerated() {
    let nodes = [ten("n1"), tainted("n2", &[("k", "NoSchedule")])];
    let tolerating =
        with(&ones("q", "n1", 1)[0], &json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}));
    let pods = [ones("p", "n1", 6), vec![tolerating]].concat();
    assert_eq!(evicts(&cpu(), &[&nodes, &pods]), ["q1"]);
    assert_eq!(codes(&cpu(), &[&nodes, &pods], "p1"), [ReasonCode::NoTargetTolerated]);
    let soft = [ten("n1"), tainted("n2", &[("k", "PreferNoSchedule")])];
    assert_eq!(evicts(&cpu(), &[&soft, &pods]), ["q1"], "every effect counts");
    let other = [&nodes[..], &[sized("n3", "0")]].concat();
    assert_eq!(
        codes(&cpu(), &[&other, &pods], "p1"),
        [ReasonCode::PodOverloadsTargets],
        "n3 is tolerated, and has no room"
    );
}

#[test]
fn a_pod_needs_as_many_tolerations_as_a_target_has_taints() {
    let nodes = [ten("n1"), tainted("n2", &[("k", "NoSchedule"), ("l", "NoSchedule")])];
    let all = json!({"operator": "Exists"});
    let tolerating = |tolerations: &[&Value]| -> Vec<Value> {
        let patch = json!({"spec": {"tolerations": tolerations}});
        ones("p", "n1", 6).iter().map(|pod| with(pod, &patch)).collect()
    };
    assert_eq!(evicts(&cpu(), &[&nodes, &tolerating(&[&all])]), [""; 0], "though it is about both taints");
    assert_eq!(evicts(&cpu(), &[&nodes, &tolerating(&[&all, &all])]), ["p1"]);
}

#[test]
fn the_node_that_uses_more_memory_is_relieved_first() {
    // There is room for one pod. Two nodes are above the target of cpu: one uses more of it, the other more memory.
    let nodes = [ten("n1"), ten("n2"), sized("n3", "2")];
    let pods =
        [ones("p", "n1", 9), ones("q", "n2", 6), vec![requesting("q9", "n2", &json!({"memory": "1Mi"}))]].concat();
    assert_eq!(evicts(&cpu(), &[&nodes, &pods]), ["q1"]);
}

#[test]
fn unimportant_pods_go_first() {
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let of = |prefix: &str, count: usize, priority: i32| -> Vec<Value> {
        let patch = json!({"spec": {"priority": priority}});
        ones(prefix, "n1", count).iter().map(|pod| with(pod, &patch)).collect()
    };
    assert_eq!(evicts(&cpu(), &[&nodes, &of("a", 4, 10), &of("b", 3, 5)]), ["b1", "b2"]);
    let by_pods = json!({"thresholds": {"pods": 20}, "targetThresholds": {"pods": 25}});
    let best_effort: Vec<Value> = (1..4).map(|number| pod(&format!("q{number}"), "n1")).collect();
    assert_eq!(evicts(&by_pods, &[&nodes, &ones("p", "n1", 4), &best_effort]), ["q1", "q2"]);
}

#[test]
fn namespaces_can_be_kept_and_still_count() {
    let nodes = [ten("n1"), ten("n2")];
    let of_system: Vec<Value> =
        ones("p", "n1", 7).iter().map(|pod| with(pod, &json!({"metadata": {"namespace": "kube-system"}}))).collect();
    let pods = [of_system, ones("q", "n1", 1)].concat();
    let arguments = with(&cpu(), &json!({"evictableNamespaces": {"exclude": ["kube-system"]}}));
    assert_eq!(evicts(&arguments, &[&nodes, &pods]), ["q1"]);
    assert_eq!(codes(&arguments, &[&nodes, &pods], "p1"), [ReasonCode::NamespaceNotSelected]);
}

#[test]
fn a_limit_holds_for_each_node() {
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let arguments = with(&cpu(), &json!({"evictionLimits": {"node": 1}}));
    let pods = [ones("p", "n1", 8), ones("q", "n2", 7)].concat();
    assert_eq!(evicts(&arguments, &[&nodes, &pods]), ["p1", "q1"]);
    assert_eq!(codes(&arguments, &[&nodes, &pods], "p2"), [ReasonCode::StrategyNodeLimit]);
    assert_eq!(evicts(&with(&cpu(), &json!({"evictionLimits": {"node": 0}})), &[&nodes, &pods]), [""; 0]);
}

#[test]
fn extended_resources_have_thresholds_too() {
    let gpus = |name: &str| with(&ten(name), &json!({"status": {"allocatable": {"example.com/gpu": "10"}}}));
    let arguments = json!({"thresholds": {"example.com/gpu": 20}, "targetThresholds": {"example.com/gpu": 50}});
    let pods: Vec<Value> =
        (1..9).map(|number| requesting(&format!("p{number}"), "n1", &json!({"example.com/gpu": "1"}))).collect();
    assert_eq!(evicts(&arguments, &[&[gpus("n1"), gpus("n2")], &pods]), ["p1", "p2", "p3"]);
    assert_eq!(evicts(&arguments, &[&[gpus("n1"), ten("n2")], &pods]), [""; 0], "no target has it");
    assert_eq!(codes(&arguments, &[&[gpus("n1"), ten("n2")], &pods], "p1"), [ReasonCode::TargetsFull]);
    let unknown = json!({"thresholds": {"example.com/x": 20}, "targetThresholds": {"example.com/x": 50}});
    assert_eq!(codes(&unknown, &[&[ten("n1"), ten("n2")], &pods], "p1"), [ReasonCode::AllNodesUnderutilized]);
}

#[test]
fn requests_are_those_of_the_pod() {
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let with_init = |name: &str, cpu: &str, policy: Value| {
        let init =
            json!({"name": "i", "image": "i:1", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
        with(&requesting(name, "n1", &json!({"cpu": "1"})), &json!({"spec": {"initContainers": [init]}}))
    };
    let init = |name| with_init(name, "3", Value::Null);
    let sidecar = |name| with_init(name, "2", json!("Always"));
    assert_eq!(evicts(&cpu(), &[&nodes, &[init("p1"), init("p2")]]), ["p1"], "3 each");
    assert_eq!(evicts(&cpu(), &[&nodes, &[sidecar("p1"), sidecar("p2")]]), ["p1"], "1 + 2 each");
}

#[test]
fn the_reason_has_the_numbers() {
    let objects = [vec![ten("n1"), ten("n2")], ones("p", "n1", 6)].concat();
    let plan = plan(strategy(&cpu()), &cluster(&objects), 0);
    let reason = &plan.steps[0].eviction().unwrap().reason;
    assert_eq!(reason.code, ReasonCode::NodeOverutilized);
    assert_eq!(reason.text, "the node is at 60.0 % of cpu, above 50.0 %");
    assert_eq!(["resource", "percent", "target"].map(|name| reason.operand(name)), ["cpu", "60.0", "50.0"].map(Some));
}

#[test]
fn target_thresholds_alone_crash_nothing() {
    // Whoever checks the arguments does not get here.
    let args = LowNodeUtilizationArgs { target_thresholds: [("cpu".to_owned(), 50.0)].into(), ..Default::default() };
    let objects = [vec![ten("n1"), ten("n2")], ones("p", "n1", 6)].concat();
    assert_eq!(evicted(LowNodeUtilization::new(args).unwrap(), &cluster(&objects), 0), [""; 0]);
}

mod measured;
