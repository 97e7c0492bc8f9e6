use jiff::Timestamp;
use koord_descheduler_framework::{Descheduler, Input, Limits, Memory, Plan, Step};
use koord_descheduler_testing::{Everything, args, cluster, descheduler, evicted, node, pod, with};
use serde_json::{Value, json};

use super::*;

fn plugin(arguments: &Value) -> CustomPriority {
    let level = |name: &str| json!({"name": name, "nodeSelector": {"matchLabels": {"t": name}}});
    let order = json!({"evictionOrder": [level("dear"), level("mid"), level("cheap")]});
    CustomPriority::new(args("CustomPriority", &with(&order, arguments))).unwrap()
}

fn evicts(arguments: &Value, objects: &[Value]) -> Vec<String> {
    evicted(plugin(arguments), &cluster(objects), 0)
}

fn plan_of(descheduler: &Descheduler, objects: &[Value], results: &[bool]) -> Plan {
    let (cluster, memory) = (cluster(objects), Memory::default());
    descheduler.pass(&Input { results, ..Input::new(&cluster, &memory, Timestamp::UNIX_EPOCH) })
}

/// The steps of a pass in words.
fn steps(arguments: &Value, objects: &[Value], results: &[bool]) -> Vec<String> {
    let plan = plan_of(&descheduler(plugin(arguments), Everything), objects, results);
    let word = |step: &Step| match step {
        Step::Evict(eviction) if step.is_dry_run() => format!("would evict {}", eviction.pod.key.name()),
        Step::Evict(eviction) => format!("evict {}", eviction.pod.key.name()),
        Step::Cordon { node } => format!("cordon {node}"),
        Step::Uncordon { node } => format!("uncordon {node}"),
        Step::SetDeletionCost { .. } => "cost".to_owned(),
    };
    plan.steps.iter().map(word).collect()
}

fn of(name: &str, level: &str, cpus: &str) -> Value {
    with(&node(name), &json!({"metadata": {"labels": {"t": level}}, "status": {"allocatable": {"cpu": cpus}}}))
}

fn requesting(name: &str, node: &str, cpu: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    with(&pod(name, node), &json!({"spec": {"containers": [container]}}))
}

const DRAIN: &str = "DrainNode";

#[test]
fn pods_go_from_each_level_to_later_ones() {
    let objects = [
        of("n1", "dear", "8"),
        of("n2", "mid", "8"),
        of("n3", "cheap", "8"),
        of("n4", "none", "8"),
        requesting("a", "n1", "1"),
        requesting("b", "n2", "1"),
        requesting("c", "n3", "1"),
        requesting("d", "n4", "1"),
    ];
    assert_eq!(evicts(&json!({}), &objects), ["a", "b"]);
    let without_mid: Vec<Value> = objects.iter().filter(|object| object["metadata"]["name"] != "n2").cloned().collect();
    assert_eq!(evicts(&json!({}), &without_mid), ["a"], "a level without nodes is skipped");
    assert_eq!(evicts(&json!({}), &objects[..1].iter().chain(&objects[3..5]).cloned().collect::<Vec<_>>()), [""; 0]);
    let level = |name: &str, selector: Value| json!({"name": name, "nodeSelector": selector});
    let rest =
        json!({"evictionOrder": [level("cheap", json!({"matchLabels": {"t": "cheap"}})), level("rest", json!({}))]});
    assert_eq!(evicts(&rest, &objects), ["c"], "the first level counts, and an empty selector selects the others");
    for arguments in [json!({"paused": true}), json!({"nodeSelector": {"matchLabels": {"t": "dear"}}})] {
        assert_eq!(evicts(&arguments, &objects), [""; 0], "{arguments}");
    }
}

#[test]
fn small_pods_go_first_and_what_they_take_is_gone() {
    let objects = |cpus: &str| {
        [
            of("n1", "dear", "16"),
            of("n2", "cheap", cpus),
            requesting("c", "n1", "3"),
            requesting("b", "n1", "2"),
            requesting("d", "n1", "2"),
            requesting("a", "n1", "1"),
        ]
    };
    assert_eq!(evicts(&json!({}), &objects("8")), ["a", "b", "d", "c"]);
    // Repaired: the original looks at each pod by itself and evicts them all.
    assert_eq!(evicts(&json!({}), &objects("5")), ["a", "b", "d"]);
    assert_eq!(evicts(&json!({"nodeFit": false}), &objects("1")), ["a", "b", "d", "c"]);
}

#[test]
fn after_five_misses_in_a_row_a_node_is_given_up() {
    let pinned =
        |n: usize| with(&requesting(&format!("a{n}"), "n1", "1"), &json!({"spec": {"nodeSelector": {"t": "dear"}}}));
    let objects = |misses: usize| {
        let nodes = [of("n1", "dear", "100"), of("n2", "cheap", "10"), requesting("b", "n1", "2")];
        nodes.into_iter().chain((0..misses).map(pinned)).collect::<Vec<_>>()
    };
    assert_eq!(evicts(&json!({}), &objects(4)), ["b"]);
    assert_eq!(evicts(&json!({}), &objects(5)), [""; 0]);
}

/// Repaired: the original evicts pods that have ended.
#[test]
fn ended_pods_and_those_of_daemon_sets_are_left_out() {
    let nodes = [of("n1", "dear", "8"), of("n2", "cheap", "8")];
    let daemon = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    for change in [json!({"status": {"phase": "Succeeded"}}), json!({"metadata": {"ownerReferences": daemon}})] {
        let objects: Vec<Value> = nodes.iter().cloned().chain([with(&requesting("a", "n1", "1"), &change)]).collect();
        assert_eq!(evicts(&json!({}), &objects), [""; 0]);
    }
}

#[test]
fn a_node_is_drained_as_a_whole_or_not_at_all() {
    let drain = json!({"mode": DRAIN});
    let pods = |prefix: &str, node: &str, count: usize| {
        (0..count).map(|n| requesting(&format!("{prefix}{n}"), node, "2")).collect::<Vec<_>>()
    };
    let nodes = |cpus: &str| vec![of("n1", "dear", "16"), of("n2", "dear", "16"), of("n3", "cheap", cpus)];
    assert_eq!(evicts(&drain, &[nodes("5"), pods("p", "n1", 3)].concat()), [""; 0]);
    assert_eq!(evicts(&drain, &[nodes("6"), pods("p", "n1", 3)].concat()), ["p0", "p1", "p2"]);
    // What a node that is not drained would have taken is there for the next one.
    assert_eq!(evicts(&drain, &[nodes("5"), pods("p", "n1", 3), pods("q", "n2", 2)].concat()), ["q0", "q1"]);
    assert_eq!(evicts(&drain, &[nodes("6"), pods("p", "n1", 2), pods("q", "n2", 2)].concat()), ["p0", "p1"]);
    let without_fit = with(&drain, &json!({"nodeFit": false}));
    assert_eq!(
        evicts(&without_fit, &[nodes("3"), pods("p", "n1", 2)].concat()),
        [""; 0],
        "cpu and memory count all the same"
    );
    let pinned: Vec<Value> =
        pods("p", "n1", 1).iter().map(|pod| with(pod, &json!({"spec": {"nodeSelector": {"t": "dear"}}}))).collect();
    assert_eq!(evicts(&drain, &[nodes("8"), pinned.clone()].concat()), [""; 0]);
    assert_eq!(evicts(&without_fit, &[nodes("8"), pinned].concat()), ["p0"]);
}

#[test]
fn only_a_node_that_this_pass_has_cordoned_is_uncordoned() {
    let drain = json!({"mode": DRAIN, "autoCordon": true});
    let objects = [
        of("n1", "dear", "8"),
        of("n2", "cheap", "8"),
        requesting("a", "n1", "1"),
        requesting("b", "n1", "2"),
        requesting("c", "n1", "3"),
    ];
    assert_eq!(steps(&drain, &objects, &[]), ["cordon n1", "evict a", "evict b", "evict c"]);
    assert_eq!(steps(&drain, &objects, &[true, true, false]), ["cordon n1", "evict a", "evict b", "uncordon n1"]);
    assert_eq!(steps(&drain, &objects, &[false, false]), ["cordon n1", "evict a"], "the cordon failed");
    // Repaired: the original uncordons nodes that were cordoned before, and cordons in dry run.
    let mut cordoned = objects.clone();
    cordoned[0]["spec"]["unschedulable"] = json!(true);
    assert_eq!(steps(&drain, &cordoned, &[false]), ["evict a"]);
    let dry = with(&drain, &json!({"dryRun": true}));
    assert_eq!(steps(&dry, &objects, &[]), ["would evict a", "would evict b", "would evict c"]);
    let empty = [of("n1", "dear", "8"), of("n2", "cheap", "8")];
    assert_eq!(steps(&drain, &empty, &[]), [""; 0], "a node without pods is not cordoned");
}

#[test]
fn a_failed_eviction_ends_the_node_and_gives_back_what_stays() {
    let drain = json!({"mode": DRAIN});
    let objects = [
        of("n1", "dear", "8"),
        of("n2", "dear", "8"),
        of("n3", "cheap", "4"),
        requesting("a", "n1", "2"),
        requesting("b", "n1", "2"),
        requesting("c", "n2", "2"),
        requesting("d", "n2", "2"),
    ];
    assert_eq!(steps(&drain, &objects, &[]), ["evict a", "evict b"]);
    assert_eq!(steps(&drain, &objects, &[false]), ["evict a", "evict c", "evict d"]);
    assert_eq!(steps(&drain, &objects, &[true, false]), ["evict a", "evict b"], "2 are left, and the other needs 4");
    assert_eq!(steps(&json!({}), &objects, &[false]), ["evict a", "evict b", "evict c"], "pod by pod");
}

#[test]
fn limits_end_it_and_the_reason_names_the_level() {
    let objects = [
        of("n1", "dear", "8"),
        of("n2", "cheap", "8"),
        requesting("a", "n1", "1"),
        requesting("b", "n1", "2"),
        requesting("d", "n1", "3"),
    ];
    let limited = Descheduler {
        limits: Limits { per_node: Some(2), ..Limits::default() },
        ..descheduler(plugin(&json!({})), Everything)
    };
    let plan = plan_of(&limited, &objects, &[]);
    let evictions: Vec<_> = plan.steps.iter().filter_map(Step::eviction).collect();
    assert_eq!(evictions.iter().map(|eviction| eviction.pod.key.name()).collect::<Vec<_>>(), ["a", "b"]);
    let expected = "evicting from dear priority resource to lower priority resource";
    assert_eq!(evictions[0].recorded_reason, expected);
    assert_eq!(evictions[0].reason.code, ReasonCode::LaterLevelFits);
}

#[test]
fn anti_affinity_and_pod_slots_are_not_looked_at() {
    let full = with(&of("n2", "cheap", "8"), &json!({"status": {"allocatable": {"pods": "1"}}}));
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"});
    let apart = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}});
    let objects = [
        of("n1", "dear", "8"),
        full,
        with(&requesting("a", "n1", "1"), &apart),
        with(&requesting("b", "n2", "1"), &apart),
    ];
    assert_eq!(evicts(&json!({}), &objects), ["a"], "QUIRK: as Koordinator's rule of fitting says");
}
