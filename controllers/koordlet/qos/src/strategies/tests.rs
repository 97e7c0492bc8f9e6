use koord_koordlet_metrics::{Measure, Subject};
use koord_koordlet_system::{
    Disks, QosFolder, Resource, Value,
    resctrl::{CacheMask, Vendor},
};
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    feature::{Feature, Features},
    input::Resctrl,
    testing::{Fixture, FixtureDisks, GI, LAYOUT, class, container},
};

/// A node with many pods of all classes, and all features on.
fn fixture(spec: &Json) -> Fixture {
    let mut fixture = Fixture::new(Feature::CpuBurst);
    fixture.features = Feature::ALL.into_iter().fold(Features::none(), Features::with);
    fixture.features = fixture.features.without(Feature::BeCpuManager);
    fixture.slo(spec);
    fixture.disks = Some(FixtureDisks(Disks::default()));
    let cache = CacheMask::parse(b"7ff").ok();
    fixture.resctrl = Some(Resctrl { vendor: Vendor::Intel, cache });
    for number in 0..30 {
        let ls = container(&json!({"cpu": "100m", "memory": "64Mi"}), &json!({"cpu": "200m", "memory": "128Mi"}));
        fixture.pod(&format!("ls-{number}"), "Burstable", &class("LS"), Some(9500), &ls);
        let quota = Value::Amount(20_000);
        for cgroup in [fixture.cgroup(&format!("ls-{number}")), fixture.container(&format!("ls-{number}"), "main")] {
            fixture.kernel.set(&cgroup, Resource::CpuQuota, quota.clone());
        }
        let be =
            container(&json!({"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": "64Mi"}), &json!({}));
        let meta = json!({"labels": {"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true"}});
        fixture.pod(&format!("be-{number}"), "BestEffort", &meta, Some(5500), &be);
    }
    let root = LAYOUT.qos(QosFolder::BestEffort);
    fixture.kernel.set(&root, Resource::Cpuset, Value::Cpus("0-7".parse().unwrap()));
    fixture.kernel.set(&root, Resource::CpuQuota, Value::Unlimited);
    fixture
}

fn sample(fixture: &mut Fixture) {
    fixture.advance(1);
    fixture.cpu(&[("node", 4.0)]);
    fixture.memory(&[("node", 8 * GI)]);
    for number in 0..30 {
        let (ls, be) = (format!("ls-{number}"), format!("be-{number}"));
        fixture.cpu(&[(&ls, 0.05), (&be, 0.05)]);
        fixture.memory(&[(&ls, 32 << 20), (&be, 32 << 20)]);
    }
    for measure in [Measure::BestEffortUsage, Measure::BestEffortRequest, Measure::BestEffortRealLimit] {
        fixture.sample(Subject::BestEffort, measure, 2000.0);
    }
}

/// Every number of a NodeSLO.
fn all_numbers(number: i64) -> Json {
    let keys = |names: &[&str]| -> Json { names.iter().map(|name| ((*name).to_owned(), json!(number))).collect() };
    let mut threshold = keys(&[
        "cpuSuppressThresholdPercent",
        "cpuSuppressMinPercent",
        "memoryEvictThresholdPercent",
        "memoryEvictLowerPercent",
        "memoryAllocatableEvictThresholdPercent",
        "memoryAllocatableEvictLowerPercent",
        "cpuEvictBESatisfactionUpperPercent",
        "cpuEvictBESatisfactionLowerPercent",
        "cpuEvictBEUsageThresholdPercent",
        "cpuEvictTimeWindowSeconds",
        "cpuEvictThresholdPercent",
        "cpuAllocatableEvictThresholdPercent",
    ]);
    threshold["enable"] = json!(true);
    threshold["evictEnabledPriorityThreshold"] = json!(5999);
    threshold["allocatableEvictPriorityThreshold"] = json!(5999);
    threshold["memoryEvictLowerPercent"] = json!(i64::MIN);
    threshold["cpuEvictLowerPercent"] = json!(i64::MIN);
    threshold["cpuAllocatableEvictLowerPercent"] = json!(i64::MIN);
    let mut burst =
        keys(&["cpuBurstPercent", "cfsQuotaBurstPercent", "cfsQuotaBurstPeriodSeconds", "sharePoolThresholdPercent"]);
    burst["policy"] = json!("auto");
    let mut memory = keys(&[
        "minLimitPercent",
        "lowLimitPercent",
        "throttlingPercent",
        "wmarkRatio",
        "wmarkScalePermill",
        "wmarkMinAdj",
        "priority",
        "pageCacheLimitPercent",
        "pageCacheLimitSize",
    ]);
    memory["enable"] = json!(true);
    let mut resctrl = keys(&["catRangeStartPercent", "catRangeEndPercent", "mbaPercent"]);
    resctrl["enable"] = json!(true);
    let class = json!({"memoryQOS": memory, "resctrlQOS": resctrl});
    json!({
        "resourceUsedThresholdWithBE": threshold,
        "cpuBurstStrategy": burst,
        "resourceQOSStrategy": {"lsrClass": class, "lsClass": class, "beClass": class, "systemClass": class},
        "systemStrategy": keys(&["minFreeKbytesFactor", "watermarkScaleFactor", "memcgReapBackGround"]),
    })
}

#[test]
fn no_number_of_a_user_ends_the_agent() {
    for number in [i64::MIN, -1, 0, 1, 99, 100, 101, i64::MAX] {
        for policy in ["cpuset", "cfsQuota"] {
            let mut spec = all_numbers(number);
            spec["resourceUsedThresholdWithBE"]["cpuSuppressPolicy"] = json!(policy);
            let mut fixture = fixture(&spec);
            let mut strategies = Strategies::new(Options::default(), Moment::default());
            for _ in 0..3 {
                sample(&mut fixture);
                for strategy in Strategy::ALL {
                    let mut outcome = strategies.run(strategy, &fixture.input());
                    fixture.apply(&outcome);
                    if let Some(round) = &mut outcome.evictions {
                        fixture.evict(round, &[]);
                        strategies.finish(strategy, round, fixture.now);
                    }
                }
            }
        }
    }
}

#[test]
fn a_round_in_which_nothing_changed_names_nothing() {
    let mut fixture = fixture(&json!({
        "resourceUsedThresholdWithBE": {"enable": true},
        "cpuBurstStrategy": {"policy": "auto"},
        "resourceQOSStrategy": {"lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 50}}},
    }));
    let mut strategies = Strategies::new(Options::default(), Moment::default());
    for round in 0..5 {
        sample(&mut fixture);
        for strategy in Strategy::ALL {
            let outcome = strategies.run(strategy, &fixture.input());
            fixture.apply(&outcome);
            let is_named = outcome.constraints.is_some() || outcome.groups.is_some() || !outcome.writes.is_empty();
            let names_files = !matches!(strategy, Strategy::CpuEvict | Strategy::MemoryEvict);
            assert_eq!(is_named, round == 0 && names_files, "{strategy:?} {round}");
            assert!(outcome.evictions.is_none(), "{strategy:?}");
        }
    }
}

#[test]
fn without_objects_every_strategy_waits() {
    let mut fixture = fixture(&json!({}));
    (fixture.slo, fixture.node, fixture.topology, fixture.disks) = (None, None, None, None);
    let mut strategies = Strategies::new(Options::default(), Moment::default());
    for strategy in Strategy::ALL {
        let outcome = strategies.run(strategy, &fixture.input());
        assert!(outcome.constraints.is_none() && outcome.evictions.is_none(), "{strategy:?}");
        assert_eq!(outcome.notes.unwrap().len(), 1, "{strategy:?} says what it waits for");
    }
}
