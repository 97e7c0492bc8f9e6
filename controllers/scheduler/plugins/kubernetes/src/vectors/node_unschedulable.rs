use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event};
use koord_scheduler_testing::{filtered, node, pod};
use serde_json::{Value, json};

use crate::NodeUnschedulable;

const KEY: &str = "node.kubernetes.io/unschedulable";

fn tolerating(toleration: &Value) -> Value {
    json!({"tolerations": [toleration]})
}

#[test]
fn a_cordoned_node_takes_pods_that_tolerate_just_that() {
    for (what, is_cordoned, toleration, takes) in [
        ("cordoned", true, json!({"key": "other", "operator": "Exists"}), false),
        ("open", false, json!({"key": "other", "operator": "Exists"}), true),
        ("tolerated", true, json!({"key": KEY, "effect": "NoSchedule"}), true),
        ("tolerated by presence", true, json!({"key": KEY, "operator": "Exists"}), true),
        ("tolerated whatever it is", true, json!({"operator": "Exists"}), true),
        ("with a value that the taint has not", true, json!({"key": KEY, "value": "x"}), false),
        ("of another effect", true, json!({"key": KEY, "operator": "Exists", "effect": "NoExecute"}), false),
    ] {
        let nodes = [node("n", &json!({"spec": {"unschedulable": is_cordoned}}))];
        let expected = if takes { "" } else { "UU node(s) were unschedulable" };
        assert_eq!(filtered(&NodeUnschedulable, &nodes, &tolerating(&toleration)), [expected], "{what}");
    }
}

#[test]
fn what_opens_a_node_or_makes_a_pod_tolerant_helps() {
    let of = |is_cordoned: bool, zone: &str| {
        node("n", &json!({"metadata": {"labels": {"zone": zone}}, "spec": {"unschedulable": is_cordoned}}))
    };
    let waiting = |toleration: Value| pod("waiting", &tolerating(&toleration));
    let other = || waiting(json!({"key": "other", "operator": "Exists"}));
    let changed = |old, new| Event::NodeChanged { old, new };
    for (what, pod, event, helps) in [
        ("a cordoned node is added", other(), Event::NodeAdded(of(true, "a")), false),
        ("an open node is added", other(), Event::NodeAdded(of(false, "a")), true),
        ("a cordoned node changes otherwise", other(), changed(of(true, "a"), of(true, "b")), false),
        ("an open node changes otherwise", other(), changed(of(false, "a"), of(false, "b")), false),
        ("a node is opened", other(), changed(of(true, "a"), of(false, "a")), true),
        ("the pod tolerates another taint now", other(), Event::PodChanged, false),
        ("the pod tolerates it now", waiting(json!({"key": KEY, "operator": "Exists"})), Event::PodChanged, true),
    ] {
        assert_eq!(NodeUnschedulable.is_helped_by(&pod, &event, &Cluster::default()), helps, "{what}");
    }
}
