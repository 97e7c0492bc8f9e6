mod bound;
mod least_fragmented;
mod near;
mod reasons;
mod shown;
mod templates;

use std::{collections::BTreeMap, time::Duration};

use koord_config::scheduler::DefaultPreemptionArgs;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_allocation::devices::Kind;
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{AllocationSource, AttemptState, NumaHints, Profile, labels::Labels, object::Object};
use koord_scheduler_plugins_kubernetes::{DefaultPreemption, NodeResourcesFit};
use koord_scheduler_testing::devices::{list, report};
use koord_scheduling::NumaMask;
use serde_json::{Value, json};

use super::*;

const FOUR: &str = "gpu0@0/0 gpu1@0/0 gpu2@1/1 gpu3@1/1";

/// A scheduler with this plugin, and the time.
struct Scheduler {
    engine: Engine,
    now: Moment,
}

impl Scheduler {
    fn new(plugin: DeviceShare) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeResourcesFit::default()),
            Arc::new(plugin),
            Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
        ];
        let profile = Profile {
            filters: vec![0, 1],
            scores: vec![(1, 1)],
            post_filters: vec![2],
            ..Profile::of("test", plugins)
        };
        Self {
            engine: Engine::new(vec![profile], Timings::default(), Random::seeded(1)),
            now: Moment::at(Duration::ZERO),
        }
    }

    /// One node with these devices.
    fn of(devices: &str) -> Self {
        let mut scheduler = Self::new(DeviceShare::default());
        scheduler.node("n1", devices);
        scheduler
    }

    /// A node that offers what these devices have, and its report of them.
    fn node(&mut self, name: &str, devices: &str) {
        self.labelled(name, devices, &json!({}));
        self.report(name, devices);
    }

    fn labelled(&mut self, name: &str, devices: &str, labels: &Value) {
        let count = |kind: &str| 100 * devices.matches(kind).count();
        let (gpus, cards) = (count("gpu"), count("rdma"));
        let mut allocatable = json!({"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"});
        for name in ["gpu", "gpu-core", "gpu-memory-ratio"] {
            allocatable[format!("koordinator.sh/{name}")] = json!(gpus.to_string());
        }
        for (name, amount) in [("gpu-memory", format!("{}Gi", gpus * 80 / 100)), ("rdma", cards.to_string())] {
            allocatable[format!("koordinator.sh/{name}")] = json!(amount);
        }
        let object = json!({"metadata": {"labels": labels}, "status": {"allocatable": allocatable}});
        self.engine.set_node(koord_scheduler_testing::node(name, &object), self.now);
    }

    fn report(&mut self, node: &str, devices: &str) {
        let report = Arc::new(report(devices));
        self.engine.set_object(Object::new(ObjectKey::cluster(node), Uid::from(node), false, report), self.now);
    }

    /// What becomes of a new pod, and what is written of its devices.
    fn schedule(&mut self, name: &str, requests: &Value) -> String {
        self.schedule_with(name, &json!({ "requests": requests }))
    }

    fn schedule_with(&mut self, name: &str, members: &Value) -> String {
        self.engine.set_pod(pod(name, members), self.now);
        self.next().unwrap()
    }

    /// What becomes of the next pod in the queue, after some time.
    fn next(&mut self) -> Option<String> {
        self.now = self.now + Duration::from_mins(1);
        let Attempt { pod, outcome, .. } = self.engine.attempt(self.now)?;
        Some(match outcome {
            Outcome::Bind { node, patch, .. } => {
                let written = patch.annotations.get(DEVICE_ALLOCATED.name()).and_then(Clone::clone).unwrap_or_default();
                let bound = Pod {
                    node: Some(Arc::clone(&node)),
                    given: [(DEVICE_ALLOCATED.name(), &*written)]
                        .into_iter()
                        .filter(|(_, text)| !text.is_empty())
                        .collect(),
                    ..Pod::clone(&pod)
                };
                self.engine.set_pod(Arc::new(bound), self.now);
                format!("{} on {node}: {}", pod.key.name(), short(&written))
            }
            Outcome::Refused(refused) => {
                let victims: Vec<&str> = refused.victims.iter().map(|victim| victim.key.name()).collect();
                let evicting = if victims.is_empty() { String::new() } else { format!(" for {}", victims.join(", ")) };
                format!("{}{evicting}: {}", pod.key.name(), refused.message.split(" preemption:").next().unwrap())
            }
            other @ (Outcome::Waiting { .. } | Outcome::ExtenderCall { .. }) => panic!("{other:?}"),
        })
    }

    fn remove(&mut self, pod: &str) {
        self.engine.remove_pod(&Uid::from(pod), self.now);
    }
}

/// Minor numbers with percentages, of what is written.
fn short(written: &str) -> String {
    if written.is_empty() {
        return "-".to_owned();
    }
    let allocation = AllocatedDevices::read(&DEVICE_ALLOCATED.read(written).unwrap());
    let share = |(kind, share): (Kind, &koord_scheduler_allocation::devices::Share)| {
        let of = [DeviceResource::GpuMemoryRatio, DeviceResource::Rdma, DeviceResource::Fpga];
        let percent = of.iter().find_map(|resource| share.amounts.get(*resource)).unwrap();
        if percent == 100 { format!("{kind}{}", share.minor) } else { format!("{kind}{}:{percent}", share.minor) }
    };
    allocation.iter().map(share).collect::<Vec<_>>().join(" ")
}

fn pod(name: &str, members: &Value) -> Arc<Pod> {
    let texts = |part: &str| -> BTreeMap<String, String> {
        let members = members[part].as_object().into_iter().flatten();
        members
            .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect()
    };
    let (labels, annotations) = (texts("labels"), texts("annotations"));
    let borrowed =
        |texts: &BTreeMap<String, String>| -> Labels { texts.iter().map(|(key, value)| (&**key, &**value)).collect() };
    let init = &members["init"];
    let init = init.is_object().then(|| json!([{"name": "i", "resources": {"requests": init}}]));
    let spec = json!({
        "schedulerName": "test",
        "priority": members["priority"],
        "containers": [{"name": "c", "resources": {"requests": members["requests"]}}],
        "initContainers": init,
    });
    let annotations = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
    let template = Template::of("ns", borrowed(&labels), &annotations, &serde_json::from_value(spec).unwrap()).unwrap();
    Arc::new(Pod {
        key: ObjectKey::new("ns", name),
        uid: Uid::from(name),
        template: Arc::new(template),
        node: members["node"].as_str().map(Arc::from),
        given: koord_scheduler_framework::template::given(&annotations),
        ..Pod::default()
    })
}

fn gpus(count: i64) -> Value {
    json!({"koordinator.sh/gpu": (100 * count).to_string()})
}

fn share(percent: i64) -> Value {
    json!({"koordinator.sh/gpu-core": percent.to_string(), "koordinator.sh/gpu-memory-ratio": percent.to_string()})
}

fn unavailable(pod: &str, reason: &str) -> String {
    format!("{pod}: 0/1 nodes are available: {reason}.")
}

#[test]
fn pods_get_devices_one_after_the_other_until_none_are_left() {
    let mut scheduler = Scheduler::of(FOUR);
    assert_eq!(scheduler.schedule("a", &gpus(1)), "a on n1: gpu0");
    assert_eq!(scheduler.schedule("b", &gpus(1)), "b on n1: gpu1");
    assert_eq!(scheduler.schedule("c", &gpus(2)), "c on n1: gpu2 gpu3");
    assert_eq!(scheduler.schedule("d", &gpus(1)), unavailable("d", "1 Insufficient koordinator.sh/gpu"));
    scheduler.remove("b");
    assert_eq!(scheduler.next().unwrap(), "d on n1: gpu1", "who waits is woken");
    let mut scheduler = Scheduler::of(FOUR);
    assert_eq!(scheduler.schedule("vendor", &json!({"nvidia.com/gpu": "2"})), "vendor on n1: gpu0 gpu1");
    assert_eq!(
        scheduler.schedule_with("init", &json!({"requests": {"cpu": "1"}, "init": gpus(1)})),
        "init on n1: gpu2"
    );
    assert_eq!(scheduler.schedule("none", &json!({"cpu": "1"})), "none on n1: -");
}

#[test]
fn what_is_free_in_sum_is_not_free_on_one_device() {
    let mut scheduler = Scheduler::of("gpu0@0/0 gpu1@1/1");
    assert_eq!(scheduler.schedule("a", &share(60)), "a on n1: gpu0:60");
    assert_eq!(scheduler.schedule("b", &share(60)), "b on n1: gpu1:60");
    assert_eq!(scheduler.schedule("c", &share(50)), unavailable("c", "1 Insufficient GPU Devices"));
    assert_eq!(scheduler.schedule("d", &share(40)), "d on n1: gpu0:40");
}

#[test]
fn what_is_written_is_what_the_original_writes() {
    let mut scheduler = Scheduler::of(FOUR);
    let pod = pod("p", &json!({"requests": {"koordinator.sh/gpu-memory": "20Gi"}}));
    scheduler.engine.set_pod(pod, scheduler.now);
    let Some(Attempt { outcome: Outcome::Bind { patch, .. }, .. }) = scheduler.engine.attempt(scheduler.now) else {
        panic!()
    };
    let resources = r#"{"koordinator.sh/gpu-memory":"20Gi","koordinator.sh/gpu-memory-ratio":"25"}"#;
    let text = format!(r#"{{"gpu":[{{"minor":0,"resources":{resources},"id":"GPU-0"}}]}}"#);
    assert_eq!(patch.annotations[DEVICE_ALLOCATED.name()].as_ref(), Some(&text));
}

#[test]
fn running_pods_keep_their_devices_after_a_restart() {
    let mut scheduler = Scheduler::new(DeviceShare::default());
    let given = json!({"gpu": [{"minor": 0, "resources": list("gpu-core=100 gpu-memory=80Gi gpu-memory-ratio=100")}]});
    let annotations = json!({"scheduling.koordinator.sh/device-allocated": given});
    let running = json!({"requests": gpus(1), "node": "n1", "annotations": annotations});
    scheduler.engine.set_pod(pod("a", &running), scheduler.now);
    scheduler.report("n1", FOUR);
    scheduler.labelled("n1", FOUR, &json!({}));
    assert_eq!(scheduler.schedule("p", &gpus(2)), "p on n1: gpu2 gpu3", "in whatever order things become known");
    scheduler.engine.remove_node("n1", scheduler.now);
    scheduler.labelled("n1", FOUR, &json!({}));
    assert_eq!(scheduler.schedule("q", &gpus(1)), "q on n1: gpu1");
}

#[test]
fn devices_that_become_healthy_are_given_to_who_waits() {
    let mut scheduler = Scheduler::of("gpu0!@0/0");
    assert_eq!(scheduler.schedule("p", &gpus(1)), unavailable("p", "1 Insufficient GPU Devices"));
    scheduler.report("n1", "gpu0@0/0");
    assert_eq!(scheduler.next().unwrap(), "p on n1: gpu0");
}

#[test]
fn nodes_without_a_report_are_left_to_what_they_offer() {
    let mut scheduler = Scheduler::new(DeviceShare::default());
    scheduler.labelled("n1", FOUR, &json!({}));
    assert_eq!(scheduler.schedule("p", &gpus(1)), "p on n1: -");
    scheduler.report("n1", "rdma0@0/0");
    assert_eq!(scheduler.schedule("q", &gpus(1)), unavailable("q", "1 Insufficient gpu devices"));
    scheduler.report("n1", FOUR);
    assert_eq!(scheduler.next().unwrap(), "q on n1: gpu0", "the other pod has none of the devices");
    scheduler.engine.remove_object(std::any::TypeId::of::<ApiDevice>(), "n1", scheduler.now);
    assert_eq!(
        scheduler.schedule("r", &gpus(1)),
        unavailable("r", "1 Insufficient GPU Devices"),
        "a report may come back"
    );
}

#[test]
fn invalid_requests_are_refused_as_a_whole() {
    let mut scheduler = Scheduler::of(FOUR);
    let requests = json!({"koordinator.sh/gpu-core": "50"});
    let reason = "invalid resource device requests: [koordinator.sh/gpu-core]";
    assert_eq!(scheduler.schedule("p", &requests), unavailable("p", reason));
    // What is left of a failed binding is read after the requests, and before other annotations, of every pod.
    let annotations = json!({"scheduling.koordinator.sh/device-allocated": "{bad"});
    let mut left = json!({"requests": {"cpu": "1"}, "annotations": annotations});
    let unreadable = "invalid character 'b' looking for beginning of object key string";
    assert_eq!(scheduler.schedule_with("left", &left), unavailable("left", unreadable));
    left["requests"] = requests;
    assert_eq!(scheduler.schedule_with("both", &left), unavailable("both", reason));
    left["requests"] = gpus(1);
    left["annotations"]["scheduling.koordinator.sh/device-allocate-hint"] = json!("{");
    assert_eq!(scheduler.schedule_with("hint", &left), unavailable("hint", unreadable));
}

#[test]
fn nodes_are_spread_or_packed() {
    let two = |plugin: DeviceShare, used: i64| {
        let mut scheduler = Scheduler::new(plugin);
        for node in ["n1", "n2"] {
            scheduler.node(node, FOUR);
        }
        let first = scheduler.schedule("a", &share(used));
        let second = scheduler.schedule("p", &share(30));
        (first.contains("n1"), second.contains("n1"), second.ends_with("gpu0:30"))
    };
    let (first, second, _) = two(DeviceShare::default(), 50);
    assert_ne!(first, second, "the emptier node");
    let strategy =
        json!({"type": "MostAllocated", "resources": [{"name": "koordinator.sh/gpu-memory-ratio", "weight": 1}]});
    let args: DeviceShareArgs = serde_json::from_value(json!({ "scoringStrategy": strategy })).unwrap();
    let (first, second, on_same) = two(DeviceShare::new(&args), 50);
    assert!(first == second && on_same, "the fuller node and the fuller GPU");
    let args: DeviceShareArgs = serde_json::from_value(json!({"scoringStrategy": {"type": "MostAllocated"}})).unwrap();
    let (first, second, on_same) = two(DeviceShare::new(&args), 50);
    assert!(first == second && on_same, "all kinds of devices count where no resource is named");
}

#[test]
fn a_node_that_cannot_keep_shares_apart_is_refused_alone() {
    let mut scheduler = Scheduler::of(FOUR);
    let isolated =
        |requests| json!({"requests": requests, "labels": {"koordinator.sh/gpu-isolation-provider": "HAMi-core"}});
    let reason = "1 GPUIsolationProviderHAMICore not found on the node";
    assert_eq!(scheduler.schedule_with("p", &isolated(share(50))), unavailable("p", reason));
    assert_eq!(scheduler.schedule_with("whole", &isolated(gpus(1))), "whole on n1: gpu0");
    scheduler.labelled("n2", FOUR, &json!({"koordinator.sh/gpu-isolation-provider": "HAMi-core"}));
    scheduler.report("n2", FOUR);
    assert_eq!(scheduler.next().unwrap(), "p on n2: gpu0:50", "where the original fails the whole attempt");
}

#[test]
fn models_that_cannot_be_shared_are_refused() {
    let models = json!({"gpuShareUnsupportedModels": [{"vendor": "a", "model": "b"}, {"vendor": "v", "model": "m"}]});
    let mut scheduler = Scheduler::new(DeviceShare::new(&serde_json::from_value(models).unwrap()));
    scheduler.labelled(
        "n1",
        FOUR,
        &json!({"node.koordinator.sh/gpu-vendor": "v", "node.koordinator.sh/gpu-model": "m"}),
    );
    scheduler.report("n1", FOUR);
    let reason = r#"1 model "m" of vendor "v" does not support GPU Share"#;
    assert_eq!(scheduler.schedule("p", &share(50)), unavailable("p", reason));
    assert_eq!(scheduler.schedule("whole", &gpus(1)), "whole on n1: gpu0");
}

#[test]
fn a_more_important_pod_gets_the_devices_of_another() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    let of = |priority: i32| json!({"requests": gpus(1), "priority": priority});
    assert_eq!(scheduler.schedule_with("low", &of(100)), "low on n1: gpu0");
    let reason = "0/1 nodes are available: 1 Insufficient koordinator.sh/gpu.";
    assert_eq!(scheduler.schedule_with("high", &of(10_000)), format!("high for low: {reason}"));
    scheduler.remove("low");
    assert_eq!(scheduler.next().unwrap(), "high on n1: gpu0");
}

#[test]
fn only_pods_whose_devices_come_back_are_evicted() {
    let mut scheduler = Scheduler::of("gpu0@0/0 gpu1@1/1");
    let of = |percent: i64, priority: i32| json!({"requests": share(percent), "priority": priority});
    assert_eq!(scheduler.schedule_with("a", &of(60, 1)), "a on n1: gpu0:60");
    assert_eq!(scheduler.schedule_with("b", &of(70, 2)), "b on n1: gpu1:70");
    let devices = |scheduler: &Scheduler| {
        let cluster = scheduler.engine.cluster();
        cluster.state::<Devices>().unwrap().of(cluster.row("n1").unwrap()).unwrap().clone()
    };
    let before = devices(&scheduler);
    let refused = scheduler.schedule_with("high", &of(50, 10));
    assert_eq!(refused, "high for a: 0/1 nodes are available: 1 Insufficient GPU Devices.");
    assert!(before == devices(&scheduler), "what was tried is undone");
    scheduler.remove("a");
    assert_eq!(scheduler.next().unwrap(), "high on n1: gpu0:50");
}

#[test]
fn numa_nodes_are_named_and_kept_to() {
    let mut scheduler = Scheduler::of(FOUR);
    let plugin = DeviceShare::default();
    let row = scheduler.engine.cluster().row("n1").unwrap();
    let incoming = pod("p", &json!({"requests": gpus(1)}));
    scheduler.engine.set_pod(Arc::clone(&incoming), scheduler.now);
    let mut cluster = scheduler.engine.cluster().clone();
    let class = cluster.class(&incoming.template);
    let request = Request { pod: &incoming, class: &class, plugins: &[], state: &AttemptState::default() };
    let mask = |nodes: &[u32]| NumaMask::of(nodes.iter().copied()).unwrap();
    let any = AllocationSource::Any;
    let of_pod = plugin.prepare_numa_hints(&request).unwrap();
    let NumaHints { resources, hints } = of_pod.hints(&cluster, row, 2, &any).unwrap();
    assert_eq!((resources.into_iter().collect::<Vec<_>>(), hints.len()), (vec![Kind::Gpu.to_string()], 3));
    assert_eq!(of_pod.verify(&cluster, row, Some(mask(&[1])), &any), Ok(()));
    assert_eq!(of_pod.verify(&cluster, row, Some(mask(&[2])), &any), Err(vec![Refused::Gpus.reason()]));
    let mut holds = Holds::default();
    holds.set(ReservedNumaAffinity(mask(&[1])));
    plugin.reserve(&request, &cluster, row, &mut holds).unwrap();
    assert_eq!(holds.get::<AllocatedDevices>().unwrap().of(Kind::Gpu)[0].minor, 2);
    let free = DeviceShare::new(&DeviceShareArgs {
        disable_device_numa_topology_alignment: true,
        ..DeviceShareArgs::default()
    });
    assert_eq!(free.prepare_numa_hints(&request).unwrap().hints(&cluster, row, 2, &any), Ok(NumaHints::default()));
}
