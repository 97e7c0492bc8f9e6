//! Cases of the corpus, restated: an engine of this plugin alone, nodes, reports and pods.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_config::scheduler::DefaultPreemptionArgs;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Profile, ServiceEndpoint as _,
    object::Object,
    pod::{Pod, Template},
};
use koord_scheduler_plugins_kubernetes::DefaultPreemption;
use koord_types::node_metric;
use serde_json::{Value, json};

use super::*;

mod assigned;
mod profiles;
mod reasons;

/// When all of it happens, in seconds since 1970.
const START: i64 = 1_000_000;

struct World {
    engine: Engine,
    seconds: u64,
}

impl World {
    /// Nodes of 100 cores and 100 GiB.
    fn new(args: &Value, nodes: &[&str]) -> Self {
        Self::with(args, nodes, Vec::new())
    }

    /// And plugins that make room.
    fn with(args: &Value, nodes: &[&str], post_filters: Vec<Arc<dyn Plugin>>) -> Self {
        let mut plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(plugin(args))];
        let indexes = (1..).zip(&post_filters).map(|(index, _)| index).collect();
        plugins.extend(post_filters);
        let own = Profile { filters: vec![0], scores: vec![(0, 1)], ..Profile::of("test", plugins) };
        let profile = Profile { post_filters: indexes, ..own };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, seconds: 0 };
        world.pass(0);
        for name in nodes {
            world.node(name, &json!({}));
        }
        world
    }

    fn now(&self) -> Moment {
        Moment::at(Duration::from_secs(self.seconds))
    }

    fn pass(&mut self, seconds: u64) {
        self.seconds += seconds;
        let now = START + i64::try_from(self.seconds).unwrap();
        self.engine.tick(Timestamp::from_second(now).unwrap());
    }

    fn set_back(&mut self, seconds: u64) {
        self.seconds -= seconds;
        self.pass(0);
    }

    fn node(&mut self, name: &str, annotations: &Value) {
        let allocatable = json!({"cpu": "100", "memory": "100Gi", "pods": "110"});
        let members = json!({"metadata": {"annotations": annotations}, "status": {"allocatable": allocatable}});
        let now = self.now();
        self.engine.set_node(koord_scheduler_testing::node(name, &members), now);
    }

    /// A report that is so many seconds old.
    fn report(&mut self, name: &str, age: i64, status: &Value) {
        let at = Timestamp::from_second(START + i64::try_from(self.seconds).unwrap() - age).unwrap();
        let mut object = json!({
            "metadata": {"name": name},
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
            "status": status,
        });
        object["status"]["updateTime"] = json!(at.to_string());
        let metric: node_metric::NodeMetric = serde_json::from_value(object).unwrap();
        let now = self.now();
        let object = Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(metric));
        self.engine.set_object(object, now);
    }

    fn use_of(&mut self, name: &str, cpu: &str, memory: &str) {
        let usage = json!({"resources": {"cpu": cpu, "memory": memory}});
        self.report(name, 20, &json!({"nodeMetric": {"nodeUsage": usage}}));
    }

    /// A pod is created, and where it is placed then; the reasons otherwise.
    fn create(&mut self, pod: Arc<Pod>) -> String {
        let now = self.now();
        self.engine.set_pod(pod, now);
        self.attempt()
    }

    fn attempt(&mut self) -> String {
        let now = self.now();
        match self.engine.attempt(now).map(|attempt| attempt.outcome) {
            Some(Outcome::Bind { node, .. }) => node.to_string(),
            Some(Outcome::Refused(refused)) => refused.message,
            Some(Outcome::Waiting { .. } | Outcome::ExtenderCall { .. }) | None => "no attempt".to_owned(),
        }
    }
}

fn pod(name: &str, requests: &Value, limits: &Value) -> Arc<Pod> {
    let resources = json!({"requests": requests, "limits": limits});
    let pod =
        koord_scheduler_testing::pod(name, &json!({"containers": [{"resources": resources}], "schedulerName": "test"}));
    Arc::new(Pod { created: START, ..Pod::clone(&pod) })
}

fn sized(name: &str, cpu: &str, memory: &str) -> Arc<Pod> {
    let amounts = json!({"cpu": cpu, "memory": memory});
    pod(name, &amounts, &amounts)
}

fn small(name: &str) -> Arc<Pod> {
    sized(name, "1", "1Gi")
}

fn with(pod: &Arc<Pod>, change: impl FnOnce(&mut Template)) -> Arc<Pod> {
    let mut template = Template::clone(&pod.template);
    change(&mut template);
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) })
}

fn plugin(args: &Value) -> LoadAwareScheduling {
    let args: LoadAwareSchedulingArgs = koord_config::arguments(args).unwrap();
    LoadAwareScheduling::new(&args)
}

fn thresholds() -> Value {
    json!({"usageThresholds": {"cpu": 65, "memory": 95}, "filterExpiredNodeMetrics": false, "nodeMetricExpirationSeconds": 300})
}

const OVER_CPU: &str = "0/1 nodes are available: 1 node(s) cpu usage exceed threshold.";

#[test]
fn a_node_that_uses_too_much_is_refused_by_the_first_resource() {
    let tried = |cpu: &str, memory: &str| {
        let mut world = World::new(&thresholds(), &["n1"]);
        world.use_of("n1", cpu, memory);
        world.create(small("p"))
    };
    assert_eq!(tried("70", "97Gi"), OVER_CPU);
    assert_eq!(tried("10", "97Gi"), "0/1 nodes are available: 1 node(s) memory usage exceed threshold.");
    assert_eq!(tried("64600m", "10Gi"), "n1", "65.45 percent");
    assert_eq!(World::new(&thresholds(), &["n1"]).create(small("p")), "n1", "without a report");
}

#[test]
fn the_load_of_a_node_is_shown_with_what_its_pods_are_estimated_to_add() {
    let mut world = World::new(&thresholds(), &["n1", "n2"]);
    world.use_of("n1", "30", "10Gi");
    assert_eq!(world.create(sized("a", "10", "1Gi")), "n1");
    let plugin = plugin(&thresholds());
    let shown = |path: &[&str]| plugin.serve(path, &Query::default(), world.engine.cluster());
    let mut node = shown(&["node", "n1"]).unwrap();
    let pod = &node["pods"][0];
    assert_eq!((&pod["pod"]["metadata"]["name"], &pod["estimated"]["cpu"]), (&json!("a"), &json!(8500)));
    let [none, added] = [("0", "0"), ("8500m", "751619277")].map(|(cpu, memory)| json!({"cpu": cpu, "memory": memory}));
    let metric = &node["nodeMetric"];
    assert_eq!(
        (&metric["nodeUsage"]["cpu"], &metric["ageSeconds"], &metric["isExpired"]),
        (&json!(30_000), &json!(20), &json!(false))
    );
    let compared = &node["compared"][0];
    assert_eq!(
        (&compared["measure"], &compared["used"]["cpu"], &compared["thresholdsPercent"]["cpu"]),
        (&json!("average"), &json!(38_500), &json!(65))
    );
    let further = ["pods", "allocatable", "nodeMetric", "compared"];
    node.as_object_mut().unwrap().retain(|name, _| !further.contains(&&**name));
    let expected = json!({
        "prodUsage": none, "nodeDelta": added, "prodDelta": added, "nodeEstimated": added,
        "nodeDeltaPods": ["ns/a"], "prodDeltaPods": ["ns/a"], "nodeEstimatedPods": ["ns/a"],
    });
    assert_eq!(node, expected);
    let unreported = shown(&["node", "n2"]).unwrap();
    assert_eq!((&unreported["nodeMetric"], unreported.get("nodeDelta")), (&Value::Null, None));
    assert_eq!(shown(&["node", "n3"]), Ok(json!({})));
}

#[test]
fn a_report_that_is_too_old_is_no_good_measure_and_none_is_no_old_one() {
    let mut world = World::new(&thresholds(), &["n1", "n2", "n3"]);
    world.use_of("n1", "30", "10Gi");
    world.report("n2", 301, &json!({}));
    let plugin = plugin(&thresholds());
    let is_stale = |world: &World, name| {
        let cluster = world.engine.cluster();
        plugin.is_input_stale(cluster, cluster.row(name).unwrap())
    };
    assert_eq!(["n1", "n2", "n3"].map(|name| is_stale(&world, name)), [false, true, false]);
    world.pass(280);
    assert!(is_stale(&world, "n1"), "its time is over");
}

#[test]
fn a_pod_of_a_daemon_set_runs_on_busy_nodes() {
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "80", "1Gi");
    let daemon = Arc::new(Pod { is_of_daemon_set: true, ..Pod::clone(&small("d")) });
    assert_eq!((world.create(daemon), world.create(small("p"))), ("n1".to_owned(), OVER_CPU.to_owned()));
}

#[test]
fn estimates_of_placed_pods_count_until_they_are_reported() {
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "30", "10Gi");
    // The limit of 40 cores counts 34, though 10 are requested.
    let limited = pod("a", &json!({"cpu": "10", "memory": "1Gi"}), &json!({"cpu": "40", "memory": "1Gi"}));
    assert_eq!(world.create(limited), "n1");
    assert_eq!(world.create(sized("p", "5", "1Gi")), OVER_CPU);
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "64200m", "10Gi");
    for name in ["a", "b", "c"] {
        assert_eq!(world.create(pod(name, &json!({}), &json!({}))), "n1", "250m for pods without requests");
    }
    assert_eq!(world.create(sized("p", "1", "1Gi")), OVER_CPU);
}

#[test]
fn evictions_do_not_relieve_a_busy_node_before_they_are_reported() {
    let preemption = DefaultPreemption::new(&DefaultPreemptionArgs::default());
    let mut world = World::with(&thresholds(), &["n1"], vec![Arc::new(preemption)]);
    world.use_of("n1", "30", "10Gi");
    let prioritised = |pod, priority| with(&pod, |template| template.priority = priority);
    assert_eq!(world.create(prioritised(sized("low", "40", "1Gi"), 1)), "n1");
    let message = world.create(prioritised(sized("high", "10", "1Gi"), 10));
    let none = "preemption: 0/1 nodes are available: 1 node(s) cpu usage exceed threshold.";
    assert_eq!(message, format!("{OVER_CPU} {none}"));
    assert_eq!(world.create(prioritised(small("small"), 10)), "n1", "what the pods amount to is as it was");
}

#[test]
fn a_fixed_time_keeps_the_estimate_though_less_is_reported() {
    let reported = json!({"nodeMetric": {"nodeUsage": {"resources": {"cpu": "35", "memory": "10Gi"}}}, "podsMetric": [
        {"name": "a", "namespace": "ns", "podUsage": {"resources": {"cpu": "5", "memory": "5Gi"}}},
    ]});
    let tried = |args: &Value| {
        let mut world = World::new(args, &["n1"]);
        world.use_of("n1", "30", "10Gi");
        assert_eq!(world.create(sized("a", "40", "10Gi")), "n1");
        world.pass(100);
        world.report("n1", 0, &reported);
        world.create(sized("p", "5", "1Gi"))
    };
    let mut fixed = thresholds();
    fixed["estimatedSecondsAfterPodScheduled"] = json!(600);
    assert_eq!((tried(&thresholds()), tried(&fixed)), ("n1".to_owned(), OVER_CPU.to_owned()));
}

#[test]
fn a_pod_may_set_its_own_factors_where_that_is_allowed() {
    let tried = |is_allowed: bool| {
        let mut args = thresholds();
        args["allowCustomizeEstimation"] = json!(is_allowed);
        let mut world = World::new(&args, &["n1"]);
        world.use_of("n1", "30", "10Gi");
        let factors = [("scheduling.koordinator.sh/load-estimated-scaling-factors", r#"{"cpu":50}"#)];
        let own = with(&sized("p", "60", "1Gi"), |template| template.annotations = factors.into_iter().collect());
        world.create(own)
    };
    assert_eq!((tried(true), tried(false)), ("n1".to_owned(), OVER_CPU.to_owned()));
}

#[test]
fn a_report_expires_without_another_event() {
    let mut args = thresholds();
    args["filterExpiredNodeMetrics"] = json!(true);
    let mut world = World::new(&args, &["n1"]);
    world.use_of("n1", "1", "1Gi");
    assert_eq!(world.create(small("a")), "n1");
    let wakes = START + 280;
    assert_eq!(world.engine.tick_at().map(Timestamp::as_second), Some(wakes));
    world.pass(279);
    assert_eq!(world.create(small("b")), "n1");
    world.pass(1);
    let expired = "0/1 nodes are available: 1 node(s) nodeMetric expired.";
    assert_eq!((world.create(small("c")).as_str(), world.engine.tick_at()), (expired, None));
    world.use_of("n1", "1", "1Gi");
    world.pass(60);
    assert_eq!(world.attempt(), "n1", "a new report lets it in");
    let mut world = World::new(&args, &["n1"]);
    world.report("n1", 300, &json!({}));
    assert_eq!(world.create(small("p")), expired);
}

#[test]
fn a_report_that_had_expired_counts_again_after_the_clock_was_set_back() {
    let mut args = thresholds();
    args["filterExpiredNodeMetrics"] = json!(true);
    let mut world = World::new(&args, &["n1"]);
    world.use_of("n1", "1", "1Gi");
    world.pass(300);
    let expired = "0/1 nodes are available: 1 node(s) nodeMetric expired.";
    assert_eq!(world.create(small("a")), expired);
    world.set_back(100);
    assert_eq!(world.create(small("b")), "n1");
    let wrong = world.engine.audit_all();
    assert!(wrong.is_empty(), "{wrong:?}");
    world.pass(100);
    assert_eq!(world.create(small("c")), expired);
}

#[test]
fn an_expired_report_scores_nothing() {
    let mut world = World::new(&thresholds(), &["n1", "n2"]);
    world.report("n1", 20, &json!({"nodeMetric": {"nodeUsage": {"resources": {"cpu": "50", "memory": "50Gi"}}}}));
    world.report("n2", 280, &json!({"nodeMetric": {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}}}));
    assert_eq!(world.create(small("a")), "n2");
    world.pass(20);
    assert_eq!(world.create(small("a2")), "n1");
}

#[test]
fn pods_come_to_the_node_of_which_the_most_is_left() {
    let chosen = |args: &Value, first: (&str, &str), second: (&str, &str)| {
        let mut world = World::new(args, &["n1", "n2"]);
        world.use_of("n1", first.0, first.1);
        world.use_of("n2", second.0, second.1);
        world.create(small("p"))
    };
    assert_eq!(chosen(&json!({}), ("50", "10Gi"), ("10", "10Gi")), "n2");
    assert_eq!(chosen(&json!({}), ("10", "50Gi"), ("10", "10Gi")), "n2");
    assert_eq!(chosen(&json!({}), ("5", "70Gi"), ("45", "45Gi")), "n1");
    let dominant = json!({"dominantResourceWeight": 10, "resourceWeights": {"cpu": 1, "memory": 1}});
    assert_eq!(chosen(&dominant, ("5", "70Gi"), ("45", "45Gi")), "n2");
    let mut world = World::new(&json!({}), &["n1", "n2"]);
    world.use_of("n1", "10", "10Gi");
    world.use_of("n2", "14", "14Gi");
    let burst = ["p1", "p2", "p3", "p4"].map(|name| world.create(sized(name, "8", "8Gi")));
    assert_eq!(burst, ["n1", "n2", "n1", "n2"], "estimates make a burst alternate");
}

#[test]
fn production_pods_may_be_judged_by_production_usage() {
    let scored = |args: &Value, thresholds_only: bool| {
        let mut world = World::new(args, &["n1", "n2"]);
        let prod = |name: &str| with(&sized(name, "30", "10Gi"), |template| template.priority = 9500);
        for (node, name, used, of_pod) in [("n1", "a", "40", "40"), ("n2", "b", "60", "5")] {
            let running = Pod { node: Some(node.into()), ..Pod::clone(&prod(name)) };
            let now = world.now();
            world.engine.set_pod(Arc::new(Pod { created: START - 500, ..running }), now);
            let amounts = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "20Gi"}});
            let pods =
                json!([{"name": name, "namespace": "ns", "priority": "koord-prod", "podUsage": amounts(of_pod)}]);
            world.report(node, 20, &json!({"nodeMetric": {"nodeUsage": amounts(used)}, "podsMetric": pods}));
        }
        if thresholds_only {
            return world.create(with(&small("p"), |template| template.priority = 5500));
        }
        world.create(with(&small("p"), |template| template.priority = 9500))
    };
    let plain = json!({"usageThresholds": {"cpu": 0, "memory": 0}});
    assert_eq!(scored(&plain, false), "n1");
    let by_prod = json!({"usageThresholds": {"cpu": 0, "memory": 0}, "scoreAccordingProdUsage": true});
    assert_eq!((scored(&by_prod, false), scored(&by_prod, true)), ("n2".to_owned(), "n1".to_owned()));
    let bounded = json!({"usageThresholds": {"cpu": 30}, "prodUsageThresholds": {"cpu": 20}});
    assert_eq!(scored(&bounded, false), "n2", "which uses more than 30 percent");
    assert_eq!(scored(&bounded, true), "0/2 nodes are available: 2 node(s) cpu usage exceed threshold.");
}

#[test]
fn percentiles_may_count_instead_of_averages() {
    let filled = |args: &Value| {
        let mut world = World::new(args, &["n1", "n2"]);
        for (node, average, p95) in [("n1", "10", "80"), ("n2", "40", "45")] {
            let amounts = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "10Gi"}});
            let windows = json!([{"duration": "5m", "usage": {"p95": amounts(p95)}}]);
            let metric = json!({"nodeUsage": amounts(average), "aggregatedNodeUsages": windows});
            world.report(node, 20, &json!({"nodeMetric": metric}));
        }
        world.create(small("p"))
    };
    assert_eq!(filled(&json!({})), "n1");
    assert_eq!(filled(&json!({"aggregated": {"scoreAggregationType": "p95"}})), "n2");
    let bounds =
        |percent: i64| json!({"aggregated": {"usageThresholds": {"cpu": percent}, "usageAggregationType": "p95"}});
    assert_eq!(filled(&bounds(60)), "n2");
    let both = "0/2 nodes are available: 2 node(s) cpu aggregated usage exceed threshold.";
    assert_eq!(filled(&bounds(40)), both);
}

#[test]
fn a_node_sets_thresholds_and_its_capacity_by_annotation() {
    let tried = |key: &str, text: &str, cpu: &str| {
        let mut world = World::new(&thresholds(), &[]);
        world.node("n1", &json!({key: text}));
        world.use_of("n1", cpu, "10Gi");
        world.create(small("p"))
    };
    let key = "scheduling.koordinator.sh/usage-thresholds";
    assert_eq!(tried(key, r#"{"usageThresholds":{"cpu":90}}"#, "80"), "n1");
    assert_eq!(tried(key, r#"{"usageThresholds":{"memory":50}}"#, "80"), "n1");
    assert_eq!(tried(key, r#"{"usageThresholds":{"cpu":0,"memory":0}}"#, "90"), "n1");
    assert_eq!(tried(key, "nonsense", "80"), OVER_CPU);
    assert_eq!(tried("node.koordinator.sh/raw-allocatable", r#"{"cpu":"50"}"#, "40"), OVER_CPU);
    assert_eq!(tried("node.koordinator.sh/raw-allocatable", "nonsense", "40"), "n1");
}

#[test]
fn a_lower_report_and_a_looser_annotation_let_a_waiting_pod_in() {
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "80", "10Gi");
    assert_eq!(world.create(small("p")), OVER_CPU);
    world.use_of("n1", "70", "10Gi");
    world.pass(60);
    assert_eq!(world.attempt(), "no attempt", "it would be refused again");
    world.use_of("n1", "20", "10Gi");
    world.pass(60);
    assert_eq!(world.attempt(), "n1");
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "80", "10Gi");
    assert_eq!(world.create(small("p")), OVER_CPU);
    let loose = r#"{"usageThresholds":{"cpu":90}}"#;
    world.node("n1", &json!({"scheduling.koordinator.sh/usage-thresholds": loose}));
    world.pass(60);
    assert_eq!(world.attempt(), "n1");
}

#[test]
fn a_node_that_comes_again_has_its_report_and_its_pods() {
    let mut world = World::new(&thresholds(), &["n1"]);
    world.use_of("n1", "30", "10Gi");
    assert_eq!(world.create(sized("a", "40", "1Gi")), "n1");
    let now = world.now();
    world.engine.remove_node("n1", now);
    world.node("n1", &json!({}));
    assert_eq!(world.create(sized("p", "5", "1Gi")), OVER_CPU);
    let now = world.now();
    world.engine.remove_pod(&Uid::from("a"), now);
    world.pass(60);
    assert_eq!(world.attempt(), "n1");
}
