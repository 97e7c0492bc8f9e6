//! What a round of all strategies costs on a node of 110 pods where nothing has changed: `cargo run --release --example round`.

use std::{error::Error, path::Path, sync::Arc, time::Duration, time::Instant};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeSloReader, NodeTopology, Pod, read_pod};
use koord_koordlet_metrics::{Measure, Store, Subject};
use koord_koordlet_qos::{Feature, Features, Generations, Input, Options, Strategies, Strategy, eviction::Ledger};
use koord_koordlet_system::{Driver, Layout, MapKernel, QosFolder, RecordedTree, Resource, Roots, Value, Version};
use koord_scheduling::Cpu;
use serde_json::json;

const PODS: u32 = 110;
const ROUNDS: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let layout = Layout::new(Version::V2, Driver::Systemd);
    let mut kernel = MapKernel::new(layout);
    let root = layout.qos(QosFolder::BestEffort);
    kernel.set(&root, Resource::Cpuset, Value::Cpus("0-15".parse()?));
    kernel.set(&root, Resource::CpuQuota, Value::Unlimited);
    let mut pods = Vec::new();
    for number in 0..PODS {
        let pod = pod(number, layout)?;
        for cgroup in pod.containers.iter().filter_map(|container| container.cgroup.as_ref()).chain([&pod.cgroup]) {
            kernel.set(cgroup, Resource::CpuQuota, Value::Amount(20_000));
        }
        pods.push(Arc::new(pod));
    }
    let cpu = |id| Cpu { id, core: id % 8, node: id % 8 / 4, socket: id % 8 / 4 };
    let topology = NodeTopology { cpus: (0..16).map(cpu).collect(), ..NodeTopology::default() };
    let amounts = [("cpu".to_owned(), "16".parse()?), ("memory".to_owned(), "64Gi".parse()?)];
    let node = Node {
        capacity: amounts.clone().into_iter().collect(),
        allocatable: amounts.into_iter().collect(),
        ..Node::default()
    };
    let (slo, _) = NodeSloReader::default().read(&json!({
        "resourceUsedThresholdWithBE": {"enable": true, "evictEnabledPriorityThreshold": 5999, "cpuEvictThresholdPercent": 95,
            "cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 60},
        "cpuBurstStrategy": {"policy": "auto"},
        "resourceQOSStrategy": {"lsClass": {"memoryQOS": {"enable": true, "minLimitPercent": 50}}},
    }));
    let mut store = Store::default();
    let mut now = Moment::at(Duration::from_secs(1000));
    for _ in 0..300 {
        now = now + Duration::from_secs(1);
        sample(&mut store, &pods, now);
    }
    let features = Feature::ALL.into_iter().fold(Features::none(), Features::with).without(Feature::BeCpuManager);
    let (roots, files, evicted) = (Roots::host(), RecordedTree::default(), Ledger::default());
    let input = Input {
        now,
        time: Timestamp::UNIX_EPOCH,
        collect_interval: Duration::from_secs(1),
        features,
        generations: Generations::default(),
        node: Some(&node),
        slo: Some(&slo),
        topology: Some(&topology),
        pods: &pods,
        store: &store,
        kernel: &kernel,
        roots: &roots,
        files: &files,
        evicted: &evicted,
        disks: None,
        resctrl: None,
    };
    let mut strategies = Strategies::new(Options::default(), Moment::default());
    let mut all = Duration::ZERO;
    for strategy in Strategy::ALL {
        let start = Instant::now();
        let outcome = strategies.run(strategy, &input);
        let first = start.elapsed();
        let named = outcome.constraints.map_or(0, |constraints| constraints.0.len());
        let start = Instant::now();
        for _ in 0..ROUNDS {
            assert!(strategies.run(strategy, &input).constraints.is_none(), "{strategy:?} names what has not changed");
        }
        let unchanged = start.elapsed() / ROUNDS;
        all += unchanged;
        println!(
            "{:<22} first {first:>10.1?} with {named:>4} constraints, unchanged {unchanged:>10.1?}",
            strategy.name()
        );
    }
    println!(
        "{:<22} unchanged {all:?} for {PODS} pods below {}",
        "all strategies",
        Path::new("/sys/fs/cgroup").display()
    );
    Ok(())
}

/// Every second pod is BE, each has two containers.
fn pod(number: u32, layout: Layout) -> Result<Pod, serde_json::Error> {
    let (class, qos, resources) = if number.is_multiple_of(2) {
        (
            "BE",
            "BestEffort",
            json!({"requests": {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": "64Mi"}}),
        )
    } else {
        ("LS", "Burstable", json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "128Mi"}}))
    };
    let container = |name: &str| json!({"name": name, "resources": resources});
    let status = |name: &str| json!({"name": name, "containerID": format!("containerd://{number}{name}"), "state": {"running": {}}});
    let pod = json!({
        "metadata": {"name": format!("pod-{number}"), "namespace": "shop", "uid": format!("uid-{number}"),
            "labels": {"koordinator.sh/qosClass": class}},
        "spec": {"containers": [container("main"), container("side")]},
        "status": {"phase": "Running", "qosClass": qos, "containerStatuses": [status("main"), status("side")]},
    });
    read_pod(&pod.to_string(), layout)
}

fn sample(store: &mut Store, pods: &[Arc<Pod>], now: Moment) {
    store.append(Subject::Node, Measure::Cpu, now, 6.0);
    store.append(Subject::Node, Measure::Memory, now, 2e10);
    for measure in [Measure::BestEffortUsage, Measure::BestEffortRequest, Measure::BestEffortRealLimit] {
        store.append(Subject::BestEffort, measure, now, 5500.0);
    }
    for pod in pods {
        store.append(Subject::Pod(&pod.uid), Measure::Cpu, now, 0.04);
        store.append(Subject::Pod(&pod.uid), Measure::Memory, now, 3e7);
        for id in pod.containers.iter().filter_map(|container| container.id.as_ref()) {
            let id = id.to_string();
            store.append(Subject::Container(&id), Measure::Cpu, now, 0.02);
            store.append(Subject::Container(&id), Measure::Throttled, now, 0.0);
        }
    }
}
