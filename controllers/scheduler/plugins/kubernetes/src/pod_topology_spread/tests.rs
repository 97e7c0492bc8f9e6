use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{AttemptState, EnqueueExtensions as _, Filter as _, object::Object};
use koord_scheduler_testing::{self, filtered_pod, labelled, node, pairs, scored_pod};
use serde_json::{Value, json};

use super::*;
use crate::vectors::pod_topology_spread::{FOUR, said as of_pod};

/// Nodes by their labels, and pods by the index of their node and their labels.
fn world(nodes: &[&str], pods: &[(usize, &str)]) -> Cluster {
    koord_scheduler_testing::world(
        nodes,
        &pods.iter().map(|(node, labels)| (*node, *labels, json!({}))).collect::<Vec<_>>(),
    )
}

/// A constraint over pods that have the label of this key; all pods for `*` and none for nothing.
fn over(topology_key: &str, skew_max: i32, label: &str, others: &Value) -> Value {
    let selector = match label {
        "" => json!(null),
        "*" => json!({}),
        key => json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}),
    };
    let mut constraint = json!({"topologyKey": topology_key, "maxSkew": skew_max, "labelSelector": selector});
    constraint["whenUnsatisfiable"] = json!("DoNotSchedule");
    for (key, value) in others.as_object().into_iter().flatten() {
        constraint[key] = value.clone();
    }
    constraint
}

fn spec(constraints: &[Value]) -> Value {
    json!({"topologySpreadConstraints": constraints})
}

/// What is said of each node to a pod with these labels: `+`, `U` or `UU`.
fn said(cluster: &mut Cluster, labels: &str, spec: &Value) -> String {
    let pod = labelled("ns", "tried", &pairs(labels), spec);
    of_pod(&PodTopologySpread::default(), cluster, &pod)
}

#[test]
fn a_domain_takes_no_more_than_the_skew_above_the_emptiest() {
    // The pods per node, as they are spread over the four nodes.
    let spread = |counts: [usize; 4]| -> Vec<(usize, &str)> {
        counts.into_iter().enumerate().flat_map(|(node, count)| vec![(node, "foo"); count]).collect()
    };
    for (what, pods, labels, constraint, expected) in [
        ("no pods", vec![], "foo", over("zone", 1, "foo", &json!({})), "+ + + +"),
        ("no pods, and it does not count itself", vec![], "foo", over("zone", 1, "bar", &json!({})), "+ + + +"),
        (
            "other namespaces do not count",
            vec![(0, "one/foo"), (0, "two/foo"), (2, "foo"), (3, "foo")],
            "foo",
            over("zone", 1, "foo", &json!({})),
            "+ + U U",
        ),
        ("no selector", vec![(2, "foo"), (3, "foo")], "foo", over("zone", 1, "", &json!({})), "+ + + +"),
        (
            "an empty selector counts no other pod",
            vec![(2, "foo"), (3, "")],
            "foo",
            over("zone", 1, "*", &json!({})),
            "+ + + +",
        ),
        ("three in each zone", spread([2, 1, 0, 3]), "foo", over("zone", 1, "foo", &json!({})), "+ + + +"),
        ("no node has the label", vec![], "foo", over("rack", 1, "foo", &json!({})), "UU UU UU UU"),
        ("over nodes", spread([2, 1, 0, 3]), "foo", over("node", 1, "foo", &json!({})), "U U + U"),
        ("over nodes, two more may be", spread([2, 1, 0, 3]), "foo", over("node", 2, "foo", &json!({})), "U + + U"),
        ("it does not count itself", spread([2, 1, 0, 3]), "bar", over("node", 1, "foo", &json!({})), "U + + U"),
        (
            "pods that are going do not count",
            vec![(0, "foo!"), (1, "foo"), (2, "foo"), (3, "foo")],
            "foo",
            over("node", 1, "foo", &json!({})),
            "+ U U U",
        ),
        (
            "too few zones: the emptiest counts as empty",
            spread([1, 1, 0, 1]),
            "foo",
            over("zone", 2, "foo", &json!({"minDomains": 3})),
            "U U + +",
        ),
        ("enough zones", spread([1, 1, 0, 1]), "foo", over("zone", 2, "foo", &json!({"minDomains": 2})), "+ + + +"),
    ] {
        assert_eq!(said(&mut world(&FOUR, &pods), labels, &spec(&[constraint])), expected, "{what}");
    }
}

#[test]
fn a_selector_of_everything_counts_the_pod_itself_and_no_other() {
    let mut world = world(&FOUR, &[(2, "foo"), (2, "foo"), (3, "bar")]);
    let mut everything = |skew_max| said(&mut world, "foo", &spec(&[over("zone", skew_max, "*", &json!({}))]));
    assert_eq!(everything(1), "+ + + +", "three in the second zone would be too many");
    // The API server takes no such skew. Only with it a pod that does not count itself would fit.
    assert_eq!(everything(0), "U U U U");
}

#[test]
fn nodes_count_where_they_have_all_labels() {
    let pods = [(0, "foo"), (1, "foo"), (2, "foo"), (3, "foo")];
    let mut typo = world(&["zone=1", "zon=1", "zone=2", "zone=2"], &pods);
    assert_eq!(said(&mut typo, "foo", &spec(&[over("zone", 1, "foo", &json!({}))])), "+ UU U U");
    let both = spec(&[over("zone", 1, "foo", &json!({})), over("node", 1, "foo", &json!({}))]);
    // Nodes 1 and 2 count in neither constraint: a zone of one pod beside a zone of none. The first constraint answers first.
    let mut partial =
        world(&["zone=1,node=a", "zone=1", "node=x", "zone=2,node=y"], &[(0, "foo"), (1, "foo"), (2, "foo")]);
    assert_eq!(said(&mut partial, "foo", &both), "U U UU +");
}

#[test]
fn all_constraints_must_hold_each_with_its_own_pods() {
    let zone_and_node =
        |zone: &str, node: &str| spec(&[over("zone", 1, zone, &json!({})), over("node", 1, node, &json!({}))]);
    for (pods, labels, spec, expected) in [
        // Three in each zone, and on nodes 2/1/0/3.
        (
            vec![(0, "foo"), (0, "foo"), (1, "foo"), (3, "foo"), (3, "foo"), (3, "foo")],
            "foo",
            zone_and_node("foo", "foo"),
            "U U + U",
        ),
        // Three and four in the zones: zone 1 only, where no node is empty; node x is.
        (
            vec![(0, "foo"), (0, "foo"), (1, "foo"), (3, "foo"), (3, "foo"), (3, "foo"), (3, "foo")],
            "foo",
            zone_and_node("foo", "foo"),
            "U U U U",
        ),
        (vec![(0, "foo"), (1, "foo,bar"), (3, "foo"), (3, "bar")], "foo,bar", zone_and_node("foo", "bar"), "U U + U"),
        (vec![(0, "foo"), (1, "foo,bar"), (2, "bar"), (3, "foo")], "foo,bar", zone_and_node("foo", "bar"), "U U U +"),
    ] {
        assert_eq!(said(&mut world(&FOUR, &pods), labels, &spec), expected, "{pods:?}");
    }
}

#[test]
fn node_affinity_and_taints_say_which_nodes_count() {
    let pods = [(0, "foo"), (1, "foo"), (3, "foo")];
    let mut selected = world(&["node=a,pick", "node=b,pick", "node=x,pick", "node=y"], &pods);
    let with = |others: &Value| {
        let mut spec = spec(&[over("node", 1, "foo", others)]);
        spec["nodeSelector"] = json!({"pick": ""});
        spec
    };
    // Node y has no pods that count, whatever the plugin of node affinity says about it.
    assert_eq!(said(&mut selected, "foo", &with(&json!({}))), "U U + +");
    assert_eq!(said(&mut selected, "foo", &with(&json!({"nodeAffinityPolicy": "Ignore"}))), "U U + U");
    let mut tainted = world(&["node=a", "node=b", "node=x,tainted"], &[(0, "foo"), (1, "foo")]);
    let spec = |policy: &str, tolerations: &Value| {
        let mut spec = spec(&[over("node", 1, "foo", &json!({"nodeTaintsPolicy": policy}))]);
        spec["tolerations"] = tolerations.clone();
        spec
    };
    // The empty node does not count as the emptiest where its taint is not tolerated.
    assert_eq!(said(&mut tainted, "foo", &spec("Honor", &json!([]))), "+ + +");
    assert_eq!(said(&mut tainted, "foo", &spec("Honor", &json!([{"operator": "Exists"}]))), "U U +");
    assert_eq!(said(&mut tainted, "foo", &spec("Ignore", &json!([]))), "U U +");
}

#[test]
fn label_keys_count_pods_of_the_same_revision() {
    let mut cluster = world(&FOUR, &[(0, "foo,rev=1"), (1, "foo,rev=1"), (2, "foo,rev=2")]);
    let constraint = over("zone", 1, "foo", &json!({"matchLabelKeys": ["rev", "absent"]}));
    assert_eq!(said(&mut cluster, "foo,rev=2", &spec(std::slice::from_ref(&constraint))), "+ + U U");
    assert_eq!(said(&mut cluster, "foo", &spec(&[constraint])), "U U + +");
}

fn scores(cluster: &mut Cluster, labels: &str, spec: &Value, nodes: &[usize]) -> Option<Vec<i64>> {
    let rows: Vec<Row> = nodes.iter().map(|node| cluster.row(&format!("n{node}")).unwrap()).collect();
    let plugin = PodTopologySpread::default();
    plugin.default_topology_keys().iter().for_each(|key| cluster.pin_topology(key));
    scored_pod(&plugin, cluster, &labelled("ns", "tried", &pairs(labels), spec), &rows)
}

fn soft(topology_key: &str, skew_max: i32, label: &str) -> Value {
    over(topology_key, skew_max, label, &json!({"whenUnsatisfiable": "ScheduleAnyway"}))
}

fn hosts(nodes: &[&str]) -> Vec<String> {
    nodes.iter().enumerate().map(|(number, labels)| format!("{HOSTNAME}=h{number},{labels}")).collect()
}

#[test]
fn the_emptier_the_domain_the_higher_the_score() {
    let zones = ["zone=1", "zone=1", "zone=2", "zone=2"];
    let all = [0, 1, 2, 3];
    let spread = |counts: &[usize]| -> Vec<(usize, &str)> {
        counts.iter().enumerate().flat_map(|(node, count)| vec![(node, "foo"); *count]).collect()
    };
    for (what, pods, nodes, constraints, expected) in [
        ("no pods", spread(&[]), &all[..2], vec![soft(HOSTNAME, 1, "foo")], vec![100, 100]),
        ("one node is left", spread(&[2, 1]), &all[..1], vec![soft(HOSTNAME, 1, "foo")], vec![100]),
        ("alike", spread(&[1, 1]), &all[..2], vec![soft(HOSTNAME, 1, "foo")], vec![100, 100]),
        ("2/1/0/3", spread(&[2, 1, 0, 3]), &all, vec![soft(HOSTNAME, 1, "foo")], vec![20, 60, 100, 0]),
        ("no selector", spread(&[2, 1, 0, 3]), &all, vec![soft(HOSTNAME, 1, "")], vec![100; 4]),
        ("2/1/0/3 with skew 2", spread(&[2, 1, 0, 3]), &all, vec![soft(HOSTNAME, 2, "foo")], vec![33, 66, 100, 16]),
        ("4/3/2/1 with skew 3", spread(&[4, 3, 2, 1]), &all, vec![soft(HOSTNAME, 3, "foo")], vec![44, 66, 77, 100]),
        (
            "a node that is refused does not count",
            spread(&[4, 2, 1, 3]),
            &all[..3],
            vec![soft(HOSTNAME, 1, "foo")],
            vec![33, 83, 100],
        ),
        ("in a zone it does", spread(&[4, 2, 1, 3]), &all[..3], vec![soft("zone", 1, "foo")], vec![75, 75, 100]),
        (
            "zone and node",
            spread(&[2, 1, 2, 4]),
            &[0, 2],
            vec![soft("zone", 1, "foo"), soft(HOSTNAME, 1, "foo")],
            vec![100, 63],
        ),
        (
            "two selectors over zones",
            vec![(0, "foo,bar"), (0, "foo"), (1, "foo,bar"), (3, "foo"), (3, "foo,bar"), (3, "foo")],
            &[0, 2],
            vec![soft("zone", 1, "foo"), soft("zone", 1, "bar")],
            vec![85, 100],
        ),
        (
            "two selectors over zones and nodes",
            vec![(0, "foo"), (1, "foo,bar"), (3, "foo"), (3, "bar")],
            &all,
            vec![soft("zone", 1, "foo"), soft(HOSTNAME, 1, "bar")],
            vec![60, 20, 100, 60],
        ),
        (
            "of them three nodes are left",
            vec![(0, "foo"), (1, "foo,bar"), (3, "foo"), (3, "bar")],
            &all[..3],
            vec![soft("zone", 1, "foo"), soft(HOSTNAME, 1, "bar")],
            vec![50, 25, 100],
        ),
        (
            "other namespaces",
            vec![(0, "other/foo"), (0, "foo"), (1, "foo"), (1, "foo")],
            &all[..2],
            vec![soft(HOSTNAME, 1, "foo")],
            vec![100, 33],
        ),
        ("pods that are going", vec![(0, "foo!"), (1, "foo")], &all[..2], vec![soft(HOSTNAME, 1, "foo")], vec![100, 0]),
    ] {
        let nodes_with_hosts = hosts(&zones);
        let mut cluster = world(&nodes_with_hosts.iter().map(String::as_str).collect::<Vec<_>>(), &pods);
        assert_eq!(scores(&mut cluster, "foo,bar", &spec(&constraints), nodes), Some(expected), "{what}");
    }
}

#[test]
fn nodes_that_lack_a_label_are_scored_last() {
    let first = format!("{HOSTNAME}=a");
    let (third, fourth) = (format!("{HOSTNAME}=x"), format!("{HOSTNAME}=y"));
    let pods: Vec<(usize, &str)> =
        [4, 2, 1, 3].into_iter().enumerate().flat_map(|(node, count)| vec![(node, "foo"); count]).collect();
    let mut cluster = world(&[&first, "n=b", &third, &fourth], &pods);
    let spec = spec(&[soft(HOSTNAME, 1, "foo")]);
    assert_eq!(scores(&mut cluster, "foo", &spec, &[0, 1, 2]), Some(vec![16, 0, 100]));
    assert_eq!(scores(&mut cluster, "foo", &json!({}), &[0, 1, 2]), None, "nothing is asked");
    let hard = json!({"topologySpreadConstraints": [over("node", 1, "foo", &json!({}))]});
    assert_eq!(scores(&mut cluster, "foo", &hard, &[0, 1, 2]), None, "a constraint that must hold is no preference");
}

#[test]
fn without_constraints_of_its_own_a_pod_is_spread_among_those_of_its_services() {
    let pods: Vec<(usize, &str)> =
        [4, 3, 2, 1].into_iter().enumerate().flat_map(|(node, count)| vec![(node, "foo"); count]).collect();
    let of = |zones: [&str; 4]| {
        let nodes = hosts(&zones);
        let mut cluster = world(&nodes.iter().map(String::as_str).collect::<Vec<_>>(), &pods);
        let service: Service = serde_json::from_value(json!({"spec": {"selector": {"foo": ""}}})).unwrap();
        let key = ObjectKey::new("ns", "service");
        cluster.set_object(Object::new(key, Uid::from("service"), false, Arc::new(service)));
        cluster
    };
    // As with one constraint over nodes; that over zones adds the same to all.
    let mut nowhere = of([""; 4]);
    assert_eq!(scores(&mut nowhere, "foo", &json!({}), &[0, 1, 2, 3]), Some(vec![44, 66, 77, 100]));
    assert_eq!(scores(&mut nowhere, "bar", &json!({}), &[0, 1, 2, 3]), None, "no service selects it");
    let zone = |zone: &str| format!("{ZONE}={zone}");
    let (one, two) = (zone("1"), zone("2"));
    let mut zoned = of([&one, &one, &two, &two]);
    // By nodes 4/3/2/1 times ln 6 and 2, by zones 7/7/3/3 times ln 4 and 4: 23, 21, 14 and 12.
    assert_eq!(scores(&mut zoned, "foo", &json!({}), &[0, 1, 2, 3]), Some(vec![52, 60, 91, 100]));
    let listed = DefaultConstraints::List(vec![SpreadConstraint {
        topology_key: ZONE.into(),
        skew_max: 1,
        domains_min: 1,
        is_hard: true,
        ..SpreadConstraint::default()
    }]);
    let plugin = PodTopologySpread { defaults: listed };
    let said = filtered_pod(&plugin, &mut zoned, &labelled("ns", "tried", &[("foo", "")], &json!({})));
    assert_eq!(said.iter().map(String::is_empty).collect::<Vec<_>>(), [false, false, true, true]);
    let pod = labelled("ns", "tried", &[("bar", "")], &json!({}));
    let class = zoned.class(&pod.template);
    assert!(matches!(
        plugin.prepare_filter(
            &Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() },
            &zoned
        ),
        PreparedFilter::Skip
    ));
}

#[test]
fn what_changes_the_count_or_the_domains_may_help() {
    let constraint = over("zone", 1, "foo", &json!({}));
    let waiting = labelled("ns", "w", &[("foo", "")], &spec(&[constraint]));
    let plugin = PodTopologySpread::default();
    let pod = |namespace: &str, labels: &str| labelled(namespace, "other", &pairs(labels), &json!({}));
    let helps = |event: Event| plugin.is_helped_by(&waiting, &event, &Cluster::default());
    assert!(helps(Event::PodRemoved(pod("ns", "foo"))) && helps(Event::PodAssigned(pod("ns", "foo"))));
    assert!(!helps(Event::PodRemoved(pod("elsewhere", "foo"))) && !helps(Event::PodAssigned(pod("ns", "bar"))));
    let relabelled = |namespace: &str, old: &str, new: &str| {
        helps(Event::PodRelabelled { old: pod(namespace, old), new: pod(namespace, new) })
    };
    assert!(relabelled("ns", "foo", "bar") && relabelled("ns", "bar", "foo"));
    assert!(!relabelled("ns", "foo", "foo,bar") && !relabelled("elsewhere", "foo", "bar"));
    let node = |labels: &str| {
        let labels: serde_json::Map<String, Value> =
            pairs(labels).into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        node("n", &json!({"metadata": {"labels": labels}}))
    };
    assert!(helps(Event::NodeAdded(node("zone=1"))) && !helps(Event::NodeAdded(node("rack=1"))));
    assert!(helps(Event::NodeRemoved(node("zone=1"))) && !helps(Event::NodeRemoved(node("rack=1"))));
    let changed = |old: &str, new: &str| helps(Event::NodeChanged { old: node(old), new: node(new) });
    assert!(changed("", "zone=1") && changed("zone=1", "") && changed("zone=1", "zone=2"));
    assert!(!changed("zone=1", "zone=1,rack=1") && !changed("", "rack=1"));
}
