use koord_descheduler_testing::{args, cluster, evicted, evicted_through, node, plan, pod, verdicts, with};
use serde_json::{Value, json};

use super::*;
use crate::DefaultEvictor;

mod several;

fn strategy(arguments: &Value) -> RemovePodsViolatingTopologySpreadConstraint {
    let arguments = args("RemovePodsViolatingTopologySpreadConstraint", arguments);
    RemovePodsViolatingTopologySpreadConstraint::new(arguments).unwrap()
}

fn evicts_with(arguments: &Value, objects: &[&[Value]]) -> Vec<String> {
    evicted(strategy(arguments), &cluster(&objects.concat()), 0)
}

fn evicts(objects: &[&[Value]]) -> Vec<String> {
    evicts_with(&json!({}), objects)
}

fn codes_with(arguments: &Value, objects: &[&[Value]], name: &str) -> Vec<ReasonCode> {
    let verdicts = verdicts(strategy(arguments), &cluster(&objects.concat()), 0);
    verdicts.into_iter().filter(|(pod, _)| pod == name).map(|(_, code)| code).collect()
}

fn codes(objects: &[&[Value]], name: &str) -> Vec<ReasonCode> {
    codes_with(&json!({}), objects, name)
}

fn in_zone(name: &str, zone: &str) -> Value {
    with(&node(name), &json!({"metadata": {"labels": {"zone": zone}}}))
}

/// The node `n1` of zone a, and `n2` of zone b.
fn two() -> Vec<Value> {
    vec![in_zone("n1", "a"), in_zone("n2", "b")]
}

fn constraint(key: &str, skew_max: i32) -> Value {
    let selector = json!({"matchLabels": {"app": "x"}});
    json!({"maxSkew": skew_max, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector})
}

/// Pods with the label `app: x`: the prefix with 1, 2 and so on.
fn spread(prefix: &str, node: &str, count: usize, constraints: &[Value]) -> Vec<Value> {
    let patch = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"topologySpreadConstraints": constraints}});
    (1..=count).map(|number| with(&pod(&format!("{prefix}{number}"), node), &patch)).collect()
}

/// The same, with one constraint over zones.
fn zonal(prefix: &str, node: &str, count: usize) -> Vec<Value> {
    spread(prefix, node, count, &[constraint("zone", 1)])
}

fn each(pods: &[Value], patch: &Value) -> Vec<Value> {
    pods.iter().map(|pod| with(pod, patch)).collect()
}

fn requesting(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}]}})
}

#[test]
fn pods_leave_domains_that_have_too_many() {
    for (sizes, skew_max, expected) in [
        (&[2, 1][..], 1, &[][..]),
        (&[3, 1], 1, &["a1"]),
        (&[5, 2], 1, &["a1"]),
        (&[4, 0], 1, &["a1", "a2"]),
        (&[4, 2], 2, &[]),
        (&[5, 2], 2, &["a1"]),
        (&[6, 2], 2, &["a1"]),
        (&[6, 0, 0], 1, &["a1", "a2", "a3", "a4"]),
        (&[8, 7, 0], 1, &["a1", "a2", "a3", "b1", "b2"]),
        (&[0, 1, 3, 5], 1, &["d1", "d2", "d3"]),
        (&[5, 5, 5], 1, &[]),
    ] {
        let names = ["a", "b", "c", "d"];
        let nodes: Vec<Value> = names.iter().zip(sizes).map(|(zone, _)| in_zone(&format!("n{zone}"), zone)).collect();
        let of_zone =
            |(zone, count): (&&str, &usize)| spread(zone, &format!("n{zone}"), *count, &[constraint("zone", skew_max)]);
        let pods: Vec<Value> = names.iter().zip(sizes).flat_map(of_zone).collect();
        assert_eq!(evicts(&[&nodes, &pods]), expected, "{sizes:?} {skew_max}");
    }
    assert_eq!(codes(&[&two(), &zonal("a", "n1", 1)], "a1"), [ReasonCode::SpreadConstraintHolds]);
    assert_eq!(codes(&[&two(), &zonal("a", "n1", 3), &zonal("b", "n2", 1)], "a2"), [ReasonCode::DomainNotTooLarge]);
    assert_eq!(codes(&[&two(), &zonal("a", "n1", 3), &zonal("b", "n2", 1)], "b1"), [ReasonCode::DomainNotTooLarge]);
}

#[test]
fn the_pod_of_the_highest_priority_goes_first() {
    let pods = zonal("a", "n1", 3);
    let high = with(&pods[2], &json!({"spec": {"priority": 10}}));
    let low = each(&pods[..2], &json!({"spec": {"priority": 5}}));
    assert_eq!(evicts(&[&two(), &low, &[high], &zonal("b", "n2", 1)]), ["a3"]);
}

#[test]
fn pods_that_choose_nodes_go_last() {
    let pods = zonal("a", "n1", 4);
    let choosing = with(&pods[0], &json!({"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}, "priority": 10}}));
    let linux: Vec<Value> = each(&two(), &json!({"metadata": {"labels": {"kubernetes.io/os": "linux"}}}));
    // With Honor it has a constraint of its own, which counts the same pods.
    let ignoring = |pods: &[Value]| {
        each(
            pods,
            &json!({"spec": {"topologySpreadConstraints": [with(&constraint("zone", 1), &json!({"nodeAffinityPolicy": "Ignore"}))]}}),
        )
    };
    assert_eq!(evicts(&[&linux, &ignoring(&[choosing]), &ignoring(&pods[1..3])]), ["a2"]);
    // Not at all, where it does not fit elsewhere.
    let pinned = with(&pods[0], &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}, "priority": 10}}));
    assert_eq!(evicts(&[&two(), &ignoring(&[pinned]), &ignoring(&pods[1..])]), ["a2", "a3"]);
}

#[test]
fn pods_that_may_not_be_evicted_count_and_stay() {
    let evictor = || DefaultEvictor::new(&args("DefaultEvictor", &json!({}))).unwrap();
    let found = |objects: &[&[Value]]| evicted_through(strategy(&json!({})), evictor(), &cluster(&objects.concat()), 0);
    let local = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}, "metadata": {"annotations": {"x": "y"}}});
    let protected = |prefix: &str, node: &str, count| each(&zonal(prefix, node, count), &local);
    assert_eq!(found(&[&two(), &protected("a", "n1", 3), &zonal("p", "n1", 1)]), ["p1"], "4 and 0");
    assert_eq!(found(&[&two(), &zonal("a", "n1", 3), &protected("b", "n2", 3)]), [""; 0], "3 and 3");
    let daemon = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]}});
    assert_eq!(found(&[&two(), &each(&zonal("a", "n1", 4), &daemon)]), [""; 0]);
    // Where only they have the constraint, it is not enforced.
    let without = each(&zonal("p", "n1", 2), &json!({"spec": {"topologySpreadConstraints": null}}));
    assert_eq!(found(&[&two(), &each(&zonal("a", "n1", 2), &daemon), &without]), [""; 0]);
}

#[test]
fn only_pods_that_the_selector_of_a_constraint_selects_count() {
    let other = each(&zonal("a", "n1", 4), &json!({"metadata": {"labels": {"app": "y"}}}));
    assert_eq!(evicts(&[&two(), &other]), [""; 0]);
    assert_eq!(codes(&[&two(), &other], "a1"), [ReasonCode::NoSpreadConstraint]);
    let of_job = each(
        &zonal("j", "n1", 3),
        &json!({"metadata": {"labels": {"app": null}}, "spec": {"topologySpreadConstraints": null}}),
    );
    assert_eq!(evicts(&[&two(), &zonal("a", "n1", 1), &of_job]), [""; 0]);
    let elsewhere = each(&zonal("b", "n2", 4), &json!({"metadata": {"namespace": "other"}}));
    assert_eq!(
        evicts(&[&two(), &zonal("a", "n1", 4), &elsewhere]),
        ["a1", "a2", "b1", "b2"],
        "each namespace for itself"
    );
    let leaving = each(&zonal("b", "n1", 2), &json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}));
    assert_eq!(evicts(&[&two(), &zonal("a", "n1", 1), &leaving]), [""; 0]);
    let ended = each(&zonal("b", "n1", 2), &json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(evicts(&[&two(), &zonal("a", "n1", 1), &ended]), [""; 0]);
}

#[test]
fn keys_of_labels_distinguish_revisions() {
    let constraint = with(&constraint("zone", 1), &json!({"matchLabelKeys": ["revision"]}));
    let of = |revision: &str, node: &str| {
        each(
            &spread(revision, node, 2, std::slice::from_ref(&constraint)),
            &json!({"metadata": {"labels": {"revision": revision}}}),
        )
    };
    assert_eq!(evicts(&[&two(), &of("r", "n1"), &of("s", "n2")]), ["r1", "s1"], "together they are even");
}

#[test]
fn the_arguments_choose_constraints_and_pods() {
    let soft = with(&constraint("zone", 1), &json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    let soft = spread("a", "n1", 4, &[soft]);
    assert_eq!(evicts(&[&two(), &soft]), [""; 0]);
    assert_eq!(codes(&[&two(), &soft], "a1"), [ReasonCode::NoSpreadConstraint]);
    let both = json!({"constraints": ["DoNotSchedule", "ScheduleAnyway"]});
    assert_eq!(evicts_with(&both, &[&two(), &soft]).len(), 2);
    let hard = zonal("a", "n1", 4);
    for (arguments, expected) in [
        (json!({"constraints": []}), 0),
        (json!({"constraints": ["ScheduleAnyway"]}), 0),
        (json!({"labelSelector": {"matchLabels": {"team": "t"}}}), 0),
        (json!({"labelSelector": {"matchLabels": {"app": "x"}}}), 2),
        (json!({"namespaces": {"include": ["team-a"]}}), 0),
        (json!({"namespaces": {"exclude": ["team-a"]}}), 2),
    ] {
        assert_eq!(evicts_with(&arguments, &[&two(), &hard]).len(), expected, "{arguments}");
    }
}

#[test]
fn nodes_count_by_the_policies_of_a_constraint() {
    let policy = |policy: Value| with(&constraint("zone", 1), &policy);
    let tainted = |name: &str, zone: &str| {
        with(&in_zone(name, zone), &json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}))
    };
    let selecting =
        |constraint: Value| each(&spread("a", "n1", 4, &[constraint]), &json!({"spec": {"nodeSelector": {"p": "1"}}}));
    let labelled = |zone_b: &[&str]| -> Vec<Value> {
        let p = json!({"metadata": {"labels": {"p": "1"}}});
        let others = zone_b.iter().map(|name| in_zone(name, "b"));
        std::iter::once(with(&in_zone("n1", "a"), &p)).chain(others).collect()
    };
    let honored = selecting(constraint("zone", 1));
    assert_eq!(evicts(&[&labelled(&["n2"]), &honored]), [""; 0], "zone b is no domain");
    assert_eq!(codes(&[&labelled(&["n2"]), &honored], "a1"), [ReasonCode::SpreadConstraintHolds]);
    let ignored = selecting(policy(json!({"nodeAffinityPolicy": "Ignore"})));
    assert_eq!(evicts(&[&labelled(&["n2"]), &ignored]), [""; 0], "it is one, and no pod fits there");
    assert_eq!(codes(&[&labelled(&["n2"]), &ignored], "a1"), [ReasonCode::NoSmallerDomainFits]);
    let honoring = policy(json!({"nodeTaintsPolicy": "Honor"}));
    let nodes = [in_zone("n1", "a"), tainted("n2", "b")];
    assert_eq!(codes(&[&nodes, &spread("a", "n1", 4, &[honoring])], "a1"), [ReasonCode::SpreadConstraintHolds]);
    assert_eq!(codes(&[&nodes, &zonal("a", "n1", 4)], "a1"), [ReasonCode::NoSmallerDomainFits]);
    assert_eq!(evicts(&[&[in_zone("n1", "a"), node("n2")], &zonal("a", "n1", 4)]), [""; 0], "a node without the label");
}

#[test]
fn a_pod_goes_only_if_a_smaller_domain_has_room() {
    let small = [in_zone("n1", "a"), with(&in_zone("n2", "b"), &json!({"status": {"allocatable": {"cpu": "1"}}}))];
    let large = each(&zonal("a", "n1", 4), &requesting("2"));
    assert_eq!(evicts(&[&small, &large]), [""; 0]);
    assert_eq!(codes(&[&small, &large], "a1"), [ReasonCode::NoSmallerDomainFits]);
    assert!(ReasonCode::NoSmallerDomainFits.remedy().contains("topologyBalanceNodeFit"));
    let off = json!({"topologyBalanceNodeFit": false});
    assert_eq!(evicts_with(&off, &[&small, &large]), ["a1", "a2"]);
    // Those that fit go instead.
    let mixed = [&large[..2], &zonal("a", "n1", 4)[2..]].concat();
    assert_eq!(evicts(&[&small, &mixed]), ["a3", "a4"]);
}

#[test]
fn the_reason_has_the_numbers() {
    let objects = [two(), zonal("a", "n1", 3), zonal("b", "n2", 1)].concat();
    let plan = plan(strategy(&json!({})), &cluster(&objects), 0);
    let reason = &plan.steps[0].eviction().unwrap().reason;
    assert_eq!(reason.code, ReasonCode::TopologySpreadViolated);
    assert_eq!(reason.text, "zone a has 3 pods, the smallest domain 1, which may differ by 1");
    let operands = ["topologyKey", "domain", "pods", "smallest", "maxSkew"].map(|name| reason.operand(name));
    assert_eq!(operands, ["zone", "a", "3", "1", "1"].map(Some));
}
