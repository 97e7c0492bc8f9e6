//! A node for tests: objects, samples, and cgroups as values.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::{Constraint, Node, NodeSlo, NodeSloReader, NodeTopology, Pod, Target, read_pod};
use koord_koordlet_metrics::{Measure, Store, Subject};
use koord_koordlet_system::{
    CgroupPath, Disks, Driver, Layout, MapKernel, RecordedTree, Resource, Roots, Value, Version,
};
use koord_resource::Quantity;
use koord_scheduling::Cpu;
use serde_json::{Value as Json, json};

use crate::{
    eviction::{Answer, EvictionRound, Ledger, Means},
    feature::{Feature, Features},
    input::{Generations, Input, PodDisks, Resctrl},
    outcome::{Note, Outcome},
};

pub(crate) const LAYOUT: Layout = Layout::new(Version::V1, Driver::Cgroupfs);
pub(crate) const GI: i64 = 1 << 30;

/// A node of eight CPUs in two sockets, with hyper threads, and 16 GiB of memory.
pub(crate) struct Fixture {
    pub now: Moment,
    pub features: Features,
    pub generations: Generations,
    pub node: Option<Node>,
    pub slo: Option<NodeSlo>,
    pub topology: Option<NodeTopology>,
    pub pods: Vec<Arc<Pod>>,
    pub store: Store,
    pub kernel: MapKernel,
    pub roots: Roots,
    pub files: RecordedTree,
    pub evicted: Ledger,
    pub disks: Option<FixtureDisks>,
    pub resctrl: Option<Resctrl>,
}

pub(crate) struct FixtureDisks(pub Disks);

impl PodDisks for FixtureDisks {
    fn disks(&self) -> &Disks {
        &self.0
    }

    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<Arc<str>> {
        (namespace == "test" && claim == "claim").then(|| "pv-1".into())
    }

    fn kubelet_folder(&self) -> &Path {
        Path::new("/kubelet")
    }
}

impl Fixture {
    pub(crate) fn new(feature: Feature) -> Self {
        Self::with_layout(feature, LAYOUT)
    }

    pub(crate) fn with_layout(feature: Feature, layout: Layout) -> Self {
        let mut fixture = Self {
            now: Moment::at(Duration::from_secs(1000)),
            features: Features::none().with(feature),
            generations: Generations::default(),
            node: None,
            slo: Some(NodeSlo::default()),
            topology: None,
            pods: Vec::new(),
            store: Store::default(),
            kernel: MapKernel::new(layout),
            roots: Roots::host(),
            files: RecordedTree::default(),
            evicted: Ledger::default(),
            disks: None,
            resctrl: None,
        };
        fixture.node(&[("cpu", "8"), ("memory", "16Gi")], &[("cpu", "8"), ("memory", "16Gi")]);
        fixture.topology(8);
        fixture
    }

    pub(crate) fn input(&self) -> Input<'_> {
        Input {
            now: self.now,
            time: Timestamp::UNIX_EPOCH,
            collect_interval: Duration::from_secs(1),
            features: self.features,
            generations: self.generations,
            node: self.node.as_ref(),
            slo: self.slo.as_ref(),
            topology: self.topology.as_ref(),
            pods: &self.pods,
            store: &self.store,
            kernel: &self.kernel,
            roots: &self.roots,
            files: &self.files,
            evicted: &self.evicted,
            disks: self.disks.as_ref().map(|disks| disks as &dyn PodDisks),
            resctrl: self.resctrl.as_ref(),
        }
    }

    pub(crate) fn node(&mut self, capacity: &[(&str, &str)], allocatable: &[(&str, &str)]) {
        let list = |amounts: &[(&str, &str)]| {
            amounts.iter().map(|(name, amount)| ((*name).to_owned(), amount.parse::<Quantity>().unwrap())).collect()
        };
        self.node = Some(Node { capacity: list(capacity), allocatable: list(allocatable), ..Node::default() });
        self.generations.node += 1;
    }

    /// Two sockets with hyper threads.
    pub(crate) fn topology(&mut self, cpus: u32) {
        let half = cpus / 2;
        let cpu = |id| Cpu { id, core: id % half, node: id % half / (half / 2), socket: id % half / (half / 2) };
        self.topology = Some(NodeTopology { cpus: (0..cpus).map(cpu).collect(), ..NodeTopology::default() });
        self.generations.topology += 1;
    }

    pub(crate) fn slo(&mut self, spec: &Json) {
        let (slo, errors) = NodeSloReader::default().read(spec);
        assert_eq!(errors, []);
        self.slo = Some(slo);
        self.generations.slo += 1;
    }

    /// Adds a running pod. `meta` is laid over its metadata, `containers` are those of its spec.
    pub(crate) fn pod(&mut self, name: &str, class: &str, meta: &Json, priority: Option<i32>, containers: &Json) {
        self.any_pod(name, class, meta, &json!({"priority": priority, "containers": containers}), "Running");
    }

    pub(crate) fn any_pod(&mut self, name: &str, class: &str, meta: &Json, spec: &Json, phase: &str) {
        let statuses = |field: &str| -> Vec<Json> {
            let containers = spec.get(field).and_then(Json::as_array).cloned().unwrap_or_default();
            let status = |container: &Json| {
                let id = format!("containerd://{name}-{}", container["name"].as_str().unwrap());
                json!({"name": container["name"], "containerID": id, "state": {"running": {}}})
            };
            containers.iter().map(status).collect()
        };
        let mut metadata = json!({"name": name, "namespace": "test", "uid": format!("uid-{name}")});
        for (key, value) in meta.as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
        let pod = json!({
            "metadata": metadata,
            "spec": spec,
            "status": {
                "phase": phase,
                "qosClass": class,
                "containerStatuses": statuses("containers"),
                "initContainerStatuses": statuses("initContainers"),
            },
        });
        let pod = read_pod(&pod.to_string(), self.kernel_layout()).unwrap();
        self.kernel.add(&pod.cgroup);
        for cgroup in pod.containers.iter().filter_map(|container| container.cgroup.as_ref()) {
            self.kernel.add(cgroup);
        }
        self.pods.push(Arc::new(pod));
        self.generations.pods += 1;
    }

    fn kernel_layout(&self) -> Layout {
        koord_koordlet_system::Kernel::layout(&self.kernel)
    }

    pub(crate) fn cgroup(&self, pod: &str) -> CgroupPath {
        self.pods.iter().find(|known| &*known.name == pod).unwrap().cgroup.clone()
    }

    /// The folder of a container named `main`, or another one.
    pub(crate) fn container(&self, pod: &str, container: &str) -> CgroupPath {
        let pod = self.pods.iter().find(|known| &*known.name == pod).unwrap();
        pod.containers.iter().find(|known| &*known.name == container).unwrap().cgroup.clone().unwrap()
    }

    pub(crate) fn sample(&mut self, subject: Subject<'_>, measure: Measure, value: f64) {
        self.store.append(subject, measure, self.now, value);
    }

    /// Cores in use of `node`, or of pods.
    pub(crate) fn cpu(&mut self, usage: &[(&str, f64)]) {
        for (name, cores) in usage {
            let uid = format!("uid-{name}");
            self.sample(if *name == "node" { Subject::Node } else { Subject::Pod(&uid) }, Measure::Cpu, *cores);
        }
    }

    /// Bytes in use of `node`, or of pods.
    pub(crate) fn memory(&mut self, usage: &[(&str, i64)]) {
        for (name, bytes) in usage {
            let uid = format!("uid-{name}");
            let subject = if *name == "node" { Subject::Node } else { Subject::Pod(&uid) };
            self.sample(subject, Measure::Memory, *bytes as f64);
        }
    }

    pub(crate) fn advance(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    /// Writes what a strategy wants.
    pub(crate) fn apply(&mut self, outcome: &Outcome) {
        for constraint in constraints(outcome) {
            if let Target::Cgroup { cgroup, resource } = &constraint.target {
                self.kernel.set(cgroup, *resource, constraint.value.clone());
            }
        }
    }

    pub(crate) fn cpuset(&self, cgroup: &CgroupPath) -> String {
        koord_koordlet_system::Kernel::value(&self.kernel, cgroup, Resource::Cpuset)
            .map_or_else(|_| "-".to_owned(), |value| value.to_string())
    }

    /// Carries a round out; `refused` are the names of pods whose eviction fails. Returns the names of pods that were evicted.
    pub(crate) fn evict(&mut self, round: &mut EvictionRound, refused: &[&str]) -> Vec<String> {
        let mut evicted = Vec::new();
        while let Some(eviction) = round.next_eviction() {
            let name = eviction.pod.name.to_string();
            let answer = if refused.contains(&name.as_str()) {
                Answer::Failed { error: format!("pods {name:?} not found") }
            } else {
                evicted.push(name);
                Answer::Accepted(Means::Api)
            };
            round.report(&eviction, &answer, &mut self.evicted, self.now);
        }
        evicted
    }
}

pub(crate) fn constraints(outcome: &Outcome) -> &[Constraint] {
    outcome.constraints.as_ref().map_or(&[], |constraints| &constraints.0)
}

/// What a strategy wants a file to say.
pub(crate) fn wanted<'o>(outcome: &'o Outcome, cgroup: &CgroupPath, resource: Resource) -> Option<&'o Constraint> {
    let target = Target::Cgroup { cgroup: cgroup.clone(), resource };
    constraints(outcome).iter().find(|constraint| constraint.target == target)
}

pub(crate) fn wanted_amount(outcome: &Outcome, cgroup: &CgroupPath, resource: Resource) -> Option<i64> {
    wanted(outcome, cgroup, resource).and_then(|constraint| constraint.value.amount())
}

pub(crate) fn wanted_value(outcome: &Outcome, cgroup: &CgroupPath, resource: Resource) -> Option<Value> {
    wanted(outcome, cgroup, resource).map(|constraint| constraint.value.clone())
}

pub(crate) fn notes(outcome: &Outcome) -> &[Note] {
    outcome.notes.as_deref().unwrap_or_default()
}

/// Labels of a class.
pub(crate) fn class(name: &str) -> Json {
    json!({"labels": {"koordinator.sh/qosClass": name}})
}

/// A container with resources.
pub(crate) fn container(requests: &Json, limits: &Json) -> Json {
    json!([{"name": "main", "resources": {"requests": requests, "limits": limits}}])
}
