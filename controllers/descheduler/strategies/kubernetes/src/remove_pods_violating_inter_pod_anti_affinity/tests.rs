use serde_json::{Value, json};

use super::*;
use crate::DefaultEvictor;
use koord_descheduler_testing::{args, cluster, evicted, evicted_through, node, plan, pod, verdicts, with};

const HOSTNAME: &str = "kubernetes.io/hostname";

fn strategy(arguments: &Value) -> RemovePodsViolatingInterPodAntiAffinity {
    RemovePodsViolatingInterPodAntiAffinity::new(&args("RemovePodsViolatingInterPodAntiAffinity", arguments)).unwrap()
}

/// Which of these pods the strategy evicts, in this order.
fn evicts(objects: &[Value]) -> Vec<String> {
    evicts_with(&json!({}), objects)
}

fn evicts_with(arguments: &Value, objects: &[Value]) -> Vec<String> {
    let nodes = [zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b"), node("n4")];
    let objects: Vec<Value> = nodes.iter().chain(objects).cloned().collect();
    evicted(strategy(arguments), &cluster(&objects), 0)
}

fn zoned(name: &str, zone: &str) -> Value {
    with(&node(name), &json!({"metadata": {"labels": {"zone": zone}}}))
}

/// A pod that is labelled.
fn labelled(name: &str, node: &str, app: &str) -> Value {
    with(&pod(name, node), &json!({"metadata": {"labels": {"app": app}}}))
}

/// A pod that forbids pods which are labelled so, in the domains of a key.
fn forbidding(name: &str, node: &str, app: &str, topology_key: &str, change: &Value) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology_key});
    let terms = json!([with(&term, change)]);
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    with(&pod(name, node), &json!({"spec": {"affinity": affinity}}))
}

fn apart(name: &str, node: &str) -> Value {
    forbidding(name, node, "x", HOSTNAME, &json!({}))
}

/// Forbids pods that are labelled like itself.
fn selfish(name: &str, node: &str, change: &Value) -> Value {
    let pod = with(&apart(name, node), &json!({"metadata": {"labels": {"app": "x"}}}));
    with(&pod, change)
}

fn in_namespace(pod: &Value, namespace: &str) -> Value {
    with(pod, &json!({"metadata": {"namespace": namespace}}))
}

#[test]
fn a_pod_goes_when_a_pod_that_it_forbids_is_in_its_domain() {
    let x = |node: &str| labelled("x", node, "x");
    for (topology_key, own, other, expected) in [
        (HOSTNAME, "n1", "n1", 1),
        (HOSTNAME, "n1", "n2", 0),
        ("zone", "n1", "n2", 1),
        ("zone", "n1", "n3", 0),
        ("zone", "n1", "n4", 0),
        ("zone", "n4", "n4", 1),
        ("absent", "n1", "n1", 1),
        ("absent", "n1", "n2", 0),
    ] {
        let a = forbidding("a", own, "x", topology_key, &json!({}));
        assert_eq!(evicts(&[a, x(other)]), ["a"][..expected], "{topology_key} {own} {other}");
    }
    assert_eq!(evicts(&[apart("a", "n1"), labelled("y", "n1", "y")]), [""; 0]);
    assert_eq!(evicts(&[apart("a", "n1")]), [""; 0]);
    assert_eq!(evicts(&[selfish("a", "n1", &json!({}))]), [""; 0], "a pod does not forbid itself");
}

#[test]
fn preferred_anti_affinity_forbids_nothing() {
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOSTNAME});
    let terms = json!([{"weight": 100, "podAffinityTerm": term}]);
    let affinity = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}});
    let a = with(&pod("a", "n1"), &json!({"spec": {"affinity": affinity}}));
    assert_eq!(evicts(&[a, labelled("x", "n1", "x")]), [""; 0]);
}

#[test]
fn a_pod_that_is_gone_forbids_nothing_so_its_partner_stays() {
    let none = json!({});
    let three = ["a", "b", "c"].map(|name| selfish(name, "n1", &none));
    assert_eq!(evicts(&three), ["a", "b"], "one of them may stay");
    let priority = |priority: i32| json!({"spec": {"priority": priority}});
    let by_priority =
        [selfish("a", "n1", &priority(7)), selfish("b", "n1", &priority(5)), selfish("c", "n1", &priority(6))];
    assert_eq!(evicts(&by_priority), ["b", "c"], "the lowest priority goes first");
    let requests =
        |cpu: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    let by_class = [selfish("a", "n1", &requests("1")), selfish("b", "n1", &none)];
    assert_eq!(evicts(&by_class), ["b"], "then the lowest QoS class");
    let zone = |name: &str, node: &str| {
        with(&forbidding(name, node, "x", "zone", &none), &json!({"metadata": {"labels": {"app": "x"}}}))
    };
    assert_eq!(evicts(&[zone("a", "n1"), zone("b", "n2"), zone("c", "n3")]), ["a"], "across nodes too");
}

#[test]
fn a_pod_that_is_being_deleted_or_has_ended_forbids_nothing() {
    let deleting = json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}});
    let ended = json!({"status": {"phase": "Succeeded"}});
    for change in [deleting, ended] {
        assert_eq!(evicts(&[apart("a", "n1"), with(&labelled("x", "n1", "x"), &change)]), [""; 0], "{change}");
    }
}

#[test]
fn a_pod_that_stays_although_it_should_go_is_still_in_the_way() {
    let bare = json!({"metadata": {"ownerReferences": null}});
    let pods = [selfish("a", "n1", &bare), selfish("b", "n1", &json!({}))];
    let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(&pods).cloned().collect();
    let evictor = DefaultEvictor::new(&args("DefaultEvictor", &json!({}))).unwrap();
    assert_eq!(evicted_through(strategy(&json!({})), evictor, &cluster(&objects), 0), ["b"]);
}

#[test]
fn pods_of_one_name_in_two_namespaces_are_two_pods() {
    let a = forbidding("a", "n1", "x", HOSTNAME, &json!({"namespaces": ["team-a"]}));
    let other = in_namespace(&labelled("a", "n1", "x"), "team-a");
    assert_eq!(evicts(&[a, other]), ["a"]);
}

#[test]
fn namespaces_are_the_own_one_or_those_that_the_term_names_or_selects() {
    let namespace =
        |name: &str, team: &str| json!({"kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}});
    let selected = json!({"namespaceSelector": {"matchLabels": {"team": "red"}}});
    for (change, namespace_of_x, expected) in [
        (json!({}), "default", 1),
        (json!({}), "team-a", 0),
        (json!({"namespaces": ["team-a"]}), "team-a", 1),
        (json!({"namespaces": ["team-a"]}), "default", 0),
        (selected.clone(), "team-a", 1),
        (selected.clone(), "team-b", 0),
        (selected.clone(), "default", 0),
        (json!({"namespaceSelector": {}}), "team-b", 1),
        (json!({"namespaceSelector": {}}), "unknown", 1),
        (with(&selected, &json!({"namespaces": ["team-b"]})), "team-b", 1),
    ] {
        let x = in_namespace(&labelled("x", "n1", "x"), namespace_of_x);
        let objects =
            [namespace("team-a", "red"), namespace("team-b", "blue"), forbidding("a", "n1", "x", HOSTNAME, &change), x];
        assert_eq!(evicts(&objects), ["a"][..expected], "{change} {namespace_of_x}");
    }
}

#[test]
fn pods_that_the_arguments_do_not_choose_are_not_compared() {
    let chosen = json!({"metadata": {"labels": {"t": "1"}}});
    let by_label = json!({"labelSelector": {"matchLabels": {"t": "1"}}});
    let a = with(&apart("a", "n1"), &chosen);
    let x = labelled("x", "n1", "x");
    assert_eq!(evicts_with(&by_label, &[a.clone(), x.clone()]), [""; 0]);
    assert_eq!(evicts_with(&by_label, &[a.clone(), with(&x, &chosen)]), ["a"]);
    let far = forbidding("a", "n1", "x", HOSTNAME, &json!({"namespaces": ["team-a"]}));
    let other = in_namespace(&x, "team-a");
    assert_eq!(evicts_with(&json!({"namespaces": {"exclude": ["team-a"]}}), &[far.clone(), other.clone()]), [""; 0]);
    assert_eq!(evicts_with(&json!({"namespaces": {"include": ["default", "team-a"]}}), &[far, other]), ["a"]);
}

#[test]
fn pods_with_the_same_labels_and_different_terms_are_told_apart() {
    let same = json!({"metadata": {"labels": {"app": "z"}}});
    let pods = [
        with(&apart("a", "n1"), &same),
        with(&forbidding("b", "n1", "y", HOSTNAME, &json!({})), &same),
        labelled("y", "n1", "y"),
    ];
    assert_eq!(evicts(&pods), ["b"]);
}

#[test]
fn the_reason_names_the_pod_that_is_forbidden_and_who_stays_is_known() {
    let objects = [node("n1"), node("n2"), apart("a", "n1"), labelled("x", "n1", "x"), apart("y", "n2")];
    let cluster = cluster(&objects);
    let plan = plan(strategy(&json!({})), &cluster, 0);
    let reason = &plan.steps[0].eviction().unwrap().reason;
    assert_eq!((reason.operand("pod"), reason.operand("topologyKey")), (Some("default/x"), Some(HOSTNAME)));
    let expected = ["x", "y"].map(|name| (name.to_owned(), ReasonCode::AntiAffinityHolds));
    assert_eq!(verdicts(strategy(&json!({})), &cluster, 0), expected);
}
