//! What people, koordlet and the kubelet can say at the edge of what is meant, each with the number worked out by hand.
//!
//! The node has 100 cores and 120 GB; 35 % are a margin, the system uses 7 cores and 12 GB: 58 cores and 66 GB are left.

use serde_json::{Value, json};

use super::{
    Decision, Plugins,
    batch::Place,
    decide,
    decision::Reset,
    facts::Degraded,
    plugin::Plugin,
    scene::{GIGA, Scene, usage},
};

const BATCH_CPU: &str = "kubernetes.io/batch-cpu";
const RESERVATION: &str = "node.koordinator.sh/reservation";
const NORMALIZATION: &str = "node.koordinator.sh/cpu-normalization-ratio";
const AMPLIFICATION: &str = "node.koordinator.sh/resource-amplification-ratio";
const ORIGIN: &str = "node.koordinator.sh/originExtendedAllocatable";

/// What batch pods get of the whole node, in thousandths of cores and in MB.
fn left(scene: &Scene) -> (i64, i64) {
    let (cpu, memory) = scene.batch(Place::Node);
    (cpu, memory / 1_000_000)
}

fn annotation<'a>(decision: &'a Decision, name: &str) -> Option<&'a str> {
    decision.annotations.get(name)?.as_deref()
}

fn count(decision: &Decision, name: &str) -> Option<i64> {
    Some(decision.resources.get(name)?.as_ref()?.value())
}

#[test]
fn pods_count_while_they_are_pending_or_running() {
    for (phase, cpu, memory) in [
        (json!("Pending"), 48_000, 56_000),
        (json!("Running"), 48_000, 56_000),
        (json!("Succeeded"), 58_000, 66_000),
        (json!("Failed"), 58_000, 66_000),
        (json!("Unknown"), 58_000, 66_000),
        (Value::Null, 58_000, 66_000),
    ] {
        let mut scene = Scene::new(json!({}));
        scene.pod("p", "LS", "koord-prod", ("10", "10G"), None);
        scene.pods[0]["status"] = json!({ "phase": phase });
        assert_eq!(left(&scene), (cpu, memory), "{phase}");
    }
    let mut scene = Scene::new(json!({}));
    scene.pod("p", "LS", "koord-prod", ("10", "10G"), Some(("3", "4G")));
    scene.pods[0]["status"] = json!({"phase": "Failed"});
    assert_eq!(left(&scene), (55_000, 62_000), "ended, and still reported: what it uses counts, not what it requests");
}

#[test]
fn the_class_of_a_pod_is_that_of_its_label_its_priority_or_its_qos() {
    let cores = |labels: Value, priority: Value| {
        let mut scene = Scene::new(json!({}));
        scene.pod("p", "", "", ("10", "10G"), None);
        scene.pods[0]["metadata"]["labels"] = labels;
        scene.pods[0]["spec"]["priority"] = priority;
        left(&scene).0
    };
    for priority in [5000, 5999, 3000, 3999] {
        assert_eq!(cores(json!({}), json!(priority)), 58_000, "{priority}: batch or free");
    }
    for priority in [2999, 4999, 6000, 7000, 9999, 10_000, 0] {
        assert_eq!(cores(json!({}), json!(priority)), 48_000, "{priority}");
    }
    assert_eq!(cores(json!({"koordinator.sh/priority-class": "koord-free"}), json!(9000)), 58_000);
    let unknown = json!({"koordinator.sh/priority-class": "koord-x"});
    assert_eq!(cores(unknown, json!(5500)), 48_000, "an unknown label hides the priority; the QoS class is burstable");
    assert_eq!(cores(json!({"koordinator.sh/qosClass": "BE"}), Value::Null), 58_000);
    assert_eq!(cores(json!({"koordinator.sh/qosClass": "BE"}), json!(9000)), 48_000);
    assert_eq!(cores(json!({"koordinator.sh/qosClass": "be"}), Value::Null), 48_000, "no such class");
}

#[test]
fn a_report_about_a_pod_counts_as_it_stands() {
    let scene = |said: Value| {
        let mut scene = Scene::new(json!({}));
        scene.pod("p", "LS", "koord-prod", ("10", "10G"), None);
        scene.metric["status"]["podsMetric"] = said;
        left(&scene)
    };
    let said = |amounts: Value| json!({"name": "p", "namespace": "d", "podUsage": {"resources": amounts}});
    assert_eq!(scene(json!([said(json!({}))])), (58_000, 66_000), "measured, and nothing is used");
    assert_eq!(scene(json!([said(json!({"cpu": "2"}))])), (56_000, 66_000));
    assert_eq!(scene(json!([said(json!({"cpu": "2"})), said(json!({"cpu": "3"}))])), (55_000, 66_000), "the last one");
    assert_eq!(scene(json!([{"name": "p", "namespace": "e", "podUsage": {}}])), (48_000, 56_000), "another pod");
    assert_eq!(scene(json!([{"name": "p", "namespace": "d"}])), (58_000, 66_000));
    assert_eq!(scene(Value::Null), (48_000, 56_000));
    for (class, cores) in
        [("koord-batch", 48_000), ("koord-free", 48_000), ("koord-mid", 46_000), ("", 46_000), ("x", 46_000)]
    {
        let gone = json!([{"name": "gone", "namespace": "d", "priority": class, "podUsage": usage("2", "0")}]);
        assert_eq!(scene(gone).0, cores, "of a pod that is gone, of class {class:?}");
    }
}

#[test]
fn exclusive_pods_count_by_the_larger_where_the_policy_says_so() {
    let mut scene =
        Scene::new(json!({"cpuCalculatePolicy": "maxUsageRequest", "memoryCalculatePolicy": "maxUsageRequest"}));
    scene.pod("a", "LSE", "koord-prod", ("10", "4G"), Some(("12", "2G")));
    assert_eq!(left(&scene), (46_000, 62_000));
    let unknown = Scene::busy(json!({"cpuCalculatePolicy": "guess", "memoryCalculatePolicy": ""}));
    assert_eq!(left(&unknown), (25_000, 33_000), "unknown policies count by use");
}

#[test]
fn the_reservation_of_a_node_is_read_where_it_makes_sense() {
    for (text, cores, giga) in [
        (r#"{"resources":{"cpu":"8500m","memory":"13G"}}"#, 56_500, 65_000),
        (r#"{"resources":{"cpu":"6"}}"#, 58_000, 66_000),
        (r#"{"resources":{"cpu":"-8"}}"#, 58_000, 66_000),
        (r#"{"reservedCPUs":"0-3,8-15"}"#, 53_000, 66_000),
        (r#"{"reservedCPUs":"0-7,7,0"}"#, 57_000, 66_000),
        (r#"{"resources":{"cpu":"30"},"reservedCPUs":"9"}"#, 58_000, 66_000),
        (r#"{"resources":{"cpu":"30"},"applyPolicy":"ReservedCPUsOnly"}"#, 35_000, 66_000),
        (r#"{"resources":{"cpu":"30"},"reservedCPUs":"3-1"}"#, 58_000, 66_000),
        (r#"{"resources":{"memory":"13G"},"reservedCPUs":"3-1"}"#, 58_000, 65_000),
        (r#"{"resources":{"memory":"13G"},"reservedCPUs":"0-15, 20"}"#, 58_000, 66_000),
        (r#"{"resources":{"memory":"13G"},"reservedCPUs":"0-4097"}"#, 58_000, 66_000),
        (r#"{"resources":{"cpu":"x"}}"#, 58_000, 66_000),
        (r#"{"resources":null}"#, 58_000, 66_000),
        ("null", 58_000, 66_000),
        ("", 58_000, 66_000),
        ("[]", 58_000, 66_000),
    ] {
        assert_eq!(left(&Scene::new(json!({})).annotate(RESERVATION, text)), (cores, giga), "{text}");
    }
}

#[test]
fn what_the_kubelet_keeps_counts_if_it_is_more_than_the_system_uses() {
    for (allocatable, cores, giga) in [
        (json!({"cpu": "90", "memory": "100G"}), 55_000, 58_000),
        (json!({"cpu": "95", "memory": "120G"}), 58_000, 66_000),
        (json!({"cpu": "200", "memory": "300G"}), 58_000, 66_000),
        (json!({"memory": "120G"}), 0, 66_000),
        (json!({}), 0, 0),
    ] {
        let mut scene = Scene::new(json!({}));
        scene.node["status"]["allocatable"] = allocatable.clone();
        assert_eq!(left(&scene), (cores, giga), "{allocatable}");
    }
}

#[test]
fn the_system_uses_what_is_said_and_nothing_else() {
    for (system, cores, giga) in [
        (json!({"systemUsage": {}}), 65_000, 78_000),
        (json!({"systemUsage": {"resources": {"memory": "20G"}}}), 65_000, 58_000),
        (json!({}), 65_000, 78_000),
        (json!({"systemUsage": usage("70", "90G")}), 0, 0),
    ] {
        let mut scene = Scene::new(json!({}));
        scene.metric["status"]["nodeMetric"] = system.clone();
        assert_eq!(left(&scene), (cores, giga), "{system}");
    }
    for (class, cores) in
        [("koord-prod", 55_000), ("koord-mid", 55_000), ("koord-batch", 58_000), ("koord-free", 58_000), ("", 58_000)]
    {
        let mut scene = Scene::new(json!({}));
        let application = json!([{"name": "app", "priority": class, "usage": usage("3", "0")}]);
        scene.metric["status"]["hostApplicationMetric"] = application;
        assert_eq!(left(&scene).0, cores, "an application of class {class:?}");
    }
}

#[test]
fn shares_of_odd_amounts_are_cut_and_bounded() {
    let odd = |config: Value| {
        let mut scene = Scene::new(config);
        scene.metric["status"]["nodeMetric"] = json!({});
        let amounts = json!({"cpu": "7910m", "memory": "264241152Ki"});
        scene.node["status"] = json!({"capacity": amounts, "allocatable": amounts});
        scene.batch(Place::Node)
    };
    // 7910 × 0.35 = 2768.5; 270582939648 × 0.35 = 94704028876.8.
    assert_eq!(odd(json!({})), (5142, 175_878_910_772));
    // 7910 × 0.33 = 2610.3; 270582939648 × 0.01 = 2705829396.48.
    assert_eq!(odd(json!({"batchCPUThresholdPercent": 33, "batchMemoryThresholdPercent": 1})), (2610, 2_705_829_396));
    assert_eq!(odd(json!({"batchCPUThresholdPercent": 0, "batchMemoryThresholdPercent": 150})), (0, 175_878_910_772));
    assert_eq!(
        odd(json!({"cpuReclaimThresholdPercent": 0, "memoryReclaimThresholdPercent": 100})),
        (0, 270_582_939_648)
    );
    // 7910 × -0.5 = -3955: a margin below nothing gives more than there is.
    assert_eq!(odd(json!({"cpuReclaimThresholdPercent": 150})).0, 11_865);
}

#[test]
fn labels_go_before_the_annotation_and_that_before_the_configuration() {
    let cores = |labels: Value, annotated: &str| {
        let mut scene = Scene::new(json!({})).annotate("node.koordinator.sh/colocation-strategy", annotated);
        scene.node["metadata"]["labels"] = labels;
        left(&scene).0
    };
    let label = |text: &str| json!({"node.koordinator.sh/cpu-reclaim-ratio": text});
    assert_eq!(cores(json!({}), r#"{"cpuReclaimThresholdPercent":50}"#), 43_000);
    assert_eq!(cores(json!({}), r#"{"CPURECLAIMTHRESHOLDPERCENT":50}"#), 43_000, "names are read in any case");
    assert_eq!(cores(label("0.7"), r#"{"cpuReclaimThresholdPercent":50}"#), 63_000);
    assert_eq!(cores(label("0.29"), "{}"), 21_000, "0.29 × 100 is cut to 28");
    for ignored in ["", " 0.7", "70%", "-0.7", "0,7", "1e400"] {
        assert_eq!(cores(label(ignored), r#"{"cpuReclaimThresholdPercent":50}"#), 43_000, "{ignored:?}");
    }
    for ignored in
        ["", "null", "{", "[]", r#"{"cpuReclaimThresholdPercent":"50"}"#, r#"{"cpuReclaimThresholdPercent":50_500}"#]
    {
        assert_eq!(cores(json!({}), ignored), 58_000, "{ignored:?}");
    }
}

#[test]
fn a_report_is_trusted_until_the_time_of_its_node_is_over() {
    let at = |config: Value, annotated: &str, ago: i64| {
        let mut scene = Scene::new(config).annotate("node.koordinator.sh/colocation-strategy", annotated);
        scene.metric["status"]["updateTime"] =
            (super::scene::NOW - jiff::SignedDuration::from_secs(ago)).to_string().into();
        scene.decide().reset
    };
    let old = Some(Reset::Degraded(Degraded::TooOld));
    assert_eq!(at(json!({"degradeTimeMinutes": 2}), "{}", 120), None);
    assert_eq!(at(json!({"degradeTimeMinutes": 2}), "{}", 121), old);
    assert_eq!(at(json!({}), r#"{"degradeTimeMinutes":1}"#, 61), old);
    assert_eq!(at(json!({}), r#"{"degradeTimeMinutes":0}"#, 1), old, "the annotation is not checked");
    assert_eq!(at(json!({}), "{}", -600), None, "a clock that is ahead");
    assert_eq!(at(json!({"enable": false}), "{}", 0), Some(Reset::Disabled));
    assert_eq!(
        at(json!({"enable": false}), r#"{"enable":true}"#, 0),
        Some(Reset::Disabled),
        "a node cannot switch it on"
    );
    assert_eq!(at(json!({}), r#"{"enable":false}"#, 0), Some(Reset::Disabled));
    assert_eq!(at(json!({}), r#"{"enable":null}"#, 0), None);
}

fn three_zones() -> Scene {
    let mut scene = Scene::new(json!({})).zones(["62G", "58G"]);
    scene.topology["zones"][1]["resources"] =
        json!([{"name": "cpu", "capacity": "50", "allocatable": "50", "available": "50"}]);
    scene.topology["zones"].as_array_mut().unwrap().push(json!({"name": "node-2", "type": "Node"}));
    scene
}

#[test]
fn zones_that_say_little_get_little() {
    // 7 cores / 3 is 2334 thousandths, rounded up: 50 - 17.5 - 2.334.
    let scene = three_zones();
    assert_eq!(scene.batch(Place::Zone(0)), (30_166, 36_300_000_000));
    assert_eq!(scene.batch(Place::Zone(1)), (30_166, 0));
    assert_eq!(scene.batch(Place::Zone(2)), (0, 0));
    let mut nothing = three_zones();
    nothing.topology["zones"] =
        json!([{"name": "node-0", "type": "Node", "resources": [{"name": "gpu", "allocatable": "1"}]}]);
    assert_eq!(nothing.decide().zones, None, "zones without CPU and memory are left alone");
}

#[test]
fn zones_are_exact_where_nodes_are_whole() {
    let mut scene = three_zones();
    scene.metric["status"]["nodeMetric"]["systemUsage"] = usage("7", "12000000001");
    scene.node["metadata"]["labels"] = json!({"node.koordinator.sh/cpu-normalization-enabled": "true"});
    scene.topology["metadata"] = json!({"annotations": {"node.koordinator.sh/cpu-basic-info": r#"{"cpuModel":"X"}"#}});
    scene.normalization = json!({"ratioModel": {"X": {"baseRatio": 1.25}}});
    let decision = scene.decide();
    let zone = &decision.zones.as_ref().unwrap()[0];
    // 30166 × 1.25; 62 GB - 21.7 GB - 4000000000.334.
    assert_eq!((zone.cpu.to_string().as_str(), zone.memory.to_string().as_str()), ("37707500m", "36299999999666m"));
    assert_eq!(count(&decision, BATCH_CPU), Some(72_500), "58000 × 1.25");
    scene.metric["status"]["nodeMetric"]["systemUsage"] = usage("7001m", "12G");
    let decision = scene.decide();
    assert_eq!(count(&decision, BATCH_CPU), Some(72_499), "57999 × 1.25 = 72498.75, rounded up");
}

#[test]
fn a_pod_counts_on_the_zones_that_exist_of_those_it_was_given() {
    let cores = |place: &str| {
        let mut scene = Scene::new(json!({})).zones(["62G", "58G"]);
        scene.pod("p", "LS", "koord-prod", ("10", "0"), None);
        scene.pods[0]["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/resource-status": place});
        [0, 1].map(|zone| scene.batch(Place::Zone(zone)).0)
    };
    // 50 - 17.5 - 3.5 = 29.
    for everywhere in ["", "{", "{}", r#"{"numaNodeResources":[{"node":2}]}"#, r#"{"numaNodeResources":[{"node":-1}]}"#]
    {
        assert_eq!(cores(everywhere), [24_000, 24_000], "{everywhere:?}");
    }
    assert_eq!(cores(r#"{"numaNodeResources":[{"node":1},{"node":7}]}"#), [29_000, 19_000]);
    assert_eq!(cores(r#"{"numaNodeResources":[{"node":0},{"node":1}]}"#), [24_000, 24_000]);
    assert_eq!(cores(r#"{"numaNodeResources":[{"node":1},{"node":1}]}"#), [29_000, 19_000]);
    assert_eq!(cores(r#"{"numaNodeResources":[{}]}"#), [19_000, 29_000], "no number is zone 0");
}

#[test]
fn what_others_took_is_summed_over_batch_allocations() {
    const TAKEN: &str = "node.koordinator.sh/thirdPartyAllocations";
    let taken = |text: &str| count(&Scene::new(json!({})).annotate(TAKEN, text).decide(), BATCH_CPU);
    let entry = |priority: &str, cpu: &str| json!({"name": "x", "priority": priority, "resources": {BATCH_CPU: cpu}});
    let list = |entries: Value| json!({ "allocations": entries }).to_string();
    assert_eq!(taken(&list(json!([entry("koord-batch", "1k"), entry("koord-batch", "500")]))), Some(56_500));
    assert_eq!(
        taken(&list(json!([entry("koord-mid", "1k"), entry("", "1k"), entry("koord-free", "1k")]))),
        Some(58_000)
    );
    assert_eq!(taken(&list(json!([entry("koord-batch", "58001")]))), Some(0));
    for ignored in ["", "null", "{", "{}", r#"{"allocations":null}"#, r#"{"allocations":{}}"#] {
        assert_eq!(taken(ignored), Some(58_000), "{ignored:?}");
    }
}

#[test]
fn without_amounts_their_origin_is_nothing() {
    let mut scene = Scene::new(json!({}));
    scene.metric = Value::Null;
    let nothing = r#"{"resources":{"kubernetes.io/batch-cpu":"0","kubernetes.io/batch-memory":"0"}}"#;
    let decision = scene.decide();
    assert_eq!((annotation(&decision, ORIGIN), count(&decision, BATCH_CPU)), (Some(nothing), None));
    assert_eq!(decision.resources.get(BATCH_CPU), Some(&None), "it goes");
    scene.node["metadata"] = json!({});
    assert_eq!(
        annotation(&scene.decide(), ORIGIN),
        Some(nothing),
        "the normalization ratio makes the first annotation"
    );
    scene.config["enable"] = false.into();
    assert_eq!(annotation(&scene.decide(), ORIGIN), None, "a node without any annotation gets none");
}

#[test]
fn normalization_says_nothing_where_it_does_not_know() {
    let scene = |config: Value, label: Option<&str>, cpu: &str| {
        let mut scene = Scene::new(json!({}));
        scene.normalization = config;
        scene.topology = json!({"metadata": {"annotations": {"node.koordinator.sh/cpu-basic-info": cpu}}});
        if let Some(label) = label {
            scene.node["metadata"]["labels"] = json!({"node.koordinator.sh/cpu-normalization-enabled": label});
        }
        let decision = scene.decide();
        let text = annotation(&decision, NORMALIZATION).map(str::to_owned);
        (text, count(&decision, BATCH_CPU).unwrap())
    };
    let ratio = |base: f64| json!({"enable": true, "ratioModel": {"X": {"baseRatio": base}}});
    let cpu = r#"{"cpuModel":"X"}"#;
    let says = |text: &str, count: i64| (Some(text.to_owned()), count);
    assert_eq!(scene(ratio(1.125), None, cpu), says("1.12", 64_960), "58000 × 1.12");
    assert_eq!(scene(ratio(1.0), None, cpu), says("1.00", 58_000));
    assert_eq!(scene(ratio(1.004), None, cpu), says("1.00", 58_000));
    assert_eq!(scene(ratio(5.0), None, cpu), says("5.00", 290_000));
    for unknown in [
        ratio(0.99),
        ratio(5.01),
        json!({"enable": true}),
        json!({"enable": true, "ratioModel": {"X": {"turboEnabledRatio": 2}}}),
    ] {
        assert_eq!(scene(unknown.clone(), None, cpu), (None, 58_000), "{unknown}");
    }
    for bad in ["", "{", "[]", r#"{"cpuModel":1}"#] {
        assert_eq!(scene(ratio(2.0), None, bad), (None, 58_000), "{bad:?}");
    }
    assert_eq!(scene(json!({"enable": true, "defaultRatio": 1.5}), None, "{}"), says("1.50", 87_000));
    assert_eq!(scene(ratio(2.0), Some("False"), cpu), says("1.00", 58_000));
    assert_eq!(scene(json!({"ratioModel": {"X": {"baseRatio": 2}}}), Some("t"), cpu), says("2.00", 116_000));
    for bad in ["yes", "", "on", "tRUE"] {
        assert_eq!(scene(ratio(2.0), Some(bad), cpu), (None, 58_000), "{bad:?}");
    }
}

#[test]
fn a_node_promises_the_product_of_its_ratios() {
    let scene = |ratios: Value, normalization: Option<&str>| {
        let mut scene = Scene::new(json!({})).annotate(AMPLIFICATION, "{}");
        scene.amplification = json!({"enable": true, "resourceAmplificationRatio": ratios});
        if let Some(text) = normalization {
            scene = scene.annotate(NORMALIZATION, text);
        }
        let decision = scene.decide();
        let failed = decision.failures.iter().any(|(plugin, _)| *plugin == Plugin::ResourceAmplification);
        (decision.annotations.get(AMPLIFICATION).cloned(), failed)
    };
    let written = |text: &str| (Some(Some(text.to_owned())), false);
    let (gone, failed) = ((Some(None), false), (None, true));
    assert_eq!(scene(json!({}), Some("1.22")), written(r#"{"cpu":1.22}"#));
    assert_eq!(scene(json!({"cpu": 1.1, "memory": 2.1}), None), written(r#"{"cpu":1.10,"memory":2.10}"#));
    assert_eq!(scene(json!({"cpu": 1.5, "memory": 2.5}), Some("1.2")), written(r#"{"cpu":1.80,"memory":2.50}"#));
    assert_eq!(scene(json!({"cpu": 0.8}), Some("1.5")), written(r#"{"cpu":1.20}"#));
    assert_eq!(scene(json!({"cpu": 1}), None), written(r#"{"cpu":1.00}"#));
    assert_eq!(scene(json!({"cpu": 0.8}), None), failed);
    assert_eq!(scene(json!({"cpu": 0.5}), Some("1.5")), failed, "0.75");
    assert_eq!(scene(json!({"cpu": 0}), None), failed);
    assert_eq!(scene(json!({"cpu": 0}), Some("1.2")), written(r#"{"cpu":1.20}"#), "no ratio counts as 1");
    assert_eq!(scene(json!({"memory": 0.99}), Some("1.2")), failed);
    assert_eq!(scene(json!({}), None), gone);
    assert_eq!(scene(json!({}), Some("1.00")), gone, "the product is not above 1");
    for wrong in ["", "0", "-1", "x"] {
        assert_eq!(scene(json!({"memory": 2}), Some(wrong)), failed, "{wrong:?}");
    }
}

#[test]
fn mid_pods_get_shares_of_what_nobody_requests() {
    let scene = |config: Value| {
        let mut scene = Scene::new(config);
        scene.pod("prod", "LS", "koord-prod", ("20", "20G"), Some(("1", "1G")));
        scene.pod("mid", "LS", "koord-mid", ("5", "5G"), None);
        scene.pod("batch", "BE", "koord-batch", ("5", "5G"), None);
        scene.pod("done", "LS", "koord-prod", ("9", "9G"), None);
        scene.pods[3]["status"]["phase"] = "Succeeded".into();
        scene.metric["status"]["prodReclaimableMetric"] = json!({"resource": usage("10", "10G")});
        let application = |class: &str| json!({"name": class, "priority": class, "usage": usage("3", "3G")});
        scene.metric["status"]["hostApplicationMetric"] = json!([application("koord-prod"), application("koord-mid")]);
        scene
    };
    // 100 - (7 + 3) - 20 = 70 cores and 120 - (12 + 3) - 20 = 85 GB.
    assert_eq!(scene(json!({"midUnallocatedPercent": 50})).mid(), (45_000, 52_500_000_000));
    assert_eq!(scene(json!({"midUnallocatedPercent": 0})).mid(), (10_000, 10 * GIGA));
    let bounded = json!({"midUnallocatedPercent": 100, "midCPUThresholdPercent": 33, "midMemoryThresholdPercent": 0});
    assert_eq!(scene(bounded).mid(), (33_000, 0));
    let reserved = scene(json!({"midUnallocatedPercent": 10})).annotate(RESERVATION, r#"{"resources":{"cpu":"30"}}"#);
    assert_eq!(reserved.mid(), (15_000, 18_500_000_000));
    let mut full = scene(json!({"midUnallocatedPercent": 100}));
    full.pod("large", "LS", "koord-prod", ("90", "10G"), None);
    assert_eq!(full.mid(), (10_000, 85 * GIGA), "nothing is left of the CPU");
    let mut half = scene(json!({}));
    half.metric["status"]["prodReclaimableMetric"] = json!({"resource": {"resources": {"memory": "1500m"}}});
    assert_eq!(half.mid(), (0, 2), "1.5 bytes count as 2");
    half.metric["status"]["nodeMetric"]["nodeUsage"] = usage("101", "120G");
    half.metric["status"]["prodReclaimableMetric"] = json!({"resource": usage("5", "5G")});
    assert_eq!(half.mid(), (0, 0), "more is used than there is");
}

#[test]
fn static_shares_of_mid_pods_are_bounded_by_their_threshold() {
    let mid = |config: Value, label: &str| {
        let mut scene = Scene::new(config);
        scene.node["metadata"]["labels"] = json!({"node.koordinator.sh/mid-static-cpu-reserved-ratio": label});
        scene.metric["status"]["nodeMetric"] = json!({});
        scene.mid()
    };
    assert_eq!(
        mid(json!({"midReclaimMode": "static", "midStaticMemoryReservedPercent": 25}), "0.155"),
        (15_000, 30 * GIGA)
    );
    assert_eq!(mid(json!({"midReclaimMode": "static"}), "1.5"), (100_000, 0));
    assert_eq!(mid(json!({"midReclaimMode": "Static", "midStaticMemoryReservedPercent": 25}), "0.5"), (0, 0));
}

#[test]
fn devices_are_taken_as_they_say() {
    let decided = |labels: Value, devices: Value| {
        let mut scene = Scene::new(json!({}));
        scene.device = json!({"metadata": {"labels": labels}, "spec": {"devices": devices}});
        scene.decide()
    };
    let gpu = |resources: Value| json!({"type": "gpu", "health": true, "resources": resources});
    let memory = json!({"koordinator.sh/gpu-memory": "8Gi"});
    let decision = decided(json!({}), json!([gpu(memory.clone())]));
    assert_eq!(count(&decision, "koordinator.sh/gpu"), Some(0), "a GPU that says nothing of its cores");
    assert_eq!(count(&decision, "koordinator.sh/gpu-memory"), Some(8 << 30));
    assert_eq!(decision.resources.get("koordinator.sh/gpu-core"), None, "left as it is");
    let huawei = json!({"node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": ""});
    let decision =
        decided(huawei.clone(), json!([gpu(json!({"koordinator.sh/gpu-core": "100", "huawei.com/npu-core": "20"}))]));
    assert_eq!((count(&decision, "koordinator.sh/gpu"), count(&decision, "huawei.com/npu-core")), (None, Some(20)));
    assert_eq!(decision.resources.get("koordinator.sh/gpu"), None);
    assert_eq!(decision.labels.len(), 2, "{:?}", decision.labels);
    let own = json!({"koordinator.sh/gpu": "100", "koordinator.sh/gpu.shared": "30", "example.com/other": "1"});
    let decision = decided(huawei, json!([gpu(own.clone()), gpu(own.clone())]));
    assert_eq!(
        (count(&decision, "koordinator.sh/gpu"), count(&decision, "koordinator.sh/gpu.shared")),
        (Some(200), Some(60))
    );
    assert_eq!(decision.resources.get("example.com/other"), None);
    let sick = json!({"type": "gpu", "health": false, "resources": own});
    let decision =
        decided(json!({"node.koordinator.sh/gpu-model": "A100"}), json!([sick, {"type": "rdma"}, {"health": true}]));
    assert_eq!(decision.resources.get("koordinator.sh/gpu-memory-ratio"), Some(&None), "it goes");
    assert_eq!((decision.resources.get("koordinator.sh/rdma"), decision.labels.len()), (Some(&None), 0));
}

#[test]
fn no_amount_is_less_than_nothing_or_a_fraction() {
    let strategy = |text: &str| Scene::new(json!({})).annotate("node.koordinator.sh/colocation-strategy", text);
    assert_eq!(left(&strategy(r#"{"batchCPUThresholdPercent":-5,"batchMemoryThresholdPercent":-1}"#)), (0, 0));
    assert_eq!(strategy(r#"{"midCPUThresholdPercent":-5,"midUnallocatedPercent":-10}"#).mid(), (0, 0));
    let fixed = r#"{"midReclaimMode":"static","midStaticCPUReservedPercent":-5,"midStaticMemoryReservedPercent":50}"#;
    assert_eq!(strategy(fixed).mid(), (0, 60 * GIGA));
    let mut scene = Scene::new(json!({}));
    let resources = json!({"koordinator.sh/gpu-core": "12500m", "koordinator.sh/gpu-memory-ratio": "-3"});
    scene.device = json!({"spec": {"devices": [{"type": "gpu", "health": true, "resources": resources}]}});
    let decision = scene.decide();
    let whole = |name| decision.resources[name].as_ref().unwrap().to_string();
    assert_eq!((whole("koordinator.sh/gpu"), whole("koordinator.sh/gpu-core")), ("13".to_owned(), "13".to_owned()));
    assert_eq!(whole("koordinator.sh/gpu-memory-ratio"), "0");
}

#[test]
fn where_colocation_is_off_only_batch_and_mid_resources_and_factors_go() {
    let mut scene = Scene::new(json!({"enable": false})).annotate(NORMALIZATION, "1.20").annotate(AMPLIFICATION, "{}");
    scene.device = json!({"spec": {"devices": [{"type": "rdma", "health": true}]}});
    scene.amplification = json!({"enable": true, "resourceAmplificationRatio": {"cpu": 2}});
    let decision = scene.decide();
    let names: Vec<&str> = decision.resources.keys().copied().collect();
    let all =
        ["kubernetes.io/batch-cpu", "kubernetes.io/batch-memory", "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"];
    assert_eq!(names, all);
    assert!(decision.resources.values().all(Option::is_none));
    assert_eq!(decision.annotations.get(AMPLIFICATION), Some(&None));
    assert_eq!(decision.annotations.get(NORMALIZATION), None);
    let some = scene.look(|facts| decide(facts, &Plugins::chosen(&["CPUNormalization"], false)));
    assert_eq!(
        some,
        Decision { reset: Some(Reset::Disabled), ..Decision::default() },
        "parts that are off say nothing"
    );
}
