use std::sync::Arc;

use koord_config::scheduler::PodTopologySpreadArgs;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{cluster::Cluster, object::Object, pod::Pod, workload::Service};
use koord_scheduler_testing::{filtered_pod, followed, resident, world};
use serde_json::{Value, json};

use crate::PodTopologySpread;

const NONE: Value = Value::Null;

/// A constraint over pods with a label of this key, such as `zone 1 app`; the second text is added to it as JSON.
pub(super) fn over(text: &str, others: &Value) -> Value {
    let [topology_key, skew_max, label] = *text.split(' ').collect::<Vec<_>>() else { panic!("{text}") };
    let selector = match label {
        "none" => Value::Null,
        "all" => json!({}),
        key => json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}),
    };
    let mut constraint = json!({
        "topologyKey": topology_key, "maxSkew": skew_max.parse::<i32>().unwrap(), "labelSelector": selector,
        "whenUnsatisfiable": "DoNotSchedule",
    });
    for (name, value) in others.as_object().into_iter().flatten() {
        constraint[name] = value.clone();
    }
    constraint
}

fn hard(text: &str) -> Value {
    over(text, &NONE)
}

pub(super) fn spec(constraints: &[Value], others: &Value) -> Value {
    let mut spec = json!({"topologySpreadConstraints": constraints});
    for (name, value) in others.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

/// So many pods with the label `app` on each node.
pub(super) fn spread(counts: &[usize]) -> Vec<(usize, &'static str, Value)> {
    counts.iter().enumerate().flat_map(|(node, count)| vec![(node, "app", NONE); *count]).collect()
}

/// What is said of each node: `+`, `U` or `UU`.
pub(crate) fn said(plugin: &PodTopologySpread, cluster: &mut Cluster, pod: &Arc<Pod>) -> String {
    plugin.default_topology_keys().iter().for_each(|key| cluster.pin_topology(key));
    let said = filtered_pod(plugin, cluster, pod);
    let codes = said.iter().map(|said| match said.as_str() {
        "" => "+",
        "U node(s) didn't match pod topology spread constraints" => "U",
        "UU node(s) didn't match pod topology spread constraints (missing required label)" => "UU",
        other => panic!("{other}"),
    });
    codes.collect::<Vec<_>>().join(" ")
}

/// Four nodes in two zones.
pub(crate) const FOUR: [&str; 4] = ["zone=1,node=a", "zone=1,node=b", "zone=2,node=x", "zone=2,node=y"];

#[test]
fn one_constraint() {
    let min = |text: &str, domains: i32| over(text, &json!({"minDomains": domains}));
    let keys = |text: &str, keys: &[&str]| over(text, &json!({"matchLabelKeys": keys}));
    for (what, pods, labels, constraint, expected) in [
        ("an empty cluster", spread(&[]), "app", hard("zone 1 app"), "+ + + +"),
        ("an empty cluster, of others", spread(&[]), "app", hard("zone 1 other"), "+ + + +"),
        ("2/1 over zones", spread(&[1, 1, 1, 0]), "app", hard("zone 1 app"), "U U + +"),
        ("2/1 over zones, two more may be", spread(&[1, 1, 1, 0]), "app", hard("zone 2 app"), "+ + + +"),
        ("of others, 2/1 over zones", spread(&[1, 1, 1, 0]), "other", hard("zone 1 app"), "+ + + +"),
        ("of others, 2/0 over zones", spread(&[1, 1, 0, 0]), "other", hard("zone 1 app"), "U U + +"),
        ("1/1/0/2 over nodes", spread(&[1, 1, 0, 2]), "app", hard("node 1 app"), "U U + U"),
        ("0/0/0/5 over nodes", spread(&[0, 0, 0, 5]), "app", hard("node 5 app"), "+ + + U"),
        ("no selector", spread(&[3, 0, 0, 0]), "app", hard("node 1 none"), "+ + + +"),
        // It counts no other pods, and the pod itself.
        ("a selector of all", spread(&[3, 0, 0, 0]), "app", hard("node 1 all"), "+ + + +"),
        ("a label that no node has", spread(&[1, 0, 0, 0]), "app", hard("rack 1 app"), "UU UU UU UU"),
        (
            "a preference is no demand",
            spread(&[3, 0, 0, 0]),
            "app",
            over("node 1 app", &json!({"whenUnsatisfiable": "ScheduleAnyway"})),
            "+ + + +",
        ),
        ("2/2/1/1 over nodes, fewer than wanted", spread(&[2, 2, 1, 1]), "app", min("node 2 app", 5), "U U + +"),
        ("2/2/1/1 over nodes, as many as wanted", spread(&[2, 2, 1, 1]), "app", min("node 2 app", 4), "+ + + +"),
        ("2/1 over zones, fewer than wanted", spread(&[1, 1, 0, 1]), "app", min("zone 2 app", 4), "U U + +"),
        ("2/1 over zones, more than wanted", spread(&[1, 1, 0, 1]), "app", min("zone 2 app", 1), "+ + + +"),
        (
            "of the own revision",
            vec![(0, "app,rev=1", NONE), (0, "app,rev=2", NONE), (2, "app,rev=2", NONE)],
            "app,rev=1",
            keys("zone 1 app", &["rev"]),
            "U U + +",
        ),
        (
            "of the own revision, of all pods",
            vec![(0, "rev=1", NONE), (2, "rev=2", NONE)],
            "rev=1",
            keys("zone 1 all", &["rev"]),
            "U U + +",
        ),
        (
            "by a label that the pod does not have",
            vec![(0, "app,rev=1", NONE), (2, "app,rev=2", NONE)],
            "app,rev=1",
            keys("zone 1 app", &["absent"]),
            "+ + + +",
        ),
        (
            "by two labels",
            vec![(0, "app,rev=1,x=1", NONE), (2, "app,rev=1,x=2", NONE)],
            "app,rev=1,x=1",
            keys("zone 1 app", &["rev", "x"]),
            "U U + +",
        ),
        (
            "another namespace",
            vec![(0, "other/app", NONE), (0, "other/app", NONE), (2, "app", NONE)],
            "app",
            hard("zone 1 app"),
            "+ + U U",
        ),
        (
            "pods that are going",
            vec![(0, "app!", NONE), (0, "app!", NONE), (2, "app", NONE)],
            "app",
            hard("zone 1 app"),
            "+ + U U",
        ),
    ] {
        let pod = resident("tried", labels, &spec(&[constraint], &NONE));
        assert_eq!(said(&PodTopologySpread::default(), &mut world(&FOUR, &pods), &pod), expected, "{what}");
    }
}

#[test]
fn affinity_and_taints_narrow_the_nodes_that_count() {
    let affinity = |policy: &str| over("node 1 app", &json!({"nodeAffinityPolicy": policy}));
    let taints = |policy: &str| over("node 1 app", &json!({"nodeTaintsPolicy": policy}));
    let selector = json!({"nodeSelector": {"pick": ""}});
    let expression = json!({"matchExpressions": [{"key": "pick", "operator": "Exists"}]});
    let required = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expression]},
    }}});
    let tolerant = json!({"tolerations": [{"key": "t", "operator": "Exists"}]});
    for (what, nodes, counts, constraint, others, expected) in [
        // Of 1/2/~0~ the last does not count, so that 1 is the fewest; it has none all the same.
        (
            "the selector counts",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 2, 0],
            affinity("Honor"),
            &selector,
            "+ U +",
        ),
        (
            "the selector does not count",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 2, 0],
            affinity("Ignore"),
            &selector,
            "U U +",
        ),
        (
            "the affinity counts",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 2, 0],
            affinity("Honor"),
            &required,
            "+ U +",
        ),
        (
            "the affinity does not count",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 2, 0],
            affinity("Ignore"),
            &required,
            "U U +",
        ),
        (
            "unsaid, the affinity counts",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 2, 0],
            hard("node 1 app"),
            &required,
            "+ U +",
        ),
        ("taints count", ["node=a", "node=b", "node=x,tainted"], [1, 2, 0], taints("Honor"), &NONE, "+ U +"),
        ("taints do not count", ["node=a", "node=b", "node=x,tainted"], [1, 2, 0], taints("Ignore"), &NONE, "U U +"),
        (
            "taints that are tolerated",
            ["node=a", "node=b", "node=x,tainted"],
            [1, 2, 0],
            taints("Honor"),
            &tolerant,
            "U U +",
        ),
        (
            "unsaid, taints do not count",
            ["node=a", "node=b", "node=x,tainted"],
            [1, 2, 0],
            hard("node 1 app"),
            &NONE,
            "U U +",
        ),
        // What runs on a node that does not count is not there.
        (
            "pods of a node that does not count",
            ["node=a,pick", "node=b,pick", "node=x"],
            [1, 1, 7],
            affinity("Honor"),
            &selector,
            "+ + +",
        ),
        ("no node counts", ["node=a", "node=b", "node=x"], [3, 2, 1], affinity("Honor"), &selector, "+ + +"),
    ] {
        let pod = resident("tried", "app", &spec(&[constraint], others));
        assert_eq!(said(&PodTopologySpread::default(), &mut world(&nodes, &spread(&counts)), &pod), expected, "{what}");
    }
}

#[test]
fn two_constraints() {
    const PICKED: [&str; 4] = ["zone=1,node=a,pick", "zone=1,node=b,pick", "zone=2,node=x,pick", "zone=2,node=y"];
    const TAINTED: [&str; 4] = ["zone=1,node=a", "zone=1,node=b", "zone=2,node=x", "zone=2,node=y,tainted"];
    const MIXED: [&str; 4] =
        ["zone=1,node=a,pick", "zone=1,node=b", "zone=2,node=x,pick", "zone=2,node=y,pick,tainted"];
    let with = |zone: Value, node: Value| [over("zone 1 app", &zone), over("node 1 app", &node)];
    let pick = json!({"nodeSelector": {"pick": ""}});
    let [affinity, taints] =
        ["nodeAffinityPolicy", "nodeTaintsPolicy"].map(|name| move |policy: &str| json!({name: policy}));
    for (what, nodes, counts, constraints, others, expected) in [
        ("3/3 and 2/1/0/3", FOUR, [2, 1, 0, 3], with(NONE, NONE), &NONE, "U U + U"),
        // The emptier zone has no empty node.
        ("3/4 and 2/1/0/4", FOUR, [2, 1, 0, 4], with(NONE, NONE), &NONE, "U U U U"),
        ("2/1 and 1/1/0/1", FOUR, [1, 1, 0, 1], with(NONE, NONE), &NONE, "U U + U"),
        // Over zones 2/0, without the last node, and over nodes 1/1/0/1.
        (
            "the selector counts over zones alone",
            PICKED,
            [1, 1, 0, 1],
            with(NONE, affinity("Ignore")),
            &pick,
            "U U + U",
        ),
        // Over zones 2/0, without the last node, and over nodes 1/1/0/1.
        ("taints count over zones alone", TAINTED, [1, 1, 0, 1], with(taints("Honor"), NONE), &NONE, "U U + U"),
        // Over zones 1/1, of a and y; over nodes 1/-/0/1.
        ("the selector counts over both", MIXED, [1, 1, 0, 1], with(NONE, NONE), &pick, "U + + U"),
        // Over zones 1/0, of a; over nodes 1/1/0/1.
        (
            "both count over zones, none over nodes",
            MIXED,
            [1, 1, 0, 1],
            with(taints("Honor"), affinity("Ignore")),
            &pick,
            "U U + U",
        ),
        // Over zones 2/1; over nodes 1/-/0/-, where what does not count has none.
        (
            "none over zones, both over nodes",
            MIXED,
            [1, 1, 0, 1],
            with(affinity("Ignore"), taints("Honor")),
            &pick,
            "U U + +",
        ),
    ] {
        let pod = resident("tried", "app", &spec(&constraints, others));
        assert_eq!(said(&PodTopologySpread::default(), &mut world(&nodes, &spread(&counts)), &pod), expected, "{what}");
    }
    // Two of one key, about different pods: 2/1 and 3/3, 2/1 and 3/4.
    let both = [hard("zone 1 tier"), hard("zone 1 app")];
    let mut pods = vec![
        (0, "app,tier", NONE),
        (0, "app", NONE),
        (1, "app,tier", NONE),
        (3, "app,tier", NONE),
        (3, "app", NONE),
        (3, "app", NONE),
    ];
    let pod = resident("tried", "app,tier", &spec(&both, &NONE));
    assert_eq!(said(&PodTopologySpread::default(), &mut world(&FOUR, &pods), &pod), "U U + +");
    pods.push((2, "app", NONE));
    assert_eq!(said(&PodTopologySpread::default(), &mut world(&FOUR, &pods), &pod), "U U U U");
}

#[test]
fn constraints_that_are_configured_hold_for_pods_of_services_without_their_own() {
    let args = json!({"defaultingType": "List", "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": "node", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 9, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ]});
    let plugin = PodTopologySpread::new(&serde_json::from_value::<PodTopologySpreadArgs>(args).unwrap());
    for (what, selector, constraints, expected) in [
        ("of its service", json!({"app": ""}), vec![], "U + + +"),
        ("no service", json!({"other": ""}), vec![], "+ + + +"),
        ("its own instead", json!({"app": ""}), vec![hard("zone 1 app")], "U U + +"),
        (
            "its own instead, though a preference",
            json!({"app": ""}),
            vec![over("zone 1 app", &json!({"whenUnsatisfiable": "ScheduleAnyway"}))],
            "+ + + +",
        ),
    ] {
        let mut cluster = world(&FOUR, &spread(&[1, 0, 0, 0]));
        let service: Service = serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap();
        cluster.set_object(Object::new(ObjectKey::new("ns", "s"), Uid::from("s"), false, Arc::new(service)));
        let pod = resident("tried", "app", &spec(&constraints, &NONE));
        assert_eq!(said(&plugin, &mut cluster, &pod), expected, "{what}");
    }
}

#[test]
fn constraints_that_are_configured_say_which_nodes_and_how_many_domains_count() {
    // Nodes 0 and 1 have a pod of the service each; node 2 is tainted, and the pod selects nodes 0, 1 and 2.
    let nodes = ["node=a,pick", "node=b,pick", "node=x,pick,tainted", "node=y"];
    let pick = json!({"nodeSelector": {"pick": ""}});
    for (members, expected) in [
        (json!({}), "U U + +"),
        (json!({"nodeTaintsPolicy": "Honor"}), "+ + + +"),
        (json!({"nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore"}), "U U + +"),
        (json!({"nodeTaintsPolicy": "Honor", "minDomains": 3}), "U U + +"),
        (json!({"matchLabelKeys": ["app"]}), "U U + +"),
    ] {
        let mut constraint = json!({"maxSkew": 1, "topologyKey": "node", "whenUnsatisfiable": "DoNotSchedule"});
        constraint.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let args = json!({"defaultingType": "List", "defaultConstraints": [constraint]});
        let plugin = PodTopologySpread::new(&serde_json::from_value::<PodTopologySpreadArgs>(args).unwrap());
        let mut cluster = world(&nodes, &spread(&[1, 1, 0, 0]));
        let service: Service = serde_json::from_value(json!({"spec": {"selector": {"app": ""}}})).unwrap();
        cluster.set_object(Object::new(ObjectKey::new("ns", "s"), Uid::from("s"), false, Arc::new(service)));
        assert_eq!(said(&plugin, &mut cluster, &resident("tried", "app", &pick)), expected, "{members}");
    }
}

#[test]
fn an_answer_follows_pods_that_come_and_go() {
    let zone = || vec![hard("zone 1 app")];
    let node = || vec![hard("node 1 app")];
    let both = || vec![hard("zone 1 app"), hard("node 1 tier")];
    let honor = json!({"nodeTaintsPolicy": "Honor"});
    let pick = json!({"nodeSelector": {"pick": ""}});
    let nodes = ["zone=1,node=a,pick", "zone=1,node=b", "zone=2,node=x,pick,tainted", "zone=2,node=y,pick"];
    for (what, counts, constraints, others, come) in [
        ("to the emptiest zone", [1, 0, 0, 0], zone(), &NONE, (2, "app")),
        ("to the fullest zone", [1, 0, 0, 0], zone(), &NONE, (1, "app")),
        ("to one of two empty nodes", [2, 0, 0, 2], node(), &NONE, (1, "app")),
        ("to the only empty node", [1, 1, 0, 1], node(), &NONE, (2, "app")),
        ("to a node that is not the emptiest", [2, 1, 0, 1], node(), &NONE, (0, "app")),
        ("of another namespace", [1, 1, 0, 1], node(), &NONE, (2, "other/app")),
        ("that is not meant", [1, 1, 0, 1], node(), &NONE, (2, "x")),
        ("that is going", [1, 1, 0, 1], node(), &NONE, (2, "app!")),
        ("that one of two constraints means", [1, 1, 0, 1], both(), &NONE, (2, "tier")),
        ("that both mean", [1, 1, 0, 1], both(), &NONE, (2, "app,tier")),
        ("to a node that is not selected", [1, 0, 1, 1], node(), &pick, (1, "app")),
        ("to a node that is selected", [1, 0, 0, 1], node(), &pick, (2, "app")),
        ("to a node that is tainted", [1, 1, 0, 1], vec![over("node 1 app", &honor)], &NONE, (2, "app")),
        ("with too few domains", [1, 1, 0, 1], vec![over("zone 1 app", &json!({"minDomains": 3}))], &NONE, (2, "app")),
    ] {
        let mut cluster = world(&nodes, &spread(&counts));
        let tried = resident("tried", "app", &spec(&constraints, others));
        let (node, labels) = come;
        followed(&PodTopologySpread::default(), &mut cluster, &tried, node, &resident("comes", labels, &NONE), what);
    }
}
