use std::collections::BTreeMap;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    AttemptState, EnqueueExtensions as _, Filter as _, Score as _,
    hold::Holds,
    object::{Object, ObjectChange},
};
use koord_scheduler_testing::{labelled, node, pairs, scored_pod, world};
use serde_json::{Value, json};

use super::*;
use crate::vectors::inter_pod_affinity::said;

/// A term about pods with a label, given as `key=value` or as a key with any value.
fn term(key: &str, label: &str) -> Value {
    let (label, values) = label.split_once('=').map_or((label, None), |(label, value)| (label, Some(vec![value])));
    let operator = if values.is_some() { "In" } else { "Exists" };
    let expression = json!({"key": label, "operator": operator, "values": values});
    json!({"topologyKey": key, "labelSelector": {"matchExpressions": [expression]}})
}

fn required(near: &[Value], apart: &[Value]) -> Value {
    json!({"affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart},
    }})
}

fn preferred(near: &[(i32, Value)], apart: &[(i32, Value)]) -> Value {
    let weighted = |terms: &[(i32, Value)]| -> Vec<Value> {
        terms.iter().map(|(weight, term)| json!({"weight": weight, "podAffinityTerm": term})).collect()
    };
    json!({"affinity": {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(near)},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(apart)},
    }})
}

const NONE: Value = Value::Null;
/// Two nodes in a region, of which one has a zone, and one in another region.
const REGIONS: [&str; 3] = ["region=china", "region=china,zone=1", "region=india"];
/// Two nodes in a region, in different zones.
const ZONES: [&str; 2] = ["region=r1,zone=z1", "region=r1,zone=z2"];

#[test]
fn a_pod_must_be_near_others_in_the_domains_of_all_terms() {
    let near = |terms: &[Value]| required(terms, &[]);
    let app = |key: &str| term(key, "app=web");
    let web = [(0, "app=web", NONE)];
    for (what, nodes, pods, labels, spec, expected) in [
        ("the whole region counts", &REGIONS[..], &web[..], "", near(&[app("region")]), "+ + near"),
        ("no such pod", &REGIONS, &[], "", near(&[app("region")]), "near near near"),
        (
            "pods of other namespaces do not count",
            &REGIONS,
            &[(0, "other/app=web", NONE)],
            "",
            near(&[app("region")]),
            "near near near",
        ),
        (
            "one pod must be meant by all terms",
            &ZONES,
            &web,
            "",
            near(&[app("zone"), term("zone", "tier=a")]),
            "near near",
        ),
        ("every key must be there", &REGIONS, &web, "", near(&[app("region"), app("zone")]), "near near near"),
        ("in every domain", &ZONES, &web, "", near(&[app("region"), app("zone")]), "+ near"),
        // No pod has both labels but itself, so it may be the first.
        (
            "the first of its kind goes anywhere",
            &ZONES,
            &web,
            "app=web,tier=a",
            near(&[app("zone"), term("zone", "tier=a")]),
            "+ +",
        ),
        (
            "where the keys are",
            &["rack=1", "zone=z1"],
            &web,
            "app=web,tier=a",
            near(&[app("zone"), term("zone", "tier=a")]),
            "near +",
        ),
        ("the second does not", &ZONES, &web, "app=web", near(&[app("zone")]), "+ near"),
    ] {
        assert_eq!(said(&mut world(nodes, pods), labels, &spec), expected, "{what}");
    }
}

#[test]
fn a_pod_must_be_apart_from_others_and_others_from_it() {
    let apart = |terms: &[Value]| required(&[], terms);
    let (foo, bar) = (|key: &str| term(key, "foo"), |key: &str| term(key, "bar"));
    for (what, nodes, pods, labels, spec, expected) in [
        ("the whole region counts", &REGIONS[..], vec![(0, "foo", NONE)], "", apart(&[foo("region")]), "apart apart +"),
        (
            "any term counts",
            &ZONES,
            vec![(0, "foo,bar", NONE)],
            "",
            apart(&[foo("region"), bar("zone")]),
            "apart apart",
        ),
        ("a key that no node has", &ZONES, vec![(0, "foo", NONE)], "", apart(&[foo("rack")]), "+ +"),
        (
            "one key that nodes have",
            &ZONES,
            vec![(0, "foo,bar", NONE)],
            "",
            apart(&[foo("rack"), bar("zone")]),
            "apart +",
        ),
        ("unwanted", &ZONES, vec![(0, "", apart(&[foo("zone")]))], "foo", NONE, "unwanted +"),
        ("unwanted by another namespace", &ZONES, vec![(0, "other/", apart(&[foo("zone")]))], "foo", NONE, "+ +"),
        ("not meant", &ZONES, vec![(0, "", apart(&[foo("zone")]))], "bar", NONE, "+ +"),
        (
            "unwanted by key that no node has",
            &ZONES,
            vec![(0, "", apart(&[foo("rack"), bar("zone")]))],
            "foo,bar",
            NONE,
            "unwanted +",
        ),
        (
            "unwanted by two",
            &ZONES,
            vec![(0, "", apart(&[foo("zone")])), (0, "", apart(&[bar("region")]))],
            "foo,bar",
            NONE,
            "unwanted unwanted",
        ),
        // Where both refuse, the pod's own term is named.
        ("both", &ZONES, vec![(0, "foo", apart(&[foo("zone")]))], "foo", apart(&[foo("region")]), "apart apart"),
        (
            "affinity comes first",
            &ZONES,
            vec![(0, "foo", NONE)],
            "",
            required(&[bar("zone")], &[foo("zone")]),
            "near near",
        ),
    ] {
        assert_eq!(said(&mut world(nodes, &pods), labels, &spec), expected, "{what}");
    }
}

/// Labels the namespace `selected`.
fn select(cluster: &mut Cluster) {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "selected", "labels": {"team": "a"}}})).unwrap();
    cluster.set_object(Object::new(ObjectKey::cluster("selected"), Uid::from("s"), false, Arc::new(namespace)));
}

#[test]
fn namespaces_are_meant_by_name_and_by_labels() {
    let mut of_team = term("zone", "foo");
    of_team["namespaces"] = json!(["named"]);
    of_team["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    let apart = required(&[], &[of_team]);
    let mut cluster = world(&ZONES, &[(0, "selected/foo", NONE), (1, "other/foo", NONE)]);
    assert_eq!(said(&mut cluster, "", &apart), "+ +");
    select(&mut cluster);
    assert_eq!(said(&mut cluster, "", &apart), "apart +");
    cluster.place(labelled("named", "p9", &[("foo", "")], &NONE), &"n1".into(), Holds::default());
    assert_eq!(said(&mut cluster, "", &apart), "apart apart");
    // What runs elsewhere means pods of the selected namespaces too.
    let mut cluster = world(&ZONES, &[(0, "x", apart)]);
    select(&mut cluster);
    let tried = ["selected/foo", "named/foo", "ns/foo"].map(|labels| said(&mut cluster, labels, &NONE));
    assert_eq!(tried, ["unwanted +", "unwanted +", "+ +"]);
}

fn scores(plugin: &InterPodAffinity, cluster: &mut Cluster, labels: &str, spec: &Value) -> Option<Vec<i64>> {
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    scored_pod(plugin, cluster, &labelled("ns", "tried", &pairs(labels), spec), &rows)
}

#[test]
fn preferences_of_the_pod_and_of_others_add_up() {
    let s1 = |key: &str| term(key, "security=S1");
    let s2 = |key: &str| term(key, "security=S2");
    let (one, two) = ("security=S1", "security=S2");
    let regions = ["region=china", "region=india", "zone=1"];
    let near = |weight: i32, term: Value| preferred(&[(weight, term)], &[]);
    let apart = |weight: i32, term: Value| preferred(&[], &[(weight, term)]);
    let plain = |pods: &[(usize, &'static str)]| -> Vec<(usize, &str, Value)> {
        pods.iter().map(|(node, labels)| (*node, *labels, NONE)).collect()
    };
    for (what, nodes, pods, labels, spec, expected) in [
        ("nothing is preferred", &regions[..], plain(&[(0, one)]), one, NONE, None),
        (
            "near S1",
            &regions,
            plain(&[(0, one), (1, two), (2, one)]),
            one,
            near(5, s1("region")),
            Some(vec![100, 0, 0]),
        ),
        (
            "a domain is as good everywhere",
            &["region=china", "region=china,zone=1", "region=india"],
            plain(&[(0, one)]),
            "",
            near(5, s1("region")),
            Some(vec![100, 100, 0]),
        ),
        (
            "more pods are better",
            &["region=china", "region=india", "region=china", "region=china", "region=india"],
            plain(&[(0, two), (0, two), (1, two), (2, two), (3, two), (4, two)]),
            one,
            near(6, s2("region")),
            Some(vec![100, 0, 100, 100, 0]),
        ),
        // 2 for a pod with any such label, and 8 more for S2.
        (
            "weights",
            &regions,
            plain(&[(0, one), (1, two), (2, one)]),
            one,
            preferred(&[(8, s2("region")), (2, term("region", "security"))], &[]),
            Some(vec![20, 100, 0]),
        ),
        (
            "wanted by others",
            &regions,
            vec![(0, one, near(5, s1("region"))), (1, two, near(6, s2("region")))],
            two,
            NONE,
            Some(vec![0, 100, 0]),
        ),
        (
            "unwanted by others",
            &["zone=1", "zone=2"],
            vec![(0, one, apart(5, s2("zone"))), (1, two, apart(5, s1("zone")))],
            two,
            NONE,
            Some(vec![0, 100]),
        ),
        (
            "apart from S1",
            &["zone=1", "region=china"],
            plain(&[(0, one), (1, two)]),
            one,
            apart(5, s1("zone")),
            Some(vec![0, 100]),
        ),
        (
            "near in the region, apart in the zone",
            &["region=china", "zone=1"],
            plain(&[(0, one), (1, two)]),
            one,
            preferred(&[(8, s1("region"))], &[(5, s2("zone"))]),
            Some(vec![100, 0]),
        ),
        // 8 - 5 of its own and -5 of the other in the zone, 8 in the region alone.
        (
            "of both",
            &["region=china,zone=1", "region=china,zone=2", "region=india,zone=3"],
            vec![(0, two, apart(5, s1("zone"))), (1, one, NONE)],
            one,
            preferred(&[(8, s1("region"))], &[(5, s2("zone"))]),
            Some(vec![0, 100, 20]),
        ),
        (
            "the same everywhere",
            &["region=china", "region=china"],
            plain(&[(0, one)]),
            "",
            near(5, s1("region")),
            Some(vec![0, 0]),
        ),
    ] {
        let scores = scores(&InterPodAffinity::default(), &mut world(nodes, &pods), labels, &spec);
        assert_eq!(scores, expected, "{what}");
    }
}

#[test]
fn required_terms_of_others_count_as_much_as_is_configured() {
    let nodes = ["region=china", "region=india", "zone=1"];
    let pods = || {
        vec![(0, "", required(&[term("region", "foo")], &[])), (1, "", preferred(&[(1, term("region", "foo"))], &[]))]
    };
    let with = |hard_affinity_weight, ignores_preferred_of_others, spec: &Value| {
        let plugin = InterPodAffinity { hard_affinity_weight, ignores_preferred_of_others };
        scores(&plugin, &mut world(&nodes, &pods()), "foo", spec)
    };
    assert_eq!(with(1, false, &NONE), Some(vec![100, 100, 0]));
    assert_eq!(with(4, false, &NONE), Some(vec![100, 25, 0]));
    assert_eq!(with(0, false, &NONE), Some(vec![0, 100, 0]));
    assert_eq!(with(4, true, &NONE), None, "the pod prefers nothing itself");
    let own = preferred(&[(1, term("region", "bar"))], &[]);
    assert_eq!(with(4, true, &own), Some(vec![100, 25, 0]), "then others count too");
}

#[test]
fn a_pod_that_no_term_selects_is_skipped() {
    let mut cluster = world(&ZONES, &[(0, "foo", required(&[], &[term("zone", "foo")]))]);
    let plugin = InterPodAffinity::default();
    let mut is_called = |labels: &str| {
        let pod = labelled("ns", "tried", &pairs(labels), &NONE);
        let class = cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
        assert!(plugin.prepare_score(&request, &cluster).is_none(), "nothing is preferred");
        !matches!(plugin.prepare_filter(&request, &cluster), PreparedFilter::Skip)
    };
    assert!(!is_called("bar") && is_called("foo"));
}

#[test]
fn what_brings_a_pod_near_or_takes_one_away_may_help() {
    let may_help =
        |waiting: &Pod, event: Event| InterPodAffinity::default().is_helped_by(waiting, &event, &Cluster::default());
    let pod = |labels: &str, spec: &Value| labelled("ns", "other", &pairs(labels), spec);
    let near = labelled("ns", "w", &[], &required(&[term("zone", "foo"), term("zone", "bar")], &[]));
    let apart = labelled("ns", "w", &[("mine", "")], &required(&[], &[term("zone", "foo"), term("zone", "bar")]));
    let assigned = |waiting: &Pod, labels: &str| may_help(waiting, Event::PodAssigned(pod(labels, &NONE)));
    assert!(assigned(&near, "foo,bar") && !assigned(&near, "foo") && !assigned(&apart, "x"));
    let removed = |waiting: &Pod, labels: &str, spec: &Value| may_help(waiting, Event::PodRemoved(pod(labels, spec)));
    assert!(removed(&apart, "bar", &NONE) && !removed(&near, "foo,bar", &NONE));
    assert!(
        removed(&apart, "x", &required(&[], &[term("zone", "mine")])),
        "the pod that is gone did not want this one"
    );
    let relabelled = |waiting: &Pod, old: &str, new: &str| {
        may_help(waiting, Event::PodRelabelled { old: pod(old, &NONE), new: pod(new, &NONE) })
    };
    assert!(relabelled(&near, "foo", "foo,bar") && !relabelled(&near, "foo,bar", "foo"));
    assert!(!relabelled(&near, "foo,bar", "foo,bar,x") && !relabelled(&near, "foo", "bar"));
    assert!(relabelled(&apart, "foo", "x") && !relabelled(&apart, "x", "foo") && !relabelled(&apart, "foo", "bar"));
    let node = |labels: Value| node("n", &json!({"metadata": {"labels": labels}}));
    let added = |waiting: &Pod, labels: Value| may_help(waiting, Event::NodeAdded(node(labels)));
    assert!(added(&near, json!({"zone": "a"})) && !added(&near, json!({})) && added(&apart, json!({})));
    let changed = |waiting: &Pod, old: Value, new: Value| {
        may_help(waiting, Event::NodeChanged { old: node(old), new: node(new) })
    };
    assert!(changed(&near, json!({}), json!({"zone": "a"})) && !changed(&near, json!({"zone": "a"}), json!({})));
    assert!(changed(&apart, json!({"zone": "a"}), json!({})) && !changed(&apart, json!({}), json!({"zone": "a"})));
    assert!(changed(&apart, json!({"zone": "a"}), json!({"zone": "b"})));
}

#[test]
fn a_namespace_that_gets_or_loses_a_label_wakes_the_pods_that_it_concerns() {
    let selecting = |label: &str| {
        let mut term = term("zone", "app=web");
        term["namespaceSelector"] = json!({"matchLabels": {label: "yes"}});
        term
    };
    let namespace = |name: &str, labels: &str| {
        let labels: BTreeMap<&str, &str> = pairs(labels).into_iter().collect();
        let value: Namespace = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
        Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(value))
    };
    let web = [("app", "web")];
    let mut cluster = koord_scheduler_testing::cluster(&[node("n", &NONE)]);
    let apart_from_late = required(&[], &[selecting("late")]);
    for (name, in_namespace, labels, spec) in [
        ("worker", "ns-worker", &web[..], &NONE),
        ("db", "ns-db", &[("app", "db")], &NONE),
        ("bearer", "ns-db", &[], &apart_from_late),
    ] {
        cluster.place(labelled(in_namespace, name, labels, spec), &"n".into(), Holds::default());
    }
    let near = required(&[selecting("late")], &[]);
    let named = {
        let mut term = selecting("late");
        term["namespaces"] = json!(["ns-worker"]);
        required(&[term], &[])
    };
    let follower = |spec: &Value| labelled("ns-follower", "follower", &[], spec);
    let itself = |spec: &Value| labelled("ns-follower", "first", &web, spec);
    for (what, waiting, name, old, new, helps) in [
        ("it is near now", follower(&near), "ns-worker", Some(""), Some("late=yes"), true),
        ("a namespace that was not known", follower(&near), "ns-worker", None, Some("late=yes"), true),
        ("another label", follower(&near), "ns-worker", Some(""), Some("early=yes"), false),
        ("no pod there is meant", follower(&near), "ns-db", Some(""), Some("late=yes"), false),
        ("it was near before", follower(&near), "ns-worker", Some("late=yes"), Some("late=yes,x=y"), false),
        ("it is near no more", follower(&near), "ns-worker", Some("late=yes"), None, false),
        ("it is named anyhow", follower(&named), "ns-worker", Some(""), Some("late=yes"), false),
        (
            "one of two terms",
            follower(&required(&[selecting("late"), selecting("x")], &[])),
            "ns-worker",
            Some(""),
            Some("late=yes"),
            false,
        ),
        (
            "no namespace is selected",
            follower(&required(&[term("zone", "app=web")], &[])),
            "ns-worker",
            Some(""),
            Some("late=yes"),
            false,
        ),
        ("it must be apart from it no more", follower(&apart_from_late), "ns-worker", Some("late=yes"), Some(""), true),
        ("it must be apart from it now", follower(&apart_from_late), "ns-worker", Some(""), Some("late=yes"), false),
        (
            "a pod that runs is to be apart from it no more",
            itself(&NONE),
            "ns-follower",
            Some("late=yes"),
            Some(""),
            true,
        ),
        ("no pod that runs is about it", follower(&NONE), "ns-follower", Some("late=yes"), Some(""), false),
        ("it is the first of its own", itself(&near), "ns-follower", Some(""), Some("late=yes"), true),
        (
            "it may be the first in a namespace of its own alone",
            itself(&near),
            "ns-other",
            Some(""),
            Some("late=yes"),
            false,
        ),
    ] {
        let change = ObjectChange {
            old: old.map(|labels| namespace(name, labels)),
            new: new.map(|labels| namespace(name, labels)),
        };
        let plugin = InterPodAffinity::default();
        let event = Event::Object(change);
        assert!(plugin.events_to_register().meets(event.kinds()));
        assert_eq!(plugin.is_helped_by(&waiting, &event, &cluster), helps, "{what}");
    }
    let other = Object::new(ObjectKey::cluster("ns-worker"), Uid::from("1"), false, Arc::new(1_u32));
    let event = Event::Object(ObjectChange { old: None, new: Some(other) });
    assert!(!InterPodAffinity::default().is_helped_by(&follower(&near), &event, &cluster), "an object of another kind");
}

/// The pods of a namespace that is selected no more do not count, and the one that waits may be the first.
#[test]
fn a_pod_is_the_first_of_its_own_when_the_namespace_of_the_others_is_selected_no_more() {
    let mut cluster = koord_scheduler_testing::cluster(&[node("n", &NONE)]);
    cluster.place(labelled("ns-worker", "w", &[("app", "web")], &NONE), &"n".into(), Holds::default());
    let namespace = |name: &str, labels: Value| {
        let value: Namespace = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
        Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(value))
    };
    cluster.set_object(namespace("own", json!({"late": "yes"})));
    let mut term = term("zone", "app=web");
    term["namespaceSelector"] = json!({"matchLabels": {"late": "yes"}});
    let waiting = labelled("own", "first", &[("app", "web")], &required(&[term], &[]));
    let (old, new) = (namespace("ns-worker", json!({"late": "yes"})), namespace("ns-worker", json!({})));
    let event = Event::Object(ObjectChange { old: Some(old), new: Some(new) });
    assert!(InterPodAffinity::default().is_helped_by(&waiting, &event, &cluster));
}
