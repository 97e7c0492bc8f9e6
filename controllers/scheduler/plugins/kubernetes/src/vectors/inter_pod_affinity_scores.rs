use koord_scheduler_framework::columns::Row;
use koord_scheduler_testing::{resident, scored_pod, world};
use serde_json::{Value, json};

use super::inter_pod_affinity::{namespace, term};
use crate::InterPodAffinity;

const NONE: Value = Value::Null;
const ZONES: [&str; 3] = ["zone=1", "zone=2", "rack=3"];

/// Preferred terms by their weights; those of a negative weight are about pods to be apart from.
fn preferred(terms: &[(i32, Value)]) -> Value {
    let of = |sign: i32| -> Vec<Value> {
        let terms = terms.iter().filter(|(weight, _)| weight.signum() == sign);
        terms.map(|(weight, term)| json!({"weight": weight.abs(), "podAffinityTerm": term})).collect()
    };
    json!({"affinity": {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": of(1)},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": of(-1)},
    }})
}

fn required(term: &Value) -> Value {
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

fn scores(
    plugin: &InterPodAffinity,
    nodes: &[&str],
    pods: &[(usize, &str, Value)],
    labels: &str,
    spec: &Value,
) -> Option<Vec<i64>> {
    let mut cluster = world(nodes, pods);
    namespace(&mut cluster, "of-a", "team=a");
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    scored_pod(plugin, &mut cluster, &resident("tried", labels, spec), &rows)
}

fn plain(text: &str) -> Value {
    term(text, &NONE)
}

#[test]
fn preferences_by_operators_and_numbers_of_pods() {
    for (what, nodes, pods, spec, expected) in [
        (
            "more pods are better",
            &ZONES[..],
            &[(0, "app=web", NONE), (1, "app=web", NONE), (1, "app=web", NONE)][..],
            preferred(&[(3, plain("zone: app=web"))]),
            Some(vec![50, 100, 0]),
        ),
        (
            "more pods are worse",
            &ZONES,
            &[(0, "app=web", NONE), (1, "app=web", NONE), (1, "app=web", NONE)],
            preferred(&[(-3, plain("zone: app=web"))]),
            Some(vec![50, 0, 100]),
        ),
        (
            "tests that hold and one that does not",
            &ZONES,
            &[(0, "app=web", NONE), (1, "app=web,tier=gold", NONE)],
            preferred(&[(6, plain("zone: app In web,api & tier DoesNotExist")), (2, plain("zone: app NotIn db"))]),
            Some(vec![100, 25, 0]),
        ),
        (
            "near in a zone, apart on a node, of the same pods",
            &["zone=1,node=a", "zone=1,node=b", "zone=2,node=c"],
            &[(0, "app=web", NONE)],
            preferred(&[(8, plain("zone: app=web")), (-5, plain("node: app=web"))]),
            Some(vec![37, 100, 0]),
        ),
        (
            "a domain of which one node has no pods",
            &["zone=1", "zone=1", "zone=2"],
            &[(1, "app=web", NONE)],
            preferred(&[(8, plain("zone: app=web"))]),
            Some(vec![100, 100, 0]),
        ),
        (
            "no pod is meant",
            &ZONES,
            &[(0, "app=db", NONE)],
            preferred(&[(8, plain("zone: app=web"))]),
            Some(vec![0, 0, 0]),
        ),
    ] {
        assert_eq!(scores(&InterPodAffinity::default(), nodes, pods, "app=api", &spec), expected, "{what}");
    }
}

#[test]
fn others_prefer_the_pod_too() {
    let of_team = |text: &str| term(text, &json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}));
    let both =
        |text: &str| term(text, &json!({"namespaces": ["ns"], "namespaceSelector": {"matchLabels": {"team": "a"}}}));
    for (what, pods, labels, spec, expected) in [
        (
            "near, of its own namespace",
            vec![(0, "", preferred(&[(5, plain("zone: app=api"))]))],
            "app=api",
            NONE,
            Some(vec![100, 0, 0]),
        ),
        (
            "near, of another namespace",
            vec![(0, "", preferred(&[(5, plain("zone: app=api"))]))],
            "of-a/app=api",
            NONE,
            None,
        ),
        (
            "near, of a selected namespace",
            vec![(0, "", preferred(&[(5, of_team("zone: app=api"))]))],
            "of-a/app=api",
            NONE,
            Some(vec![100, 0, 0]),
        ),
        (
            "apart, of a selected namespace",
            vec![(0, "", preferred(&[(-5, of_team("zone: app=api"))]))],
            "of-a/app=api",
            NONE,
            Some(vec![0, 100, 100]),
        ),
        (
            "not of the selected namespace",
            vec![(0, "", preferred(&[(5, of_team("zone: app=api"))]))],
            "app=api",
            NONE,
            None,
        ),
        (
            "its own of a selected namespace",
            vec![(0, "app=web", NONE), (1, "of-a/app=web", NONE)],
            "",
            preferred(&[(5, of_team("zone: app=web"))]),
            Some(vec![0, 100, 0]),
        ),
        (
            "its own of a named and a selected namespace",
            vec![(0, "app=web", NONE), (1, "of-a/app=web", NONE)],
            "",
            preferred(&[(5, both("zone: app=web"))]),
            Some(vec![100, 100, 0]),
        ),
        (
            "its own apart from a named and a selected namespace",
            vec![(0, "app=web", NONE), (1, "of-a/app=web", NONE)],
            "",
            preferred(&[(-5, both("zone: app=web"))]),
            Some(vec![0, 0, 100]),
        ),
        (
            "both of each other",
            vec![(0, "app=web", preferred(&[(2, plain("zone: app=api"))])), (1, "app=web", NONE)],
            "app=api",
            preferred(&[(6, plain("zone: app=web"))]),
            Some(vec![100, 75, 0]),
        ),
        (
            "against each other",
            vec![(0, "app=web", preferred(&[(-9, plain("zone: app=api"))])), (1, "app=web", NONE)],
            "app=api",
            preferred(&[(6, plain("zone: app=web"))]),
            Some(vec![0, 100, 33]),
        ),
        (
            "what is required by another counts as one",
            vec![(0, "", required(&plain("zone: app=api"))), (1, "", preferred(&[(4, plain("zone: app=api"))]))],
            "app=api",
            NONE,
            Some(vec![25, 100, 0]),
        ),
        (
            "the first revision alone",
            vec![(0, "rev=1", NONE), (1, "rev=2", NONE)],
            "rev=1",
            preferred(&[(5, term("zone: rev", &json!({"matchLabelKeys": ["rev"]})))]),
            Some(vec![100, 0, 0]),
        ),
        (
            "other revisions alone",
            vec![(0, "rev=1", NONE), (1, "rev=2", NONE)],
            "rev=1",
            preferred(&[(5, term("zone: rev", &json!({"mismatchLabelKeys": ["rev"]})))]),
            Some(vec![0, 100, 0]),
        ),
    ] {
        assert_eq!(scores(&InterPodAffinity::default(), &ZONES, &pods, labels, &spec), expected, "{what}");
    }
}

#[test]
fn what_others_require_counts_with_a_weight_of_its_own() {
    let named = term("zone: app=api", &json!({"namespaces": ["of-a"]}));
    let selected = term("zone: app=api", &json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}));
    for (what, weight, its, labels, expected) in [
        ("as one", 1, plain("zone: app=api"), "app=api", Some(vec![100, 0, 0])),
        ("as nothing", 0, plain("zone: app=api"), "app=api", None),
        ("of another namespace", 9, plain("zone: app=api"), "of-a/app=api", None),
        ("of a named namespace", 9, named, "of-a/app=api", Some(vec![100, 0, 0])),
        ("of a selected namespace", 9, selected, "of-a/app=api", Some(vec![100, 0, 0])),
    ] {
        let plugin = InterPodAffinity { hard_affinity_weight: weight, ignores_preferred_of_others: false };
        assert_eq!(scores(&plugin, &ZONES, &[(0, "", required(&its))], labels, &NONE), expected, "{what}");
    }
    let pods = [(0, "", preferred(&[(5, plain("zone: app=api"))]))];
    for (ignores_preferred_of_others, expected) in [(true, None), (false, Some(vec![100, 0, 0]))] {
        let plugin = InterPodAffinity { hard_affinity_weight: 1, ignores_preferred_of_others };
        assert_eq!(scores(&plugin, &ZONES, &pods, "app=api", &NONE), expected);
    }
    assert_eq!(scores(&InterPodAffinity::default(), &[], &[], "", &NONE), None, "no nodes");
}
