//! Clusters with pods that wait, for whom counts or times decisions.
#![allow(dead_code)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_assembly::{build, default_profile};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Profile,
    cluster::Turn,
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
};
use koord_types::{
    device::Device, elastic_quota::ElasticQuota, node_metric::NodeMetric,
    node_resource_topology::v1alpha1::NodeResourceTopology, reservation::Reservation as ReservationObject,
};
use serde_json::{Value, json};

pub(crate) const NOW: Moment = Moment::at(Duration::ZERO);

/// A cluster in which pods wait that all fit.
pub(crate) struct Scenario {
    engine: Engine,
    /// How many were added.
    pods: usize,
    /// How many of them are bound.
    bound: usize,
    /// Whether each of them uses a reservation.
    uses_reservations: bool,
}

impl Scenario {
    /// With the plugins of kube-scheduler's profile.
    pub(crate) fn of_kubernetes(nodes: usize) -> Self {
        Self::new(default_profile("koord-scheduler").unwrap(), nodes)
    }

    /// With the profile that Koordinator ships.
    pub(crate) fn of_koordinator(nodes: usize) -> Self {
        Self::with_arguments(nodes, None)
    }

    /// The same with arguments of a further plugin.
    pub(crate) fn with_arguments(nodes: usize, arguments: Option<(&str, Value)>) -> Self {
        const CONFIGURATION: &str = include_str!("../../../../../config/koord-scheduler.config.yaml");
        let mut document = koord_resource::yaml::parse(CONFIGURATION).unwrap();
        if let Some((name, args)) = arguments {
            let plugins = document["profiles"][0]["pluginConfig"].as_array_mut().unwrap();
            plugins.push(json!({"name": name, "args": args}));
        }
        let configuration = SchedulerConfiguration::of(&document).unwrap();
        Self::new(build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile, nodes)
    }

    fn new(profile: Profile, nodes: usize) -> Self {
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        (0..nodes).for_each(|number| engine.set_node(node(number), NOW));
        Self { engine, pods: 0, bound: 0, uses_reservations: false }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Adds an object.
    pub(crate) fn with_object(mut self, object: Object) -> Self {
        self.engine.set_object(object, NOW);
        self
    }

    /// Tries so many pods, of which none fits.
    pub(crate) fn refuse(&mut self, pods: usize) {
        for _ in 0..pods {
            match self.engine.attempt(NOW) {
                Some(Attempt { outcome: Outcome::Refused(refused), .. }) => assert_eq!(refused.victims, []),
                other => panic!("a pod was not refused: {other:?}"),
            }
        }
    }

    /// Adds so many pods, each with the template that its number gives.
    pub(crate) fn with_pods(mut self, pods: usize, template_of: impl Fn(usize) -> Arc<Template>) -> Self {
        for number in self.pods..self.pods + pods {
            self.engine.set_pod(pod(number, &template_of(number)), NOW);
        }
        self.pods += pods;
        self
    }

    /// Adds so many reservations for pods of these workloads, by turns, evenly over so many nodes.
    pub(crate) fn with_reservations(mut self, count: usize, workloads: usize, nodes: usize) -> Self {
        for number in 0..count {
            let (name, uid) = (format!("r{number}"), format!("10000000-0000-4000-8000-{number:012x}"));
            let owner = json!({"labelSelector": {"matchLabels": {"app": format!("app-{}", number % workloads)}}});
            let object: ReservationObject = serde_json::from_value(json!({
                "metadata": {"name": name, "uid": uid},
                "spec": {"owners": [owner], "template": {"spec": spec(&requests())}},
                "status": {"phase": "Available", "nodeName": format!("n{}", number * nodes / count)},
            }))
            .unwrap();
            let object = Object::new(ObjectKey::cluster(&name), Uid::from(&*uid), false, Arc::new(object));
            self.engine.set_object(object, NOW);
        }
        self.uses_reservations = true;
        self
    }

    /// Every node reports eight GPUs.
    pub(crate) fn with_gpus(mut self, nodes: usize) -> Self {
        let all = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "80Gi"});
        let gpu = |minor: i64| json!({"type": "gpu", "id": format!("g{minor}"), "minor": minor, "health": true, "resources": all});
        let devices: Vec<Value> = (0..8).map(gpu).collect();
        for number in 0..nodes {
            let name = format!("n{number}");
            let report: Device =
                serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"devices": devices}})).unwrap();
            self.engine
                .set_object(Object::new(ObjectKey::cluster(&name), Uid::from(&*name), false, Arc::new(report)), NOW);
        }
        self
    }

    /// Every node reports two NUMA nodes of sixteen cores, with this policy.
    pub(crate) fn with_numa_nodes(mut self, nodes: usize, policy: &str) -> Self {
        let place = |id: u32| json!({"id": id, "core": id / 2, "node": id / 32, "socket": id / 32});
        let detail: Vec<Value> = (0..64).map(place).collect();
        let annotations = json!({"node.koordinator.sh/cpu-topology": json!({"detail": detail}).to_string()});
        let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        let zone = |node: u32| json!({"name": format!("node-{node}"), "type": "Node", "resources": [resource("cpu", "32"), resource("memory", "128Gi")]});
        for number in 0..nodes {
            let name = format!("n{number}");
            let report: NodeResourceTopology = serde_json::from_value(json!({
                "metadata": {"name": name, "annotations": annotations},
                "topologyPolicies": [policy], "zones": [zone(0), zone(1)],
            }))
            .unwrap();
            self.engine
                .set_object(Object::new(ObjectKey::cluster(&name), Uid::from(&*name), false, Arc::new(report)), NOW);
        }
        self
    }

    /// Every node reports what it and four pods use.
    pub(crate) fn with_metrics(mut self, nodes: usize) -> Self {
        let usage = json!({"resources": {"cpu": "2", "memory": "4Gi"}});
        for number in 0..nodes {
            let name = format!("n{number}");
            let pod = |index: usize| json!({"namespace": "ns", "name": format!("p{}", 4 * number + index), "podUsage": usage});
            let pods: Vec<Value> = (0..4).map(pod).collect();
            let report: NodeMetric = serde_json::from_value(json!({
                "metadata": {"name": name}, "spec": {},
                "status": {"updateTime": "2026-01-01T00:00:00Z", "nodeMetric": {"nodeUsage": usage}, "podsMetric": pods},
            }))
            .unwrap();
            self.engine
                .set_object(Object::new(ObjectKey::cluster(&name), Uid::from(&*name), false, Arc::new(report)), NOW);
        }
        self
    }

    /// So many quotas, ten below each of a tenth of them.
    pub(crate) fn with_quotas(mut self, quotas: usize) -> Self {
        for number in 0..quotas {
            let name = format!("quota-{number}");
            let is_parent = number < quotas / 10;
            let parent = if is_parent {
                "koordinator-root-quota".to_owned()
            } else {
                format!("quota-{}", number % (quotas / 10))
            };
            let labels = json!({
                "quota.scheduling.koordinator.sh/parent": parent,
                "quota.scheduling.koordinator.sh/is-parent": is_parent.to_string(),
            });
            let spec = json!({"min": {"cpu": "10"}, "max": {"cpu": "1000", "memory": "4Ti"}});
            let quota: ElasticQuota = serde_json::from_value(
                json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels}, "spec": spec}),
            )
            .unwrap();
            let key = ObjectKey::new("ns", &name);
            self.engine.set_object(Object::new(key, Uid::from(&*name), false, Arc::new(quota)), NOW);
        }
        self
    }

    /// How long each step of an audit takes, by this clock. Nothing is wrong.
    pub(crate) fn audit(&mut self, rows: usize, clock: fn() -> Duration) -> Vec<(Turn, Duration)> {
        let (mut taken, mut turn) = (Vec::new(), Some(Turn::default()));
        while let Some(at) = turn {
            let start = clock();
            let (found, next) = self.engine.audit(at, rows);
            taken.push((at, clock().saturating_sub(start)));
            assert_eq!(found, []);
            turn = next;
        }
        taken
    }

    /// How many pods wait.
    pub(crate) fn waiting(&self) -> usize {
        self.pods - self.bound
    }

    /// Decides until so many pods are bound.
    pub(crate) fn decide(&mut self, pods: usize) {
        let until = self.bound + pods;
        while self.bound < until {
            match self.engine.attempt(NOW) {
                Some(Attempt { outcome: Outcome::Bind { patch, .. }, .. }) => {
                    let uses_one = patch.annotations.contains_key("scheduling.koordinator.sh/reservation-allocated");
                    assert_eq!(uses_one, self.uses_reservations);
                    self.bound += 1;
                }
                Some(Attempt { outcome: Outcome::Waiting { .. }, .. }) => {}
                other => panic!("a pod was not placed: {:.2000}", format!("{other:?}")),
            }
        }
    }
}

fn node(number: usize) -> Arc<Node> {
    let allocatable = json!({
        "cpu": "64", "memory": "256Gi", "pods": "110",
        "kubernetes.io/batch-cpu": "32000", "kubernetes.io/batch-memory": "128Gi",
        "koordinator.sh/gpu-core": "800", "koordinator.sh/gpu-memory-ratio": "800", "koordinator.sh/gpu-memory": "640Gi",
    });
    let labels = json!({
        "kubernetes.io/hostname": format!("n{number}"), "topology.kubernetes.io/zone": format!("z{}", number % 3),
        "network/spine": format!("s{}", number / 200), "network/block": format!("b{}", number / 20),
    });
    let object =
        json!({"metadata": {"name": format!("n{number}"), "labels": labels}, "status": {"allocatable": allocatable}});
    Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap())
}

fn pod(number: usize, template: &Arc<Template>) -> Arc<Pod> {
    Arc::new(Pod {
        key: ObjectKey::new("ns", &format!("p{number}")),
        uid: Uid::from(&*format!("00000000-0000-4000-8000-{number:012x}")),
        template: Arc::clone(template),
        ..Pod::default()
    })
}

/// What plain pods request.
pub(crate) fn requests() -> Value {
    json!({"cpu": "500m", "memory": "1Gi"})
}

/// The specification of a pod of one container with these requests.
pub(crate) fn spec(requests: &Value) -> Value {
    json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": requests}}]})
}

/// A workload with this specification.
pub(crate) fn workload(spec: &Value) -> Arc<Template> {
    labelled(spec, &[])
}

/// A workload with these labels.
pub(crate) fn labelled(spec: &Value, labels: &[(&str, &str)]) -> Arc<Template> {
    of_koordinator(spec, labels, &[])
}

/// A workload with these labels, and these annotations of Koordinator.
pub(crate) fn of_koordinator(spec: &Value, labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Arc<Template> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    let labels: Labels = labels.iter().copied().collect();
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    Arc::new(Template::of("ns", labels, &annotations, &spec).unwrap())
}

/// Plain pods of one workload.
pub(crate) fn plain() -> Arc<Template> {
    workload(&spec(&requests()))
}

/// So many workloads that differ in what they request.
pub(crate) fn sizes(workloads: usize) -> Vec<Arc<Template>> {
    let of = |number: usize| workload(&spec(&json!({"cpu": format!("{}m", 100 + number * 50), "memory": "1Gi"})));
    (0..workloads).map(of).collect()
}

/// So many workloads that may use the reservations of [`Scenario::with_reservations`].
pub(crate) fn owners(workloads: usize) -> Vec<Arc<Template>> {
    let spec = spec(&requests());
    (0..workloads).map(|number| labelled(&spec, &[("app", &format!("app-{number}"))])).collect()
}

/// Pods that prefer a zone.
pub(crate) fn preferring() -> Arc<Template> {
    let mut spec = spec(&requests());
    let term = json!({"weight": 5, "preference": {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}]}});
    spec["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}});
    workload(&spec)
}

/// Pods with a share of a GPU, and pods with two GPUs.
pub(crate) fn on_gpus() -> [Arc<Template>; 2] {
    ["50", "200"].map(|percent| {
        workload(&spec(&json!({
            "cpu": "1", "memory": "1Gi", "koordinator.sh/gpu-core": percent, "koordinator.sh/gpu-memory-ratio": percent,
        })))
    })
}

/// Pods with four CPUs of their own.
pub(crate) fn cpu_bound() -> Arc<Template> {
    let labels = [("koordinator.sh/qosClass", "LSR"), ("koordinator.sh/priority-class", "koord-prod")];
    let annotations = [("scheduling.koordinator.sh/resource-spec", r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#)];
    of_koordinator(&spec(&json!({"cpu": "4", "memory": "4Gi"})), &labels, &annotations)
}

/// So many gangs of so many pods.
pub(crate) fn gangs(gangs: usize, members: usize) -> Vec<Arc<Template>> {
    let gang = |number: usize| {
        let annotations = [
            ("gang.scheduling.koordinator.sh/name", &*format!("gang-{number}")),
            ("gang.scheduling.koordinator.sh/min-available", &*members.to_string()),
        ];
        of_koordinator(&spec(&requests()), &[], &annotations)
    };
    (0..gangs).map(gang).collect()
}

/// Batch pods.
pub(crate) fn batch() -> Arc<Template> {
    let labels = [("koordinator.sh/qosClass", "BE"), ("koordinator.sh/priority-class", "koord-batch")];
    labelled(&spec(&json!({"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "1Gi"})), &labels)
}

/// Four workloads: one is spread over zones and preferably over nodes, one wants to be apart from its own pods, one wants to be
/// near the first and prefers not to be near itself, and one says nothing.
pub(crate) fn among_others() -> Vec<Arc<Template>> {
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    let term = |key: &str, app: &str| json!({"topologyKey": key, "labelSelector": selector(app)});
    let constraint = |key: &str, skew: u32, action: &str| json!({"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, "labelSelector": selector("spread")});
    let spread = json!([constraint(zone, 1, "DoNotSchedule"), constraint(host, 1, "ScheduleAnyway")]);
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(host, "apart")]}});
    let weighted = json!([{"weight": 50, "podAffinityTerm": term(host, "near")}]);
    let near = json!({
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(zone, "spread")]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted},
    });
    let workload = |app: &str, member: &str, value: Value| {
        let mut spec = spec(&requests());
        spec[member] = value;
        labelled(&spec, &[("app", app)])
    };
    vec![
        workload("spread", "topologySpreadConstraints", spread),
        workload("apart", "affinity", apart),
        workload("near", "affinity", near),
        workload("plain", "affinity", json!(null)),
    ]
}
