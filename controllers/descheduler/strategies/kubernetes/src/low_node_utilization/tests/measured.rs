//! Usage that was measured, by the metrics server or by a query of Prometheus.

use koord_core::key::ObjectKey;
use koord_descheduler_framework::{Measurements, Plan};
use koord_descheduler_testing::descheduler;
use koord_scheduling::{ResourceId, ResourceVector};

use super::*;

fn by_metrics_server() -> Value {
    with(&cpu(), &json!({"metricsUtilization": {"source": "KubernetesMetrics"}}))
}

/// Below 20 % a node is underutilized, above 50 % it is overutilized.
fn by_query() -> Value {
    let measured = json!({"source": "Prometheus", "prometheus": {"query": "load"}});
    json!({"thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 50}, "metricsUtilization": measured})
}

/// Cpu in thousandths of a core.
fn amounts<K: Ord>(amounts: &[(&str, i64)], key: impl Fn(&str) -> K) -> BTreeMap<K, ResourceVector> {
    let vector = |cpu: i64| {
        let mut usage = ResourceVector::default();
        usage.set(ResourceId::CPU, cpu);
        usage
    };
    amounts.iter().map(|(name, cpu)| (key(name), vector(*cpu))).collect()
}

fn measured_amounts(nodes: &[(&str, i64)], pods: &[(&str, i64)]) -> MeasuredUsage {
    let nodes = amounts(nodes, |name| Arc::from(name));
    MeasuredUsage::Amounts { nodes, pods: amounts(pods, |name| ObjectKey::new("default", name)) }
}

fn shares(shares: &[(&str, f64)]) -> MeasuredUsage {
    MeasuredUsage::Shares(shares.iter().map(|(node, share)| (Arc::from(*node), *share)).collect())
}

fn planned(arguments: &Value, objects: &[&[Value]], usage: Result<MeasuredUsage, &str>) -> Plan {
    let strategy = strategy(arguments);
    let mut cluster = cluster(&objects.concat());
    let mut measurements = Measurements::default();
    measurements.set(strategy.usage_query().unwrap(), usage.map_err(Arc::from));
    measurements.store(&mut cluster);
    let memory = koord_descheduler_framework::Memory::default();
    let input = koord_descheduler_framework::Input {
        verdicts_of: koord_descheduler_framework::VerdictScope::All(usize::MAX),
        ..koord_descheduler_framework::Input::new(&cluster, &memory, jiff::Timestamp::UNIX_EPOCH)
    };
    descheduler(strategy, koord_descheduler_testing::Everything).pass(&input)
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().filter_map(|step| step.eviction()).map(|eviction| eviction.pod.key.name()).collect()
}

fn code_of(plan: &Plan, name: &str) -> Vec<ReasonCode> {
    plan.verdicts.iter().filter(|verdict| verdict.pod.name() == name).map(|verdict| verdict.refusal.code).collect()
}

#[test]
fn measured_usage_counts_and_not_what_pods_request() {
    let nodes = [ten("n1"), ten("n2")];
    let pods =
        [requesting("p1", "n1", &json!({})), requesting("p2", "n1", &json!({})), requesting("p3", "n1", &json!({}))];
    let usage = measured_amounts(&[("n1", 8000), ("n2", 500)], &[("p1", 2000), ("p2", 2000), ("p3", 100)]);
    assert_eq!(
        names(&planned(&by_metrics_server(), &[&nodes, &pods], Ok(usage))),
        ["p1", "p2"],
        "80 % to 60 % to 40 %"
    );
    // Much is requested, and little used.
    let usage = measured_amounts(&[("n1", 3000), ("n2", 500)], &[]);
    assert_eq!(names(&planned(&by_metrics_server(), &[&nodes, &ones("p", "n1", 9)], Ok(usage))), [""; 0]);
}

#[test]
fn what_is_not_known_of_a_node_makes_it_neither_full_nor_empty() {
    let nodes = [ten("n1"), ten("n2"), ten("n3")];
    let pods = [ones("p", "n1", 9), ones("q", "n2", 9)].concat();
    let of_pods = &[("p1", 1000), ("q1", 1000)];
    let plan =
        planned(&by_metrics_server(), &[&nodes, &pods], Ok(measured_amounts(&[("n1", 6000), ("n3", 500)], of_pods)));
    assert_eq!(names(&plan), ["p1"], "n2 is not relieved");
    assert_eq!(code_of(&plan, "q1"), [ReasonCode::NodeUsageUnknown]);
    let plan = planned(&by_metrics_server(), &[&nodes, &pods], Ok(measured_amounts(&[("n1", 6000)], of_pods)));
    assert_eq!(names(&plan), [""; 0], "n3 takes nothing");
    assert_eq!(code_of(&plan, "p1"), [ReasonCode::NoTargetNodes]);
    let plan = planned(&by_query(), &[&nodes, &pods], Ok(shares(&[("n1", 0.9)])));
    assert_eq!((names(&plan), code_of(&plan, "q1")), (vec![], vec![ReasonCode::NodeUsageUnknown]));
}

#[test]
fn a_pod_that_was_not_measured_stays() {
    let objects: [&[Value]; 2] = [&[ten("n1"), ten("n2")], &ones("p", "n1", 3)];
    let usage = measured_amounts(&[("n1", 6000), ("n2", 500)], &[("p2", 500), ("p3", 600)]);
    let plan = planned(&by_metrics_server(), &objects, Ok(usage));
    assert_eq!((names(&plan), code_of(&plan, "p1")), (vec!["p2", "p3"], vec![ReasonCode::PodUsageUnknown]));
}

#[test]
fn a_source_that_fails_lets_the_strategy_alone_do_nothing() {
    let objects: [&[Value]; 2] = [&[ten("n1"), ten("n2")], &ones("p", "n1", 9)];
    let plan = planned(&by_metrics_server(), &objects, Err("no answer within 5 s"));
    assert_eq!((plan.steps.len(), plan.skipped), (0, None));
    let (profile, strategy, error) = &plan.errors[0];
    assert_eq!((&**profile, *strategy), ("p", "LowNodeUtilization"));
    assert_eq!(error.0, "usage is not known from KubernetesMetrics: no answer within 5 s");
    assert_eq!(code_of(&plan, "p1"), [ReasonCode::NodeUsageUnknown]);
    // Nobody has asked at all, as in a plan of files.
    let plan = descheduler(strategy_of_query(), koord_descheduler_testing::Everything).pass(
        &koord_descheduler_framework::Input::new(
            &cluster(&objects.concat()),
            &koord_descheduler_framework::Memory::default(),
            jiff::Timestamp::UNIX_EPOCH,
        ),
    );
    assert_eq!(plan.errors[0].2.0, "usage is not known from Prometheus: nothing has been measured yet");
}

fn strategy_of_query() -> LowNodeUtilization {
    strategy(&by_query())
}

#[test]
fn where_pods_are_not_measured_one_leaves_a_node_or_as_many_as_the_limit_says() {
    let objects: [&[Value]; 3] = [&[ten("n1"), ten("n2"), ten("n3")], &ones("p", "n1", 4), &ones("q", "n3", 4)];
    let usage = shares(&[("n1", 0.9), ("n2", 0.1), ("n3", 0.6)]);
    assert_eq!(names(&planned(&by_query(), &objects, Ok(usage.clone()))), ["p1", "q1"]);
    let limited = with(&by_query(), &json!({"evictionLimits": {"node": 3}}));
    assert_eq!(names(&planned(&limited, &objects, Ok(usage.clone()))), ["p1", "p2", "p3", "q1", "q2", "q3"]);
    let none = with(&by_query(), &json!({"evictionLimits": {"node": 0}}));
    assert_eq!(names(&planned(&none, &objects, Ok(usage))), [""; 0]);
}

#[test]
fn a_share_counts_in_whole_percents() {
    let objects: [&[Value]; 2] = [&[ten("n1"), ten("n2")], &ones("p", "n1", 4)];
    for (share, expected) in [(0.509, 0), (0.51, 1)] {
        let plan = planned(&by_query(), &objects, Ok(shares(&[("n1", share), ("n2", 0.2)])));
        assert_eq!(plan.steps.len(), expected, "{share}");
    }
}

#[test]
fn thresholds_can_be_distances_from_the_average_of_the_nodes_that_are_measured() {
    let distances = json!({"thresholds": {"MetricResource": 10}, "targetThresholds": {"MetricResource": 10}, "useDeviationThresholds": true});
    let objects: [&[Value]; 2] = [&[ten("n1"), ten("n2"), ten("n3")], &ones("p", "n1", 4)];
    // On average 50 %; with an empty third node it would be 33 %, and the second node would not be underutilized.
    let plan = planned(&with(&by_query(), &distances), &objects, Ok(shares(&[("n1", 0.65), ("n2", 0.35)])));
    assert_eq!(names(&plan), ["p1"]);
}

#[test]
fn the_pods_of_overutilized_nodes_are_to_be_measured_and_no_others() {
    let wanted = |arguments: &Value, usage: MeasuredUsage| {
        let strategy = strategy(arguments);
        let mut cluster = cluster(&[ten("n1"), ten("n2"), ten("n3")]);
        let mut measurements = Measurements::default();
        measurements.set(strategy.usage_query().unwrap(), Ok(usage));
        measurements.store(&mut cluster);
        let nodes = strategy.nodes_to_relieve(&cluster);
        nodes.into_iter().map(|node| cluster.node_name(node).to_owned()).collect::<Vec<_>>()
    };
    let usage = || measured_amounts(&[("n1", 8000), ("n2", 5000)], &[]);
    assert_eq!(wanted(&by_metrics_server(), usage()), ["n1"]);
    let distances = with(&by_metrics_server(), &json!({"useDeviationThresholds": true}));
    assert_eq!(wanted(&distances, usage()), ["n1", "n2"], "whichever are above the average of a profile");
    assert_eq!(wanted(&by_query(), shares(&[("n1", 0.9)])), [""; 0], "a query measures no pods");
    assert_eq!(strategy(&cpu()).usage_query(), None);
}
