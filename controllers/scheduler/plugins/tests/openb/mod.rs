//! Replays of a public trace of GPU pods, as the experiment of "Beware of Fragmentation" (USENIX ATC 2023) plays it: the pods of
//! the trace come in a shuffled order, and then at random again, until 130 % of the cluster's GPUs are asked for; none ends.
//! Only nodes with GPUs take part. What is reported are the GPUs that are given out then, and those that are lost to the pods of
//! the trace.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use koord_api::device::Device;
use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_engine::{
    cycle::Profile,
    engine::{Engine, Outcome},
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
    queue::Timings,
};
use koord_scheduler_plugins::build;
use serde::Deserialize;
use serde_json::{Value, json};

const MODEL: &str = "node.koordinator.sh/gpu-model";

/// What a node has. Columns are found by their names, because not every file has all of them.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TraceNode {
    cpu_milli: i64,
    memory_mib: i64,
    gpu: i64,
    model: String,
}

/// What a pod requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct TracePod {
    cpu_milli: i64,
    memory_mib: i64,
    num_gpu: i64,
    #[serde(default)]
    gpu_milli: Option<i64>,
    #[serde(default)]
    gpu_spec: String,
}

/// What came of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcomes {
    /// GPUs that were given out, in percent of all.
    pub(crate) allocated: f64,
    /// GPUs that are free and of no use to a pod of the trace, in percent of all: the mean over its pods.
    pub(crate) fragmented: f64,
    /// Attempts to place a pod.
    pub(crate) attempts: usize,
}

/// The lines of a file.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Vec<T> {
    let mut reader = csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    reader.deserialize().map(|line| line.unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect()
}

/// The nodes of a file that have GPUs.
pub(crate) fn nodes(file: &Path) -> Vec<TraceNode> {
    read(file).into_iter().filter(|node: &TraceNode| node.gpu > 0).collect()
}

impl TracePod {
    /// Of each GPU, in thousandths.
    fn each(&self) -> i64 {
        if self.num_gpu == 0 { 0 } else { self.gpu_milli.unwrap_or(1000) }
    }

    fn gpu_milli(&self) -> i64 {
        self.num_gpu * self.each()
    }

    fn models(&self) -> Vec<&str> {
        let models = if self.num_gpu == 0 { "" } else { &self.gpu_spec };
        models.split('|').filter(|model| !model.is_empty()).collect()
    }

    fn template(&self) -> Arc<Template> {
        let mut requests = json!({"cpu": format!("{}m", self.cpu_milli), "memory": format!("{}Mi", self.memory_mib)});
        if self.num_gpu > 0 {
            for name in ["koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"] {
                requests[name] = json!((self.gpu_milli() / 10).to_string());
            }
        }
        let models = self.models();
        let terms = json!([{"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}]);
        let affinity =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        let spec = json!({
            "schedulerName": "koord-scheduler",
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "affinity": if models.is_empty() { Value::Null } else { affinity },
        });
        let spec = serde_json::from_value(spec).unwrap();
        Arc::new(Template::of("trace", Labels::default(), &BTreeMap::new(), &spec).unwrap())
    }
}

/// Pods in the order in which they come.
pub(crate) fn arrivals(pods: &[TracePod], gpu_milli: i64, random: &Random) -> Vec<TracePod> {
    let mut arriving = pods.to_vec();
    for at in (1..arriving.len()).rev() {
        arriving.swap(at, random.below(at as u64 + 1) as usize);
    }
    let demand_max = gpu_milli * 130 / 100;
    let mut demand: i64 = arriving.iter().map(TracePod::gpu_milli).sum();
    while demand > demand_max {
        let at = random.below(arriving.len() as u64) as usize;
        demand -= arriving.remove(at).gpu_milli();
    }
    loop {
        let pod = &pods[random.below(pods.len() as u64) as usize];
        demand += pod.gpu_milli();
        if demand > demand_max {
            return arriving;
        }
        arriving.push(pod.clone());
    }
}

/// The profile of kube-scheduler with DeviceShare, whose scores come before all others.
pub(crate) fn profile(strategy: &str) -> Profile {
    let device_share = json!([{"name": "DeviceShare"}]);
    let points = ["preFilter", "filter", "reserve", "preBind"];
    let mut plugins: BTreeMap<&str, Value> =
        points.iter().map(|point| (*point, json!({ "enabled": device_share }))).collect();
    plugins.insert("score", json!({"enabled": [{"name": "DeviceShare", "weight": 1000}]}));
    let resources = json!([{"name": "koordinator.sh/gpu-memory-ratio", "weight": 1}]);
    let args = json!({"scoringStrategy": {"type": strategy, "resources": resources}});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": "koord-scheduler", "plugins": plugins,
            "pluginConfig": [{"name": "DeviceShare", "args": args}],
        }],
    });
    assert_eq!(koord_config::Kind::Scheduler.check(&document), []);
    build(&SchedulerConfiguration::of(&document).unwrap().profiles[0].resolved(), &|_| false).unwrap().profile
}

/// A node with its GPUs.
pub(crate) fn add_node(engine: &mut Engine, name: &str, node: &TraceNode) {
    let percent = (100 * node.gpu).to_string();
    let allocatable = json!({
        "cpu": format!("{}m", node.cpu_milli), "memory": format!("{}Mi", node.memory_mib), "pods": "110",
        "koordinator.sh/gpu-core": percent, "koordinator.sh/gpu-memory-ratio": percent,
    });
    let labels = json!({"kubernetes.io/hostname": name, MODEL: node.model});
    let object = json!({"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}});
    engine.set_node(Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap()), Moment::default());
    let resources = json!({
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi",
    });
    let gpu = |minor: i64| json!({"type": "gpu", "minor": minor, "health": true, "resources": resources});
    let devices: Vec<Value> = (0..node.gpu).map(gpu).collect();
    let report = json!({"metadata": {"name": name}, "spec": {"devices": devices}});
    let report: Device = serde_json::from_value(report).unwrap();
    let object = Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(report));
    engine.set_object(object, Moment::default());
}

/// Plays a trace with a strategy.
pub(crate) fn replay(nodes: &[TraceNode], pods: &[TracePod], seed: u64, strategy: &str) -> Outcomes {
    let random = Random::seeded(seed);
    let mut engine = Engine::new(vec![profile(strategy)], Timings::default(), random.clone());
    for (number, node) in nodes.iter().enumerate() {
        add_node(&mut engine, &format!("n{number:04}"), node);
    }
    let total: i64 = nodes.iter().map(|node| node.gpu * 1000).sum();
    let mut templates: BTreeMap<TracePod, Arc<Template>> = BTreeMap::new();
    let (mut attempts, mut placed) = (0, Vec::new());
    for (number, arriving) in arrivals(pods, total, &random).into_iter().enumerate() {
        let name = format!("p{number:05}");
        let template = templates.entry(arriving.clone()).or_insert_with(|| arriving.template());
        let template = Arc::clone(template);
        let (key, uid) = (ObjectKey::new("trace", &name), Uid::from(&*name));
        engine.set_pod(Arc::new(Pod { key, uid, template, ..Pod::default() }), Moment::default());
        while let Some(attempt) = engine.attempt(Moment::default()) {
            attempts += 1;
            if matches!(attempt.outcome, Outcome::Bind { .. }) {
                placed.push(arriving.gpu_milli());
            }
        }
    }
    let percent = |gpu_milli: f64| gpu_milli * 100.0 / total as f64;
    let allocated: i64 = placed.iter().sum();
    let fragmented = fragmented(&engine, nodes, pods);
    Outcomes { allocated: percent(allocated as f64), fragmented: percent(fragmented), attempts }
}

/// What is free and of no use, in thousandths of GPUs: the mean over the kinds of pods that are 95 % of the trace.
fn fragmented(engine: &Engine, nodes: &[TraceNode], pods: &[TracePod]) -> f64 {
    let mut counts: BTreeMap<TracePod, usize> = BTreeMap::new();
    for pod in pods {
        *counts.entry(TracePod { memory_mib: 0, ..pod.clone() }).or_default() += 1;
    }
    let mut kinds: Vec<(TracePod, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(pod, count)| (std::cmp::Reverse(*count), pod.clone()));
    let mut seen = 0;
    kinds.retain(|(_, count)| {
        let is_typical = seen * 100 < pods.len() * 95;
        seen += if is_typical { *count } else { 0 };
        is_typical
    });
    let by_node = nodes.iter().enumerate().map(|(number, node)| {
        let (free, cpu) = left(engine, &format!("n{number:04}"), node);
        let of_no_use = |pod: &TracePod| -> i64 {
            let fitting = free.iter().filter(|free| **free >= pod.each()).count() as i64;
            let models = pod.models();
            let is_allowed = models.is_empty() || models.contains(&&*node.model);
            let has_place = pod.num_gpu > 0 && is_allowed && fitting >= pod.num_gpu && cpu >= pod.cpu_milli;
            free.iter().filter(|free| !has_place || **free < pod.each()).sum()
        };
        kinds.iter().map(|(pod, count)| of_no_use(pod) as f64 * *count as f64).sum::<f64>() / seen as f64
    });
    by_node.sum()
}

/// What is left of a node: of each GPU in thousandths, and of its CPU.
fn left(engine: &Engine, name: &str, node: &TraceNode) -> (Vec<i64>, i64) {
    use koord_scheduler_plugins::device_share::{Allocation, DeviceResource};
    let mut free = vec![1000; node.gpu as usize];
    let mut cpu = node.cpu_milli;
    let cluster = engine.cluster();
    for placed in cluster.row(name).into_iter().flat_map(|row| cluster.pods_on(row)) {
        cpu -= placed.pod.template.requests.amount("cpu").milli_value();
        for (_, share) in placed.holds.get::<Allocation>().into_iter().flat_map(Allocation::iter) {
            free[share.minor as usize] -= 10 * share.amounts.amount(DeviceResource::GpuCore);
        }
    }
    (free, cpu)
}
