//! Nodes, pods and an engine with the plugin.

use std::{sync::Arc, time::Duration};

use koord_config::scheduler::{DefaultPreemptionArgs, NodeNumaResourceArgs};
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Plugin, Profile,
    labels::Labels,
    object::Object,
    pod::{Pod, Template},
    template::given,
};
use koord_scheduler_plugins_kubernetes::{DefaultPreemption, NodeResourcesFit};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};
use serde_json::{Value, json};

use super::{SPEC, STATUS};
use crate::{DeviceShare, NodeNumaResource, Reservation};

/// A node of NUMA nodes with four cores of two CPUs each.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) numa_nodes: u32,
    /// Of each NUMA node.
    pub(super) cpu: u32,
    pub(super) memory: &'static str,
    pub(super) allocatable: Value,
    pub(super) labels: Value,
    pub(super) annotations: Value,
    pub(super) reported: Value,
    pub(super) policies: Value,
    /// Whether its CPUs are reported, beside its NUMA nodes.
    pub(super) reports_cpus: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            name: "n1",
            numa_nodes: 2,
            cpu: 8,
            memory: "32Gi",
            allocatable: json!({"cpu": "16", "memory": "64Gi", "pods": "110"}),
            labels: json!({}),
            annotations: json!({}),
            reported: json!({}),
            policies: json!(["None"]),
            reports_cpus: true,
        }
    }
}

impl Machine {
    pub(super) fn labelled(key: &str, value: &str) -> Self {
        Self { labels: json!({key: value}), ..Self::default() }
    }

    pub(super) fn reporting(key: &str, value: &str) -> Self {
        Self { reported: json!({key: value}), ..Self::default() }
    }

    pub(super) fn amplified() -> Self {
        Self {
            allocatable: json!({"cpu": "24", "memory": "64Gi", "pods": "110"}),
            annotations: json!({"node.koordinator.sh/resource-amplification-ratio": r#"{"cpu":1.5}"#}),
            ..Self::default()
        }
    }

    pub(super) fn node(&self) -> Arc<koord_scheduler_framework::node::Node> {
        let metadata = json!({"labels": self.labels, "annotations": self.annotations});
        koord_scheduler_testing::node(
            self.name,
            &json!({"metadata": metadata, "status": {"allocatable": self.allocatable}}),
        )
    }

    pub(super) fn topology(&self) -> Object {
        let place = |id: u32| json!({"id": id, "core": id / 2, "node": id / 8, "socket": id / 16});
        let detail: Vec<Value> = (0..8 * self.numa_nodes).map(place).collect();
        let mut annotations = self.reported.clone();
        if self.reports_cpus {
            annotations["node.koordinator.sh/cpu-topology"] = json!(json!({"detail": detail}).to_string());
        }
        let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        let zone = |node: u32| {
            let resources = [resource("cpu", &self.cpu.to_string()), resource("memory", self.memory)];
            json!({"name": format!("node-{node}"), "type": "Node", "resources": resources})
        };
        let zones: Vec<Value> = (0..self.numa_nodes).map(zone).collect();
        let metadata = json!({"name": self.name, "annotations": annotations});
        let object = json!({
            "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
            "metadata": metadata, "topologyPolicies": self.policies, "zones": zones,
        });
        let object: NodeResourceTopology = serde_json::from_value(object).unwrap();
        Object::new(ObjectKey::cluster(self.name), Uid::from(self.name), false, Arc::new(object))
    }
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Moment,
}

/// The QoS class, the cpu, and annotations of a pod with 1Gi of memory.
pub(super) type CpuRequest<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

impl World {
    pub(super) fn new(args: Value) -> Self {
        let args: NodeNumaResourceArgs = serde_json::from_value(args).unwrap();
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeResourcesFit::default()),
            Arc::new(NodeNumaResource::new(args)),
            Arc::new(DeviceShare::default()),
        ];
        let profile =
            Profile { filters: vec![0, 1, 2], scores: vec![(0, 1), (1, 1)], ..Profile::of("koord-scheduler", plugins) };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        Self { engine, now: Moment::at(Duration::ZERO) }
    }

    /// With evictions.
    pub(super) fn that_preempts(machine: &Machine) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeNumaResource::new(NodeNumaResourceArgs::default())),
            Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
        ];
        let profile = Profile { filters: vec![0], post_filters: vec![1], ..Profile::of("koord-scheduler", plugins) };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, now: Moment::at(Duration::ZERO) };
        world.add(machine);
        world
    }

    /// With Reservations.
    pub(super) fn that_reserves(machine: &Machine) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(Reservation::default()),
            Arc::new(NodeResourcesFit::default()),
            Arc::new(NodeNumaResource::new(NodeNumaResourceArgs::default())),
        ];
        let profile =
            Profile { filters: vec![1, 2, 0], scores: vec![(0, 1)], ..Profile::of("koord-scheduler", plugins) };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, now: Moment::at(Duration::ZERO) };
        world.add(machine);
        world
    }

    pub(super) fn of(machines: &[Machine]) -> Self {
        let mut world = Self::new(json!({}));
        for machine in machines {
            world.add(machine);
        }
        world
    }

    pub(super) fn add(&mut self, machine: &Machine) {
        self.engine.set_node(machine.node(), self.now);
        if machine.numa_nodes > 0 {
            self.engine.set_object(machine.topology(), self.now);
        }
    }

    pub(super) fn create(&mut self, name: &str, cpu_request: CpuRequest<'_>) -> String {
        self.create_with(name, cpu_request, 9500, "1Gi")
    }

    pub(super) fn create_with(
        &mut self,
        name: &str,
        cpu_request: CpuRequest<'_>,
        priority: i32,
        memory: &str,
    ) -> String {
        self.engine.set_pod(pod(name, cpu_request, priority, memory, None), self.now);
        self.tried()
    }

    /// A pod of class LS that wants GPUs too.
    pub(super) fn create_with_gpus(&mut self, name: &str, cpu: &str, gpus: &str) -> String {
        let requests = json!({"cpu": cpu, "memory": "1Gi", "koordinator.sh/gpu": gpus});
        self.engine.set_pod(requesting(name, ("LS", &[]), 9500, &requests, None), self.now);
        self.tried()
    }

    /// The node reports GPUs: the NUMA node of each.
    pub(super) fn report_gpus(&mut self, node: &str, numa_nodes: &[u32]) {
        let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi",
            "koordinator.sh/gpu-memory-ratio": "100"});
        let gpu = |(minor, numa_node): (usize, &u32)| {
            let place = json!({"socketID": 0, "nodeID": numa_node, "pcieID": numa_node.to_string(), "busID": ""});
            json!({"type": "gpu", "id": format!("GPU-{minor}"), "minor": minor, "health": true,
                "resources": resources, "topology": place})
        };
        let gpus: Vec<Value> = numa_nodes.iter().enumerate().map(gpu).collect();
        let device = json!({"metadata": {"name": node}, "spec": {"devices": gpus}});
        let device: Device = serde_json::from_value(device).unwrap();
        let object = Object::new(ObjectKey::cluster(node), Uid::from(node), false, Arc::new(device));
        self.engine.set_object(object, self.now);
    }

    pub(super) fn tried(&mut self) -> String {
        self.engine.attempt(self.now).map(|attempt| result(&attempt)).unwrap_or_default()
    }
}

pub(super) fn pod(
    name: &str,
    (qos, cpu, annotations): CpuRequest<'_>,
    priority: i32,
    memory: &str,
    node: Option<&str>,
) -> Arc<Pod> {
    requesting(name, (qos, annotations), priority, &json!({"cpu": cpu, "memory": memory}), node)
}

pub(super) fn requesting(
    name: &str,
    (qos, annotations): (&str, &[(&str, &str)]),
    priority: i32,
    requests: &Value,
    node: Option<&str>,
) -> Arc<Pod> {
    let spec = json!({
        "schedulerName": "koord-scheduler", "priority": priority,
        "containers": [{"name": "c", "resources": {"requests": requests}}],
    });
    let labels: Labels = [("koordinator.sh/qosClass", qos)].into_iter().collect();
    let annotations = annotations.iter().copied().collect();
    let template = Template::of("ns", labels, &annotations, &serde_json::from_value(spec).unwrap()).unwrap();
    Arc::new(Pod {
        key: ObjectKey::new("ns", name),
        uid: Uid::from(name),
        template: Arc::new(template),
        given: given(&annotations),
        node: node.map(Arc::from),
        ..Pod::default()
    })
}

/// The node, and what is written; or the message.
pub(super) fn result(attempt: &Attempt) -> String {
    match &attempt.outcome {
        Outcome::Bind { node, patch, .. } => {
            let annotation = |key: &str| patch.annotations.get(key).cloned().flatten();
            let devices = annotation("scheduling.koordinator.sh/device-allocated").map(|text| minors(&text));
            let parts = [Some(node.to_string()), annotation(STATUS), annotation(SPEC), devices];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Outcome::Refused(refused) => refused.message.clone(),
        Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => "waits".to_owned(),
    }
}

/// The GPUs in an annotation by their numbers.
fn minors(text: &str) -> String {
    let allocated: Value = serde_json::from_str(text).unwrap();
    let minors = allocated["gpu"].as_array().unwrap().iter().map(|gpu| gpu["minor"].to_string());
    format!("GPUs {}", minors.collect::<Vec<_>>().join(" "))
}
