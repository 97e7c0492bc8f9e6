//! The reference numbers of spec/manager.md 4.1.3, 4.1.4 and 6.5, each also as a waterfall.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    About, Plugins,
    batch::Place,
    decide, explain,
    facts::Degraded,
    scene::{GIGA, NOW, Scene, usage},
    waterfall::arrives_at,
};

#[test]
fn batch_pods_get_what_is_left_under_each_policy() {
    const RESERVATION: &str = "node.koordinator.sh/reservation";
    let both = |policy: &str| json!({"cpuCalculatePolicy": policy, "memoryCalculatePolicy": policy});
    for (scene, cpu, memory_giga) in [
        (Scene::busy(json!({})), 25_000, 33),
        (Scene::busy(json!({})).annotate(RESERVATION, r#"{"resources":{"cpu":"20"}}"#), 12_000, 33),
        (
            Scene::busy(json!({})).annotate(RESERVATION, r#"{"resources":{"cpu":"20"},"reservedCPUs":"0-9"}"#),
            22_000,
            33,
        ),
        (Scene::busy(json!({})).annotate(RESERVATION, r#"{"resources":{"memory":"20G"}}"#), 25_000, 25),
        (
            Scene::busy(json!({})).annotate(RESERVATION, r#"{"resources":{"memory":"20G"},"reservedCPUs":"x"}"#),
            25_000,
            33,
        ),
        // Requests are 47 cores and 47 GB; CPU knows no policy by requests.
        (Scene::busy(both("request")), 25_000, 31),
        (Scene::busy(both("maxUsageRequest")), 11_000, 19),
        (Scene::busy(json!({"batchCPUThresholdPercent": 10, "batchMemoryThresholdPercent": 20})), 10_000, 24),
        (Scene::busy(json!({"cpuReclaimThresholdPercent": 150, "memoryReclaimThresholdPercent": 10})), 110_000, 0),
    ] {
        assert_eq!(scene.batch(Place::Node), (cpu, memory_giga * GIGA), "{} {}", scene.config, scene.node);
    }
}

#[test]
fn a_pod_that_is_not_measured_yet_takes_its_request_under_every_policy() {
    let mut scene = Scene::new(json!({"cpuCalculatePolicy": "maxUsageRequest"}));
    scene.pod("new", "LS", "koord-prod", ("10", "10G"), None);
    assert_eq!(scene.batch(Place::Node), (48_000, 56 * GIGA));
}

#[test]
fn exclusive_cpus_are_taken_whether_they_are_used_or_not() {
    let mut scene = Scene::new(json!({}));
    scene.pod("lse", "LSE", "koord-prod", ("10", "10G"), Some(("2", "4G")));
    assert_eq!(scene.batch(Place::Node), (48_000, 62 * GIGA));
}

#[test]
fn applications_count_with_the_system_unless_they_are_best_effort() {
    let mut scene = Scene::busy(json!({}));
    for (class, cpu, memory_giga) in
        [("koord-prod", 22_000, 30), ("koord-mid", 22_000, 30), ("koord-batch", 25_000, 33)]
    {
        let application = json!([{"name": "app", "priority": class, "usage": usage("3", "3G")}]);
        scene.metric["status"]["hostApplicationMetric"] = application;
        assert_eq!(scene.batch(Place::Node), (cpu, memory_giga * GIGA), "{class}");
    }
}

#[test]
fn use_by_pods_that_are_gone_counts_unless_they_were_best_effort() {
    let mut scene = Scene::new(json!({}));
    scene.report("ghost", "koord-prod", "2", "2G");
    scene.report("shade", "koord-free", "2", "2G");
    assert_eq!(scene.batch(Place::Node), (56_000, 64 * GIGA));
}

#[test]
fn zones_share_what_is_not_bound_to_one_of_them() {
    let mut scene = Scene::new(json!({})).zones(["62G", "58G"]);
    scene.pod("pinned", "LS", "koord-prod", ("0", "0"), Some(("5", "5G")));
    let place = r#"{"numaNodeResources":[{"node":0}]}"#;
    scene.pods[0]["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/resource-status": place});
    scene.pod("shared", "LS", "koord-prod", ("0", "0"), Some(("6", "6G")));
    scene.pod("mid", "LS", "koord-mid", ("0", "0"), Some(("22", "22G")));
    scene.pod("batch", "BE", "koord-batch", ("0", "0"), Some(("10", "10G")));
    assert_eq!(scene.batch(Place::Node), (25_000, 33 * GIGA));
    assert_eq!(scene.batch(Place::Zone(0)), (10_000, 15_300_000_000));
    assert_eq!(scene.batch(Place::Zone(1)), (15_000, 17_700_000_000));
    let zones = scene.look(|facts| decide(facts, &Plugins::default())).zones.unwrap();
    assert_eq!((zones[0].cpu.value(), zones[1].memory.to_string()), (10_000, "17700M".to_owned()));
}

#[test]
fn mid_pods_get_what_prod_pods_are_predicted_to_leave() {
    let scene = |config: Value, reclaimable: Option<(&str, &str)>, used: Value| {
        let mut scene = Scene::new(config);
        let amounts = json!({"cpu": "100", "memory": "210G"});
        scene.node["status"] = json!({"capacity": amounts, "allocatable": amounts});
        scene.metric["status"]["nodeMetric"] = json!({"nodeUsage": used, "systemUsage": {}});
        if let Some((cpu, memory)) = reclaimable {
            scene.metric["status"]["prodReclaimableMetric"] = json!({"resource": usage(cpu, memory)});
        }
        scene.mid()
    };
    let thresholds =
        json!({"midCPUThresholdPercent": 10, "midMemoryThresholdPercent": 20, "midUnallocatedPercent": 10});
    let fixed = |percent: i64| {
        json!({"midReclaimMode": "static", "midStaticCPUReservedPercent": percent, "midStaticMemoryReservedPercent": percent,
               "midCPUThresholdPercent": 10, "midMemoryThresholdPercent": 20})
    };
    assert_eq!(scene(json!({}), Some(("10", "15G")), usage("20", "45G")), (10_000, 15 * GIGA));
    assert_eq!(scene(thresholds, Some(("15", "30G")), usage("20", "50G")), (10_000, 42 * GIGA));
    assert_eq!(scene(json!({}), None, usage("20", "45G")), (0, 0));
    assert_eq!(scene(json!({}), Some(("20", "20G")), json!({"resources": {"cpu": "1"}})), (0, 0));
    assert_eq!(scene(json!({}), Some(("20", "20G")), usage("90", "200G")), (10_000, 10 * GIGA));
    assert_eq!(scene(fixed(10), None, usage("20", "45G")), (10_000, 21 * GIGA));
    assert_eq!(scene(fixed(100), None, usage("20", "45G")), (10_000, 42 * GIGA));
}

#[test]
fn a_report_that_is_not_trusted_leaves_nothing() {
    let degraded = |change: &dyn Fn(&mut Value)| {
        let mut scene = Scene::new(json!({}));
        change(&mut scene.metric);
        scene.look(|facts| facts.trusted().err())
    };
    let at = |minutes: i64| (NOW - SignedDuration::from_mins(minutes)).to_string();
    assert_eq!(degraded(&|_| {}), None);
    assert_eq!(degraded(&|metric| *metric = Value::Null), Some(Degraded::NoReport));
    assert_eq!(degraded(&|metric| metric["status"]["updateTime"] = Value::Null), Some(Degraded::NoTime));
    assert_eq!(degraded(&|metric| metric["status"]["nodeMetric"] = Value::Null), Some(Degraded::NoUsage));
    assert_eq!(degraded(&|metric| metric["status"]["updateTime"] = at(15).into()), None);
    assert_eq!(degraded(&|metric| metric["status"]["updateTime"] = at(16).into()), Some(Degraded::TooOld));
}

#[test]
fn what_others_took_is_taken_off_and_remembered() {
    let scene = |cpu: &str| {
        let taken = json!({"allocations": [
            {"name": "hadoop", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": "10G"}},
            {"name": "other", "priority": "koord-mid", "resources": {"kubernetes.io/batch-cpu": "1"}},
        ]});
        let scene = Scene::busy(json!({})).annotate("node.koordinator.sh/thirdPartyAllocations", &taken.to_string());
        let decision = scene.look(|facts| decide(facts, &Plugins::default()));
        let amount = |name| decision.resources[name].as_ref().unwrap().value();
        let origin = decision.annotations["node.koordinator.sh/originExtendedAllocatable"].clone().unwrap();
        (amount("kubernetes.io/batch-cpu"), amount("kubernetes.io/batch-memory"), origin)
    };
    let origin = r#"{"resources":{"kubernetes.io/batch-cpu":"25k","kubernetes.io/batch-memory":"33000000000"}}"#;
    assert_eq!(scene("10000"), (15_000, 23 * GIGA, origin.to_owned()));
    assert_eq!(scene("90000"), (0, 23 * GIGA, origin.to_owned()));
}

#[test]
fn an_explanation_arrives_at_what_is_written() {
    let taken = json!({"allocations": [{"name": "a", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "10000"}}]});
    let mut scene = Scene::busy(json!({"midUnallocatedPercent": 10})).zones(["62G", "58G"]);
    scene = scene.annotate("node.koordinator.sh/thirdPartyAllocations", &taken.to_string());
    scene.node["metadata"]["labels"] = json!({"node.koordinator.sh/cpu-normalization-enabled": "true"});
    let cpu = json!({"node.koordinator.sh/cpu-basic-info": r#"{"cpuModel":"X"}"#});
    scene.topology["metadata"] = json!({"annotations": cpu});
    scene.normalization = json!({"ratioModel": {"X": {"baseRatio": 1.2}}});
    for (about, amounts) in [(About::Batch, 2), (About::Mid, 2), (About::Zones, 4)] {
        let explanations = scene.look(|facts| explain(facts, &Plugins::default(), about));
        assert_eq!(explanations.len(), amounts);
        for explanation in explanations {
            let arrived =
                arrives_at(explanation.native, &explanation.terms).map(|amount| explanation.native.count(amount));
            assert_eq!(arrived, explanation.amount.as_ref().map(koord_resource::Quantity::value), "{explanation:?}");
        }
    }
    let explanation = scene.look(|facts| explain(facts, &Plugins::default(), About::Batch)).remove(0);
    assert_eq!(explanation.amount.unwrap().value(), 20_000, "25000 times 1.2, less 10000");
}

#[test]
fn working_devices_add_up() {
    let gpu = |memory: &str| json!({"type": "gpu", "health": true, "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": memory, "koordinator.sh/gpu-memory-ratio": "100"}});
    let mut scene = Scene::new(json!({}));
    scene.device = json!({"spec": {"devices": [gpu("8000"), gpu("10000"), {"type": "rdma", "health": true}, {"type": "rdma", "health": false}]}});
    let decided = |scene: &Scene, shares| {
        let decision = scene.look(|facts| decide(facts, &Plugins::chosen(&["*"], shares)));
        let devices = decision.resources.into_iter().filter(|(name, _)| name.starts_with("koordinator.sh"));
        devices.map(|(name, amount)| (name[15..].to_owned(), amount.map(|amount| amount.value()))).collect::<Vec<_>>()
    };
    let expected = [
        ("gpu", 200),
        ("gpu-core", 200),
        ("gpu-memory", 18_000),
        ("gpu-memory-ratio", 200),
        ("gpu.shared", 200),
        ("rdma", 100),
    ];
    assert_eq!(decided(&scene, true), expected.map(|(name, amount)| (name.to_owned(), Some(amount))));
    scene.device = Value::Null;
    assert!(decided(&scene, true).iter().all(|(_, amount)| amount.is_none()));
}
