use std::sync::Arc;

use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event, node::Node};
use koord_scheduler_testing::{filtered, node, pod, scored};
use serde_json::{Value, json};

use crate::TaintToleration;

/// Taints such as `disk=slow:NoSchedule`.
fn tainted(taints: &[&str]) -> Arc<Node> {
    let taint = |text: &&str| {
        let (pair, effect) = text.split_once(':').unwrap();
        let (key, value) = pair.split_once('=').unwrap();
        json!({"key": key, "value": value, "effect": effect})
    };
    node("n", &json!({"spec": {"taints": taints.iter().map(taint).collect::<Vec<_>>()}}))
}

/// Tolerations such as `disk=slow:NoSchedule`, `disk` (whatever its value) and `disk=slow` (whatever its effect).
fn tolerating(tolerations: &[&str]) -> Value {
    let toleration = |text: &&str| {
        let (pair, effect) = text.split_once(':').map_or((*text, Value::Null), |(pair, effect)| (pair, json!(effect)));
        match pair.split_once('=') {
            Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value, "effect": effect}),
            None => json!({"key": pair, "operator": "Exists", "effect": effect}),
        }
    };
    json!({"tolerations": tolerations.iter().map(toleration).collect::<Vec<_>>()})
}

#[test]
fn every_hard_taint_must_be_tolerated() {
    for (what, tolerations, taints, takes) in [
        ("nothing is tolerated", &[][..], &["team=a:NoSchedule"][..], false),
        ("nothing is tolerated, of those evicted", &[], &["team=a:NoExecute"], false),
        ("tolerated", &["team=a:NoSchedule"], &["team=a:NoSchedule"], true),
        ("another value", &["team=b:NoSchedule"], &["team=a:NoSchedule"], false),
        ("any value", &["team:NoSchedule"], &["team=a:NoSchedule"], true),
        (
            "both tolerated",
            &["team=a:NoSchedule", "disk:NoSchedule"],
            &["team=a:NoSchedule", "disk=x:NoSchedule"],
            true,
        ),
        ("one tolerated", &["team=a:NoSchedule"], &["team=a:NoSchedule", "disk=x:NoSchedule"], false),
        ("another effect", &["team=a:PreferNoSchedule"], &["team=a:NoSchedule"], false),
        ("any effect", &["team=a"], &["team=a:NoSchedule"], true),
        ("any effect, of those evicted", &["team=a"], &["team=a:NoExecute"], true),
        ("a soft taint, another one tolerated", &["team=b:NoSchedule"], &["team=a:PreferNoSchedule"], true),
        ("a soft taint", &[], &["team=a:PreferNoSchedule"], true),
    ] {
        let expected = if takes { "" } else { "UU node(s) had untolerated taint(s)" };
        let said = filtered(&TaintToleration, &[tainted(taints)], &tolerating(tolerations));
        assert_eq!(said, [expected], "{what}");
    }
}

#[test]
fn soft_taints_that_are_not_tolerated_count() {
    let soft = |key: &str| format!("{key}=x:PreferNoSchedule");
    let (cpu, disk) = (soft("cpu"), soft("disk"));
    let (cpu, disk) = (&*cpu, &*disk);
    for (what, tolerations, nodes, expected) in [
        ("one is tolerated", &[cpu][..], &[&[cpu][..], &[disk]][..], vec![100, 0]),
        ("all are tolerated, however many", &[cpu, disk], &[&[], &[cpu], &[cpu, disk]], vec![100, 100, 100]),
        ("none are tolerated", &["team=a"], &[&[], &[cpu], &[cpu, disk]], vec![100, 50, 0]),
        (
            "tolerations of hard taints do not count, nor do hard taints",
            &["cpu=x:NoSchedule", "disk=x:NoSchedule"],
            &[&[], &["cpu=x:NoSchedule"], &[cpu, disk]],
            vec![100, 100, 0],
        ),
        ("nothing is tolerated", &[], &[&[], &[cpu]], vec![100, 0]),
        ("any effect", &["cpu=x"], &[&[cpu], &[disk]], vec![100, 0]),
    ] {
        let nodes: Vec<Arc<Node>> = nodes
            .iter()
            .zip(0..)
            .map(|(taints, number)| {
                let tainted = tainted(taints);
                Arc::new(Node { name: format!("n{number}").into(), ..Node::clone(&tainted) })
            })
            .collect();
        assert_eq!(scored(&TaintToleration, &nodes, &tolerating(tolerations)), Some(expected), "{what}");
    }
}

#[test]
fn a_node_that_is_tolerated_from_now_on_helps() {
    let (a, b) = ("team=a:NoSchedule", "team=b:NoSchedule");
    let waiting = pod("waiting", &tolerating(&["team=a"]));
    let changed = |old: &[&str], new: &[&str]| Event::NodeChanged { old: tainted(old), new: tainted(new) };
    for (what, event, helps) in [
        ("a node with another taint", Event::NodeAdded(tainted(&[b])), false),
        ("a node with a tolerated taint", Event::NodeAdded(tainted(&[a])), true),
        ("a node without taints", Event::NodeAdded(tainted(&[])), true),
        ("it was tolerated before", changed(&[a], &[]), false),
        ("it is not tolerated now", changed(&[a], &[a, b]), false),
        ("the other taint is gone", changed(&[a, b], &[a]), true),
        ("a soft taint more", changed(&[b], &["disk=x:PreferNoSchedule"]), true),
        ("the pod has changed", Event::PodChanged, true),
    ] {
        assert_eq!(TaintToleration.is_helped_by(&waiting, &event, &Cluster::default()), helps, "{what}");
    }
}
