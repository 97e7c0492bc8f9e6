use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{cluster::Cluster, object::Object};
use koord_scheduler_testing::{filtered_pod, followed, labels, resident, world};
use serde_json::{Value, json};

use crate::InterPodAffinity;

const NONE: Value = Value::Null;

/// A term such as `zone: app=web & tier NotIn a,b`; what stands in the second text is added to it as JSON.
pub(super) fn term(text: &str, others: &Value) -> Value {
    let (key, selector) = text.split_once(": ").unwrap();
    let requirement = |text: &str| {
        let mut words = text.splitn(3, ' ');
        let (key, operator, values) = (words.next().unwrap(), words.next(), words.next());
        let values = values.map(|values| values.split(',').map(str::to_owned).collect::<Vec<_>>());
        match (key.split_once('='), operator) {
            (Some((key, value)), _) => json!({"key": key, "operator": "In", "values": [value]}),
            (None, operator) => json!({"key": key, "operator": operator.unwrap_or("Exists"), "values": values}),
        }
    };
    let mut term = json!({"topologyKey": key});
    term["labelSelector"] = json!({"matchExpressions": selector.split(" & ").map(requirement).collect::<Vec<_>>()});
    for (name, value) in others.as_object().into_iter().flatten() {
        term[name] = value.clone();
    }
    term
}

fn plain(text: &str) -> Value {
    term(text, &NONE)
}

fn required(near: &[Value], apart: &[Value]) -> Value {
    json!({"affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart},
    }})
}

fn near(terms: &[&str]) -> Value {
    required(&terms.iter().map(|text| plain(text)).collect::<Vec<_>>(), &[])
}

fn apart(terms: &[&str]) -> Value {
    required(&[], &terms.iter().map(|text| plain(text)).collect::<Vec<_>>())
}

/// A namespace with these labels.
pub(super) fn namespace(cluster: &mut Cluster, name: &str, text: &str) {
    let object = json!({"metadata": {"name": name, "labels": labels(text)}});
    let namespace: k8s_openapi::api::core::v1::Namespace = serde_json::from_value(object).unwrap();
    cluster.set_object(Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(namespace)));
}

/// What is said of each node: `+`, `near` (unresolvable), `apart` or `unwanted`.
pub(crate) fn said(cluster: &mut Cluster, labels: &str, spec: &Value) -> String {
    let said = filtered_pod(&InterPodAffinity::default(), cluster, &resident("tried", labels, spec));
    let words = said.iter().map(|said| match said.as_str() {
        "" => "+",
        "UU node(s) didn't match pod affinity rules" => "near",
        "U node(s) didn't match pod anti-affinity rules" => "apart",
        "U node(s) didn't satisfy existing pods anti-affinity rules" => "unwanted",
        other => panic!("{other}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pod_beside_another_on_one_node() {
    const NODE: [&str; 1] = ["region=r1,zone=z1,node=n"];
    for (what, labels, spec, there, its, expected) in [
        ("nothing is said", "", NONE, "app=web", NONE, "+"),
        ("near by a value", "", near(&["region: app In web,db"]), "app=web", NONE, "+"),
        ("near by what it is not", "", near(&["region: app NotIn api,db"]), "app=web", NONE, "+"),
        ("near, in another namespace", "", near(&["region: app In web"]), "other/app=web", NONE, "near"),
        ("near another", "", near(&["region: app In api,db"]), "app=web", NONE, "near"),
        (
            "near by several tests of several terms",
            "",
            near(&["region: app Exists & tier DoesNotExist", "region: app In web & team NotIn b,c"]),
            "app=web,team=a",
            NONE,
            "+",
        ),
        (
            "near, of which one test does not hold",
            "",
            near(&["region: app Exists & tier DoesNotExist", "region: app In web & team NotIn a,b"]),
            "app=web,team=a",
            NONE,
            "near",
        ),
        (
            "near in the region, apart on the node from others",
            "",
            required(&[plain("region: app=web")], &[plain("node: app=db")]),
            "app=web",
            NONE,
            "+",
        ),
        (
            "that, and the other wants to be apart from others",
            "app=api",
            required(&[plain("region: app=web")], &[plain("node: app=db")]),
            "app=web",
            apart(&["node: app=db"]),
            "+",
        ),
        (
            "near in the region, apart in the zone",
            "",
            required(&[plain("region: app=web")], &[plain("zone: app=web")]),
            "app=web",
            NONE,
            "apart",
        ),
        (
            "near, apart from others, and unwanted",
            "app=api",
            required(&[plain("region: app=web")], &[plain("node: app=db")]),
            "app=web",
            apart(&["zone: app In api,db"]),
            "unwanted",
        ),
        (
            "it means itself by what it is not, and is the first",
            "app=web",
            near(&["node: app NotIn db"]),
            "app=db",
            NONE,
            "+",
        ),
        ("it does not mean itself", "app=api", near(&["node: app=web"]), "app=db", NONE, "near"),
        ("unwanted, though it says nothing", "app=api", NONE, "app=web", apart(&["zone: app=api"]), "unwanted"),
        ("wanted by one that is apart from others", "app=api", NONE, "app=web", apart(&["zone: app NotIn api"]), "+"),
        (
            "apart from others, and unwanted",
            "app=api",
            apart(&["zone: app=db"]),
            "app=web",
            apart(&["zone: app=api"]),
            "unwanted",
        ),
        // Terms of both, of which each is about a part of the other's labels.
        (
            "apart by the second of two terms",
            "app=api,tier=1",
            apart(&["zone: tier", "zone: team"]),
            "team=b",
            apart(&["zone: x"]),
            "apart",
        ),
        (
            "unwanted by the first of two terms",
            "app=api,tier=1",
            apart(&["zone: x"]),
            "team=b",
            apart(&["zone: tier", "zone: y"]),
            "unwanted",
        ),
        (
            "apart by the second, unwanted by the first",
            "app=api,tier=1",
            apart(&["zone: x", "zone: team"]),
            "team=b",
            apart(&["zone: app", "zone: y"]),
            "apart",
        ),
        (
            "neither by any of two",
            "app=api,tier=1",
            apart(&["zone: x", "zone: y"]),
            "team=b",
            apart(&["zone: x", "zone: team"]),
            "+",
        ),
    ] {
        let mut cluster = world(&NODE, &[(0, there, its)]);
        assert_eq!(said(&mut cluster, labels, &spec), expected, "{what}");
    }
    assert_eq!(said(&mut world(&NODE, &[]), "", &near(&["zone: app"])), "near", "nobody is there");
    assert_eq!(said(&mut world(&NODE, &[]), "app", &near(&["zone: app"])), "+", "the first of its kind");
}

#[test]
fn pods_of_selected_namespaces_count() {
    const NODES: [&str; 2] = ["zone=1", "zone=2"];
    let of_team = |team: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}});
    let both = json!({"namespaces": ["named"], "namespaceSelector": {"matchLabels": {"team": "a"}}});
    let all = json!({"namespaceSelector": {}});
    let named = json!({"namespaces": ["named"]});
    for (what, others, there, as_near, as_apart) in [
        ("the own one", NONE, "ns/app", "+ near", "apart +"),
        ("not another", NONE, "of-a/app", "near near", "+ +"),
        ("one of the team", of_team("a"), "of-a/app", "+ near", "apart +"),
        ("the own one is not of the team", of_team("a"), "ns/app", "near near", "+ +"),
        ("none of the team", of_team("z"), "of-a/app", "near near", "+ +"),
        ("by name", named.clone(), "named/app", "+ near", "apart +"),
        ("by name, and not the own one", named, "ns/app", "near near", "+ +"),
        ("by name or team: the name", both.clone(), "named/app", "+ near", "apart +"),
        ("by name or team: the team", both, "of-a/app", "+ near", "apart +"),
        ("all of them", all.clone(), "of-a/app", "+ near", "apart +"),
        ("all of them, with one that is not known", all, "unknown/app", "+ near", "apart +"),
    ] {
        let of = |spec: &Value| {
            let mut cluster = world(&NODES, &[(0, there, NONE)]);
            namespace(&mut cluster, "of-a", "team=a");
            namespace(&mut cluster, "ns", "team=b");
            said(&mut cluster, "", spec)
        };
        let term = term("zone: app", &others);
        assert_eq!(of(&required(std::slice::from_ref(&term), &[])), as_near, "{what}: near");
        assert_eq!(of(&required(&[], std::slice::from_ref(&term))), as_apart, "{what}: apart");
        // Whom the other does not want, by the same term.
        let mut cluster = world(&NODES, &[(0, "", required(&[], &[term]))]);
        namespace(&mut cluster, "of-a", "team=a");
        namespace(&mut cluster, "ns", "team=b");
        assert_eq!(said(&mut cluster, there, &NONE), as_apart.replace("apart", "unwanted"), "{what}: unwanted");
    }
}

#[test]
fn label_keys_narrow_terms_by_the_pods_own_labels() {
    const NODES: [&str; 2] = ["zone=1", "zone=2"];
    let keys = |name: &str, keys: &[&str]| term("zone: app=web", &json!({name: keys}));
    // Nodes with the pod's own revision of the tenant A, and with another one of the tenant B.
    let pods = [(0, "app=web,rev=1,tenant=A", NONE), (1, "app=web,rev=2,tenant=B", NONE)];
    for (what, spec, expected) in [
        ("near its own revision", required(&[keys("matchLabelKeys", &["rev"])], &[]), "+ near"),
        ("near other revisions", required(&[keys("mismatchLabelKeys", &["rev"])], &[]), "near +"),
        ("apart from its own revision", required(&[], &[keys("matchLabelKeys", &["rev"])]), "apart +"),
        ("apart from other tenants", required(&[], &[keys("mismatchLabelKeys", &["tenant"])]), "+ apart"),
        ("by two keys", required(&[keys("matchLabelKeys", &["rev", "tenant"])], &[]), "+ near"),
        ("by a key that the pod does not have", required(&[keys("matchLabelKeys", &["absent"])], &[]), "+ +"),
        (
            "not by a key that the pod does not have",
            required(&[], &[keys("mismatchLabelKeys", &["absent"])]),
            "apart apart",
        ),
    ] {
        assert_eq!(said(&mut world(&NODES, &pods), "app=web,rev=1,tenant=A", &spec), expected, "{what}");
    }
    // Whom others do not want follows from their labels.
    let exclusive = required(&[], &[keys("mismatchLabelKeys", &["tenant"])]);
    let mut cluster = world(&NODES, &[(0, "app=web,tenant=A", exclusive)]);
    let tried = ["app=web,tenant=A", "app=web,tenant=B", "app=web"].map(|labels| said(&mut cluster, labels, &NONE));
    assert_eq!(tried, ["+ +", "unwanted +", "unwanted +"]);
}

#[test]
fn an_answer_follows_pods_that_come_and_go() {
    const NODES: [&str; 3] = ["region=r1,zone=z1", "region=r1,zone=z2", "region=r2,zone=z3"];
    let both = required(&[plain("region: app")], &[plain("zone: tier")]);
    for (what, labels, spec, first, come) in [
        ("one that it wants near", "", near(&["region: app"]), "x", (2, "app", NONE)),
        ("one that it wants apart", "", apart(&["zone: app"]), "app", (1, "app", NONE)),
        ("one that is near and apart", "", both.clone(), "app", (2, "app,tier", NONE)),
        ("one that does not want it", "mine", NONE, "x", (1, "", apart(&["region: mine"]))),
        ("one of another namespace", "", both, "app", (2, "other/app,tier", NONE)),
        ("one that does not matter", "mine", near(&["region: mine"]), "mine", (1, "x", apart(&["zone: y"]))),
    ] {
        let tried = resident("tried", labels, &spec);
        // A pod that does not want the tried one makes that the filter is asked at all.
        let unwanting = (0, "", apart(&["zone: mine"]));
        let mut cluster = world(&NODES, &[(0, first, NONE), unwanting]);
        let (node, labels, spec) = come;
        followed(&InterPodAffinity::default(), &mut cluster, &tried, node, &resident("comes", labels, &spec), what);
    }
}
