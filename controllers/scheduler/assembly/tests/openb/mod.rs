//! Replays of a public trace of GPU pods, as the experiment of "Beware of Fragmentation" (USENIX ATC 2023) plays it: the pods of
//! the trace come in a shuffled order, and then at random again, until 130 % of the cluster's GPUs are asked for; none ends.
//! Only nodes with GPUs take part. What is reported are the GPUs that are given out then, and those that are lost to the pods of
//! the trace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_assembly::build;
use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Profile, labels::Labels, node as engine_node, object::Object, pod as engine_pod, pod::Template,
};
use koord_scheduler_openb::{NODES, Node, Pod, Request, arrivals, pods_file, read};
use koord_types::device::Device;
use serde_json::{Value, json};

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

/// What fragmentation gradient descent (FGD) reaches on a trace, in percent of all GPUs: the means of ten seeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) trace: &'static str,
    /// How much of its CPU each node has, in percent.
    pub(crate) cpu_percent: i64,
    allocated: f64,
    fragmented: f64,
}

/// FGD on the traces that are played. The figures of whole nodes were published, but for what is lost on cpu100; that, and those of nodes with half
/// of their CPU, are of FGD replayed.
pub(crate) const FGD: [Reached; 3] = [
    Reached { trace: "default", cpu_percent: 100, allocated: 95.39, fragmented: 4.57 },
    Reached { trace: "cpu100", cpu_percent: 100, allocated: 95.35, fragmented: 4.6 },
    Reached { trace: "default", cpu_percent: 50, allocated: 60.6, fragmented: 39.4 },
];

impl Reached {
    /// Whether as many GPUs are given out, and no more are lost.
    pub(crate) fn is_reached(&self, allocated: f64, fragmented: f64) -> bool {
        allocated >= self.allocated && fragmented <= self.fragmented
    }
}

/// The folder with the traces, in `$KOORD_SHARED` or beside the repository.
pub(crate) fn beside() -> PathBuf {
    let beside = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared").into();
    std::env::var_os("KOORD_SHARED").map_or_else(beside, PathBuf::from).join("data/openb")
}

/// This folder; none, and a message, where it is not there.
pub(crate) fn there(folder: PathBuf) -> Option<PathBuf> {
    let is_there = folder.is_dir();
    if !is_there {
        programs::skipped("the openb traces", &format!("they are not in {}", folder.display()));
    }
    is_there.then_some(folder)
}

/// The nodes of a file that have GPUs, with so much of their CPU.
pub(crate) fn nodes(folder: &Path, cpu_percent: i64) -> Vec<Node> {
    let all: Vec<Node> = read(&folder.join(NODES)).unwrap();
    let with_gpus = all.into_iter().filter(|node| node.gpus > 0);
    with_gpus.map(|node| Node { cpu_milli: node.cpu_milli * cpu_percent / 100, ..node }).collect()
}

/// What the pods of a trace request.
pub(crate) fn requests(folder: &Path, trace: &str) -> Vec<Request> {
    let pods: Vec<Pod> = read(&folder.join(pods_file(trace))).unwrap();
    pods.into_iter().map(|pod| pod.request).collect()
}

fn template(request: &Request) -> Arc<Template> {
    let spec = serde_json::from_value(request.spec("koord-scheduler")).unwrap();
    Arc::new(Template::of("trace", Labels::default(), &BTreeMap::new(), &spec).unwrap())
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
fn add_node(engine: &mut Engine, name: &str, node: &Node) {
    let [object, report] = &node.objects(name)[..] else { panic!("no GPUs") };
    let object = serde_json::from_value(object.clone()).unwrap();
    engine.set_node(Arc::new(engine_node::Node::of(&object).unwrap()), Moment::default());
    let report: Device = serde_json::from_value(report.clone()).unwrap();
    let object = Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(report));
    engine.set_object(object, Moment::default());
}

/// Plays a trace with a strategy. Gives what came of it, and how long all about the arrivals took by this clock.
pub(crate) fn replay(
    nodes: &[Node],
    requests: &[Request],
    seed: u64,
    strategy: &str,
    clock: fn() -> Duration,
) -> (Outcomes, Duration) {
    let random = Random::seeded(seed);
    let mut engine = Engine::new(vec![profile(strategy)], Timings::default(), random.clone());
    for (number, node) in nodes.iter().enumerate() {
        add_node(&mut engine, &format!("n{number:04}"), node);
    }
    let total: i64 = nodes.iter().map(|node| node.gpus * 1000).sum();
    let mut templates: BTreeMap<Request, Arc<Template>> = BTreeMap::new();
    let (mut attempts, mut placed) = (0, Vec::new());
    let start = clock();
    for (number, arriving) in arrivals(requests, total * 130 / 100, &random).into_iter().enumerate() {
        let name = format!("p{number:05}");
        let template = Arc::clone(templates.entry(arriving.clone()).or_insert_with(|| template(&arriving)));
        // A UUID, as API servers give it.
        let uid = Uid::from(&*format!("00000000-0000-4000-8000-{number:012}"));
        let key = ObjectKey::new("trace", &name);
        engine
            .set_pod(Arc::new(engine_pod::Pod { key, uid, template, ..engine_pod::Pod::default() }), Moment::default());
        while let Some(attempt) = engine.attempt(Moment::default()) {
            attempts += 1;
            if matches!(attempt.outcome, Outcome::Bind { .. }) {
                placed.push(arriving.gpu_milli());
            }
        }
    }
    let taken = clock().saturating_sub(start);
    let percent = |gpu_milli: f64| gpu_milli * 100.0 / total as f64;
    let allocated: i64 = placed.iter().sum();
    let fragmented = fragmented(&engine, nodes, requests);
    (Outcomes { allocated: percent(allocated as f64), fragmented: percent(fragmented), attempts }, taken)
}

/// What is free and of no use, in thousandths of GPUs: the mean over the kinds of pods that are 95 % of the trace.
fn fragmented(engine: &Engine, nodes: &[Node], requests: &[Request]) -> f64 {
    let mut counts: BTreeMap<Request, usize> = BTreeMap::new();
    for request in requests {
        *counts.entry(Request { memory_mib: 0, ..request.clone() }).or_default() += 1;
    }
    let mut kinds: Vec<(Request, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(request, count)| (std::cmp::Reverse(*count), request.clone()));
    let mut seen = 0;
    kinds.retain(|(_, count)| {
        let is_typical = seen * 100 < requests.len() * 95;
        seen += if is_typical { *count } else { 0 };
        is_typical
    });
    let by_node = nodes.iter().enumerate().map(|(number, node)| {
        let (free, cpu) = left(engine, &format!("n{number:04}"), node);
        let of_no_use = |request: &Request| request.demand().of_no_use(&free, cpu, request.allows(&node.model));
        kinds.iter().map(|(request, count)| of_no_use(request) as f64 * *count as f64).sum::<f64>() / seen as f64
    });
    by_node.sum()
}

/// What is left of a node: of each GPU in thousandths, and of its CPU.
fn left(engine: &Engine, name: &str, node: &Node) -> (Vec<i64>, i64) {
    use koord_scheduler_allocation::devices::{AllocatedDevices, DeviceResource};
    let mut free = vec![1000; node.gpus as usize];
    let mut cpu = node.cpu_milli;
    let cluster = engine.cluster();
    for placed in cluster.row(name).into_iter().flat_map(|row| cluster.pods_on(row)) {
        cpu -= placed.pod.template.requests.amount("cpu").milli_value();
        for (_, share) in placed.holds.get::<AllocatedDevices>().into_iter().flat_map(AllocatedDevices::iter) {
            free[share.minor as usize] -= 10 * share.amounts.amount(DeviceResource::GpuCore);
        }
    }
    (free, cpu)
}
