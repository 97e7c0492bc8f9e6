mod anomaly;
mod order;

use std::time::Duration;

use jiff::Timestamp;
use koord_descheduler_framework::{Input, Memory, Plan, Step, VerdictScope};
use koord_descheduler_testing::{Everything, args, cluster, descheduler, evicted, node, plan, pod, with};
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1000;

fn plugin(arguments: &Value) -> LowNodeLoad {
    plugin_every(arguments, Duration::from_mins(2))
}

/// A strategy that acts at once, unless the arguments say otherwise.
fn plugin_every(arguments: &Value, interval: Duration) -> LowNodeLoad {
    let at_once = json!({"anomalyCondition": {"consecutiveAbnormalities": 1, "consecutiveNormalities": 1}});
    LowNodeLoad::new(args("LowNodeLoad", &with(&at_once, arguments)), interval).unwrap()
}

fn evicts(arguments: &Value, objects: &[Value]) -> Vec<String> {
    evicted(plugin(arguments), &cluster(objects), NOW)
}

fn counts(arguments: &Value, objects: &[Value]) -> usize {
    evicts(arguments, objects).len()
}

fn thresholds() -> Value {
    json!({"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 50}})
}

fn having(name: &str, allocatable: &Value) -> Value {
    with(&node(name), &json!({"status": {"allocatable": allocatable}}))
}

/// A node with ten cpus and 10Gi.
fn ten(name: &str) -> Value {
    having(name, &json!({"cpu": "10", "memory": "10Gi"}))
}

/// What a node uses: the system, and pods by name in the namespace `default`.
fn metric(node: &str, system: &Value, pods: &[(&str, Value)]) -> Value {
    let pods = pods
        .iter()
        .map(|(name, usage)| json!({"name": name, "namespace": "default", "podUsage": {"resources": usage}}));
    json!({"kind": "NodeMetric", "metadata": {"name": node}, "status": {
        "updateTime": "1970-01-01T00:16:30Z",
        "nodeMetric": {"nodeUsage": {"resources": {}}, "systemUsage": {"resources": system}},
        "podsMetric": pods.collect::<Vec<_>>()}})
}

/// A node of ten cpus with pods `PREFIX0` and so on that use these cpus, in thousandths.
fn busy(name: &str, prefix: &str, cpus_milli: &[i64]) -> Vec<Value> {
    let names: Vec<String> = (0..cpus_milli.len()).map(|n| format!("{prefix}{n}")).collect();
    let usage = |cpu: &i64| json!({"cpu": format!("{cpu}m"), "memory": "100Mi"});
    let pods: Vec<(&str, Value)> = names.iter().map(String::as_str).zip(cpus_milli.iter().map(usage)).collect();
    let mut objects = vec![ten(name), metric(name, &json!({}), &pods)];
    objects.extend(names.iter().map(|pod_name| pod(pod_name, name)));
    objects
}

/// A node of ten cpus that uses so many thousandths of a cpu without pods.
fn idle(name: &str, cpu_milli: i64) -> Vec<Value> {
    vec![ten(name), metric(name, &json!({"cpu": format!("{cpu_milli}m"), "memory": "1Gi"}), &[])]
}

/// The objects with a merge patch for each of a kind.
fn each(kind: &str, objects: &[Value], patch: &Value) -> Vec<Value> {
    objects.iter().map(|object| if object["kind"] == kind { with(object, patch) } else { object.clone() }).collect()
}

fn prod() -> Value {
    json!({"spec": {"priority": 9500}})
}

fn first(plan: &Plan) -> &koord_descheduler_framework::Eviction {
    plan.steps.iter().find_map(Step::eviction).unwrap()
}

/// The base case of the original's tests: eight pods of 0.4 cpu on a node with 4 cpus and 9 pods, five of which may go.
fn base(memory_of_pod: i64, memory_of_target: i64) -> Vec<Value> {
    let names: Vec<String> = (1..=8).map(|n| format!("p{n}")).collect();
    let usage = json!({"cpu": "400m", "memory": memory_of_pod.to_string()});
    let pods: Vec<(&str, Value)> = names.iter().map(|name| (name.as_str(), usage.clone())).collect();
    let of = |name: &str, pods: &str| having(name, &json!({"cpu": "4", "memory": "3000", "pods": pods}));
    let mut objects = vec![of("n1", "9"), of("n2", "10"), of("n3", "10")];
    objects[2]["spec"]["unschedulable"] = json!(true);
    objects.push(metric("n1", &json!({}), &pods));
    objects.push(metric("n2", &json!({"memory": memory_of_target.to_string()}), &[("p9", json!({"cpu": "400m"}))]));
    objects.push(metric("n3", &json!({}), &[]));
    let daemon = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    let bound = names.iter().enumerate().map(|(index, name)| {
        let change = if index < 5 { json!({}) } else { json!({"metadata": {"ownerReferences": daemon}}) };
        with(&pod(name, "n1"), &change)
    });
    objects.extend(bound);
    objects.push(pod("p9", "n2"));
    objects
}

#[test]
fn the_cases_of_the_original() {
    let of = |low: Value, high: Value| json!({"lowThresholds": low, "highThresholds": high});
    let cpu_and_pods = of(json!({"cpu": 30, "pods": 30}), json!({"cpu": 50, "pods": 50}));
    let deviations =
        with(&of(json!({"cpu": 5, "pods": 5}), json!({"cpu": 5, "pods": 5})), &json!({"useDeviationThresholds": true}));
    let gpu = of(json!({"pods": 30, "example.com/gpu": 30}), json!({"pods": 50, "example.com/gpu": 50}));
    let production = with(
        &of(json!({"cpu": 0}), json!({"cpu": 100})),
        &json!({"prodLowThresholds": {"cpu": 30, "pods": 30}, "prodHighThresholds": {"cpu": 50, "pods": 50}}),
    );
    let exclude = with(&cpu_and_pods, &json!({"evictableNamespaces": {"exclude": ["default"]}}));
    for (name, arguments, objects, expected) in [
        ("down to four pods", &cpu_and_pods, base(0, 0), 4),
        ("excluded namespace", &exclude, base(0, 0), 0),
        ("memory of the target ends it", &cpu_and_pods, base(300, 2100), 3),
        ("deviations", &deviations, base(0, 0), 2),
        ("a resource that a target lacks", &gpu, base(0, 0), 0),
        ("production pods", &production, each("Pod", &base(0, 0), &prod()), 4),
    ] {
        assert_eq!(counts(arguments, &objects), expected, "{name}");
    }
}

#[test]
fn a_node_is_relieved_down_to_its_high_threshold() {
    let hot = busy("n1", "p", &[1000; 8]);
    let with_cold = |milli: i64| [hot.clone(), idle("n2", milli)].concat();
    for (cold, expected) in [(1000, 3), (3000, 2), (3001, 0)] {
        assert_eq!(counts(&thresholds(), &with_cold(cold)), expected, "a target that uses {cold}");
    }
    let at_high = [busy("n1", "p", &[5000]), idle("n2", 0)].concat();
    assert_eq!(counts(&thresholds(), &at_high), 0, "at the threshold is not over");
    assert_eq!(counts(&with(&thresholds(), &json!({"paused": true})), &with_cold(1000)), 0);
    assert_eq!(counts(&json!({}), &with_cold(1000)), 0, "no thresholds");
    let finished = each("Pod", &with_cold(1000), &json!({"status": {"phase": "Failed"}}));
    assert_eq!(counts(&thresholds(), &finished), 0, "ended pods are no candidates");
    let cordoned = each("Node", &hot, &json!({"spec": {"unschedulable": true}}));
    assert_eq!(counts(&thresholds(), &[cordoned, idle("n2", 0)].concat()), 3, "a cordoned node is a source");
    let cold = each("Node", &idle("n2", 0), &json!({"spec": {"unschedulable": true}}));
    assert_eq!(counts(&thresholds(), &[hot, cold].concat()), 0, "and no target");
}

#[test]
fn a_node_counts_only_while_its_report_is_fresh() {
    let hot = busy("n1", "p", &[1000; 8]);
    for (change, expected) in [
        (json!({"updateTime": "1970-01-01T00:13:40.001Z"}), 3),
        (json!({"updateTime": "1970-01-01T00:13:40Z"}), 0),
        (json!({"updateTime": null}), 0),
        (json!({"nodeMetric": null}), 0),
    ] {
        let reported = each("NodeMetric", &hot, &json!({"status": change}));
        assert_eq!(counts(&thresholds(), &[reported, idle("n2", 0)].concat()), expected, "{change}");
    }
    let without_status = each("NodeMetric", &idle("n2", 0), &json!({"status": null}));
    assert_eq!(counts(&thresholds(), &[hot, without_status].concat()), 0, "what is unknown is not empty");
}

#[test]
fn usage_is_that_of_the_system_and_of_pods_also_of_those_that_are_gone() {
    let gone = [("gone", json!({"cpu": "4"})), ("p0", json!({"cpu": "1"})), ("p1", json!({"cpu": "1"}))];
    let mut hot = vec![ten("n1"), metric("n1", &json!({}), &gone), pod("p0", "n1"), pod("p1", "n1")];
    assert_eq!(counts(&thresholds(), &[hot.clone(), idle("n2", 0)].concat()), 1);
    hot[1]["status"]["nodeMetric"]["nodeUsage"]["resources"] = json!({"cpu": "10"});
    hot[1]["status"]["podsMetric"] = json!([]);
    assert_eq!(counts(&thresholds(), &[hot, idle("n2", 0)].concat()), 0, "nodeUsage does not count");
}

#[test]
fn raw_allocatable_is_the_base_and_what_it_does_not_name_is_not_amplified() {
    let annotated = |raw: &str| {
        let change = json!({"metadata": {"annotations": {"node.koordinator.sh/raw-allocatable": raw}}});
        [each("Node", &busy("n1", "p", &[1000; 8]), &change), idle("n2", 0)].concat()
    };
    assert_eq!(counts(&thresholds(), &annotated(r#"{"cpu":"20","memory":"20Gi"}"#)), 0);
    assert_eq!(counts(&thresholds(), &annotated("no json")), 3);
    // QUIRK of the original, repaired: memory would be 0 and any use of it too much.
    assert_eq!(counts(&thresholds(), &annotated(r#"{"cpu":"20"}"#)), 0);
}

#[test]
fn memory_counts_though_only_cpu_is_configured() {
    let usages = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, json!({"cpu": "1", "memory": "1Gi"})));
    let mut objects = vec![ten("n1"), metric("n1", &json!({}), &usages)];
    objects.extend(usages.iter().map(|(name, _)| pod(name, "n1")));
    objects.push(having("n2", &json!({"cpu": "10", "memory": "2Gi"})));
    objects.push(metric("n2", &json!({"memory": "1Gi"}), &[]));
    assert_eq!(counts(&with(&thresholds(), &json!({"nodeFit": false})), &objects), 1);
    let only_high = json!({"lowThresholds": {"memory": 30}, "highThresholds": {"cpu": 50, "memory": 90}});
    assert_eq!(counts(&only_high, &objects), 0, "a high threshold without a low one is dropped");
}

/// Repaired: the original takes the missing threshold for 0, so that any use is too much.
#[test]
fn a_low_threshold_alone_makes_no_node_overutilized() {
    let arguments = json!({"lowThresholds": {"cpu": 30, "memory": 30}, "highThresholds": {"cpu": 50}});
    let objects = [busy("n1", "p", &[1000; 2]), vec![ten("n2"), metric("n2", &json!({}), &[])]].concat();
    assert_eq!(counts(&arguments, &objects), 0);
    let prod_only =
        json!({"lowThresholds": {"cpu": 90}, "highThresholds": {"cpu": 95}, "prodHighThresholds": {"cpu": 40}});
    let hot = each("Pod", &busy("n1", "p", &[1000; 8]), &prod());
    assert_eq!(counts(&prod_only, &[hot, idle("n2", 0)].concat()), 0, "D11: high alone is not configured");
}

#[test]
fn one_target_must_have_room_not_all_together() {
    let hot = busy("n1", "p", &[5000, 1000]);
    let cold: Vec<Value> = (2..7).flat_map(|n| idle(&format!("n{n}"), 3000)).collect();
    assert_eq!(evicts(&thresholds(), &[hot.clone(), cold].concat()), ["p1"], "D06: each has room for 2");
    let requests = |cpu: &str| json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}});
    let hot = each("Pod", &busy("n1", "p", &[1000; 8]), &requests("4"));
    assert_eq!(
        counts(&thresholds(), &[hot.clone(), idle("n2", 0)].concat()),
        2,
        "10 cpus are free, and three request 12"
    );
    assert_eq!(counts(&with(&thresholds(), &json!({"nodeFit": false})), &[hot, idle("n2", 0)].concat()), 3);
    let unreported: Vec<Value> = [ten("n1"), metric("n1", &json!({"cpu": "8"}), &[]), pod("p0", "n1")].into();
    assert_eq!(
        counts(&thresholds(), &[unreported.clone(), idle("n2", 0)].concat()),
        0,
        "D07: it is not known what fits"
    );
    let arguments = with(&thresholds(), &json!({"nodeFit": false}));
    assert_eq!(counts(&arguments, &[unreported, idle("n2", 0)].concat()), 1);
}

/// Repaired: in the original a pod that was looked at takes room although it is not evicted.
#[test]
fn a_pod_that_is_not_evicted_takes_no_room() {
    let objects = [busy("n1", "p", &[2000; 6]), idle("n2", 1000)].concat();
    let cluster = cluster(&objects);
    let descheduler = descheduler(plugin(&thresholds()), Everything);
    let pass = |results: &[bool]| {
        let memory = Memory::default();
        let now = Timestamp::from_second(NOW).unwrap();
        let plan = descheduler.pass(&Input { results, ..Input::new(&cluster, &memory, now) });
        let names = plan.steps.iter().filter_map(Step::eviction).map(|eviction| eviction.pod.key.name().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(pass(&[]), ["p0", "p1"], "the target has room for two");
    assert_eq!(pass(&[false]), ["p0", "p1", "p2"], "the first was not evicted");
    assert_eq!(pass(&[false, true, false]), ["p0", "p1", "p2", "p3"]);
}

#[test]
fn pods_of_an_earlier_source_count_on_their_target() {
    let objects = [busy("n1", "p", &[1000; 9]), busy("n2", "q", &[1000; 8]), idle("n3", 0)].concat();
    assert_eq!(evicts(&thresholds(), &objects), ["p0", "p1", "p2", "p3", "q0"], "the one that uses most comes first");
    let two = [busy("n1", "p", &[1000; 9]), idle("n2", 2000), idle("n3", 2000)].concat();
    assert_eq!(counts(&thresholds(), &two), 4);
}

#[test]
fn numbers_of_low_nodes() {
    let arguments = |number: i32| with(&thresholds(), &json!({"numberOfNodes": number}));
    let hot = busy("n1", "p", &[1000; 8]);
    let one = [hot.clone(), idle("n2", 1000)].concat();
    let two = [hot.clone(), idle("n2", 1000), idle("n3", 1000)].concat();
    assert_eq!((counts(&arguments(1), &one), counts(&arguments(1), &two)), (0, 3));
    // Repaired: in the original neutral nodes count as low without thresholds of production pods.
    let neutral = [hot, idle("n2", 1000), idle("n3", 4000)].concat();
    assert_eq!(counts(&arguments(1), &neutral), 0);
    let of_prod = with(&arguments(1), &json!({"prodLowThresholds": {"cpu": 10}, "prodHighThresholds": {"cpu": 20}}));
    assert_eq!(counts(&of_prod, &neutral), 3, "with them they do");
}

#[test]
fn deviations_are_around_the_mean_of_known_nodes() {
    let arguments =
        json!({"useDeviationThresholds": true, "lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 10}});
    let expired = each("NodeMetric", &idle("n3", 0), &json!({"status": {"updateTime": "1970-01-01T00:10:00Z"}}));
    let objects = [busy("n1", "p", &[1000; 8]), idle("n2", 2000), expired].concat();
    assert_eq!(counts(&arguments, &objects), 2, "mean 50, high 60");
    let off = json!({"useDeviationThresholds": true, "lowThresholds": {"cpu": 0, "memory": 10}, "highThresholds": {"cpu": 0, "memory": 10}});
    assert_eq!(counts(&off, &[busy("n1", "p", &[1000; 8]), idle("n2", 0)].concat()), 0, "QUIRK: 0 switches cpu off");
}

#[test]
fn pools_have_thresholds_of_their_own_and_keep_to_their_nodes() {
    let of = |pool: &str, objects: &[Value]| each("Node", objects, &json!({"metadata": {"labels": {"p": pool}}}));
    let none = json!({"nodeSelector": {"matchLabels": {"p": "none"}}});
    let pool = |name: &str| json!({"name": name, "nodeSelector": {"matchLabels": {"p": name}}});
    let (hot, cold) = (busy("n1", "p", &[1000; 8]), idle("n2", 1000));
    let with_pools = |pools: &[Value]| with(&with(&thresholds(), &none), &json!({"nodePools": pools}));
    let of_a = [of("a", &hot), of("a", &cold)].concat();
    assert_eq!(counts(&with_pools(&[pool("a")]), &of_a), 3, "D02: thresholds and condition are inherited");
    let own = with(&pool("a"), &json!({"highThresholds": {"cpu": 70}}));
    assert_eq!(counts(&with_pools(&[own]), &of_a), 1);
    let apart = [of("a", &hot), of("b", &cold)].concat();
    assert_eq!(counts(&with_pools(&[pool("a"), pool("b")]), &apart), 0, "D13: no target of another pool");
    let deviating = with(
        &pool("a"),
        &json!({"useDeviationThresholds": true, "lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 10}}),
    );
    let first_static =
        with(&json!({"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 95}}), &json!({"nodePools": [deviating]}));
    let colder = [of("a", &hot), of("a", &idle("n2", 2000))].concat();
    assert_eq!(counts(&first_static, &colder), 2, "nothing of the default pool leaks: mean 50, high 60");
}

#[test]
fn what_was_moved_in_one_pool_counts_in_the_next() {
    let (hot, cold) = (busy("n1", "p", &[1000; 8]), idle("n2", 1000));
    let everything = json!({"nodePools": [{"name": "again"}]});
    assert_eq!(
        counts(&with(&thresholds(), &everything), &[hot, cold].concat()),
        3,
        "QUIRK: a pool without selector sees all nodes"
    );
}

#[test]
fn production_pods_are_moved_where_only_they_use_too_much() {
    let arguments = json!({"lowThresholds": {"cpu": 90}, "highThresholds": {"cpu": 95}, "prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 40}});
    let batch = json!({"spec": {"priority": 5500}});
    let hot = |change: &Value| each("Pod", &busy("n1", "p", &[1000; 6]), change);
    let of = |change: &Value| counts(&arguments, &[hot(change), idle("n2", 1000)].concat());
    let labelled = json!({"metadata": {"labels": {"koordinator.sh/priority-class": "koord-prod"}}});
    let burstable =
        json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]}});
    assert_eq!((of(&prod()), of(&labelled), of(&burstable)), (2, 2, 2));
    assert_eq!((of(&batch), of(&json!({}))), (0, 0), "best effort pods without class are none");
    let mixed = [each("Pod", &busy("n1", "p", &[1000; 8]), &batch), idle("n2", 1000)].concat();
    let mixed: Vec<Value> = mixed
        .into_iter()
        .enumerate()
        .map(|(index, object)| if (2..7).contains(&index) { with(&object, &prod()) } else { object })
        .collect();
    assert_eq!(evicts(&arguments, &mixed), ["p0"], "five of production, and 4 cpus are allowed");
    let node_first = with(&arguments, &json!({"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 70}}));
    let both = [each("Pod", &busy("n1", "p", &[1000; 8]), &prod()), idle("n2", 1000)].concat();
    assert_eq!(counts(&node_first, &both), 1, "a node that is over as a whole is no source of the second pass");
}

#[test]
fn production_pods_may_use_what_the_pass_over_nodes_leaves() {
    let arguments = json!({"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 50}, "prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 40}});
    let batch = each("Pod", &busy("n1", "p", &[1000; 9]), &json!({"spec": {"priority": 5500}}));
    let of_prod = each("Pod", &busy("n3", "q", &[1000; 5]), &prod());
    let objects = |cold: i64| [batch.clone(), of_prod.clone(), idle("n2", cold)].concat();
    assert_eq!(counts(&arguments, &objects(1000)), 4, "nothing is left");
    assert_eq!(evicts(&arguments, &objects(0)), ["p0", "p1", "p2", "p3", "q0"]);
    // Stricter than the original: a target must not become overutilized as a whole.
    let neutral = with(&arguments, &json!({"lowThresholds": {"cpu": 10}, "nodeFit": true}));
    assert_eq!(counts(&neutral, &[of_prod.clone(), idle("n2", 4000)].concat()), 1);
    assert_eq!(counts(&neutral, &[of_prod, idle("n2", 4500)].concat()), 0);
}

#[test]
fn reasons_name_what_is_used_too_much() {
    let metric = metric("n1", &json!({}), &[("p", json!({"cpu": "6666m", "memory": "7Gi"}))]);
    let objects = [vec![ten("n1"), metric, pod("p", "n1")], idle("n2", 1000)].concat();
    let arguments = |change: Value| {
        with(
            &json!({"nodeFit": false, "lowThresholds": {"cpu": 30, "memory": 30}, "highThresholds": {"cpu": 50, "memory": 60}}),
            &change,
        )
    };
    let of = |arguments: &Value| plan(plugin(arguments), &cluster(&objects), NOW);
    let absolute = of(&arguments(json!({})));
    let expected =
        "node is overutilized, node cpu usage(66.66%)>threshold(50.00%), node memory usage(70.00%)>threshold(60.00%)";
    assert_eq!(first(&absolute).recorded_reason, expected);
    assert_eq!(first(&absolute).reason.code, ReasonCode::NodeOverutilized);
    assert_eq!(first(&absolute).reason.operand("threshold"), Some("cpu 50.00%, memory 60.00%"));
    // Repaired: the original prints the deviation.
    let deviation = json!({"useDeviationThresholds": true, "lowThresholds": {"cpu": 10, "memory": null}, "highThresholds": {"cpu": 10, "memory": null}});
    assert_eq!(
        first(&of(&arguments(deviation))).recorded_reason,
        "node is overutilized, node cpu usage(66.66%)>threshold(48.33%)"
    );
    let of_prod = json!({"lowThresholds": {"cpu": 90, "memory": null}, "highThresholds": {"cpu": 95, "memory": null}, "prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 40}});
    let objects = each("Pod", &objects, &prod());
    let plan = plan(plugin(&arguments(of_prod)), &cluster(&objects), NOW);
    assert_eq!(first(&plan).recorded_reason, "node is overutilized, prod cpu usage(66.66%)>threshold(40.00%)");
}

#[test]
fn in_dry_run_the_same_pods_are_named_and_none_is_evicted() {
    let objects = [busy("n1", "p", &[1000; 8]), idle("n2", 1000)].concat();
    let plan = plan(plugin(&with(&thresholds(), &json!({"dryRun": true}))), &cluster(&objects), NOW);
    assert_eq!(plan.steps.len(), 3);
    assert!(plan.steps.iter().all(Step::is_dry_run));
}

#[test]
fn pods_that_stay_have_a_reason() {
    let verdicts = |arguments: &Value, objects: &[Value]| {
        let (cluster, memory) = (cluster(objects), Memory::default());
        let now = Timestamp::from_second(NOW).unwrap();
        let input = Input { verdicts_of: VerdictScope::All(100), ..Input::new(&cluster, &memory, now) };
        let plan = descheduler(plugin(arguments), Everything).pass(&input);
        plan.verdicts.iter().map(|verdict| verdict.refusal.code).collect::<Vec<_>>()
    };
    let hot = busy("n1", "p", &[3000, 3000]);
    let pinned = each("Pod", &hot, &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
    let patient = with(&thresholds(), &json!({"anomalyCondition": {"consecutiveAbnormalities": 5}}));
    for (arguments, objects, expected) in [
        (thresholds(), [hot.clone(), idle("n2", 0)].concat(), [ReasonCode::NodeRelieved; 1].to_vec()),
        (thresholds(), [hot.clone(), idle("n2", 4000)].concat(), [ReasonCode::NoTargetNodes; 2].to_vec()),
        (thresholds(), [hot.clone(), idle("n2", 2500)].concat(), [ReasonCode::PodOverloadsTargets; 2].to_vec()),
        (thresholds(), [pinned, idle("n2", 0)].concat(), [ReasonCode::NoOtherNodeFits; 2].to_vec()),
        (patient, [hot.clone(), idle("n2", 0)].concat(), [ReasonCode::NotOverutilizedLongEnough; 2].to_vec()),
        (json!({}), [hot.clone(), idle("n2", 0)].concat(), [ReasonCode::NodeNotOverutilized; 2].to_vec()),
        (
            thresholds(),
            [hot[..1].to_vec(), hot[2..].to_vec(), idle("n2", 0)].concat(),
            [ReasonCode::NodeUsageUnknown; 2].to_vec(),
        ),
    ] {
        assert_eq!(verdicts(&arguments, &objects), expected, "{arguments}");
    }
}
