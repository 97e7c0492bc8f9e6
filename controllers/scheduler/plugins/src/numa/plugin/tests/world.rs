//! Nodes, pods and an engine with the plugin.

use std::{sync::Arc, time::Duration};

use koord_api::node_resource_topology::v1alpha1::NodeResourceTopology;
use koord_config::scheduler::NodeNumaResourceArgs;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_engine::{
    cycle::Profile,
    engine::{Attempt, Engine, Outcome},
    labels::Labels,
    object::Object,
    pod::{Pod, Template},
    queue::Timings,
    template::given,
};
use serde_json::{Value, json};

use super::{SPEC, STATUS};
use crate::{NodeNumaResource, NodeResourcesFit, testing};

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

    pub(super) fn node(&self) -> Arc<koord_engine::node::Node> {
        let metadata = json!({"labels": self.labels, "annotations": self.annotations});
        testing::node(self.name, &json!({"metadata": metadata, "status": {"allocatable": self.allocatable}}))
    }

    pub(super) fn topology(&self) -> Object {
        let place = |id: u32| json!({"id": id, "core": id / 2, "node": id / 8, "socket": id / 16});
        let detail: Vec<Value> = (0..8 * self.numa_nodes).map(place).collect();
        let mut annotations = self.reported.clone();
        annotations["node.koordinator.sh/cpu-topology"] = json!(json!({"detail": detail}).to_string());
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
pub(super) type Wish<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

impl World {
    pub(super) fn new(args: Value) -> Self {
        let args: NodeNumaResourceArgs = serde_json::from_value(args).unwrap();
        let profile = Profile {
            scheduler: "koord-scheduler".into(),
            plugins: vec![Arc::new(NodeResourcesFit::default()), Arc::new(NodeNumaResource::new(args))],
            filters: vec![0, 1],
            scores: vec![(0, 1), (1, 1)],
            ..Profile::default()
        };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        Self { engine, now: Moment::at(Duration::ZERO) }
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

    pub(super) fn create(&mut self, name: &str, wish: Wish<'_>) -> String {
        self.create_with(name, wish, 9500, "1Gi")
    }

    pub(super) fn create_with(&mut self, name: &str, wish: Wish<'_>, priority: i32, memory: &str) -> String {
        self.engine.set_pod(pod(name, wish, priority, memory, None), self.now);
        self.tried()
    }

    pub(super) fn tried(&mut self) -> String {
        self.engine.attempt(self.now).map(|attempt| result(&attempt)).unwrap_or_default()
    }
}

pub(super) fn pod(
    name: &str,
    (qos, cpu, annotations): Wish<'_>,
    priority: i32,
    memory: &str,
    node: Option<&str>,
) -> Arc<Pod> {
    let requests = json!({"cpu": cpu, "memory": memory});
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
            let parts = [Some(node.to_string()), annotation(STATUS), annotation(SPEC)];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Outcome::Refused(refused) => refused.message.clone(),
        Outcome::Waiting { .. } => "waits".to_owned(),
    }
}
