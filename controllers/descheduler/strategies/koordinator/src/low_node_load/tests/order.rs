use super::*;

/// The order in which pods go that use so many thousandths of a cpu, and are changed so, from a node that stays hot.
fn order(pods: &[(&str, i64, Value)]) -> Vec<String> {
    let usages: Vec<(&str, Value)> =
        pods.iter().map(|(name, milli, _)| (*name, json!({"cpu": format!("{milli}m")}))).collect();
    let mut objects = vec![ten("n1"), metric("n1", &json!({"cpu": "9"}), &usages)];
    objects.extend(pods.iter().map(|(name, _, change)| with(&with(&pod(name, "n1"), &prod()), change)));
    let all = [objects, idle("n2", 0), idle("n3", 0)].concat();
    evicts(&with(&thresholds(), &json!({"nodeFit": false})), &all)
}

fn annotated(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

fn requesting(resources: &Value, qos: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}, "status": {"qosClass": qos}})
}

#[test]
fn pods_go_by_priority_quality_and_cost() {
    let of = |priority: i32| json!({"spec": {"priority": priority}});
    assert_eq!(order(&[("b", 100, of(9200)), ("d", 100, of(9300)), ("a", 100, of(9100))]), ["a", "b", "d"]);
    let all = json!({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}});
    let by_qos = [
        ("guaranteed", 100, requesting(&all, "Guaranteed")),
        ("besteffort", 100, requesting(&json!({}), "BestEffort")),
        ("burstable", 100, requesting(&json!({"requests": {"cpu": "1"}}), "Burstable")),
    ];
    assert_eq!(order(&by_qos), ["besteffort", "burstable", "guaranteed"]);
    let labelled = |qos: &str| {
        with(
            &requesting(&json!({"requests": {"cpu": "1"}}), "Burstable"),
            &json!({"metadata": {"labels": {"koordinator.sh/qosClass": qos}}}),
        )
    };
    let by_label = [("lsr", 100, labelled("LSR")), ("be", 100, labelled("BE")), ("ls", 100, labelled("LS"))];
    assert_eq!(order(&by_label), ["be", "ls", "lsr"]);
    let (deletion, eviction) =
        ("controller.kubernetes.io/pod-deletion-cost", "scheduling.koordinator.sh/eviction-cost");
    let by_cost = [
        ("d", 100, annotated(&json!({eviction: "200"}))),
        ("a", 100, annotated(&json!({eviction: "-5"}))),
        ("b", 100, json!({})),
        ("e", 100, annotated(&json!({deletion: "-1", eviction: "900"}))),
    ];
    assert_eq!(order(&by_cost), ["e", "a", "b", "d"]);
}

#[test]
fn among_equals_usage_and_then_age_decide() {
    let plain = json!({});
    assert_eq!(
        order(&[("small", 500, plain.clone()), ("big", 2000, plain.clone()), ("mid", 1000, plain.clone())]),
        ["big", "mid", "small"]
    );
    let created = |second: i64| json!({"metadata": {"creationTimestamp": format!("1970-01-01T00:00:{second:02}Z")}});
    assert_eq!(order(&[("a", 100, created(1)), ("b", 100, created(2)), ("d", 100, created(3))]), ["d", "b", "a"]);
    let mut objects = vec![ten("n1"), metric("n1", &json!({"cpu": "9"}), &[("b", json!({"cpu": "1m"}))])];
    objects.extend([pod("a", "n1"), pod("b", "n1")]);
    let all = [objects, idle("n2", 0)].concat();
    assert_eq!(
        evicts(&with(&thresholds(), &json!({"nodeFit": false})), &all),
        ["b", "a"],
        "a pod without a report comes last"
    );
}

#[test]
fn one_pod_that_covers_the_excess_goes_instead_of_many() {
    let usages =
        [("a", 1), ("b", 1), ("c", 2), ("d", 6), ("e", 20)].map(|(name, cpu)| (name, json!({"cpu": cpu.to_string()})));
    let large = having("n1", &json!({"cpu": "100", "memory": "10Gi"}));
    let mut objects = vec![large, metric("n1", &json!({"cpu": "55"}), &usages)];
    objects.extend(usages.iter().map(|(name, _)| pod(name, "n1")));
    let cold = vec![having("n2", &json!({"cpu": "100", "memory": "10Gi"})), metric("n2", &json!({}), &[])];
    let arguments = json!({"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 80}});
    assert_eq!(evicts(&arguments, &[objects, cold].concat()), ["d"], "D05");
}

#[test]
fn weights_decide_which_pod_and_which_node() {
    let usages = [("cpu", json!({"cpu": "3", "memory": "200Mi"})), ("mem", json!({"cpu": "200m", "memory": "3Gi"}))];
    let mut objects = vec![ten("n1"), metric("n1", &json!({"cpu": "4", "memory": "4Gi"}), &usages)];
    objects.extend([pod("cpu", "n1"), pod("mem", "n1")]);
    let all = [objects, vec![ten("n2"), metric("n2", &json!({}), &[])]].concat();
    let arguments = |memory: i64| {
        json!({"nodeFit": false, "lowThresholds": {"cpu": 30, "memory": 30}, "highThresholds": {"cpu": 50, "memory": 50},
            "resourceWeights": {"cpu": 1, "memory": memory}})
    };
    assert_eq!(evicts(&arguments(10), &all)[0], "mem");
    assert_eq!(evicts(&arguments(1), &all)[0], "mem", "it covers both in part");
    let memory_hot = [("q", json!({"cpu": "6", "memory": "6Gi"}))];
    let cpu_hot = [("p", json!({"cpu": "9", "memory": "5400Mi"}))];
    let nodes = vec![
        ten("n1"),
        metric("n1", &json!({}), &cpu_hot),
        pod("p", "n1"),
        ten("n3"),
        metric("n3", &json!({}), &memory_hot),
        pod("q", "n3"),
        ten("n2"),
        metric("n2", &json!({"memory": "1Gi"}), &[]),
    ];
    assert_eq!(evicts(&arguments(9), &nodes)[0], "q");
    assert_eq!(evicts(&arguments(1), &nodes)[0], "p");
}
