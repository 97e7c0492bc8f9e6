//! Long runs: an hour without the API server, and a day in which ten thousand pods come and go.

use std::{collections::BTreeMap, time::Duration};

use koord_core::random::Random;
use koord_koordlet_testing::{Corpus, Fixtures};
use serde_json::json;

use crate::{
    node::Machine,
    pods::Pod,
    site::{ApiHealth, Setting, Site},
};

const MACHINE: Machine = Machine { is_v2: true, is_systemd: true, is_anolis: false, is_new: true, cpus: 8 };
const HOUR_S: u64 = 3600;
/// Pods that are there at a time.
const PODS: usize = 6;

struct Long {
    fixtures: Fixtures,
    random: Random,
    site: Site,
    pods: BTreeMap<u64, Pod>,
    number: u64,
}

impl Long {
    fn new(gates: &str) -> Self {
        let fixtures = Fixtures::in_folder(Corpus::own().fixtures());
        let random = Random::seeded(24);
        let setting = Setting { machine: MACHINE, gates: gates.to_owned(), only_evicts_by_api: true, collect_s: 1 };
        let mut site = Site::new(&setting, &fixtures, random.clone(), 24, Duration::ZERO);
        site.set_slo(&json!({
            "resourceUsedThresholdWithBE": {
                "enable": true, "cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cfsQuota", "memoryEvictThresholdPercent": 70,
            },
            "resourceQOSStrategy": {"beClass": {"memoryQOS": {"enable": true}, "cpuQOS": {"enable": true}}},
            "cpuBurstStrategy": {"policy": "auto"},
        }));
        let mut long = Self { fixtures, random, site, pods: BTreeMap::new(), number: 0 };
        (0..PODS).for_each(|_| long.replace_pod());
        long.site.restart(false);
        long
    }

    /// A pod comes, and the oldest goes where there are enough.
    fn replace_pod(&mut self) {
        self.number += 1;
        let pod = Pod::random(&self.random, self.number);
        self.site.node.add(&pod, &self.fixtures);
        self.pods.insert(self.number, pod);
        if self.pods.len() > PODS
            && let Some((_, gone)) = self.pods.pop_first()
        {
            self.site.node.remove(&gone);
        }
        let by_uid = self.pods.values().map(|pod| (pod.uid.clone(), pod.clone())).collect();
        self.site.set_pods(&by_uid);
        self.site.see_folder();
    }

    fn advance(&mut self, second: u64) {
        self.site.advance(Duration::from_secs(second)).unwrap();
    }

    fn best_effort_quota(&self) -> i64 {
        let text = self.site.node.text("cgroup/kubepods.slice/kubepods-besteffort.slice/cpu.max").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }
}

#[test]
fn an_hour_without_the_api_server_changes_nothing_of_enforcement() {
    let mut long = Long::new("CgroupReconcile=true");
    let of_pods: u64 = long.pods.values().map(|pod| pod.load.milli).sum();
    long.site.node.system.milli = 500;
    long.advance(120);
    let (before, reports) = (long.best_effort_quota(), long.site.reports);
    long.site.set_api(ApiHealth::Away);
    // The NodeSLO of this hour is missed until the watch is connected again.
    long.site.set_slo(&json!({"resourceUsedThresholdWithBE": {"enable": false}}));
    long.site.node.system.milli = 3500;
    long.advance(120 + HOUR_S / 2);
    let busy = long.best_effort_quota();
    assert!(busy < before, "BE pods had {before} µs, and with a busy node {busy} µs; pods use {of_pods}m");
    long.replace_pod();
    long.site.node.system.milli = 500;
    long.advance(120 + HOUR_S);
    assert!(long.best_effort_quota() > busy, "the node is idle again");
    let newest = long.pods.values().last().unwrap();
    let folder = format!("cgroup/{}/memory.low", long.site.node.pod_folder(newest));
    assert!(long.site.states().keys().any(|path| path.ends_with(&folder)), "a pod that came meanwhile is known");
    assert_eq!(long.site.reports, reports, "no report gets through");
    long.site.set_api(ApiHealth::Well);
    long.advance(120 + HOUR_S + 90);
    assert!(long.site.reports > reports, "the node is reported again");
    let quota = long.site.node.text("cgroup/kubepods.slice/kubepods-besteffort.slice/cpu.max").unwrap();
    assert_eq!(quota, "max 100000", "the NodeSLO that was missed counts");
}

/// What the agent holds after a day is what it held after two hours.
#[test]
#[ignore = "a minute of computing: .ci/nightly"]
fn twenty_four_hours_and_ten_thousand_pods() {
    let mut long = Long::new("CgroupReconcile=true,BEMemoryEvict=true,BECPUEvict=true,PSICollector=true");
    let mut held = Vec::new();
    let mut kept = BTreeMap::new();
    let mut second = 0;
    for hour in 1..=24 {
        while second < hour * HOUR_S {
            second += 8;
            long.advance(second);
            long.replace_pod();
        }
        long.site.forget_run();
        held.push(allocations::held());
        if hour == 2 {
            kept = long.site.agent().kept();
        }
    }
    println!("bytes held after each hour: {held:?}; {} pods; {:?}", long.number, long.site.agent().kept());
    assert!(long.number > 10_000);
    // Pods differ, and so does what is held of six of them: most of the first hours is compared with most of the last ones.
    let (early, late) = (held[1..7].iter().max().unwrap(), held[18..].iter().max().unwrap());
    assert!(late * 100 <= early * 103, "{early} bytes after hours 2 to 7, {late} after hours 19 to 24");
    for (what, entries) in long.site.agent().kept() {
        let early = kept[what];
        assert!(entries <= early + early / 10 + 20, "{what}: {early} after two hours, {entries} after a day");
    }
}
