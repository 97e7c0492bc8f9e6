//! What the objects of a cluster say, as plain values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use crate::json::Amounts;
use crate::{
    devices::Devices,
    json::{amount, amounts, embedded, list, number, text},
};

/// What of a node's parts something has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// GPUs, by their minors.
    pub gpus: BTreeMap<u32, Amounts>,
    pub cpus: BTreeSet<u32>,
    /// Of each NUMA node.
    pub zones: BTreeMap<u32, Amounts>,
    pub others: Devices,
}

/// The GPUs that a pod requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuRequest {
    /// How many.
    pub count: usize,
    pub each: Amounts,
}

/// What a pod, or the template of a Reservation, asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// All that it requests.
    pub amounts: Amounts,
    /// The GPUs among that.
    pub gpus: Option<GpuRequest>,
    /// Whether it wants CPUs of its own, on whichever node.
    pub binds: bool,
    /// How they must be bound.
    pub bind: Option<String>,
    /// Its policy about NUMA nodes.
    pub policy: Option<String>,
    /// Whether its GPUs must be a partition.
    pub partition: bool,
    /// Whether it takes one of the best partitions alone.
    pub best: bool,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub name: String,
    pub node: Option<String>,
    /// What it asks for.
    pub request: Request,
    /// What it was given.
    pub given: Parts,
    /// The name and uid of the reservation that it uses.
    pub reservation: Option<(String, String)>,
    /// The reservation that it owns with others.
    pub app: Option<String>,
    pub quota: Option<String>,
    pub gang: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Reservation {
    pub name: String,
    pub uid: String,
    pub phase: String,
    pub message: String,
    pub node: Option<String>,
    /// What it asks for.
    pub request: Request,
    /// What it was given.
    pub given: Parts,
    pub allocatable: Amounts,
    /// What its status says that its owners have.
    pub allocated: Amounts,
    /// How many owners its status names.
    pub owners: usize,
    /// Whether it takes one owner.
    pub once: bool,
    /// How owners take resources.
    pub policy: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    pub name: String,
    pub allocatable: Amounts,
    /// Its GPUs, with whether each is well and its NUMA node.
    pub gpus: BTreeMap<u32, (bool, u32)>,
    /// The partitions of its GPUs, by how many they have; empty without a table.
    pub partitions: BTreeMap<usize, Vec<BTreeSet<u32>>>,
    /// Whether several GPUs are given out as partitions alone.
    pub honors: bool,
    /// The core and the NUMA node of each CPU.
    pub cpus: BTreeMap<u32, (u32, u32)>,
    /// What each NUMA node offers.
    pub zones: BTreeMap<u32, Amounts>,
    /// Its policy about NUMA nodes.
    pub policy: Option<String>,
    /// How CPUs of all pods are bound.
    pub bind: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Quota {
    pub parent: Option<String>,
    /// The most that its pods may have.
    pub max: Amounts,
    /// What its pods may have now.
    pub runtime: Amounts,
    /// What its status says that they have.
    pub used: Amounts,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub reservations: Vec<Reservation>,
    pub quotas: BTreeMap<String, Quota>,
    /// How many members gangs need.
    pub gangs: BTreeMap<String, usize>,
}

impl Facts {
    /// What these objects say.
    pub fn of(objects: &[Value]) -> Self {
        let of = |kind: &str| objects.iter().filter(move |object| object["kind"] == kind).collect::<Vec<_>>();
        let named = |kind: &str, name: &str| of(kind).into_iter().find(|object| object["metadata"]["name"] == name);
        let nodes = of("Node").into_iter().map(|object| {
            let name = text(&object["metadata"]["name"]).unwrap_or_default();
            Node::of(object, named("Device", &name), named("NodeResourceTopology", &name))
        });
        let quotas = of("ElasticQuota").into_iter().filter_map(|object| {
            let metadata = &object["metadata"];
            let runtime = embedded(&metadata["annotations"]["quota.scheduling.koordinator.sh/runtime"]);
            let quota = Quota {
                parent: text(&metadata["labels"]["quota.scheduling.koordinator.sh/parent"]),
                max: amounts(&object["spec"]["max"]),
                runtime: amounts(&runtime),
                used: amounts(&object["status"]["used"]),
            };
            Some((text(&metadata["name"])?, quota))
        });
        let gangs = of("PodGroup").into_iter().filter_map(|object| {
            Some((text(&object["metadata"]["name"])?, usize::try_from(object["spec"]["minMember"].as_u64()?).ok()?))
        });
        Self {
            nodes: nodes.collect(),
            pods: of("Pod")
                .into_iter()
                .filter(|pod| pod["spec"]["schedulerName"] == "koord-scheduler")
                .map(Pod::of)
                .collect(),
            reservations: of("Reservation").into_iter().map(Reservation::of).collect(),
            quotas: quotas.collect(),
            gangs: gangs.collect(),
        }
    }

    /// The pods of a gang.
    pub fn members<'f>(&'f self, gang: &'f str) -> impl Iterator<Item = &'f Pod> {
        self.pods.iter().filter(move |pod| pod.gang.as_deref() == Some(gang))
    }

    /// The pods on a node.
    pub fn on<'f>(&'f self, node: &'f str) -> impl Iterator<Item = &'f Pod> {
        self.pods.iter().filter(move |pod| pod.node.as_deref() == Some(node))
    }

    /// The pods that use a reservation.
    pub fn owners<'f>(&'f self, reservation: &'f Reservation) -> impl Iterator<Item = &'f Pod> {
        let uses = |pod: &&Pod| pod.reservation.as_ref().is_some_and(|(_, uid)| *uid == reservation.uid);
        self.pods.iter().filter(|pod| pod.node.is_some()).filter(uses)
    }

    /// A quota and those above it.
    pub fn lineage<'f>(&'f self, quota: &'f str) -> impl Iterator<Item = (&'f str, &'f Quota)> {
        let of = |name: &'f str| self.quotas.get(name).map(|quota| (name, quota));
        std::iter::successors(of(quota), move |(_, quota)| quota.parent.as_deref().and_then(of))
    }

    /// What the pods of a quota have, and of those below it.
    pub fn used(&self, quota: &str) -> Amounts {
        let counts = |pod: &&Pod| {
            let own = pod.quota.as_deref().filter(|_| pod.node.is_some());
            own.is_some_and(|own| self.lineage(own).any(|(name, _)| name == quota))
        };
        sum(self.pods.iter().filter(counts).map(|pod| &pod.request.amounts))
    }
}

impl Node {
    fn of(object: &Value, device: Option<&Value>, topology: Option<&Value>) -> Self {
        let label = |name: &str| text(&object["metadata"]["labels"][format!("node.koordinator.sh/{name}")]);
        let mut node = Self {
            name: text(&object["metadata"]["name"]).unwrap_or_default(),
            allocatable: amounts(&object["status"]["allocatable"]),
            policy: label("numa-topology-policy"),
            bind: label("cpu-bind-policy"),
            ..Self::default()
        };
        let devices = device.map(|device| list(&device["spec"]["devices"])).unwrap_or_default();
        for device in devices.iter().filter(|device| device["type"] == "gpu") {
            let parts = (number(&device["minor"]), number(&device["topology"]["nodeID"]));
            if let (Some(minor), Some(zone)) = parts {
                node.gpus.insert(minor, (device["health"] == true, zone));
            }
        }
        if let Some(device) = device {
            let metadata = &device["metadata"];
            node.honors = metadata["labels"]["node.koordinator.sh/gpu-partition-policy"] == "Honor";
            let table = embedded(&metadata["annotations"]["scheduling.koordinator.sh/gpu-partitions"]);
            for (size, partitions) in table.as_object().into_iter().flatten() {
                let minors = |one: &Value| list(&one["minors"]).iter().filter_map(number).collect();
                let partitions = list(partitions).iter().map(minors).collect();
                node.partitions.insert(size.parse().unwrap_or_default(), partitions);
            }
        }
        if let Some(topology) = topology {
            let detail = embedded(&topology["metadata"]["annotations"]["node.koordinator.sh/cpu-topology"]);
            for cpu in list(&detail["detail"]) {
                if let (Some(id), Some(core), Some(zone)) =
                    (number(&cpu["id"]), number(&cpu["core"]), number(&cpu["node"]))
                {
                    node.cpus.insert(id, (core, zone));
                }
            }
            for zone in list(&topology["zones"]) {
                let name = text(&zone["name"]).unwrap_or_default();
                let Some(id) = name.strip_prefix("node-").and_then(|id| id.parse().ok()) else { continue };
                let offered = list(&zone["resources"]).iter().filter_map(|one| {
                    let name = text(&one["name"])?;
                    let amount = amount(&name, &one["allocatable"]);
                    Some((name, amount))
                });
                node.zones.insert(id, offered.collect());
            }
        }
        node
    }

    /// How its CPUs are bound whatever pods say.
    pub fn binds_all(&self) -> bool {
        self.bind.is_some()
    }
}

impl Pod {
    fn of(object: &Value) -> Self {
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let labels = &metadata["labels"];
        let allocated = embedded(&metadata["annotations"]["scheduling.koordinator.sh/reservation-allocated"]);
        Self {
            name: text(&metadata["name"]).unwrap_or_default(),
            node: text(&spec["nodeName"]),
            request: Request::of(metadata, spec),
            given: Parts::of(metadata),
            reservation: text(&allocated["name"]).zip(text(&allocated["uid"])),
            app: text(&labels["app"]),
            quota: text(&labels["quota.scheduling.koordinator.sh/name"]),
            gang: text(&labels["pod-group.scheduling.sigs.k8s.io"]),
        }
    }
}

impl Reservation {
    fn of(object: &Value) -> Self {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let template = &spec["template"];
        let request = Request::of(&template["metadata"], &template["spec"]);
        Self {
            name: text(&metadata["name"]).unwrap_or_default(),
            uid: text(&metadata["uid"]).unwrap_or_default(),
            phase: text(&status["phase"]).unwrap_or_default(),
            message: list(&status["conditions"]).iter().find_map(|one| text(&one["message"])).unwrap_or_default(),
            node: text(&status["nodeName"]),
            given: Parts::of(metadata),
            allocatable: amounts(&status["allocatable"]),
            allocated: amounts(&status["allocated"]),
            owners: list(&status["currentOwners"]).len(),
            once: spec["allocateOnce"] != false,
            policy: text(&spec["allocatePolicy"]),
            request,
        }
    }

    /// Whether owners use only what it has.
    pub fn is_restricted(&self) -> bool {
        self.policy.as_deref() == Some("Restricted")
    }

    /// Whether it keeps what it has for owners.
    pub fn keeps(&self) -> bool {
        self.phase == "Available"
    }
}

impl Request {
    fn of(metadata: &Value, spec: &Value) -> Self {
        let annotation = |name: &str| embedded(&metadata["annotations"][format!("scheduling.koordinator.sh/{name}")]);
        let amounts = amounts(&spec["containers"][0]["resources"]["requests"]);
        let has_own = metadata["labels"]["koordinator.sh/qosClass"] == "LSR";
        Self {
            gpus: GpuRequest::of(&amounts),
            binds: has_own,
            bind: text(&annotation("resource-spec")["requiredCPUBindPolicy"]).filter(|_| has_own),
            policy: text(&annotation("numa-topology-spec")["numaTopologyPolicy"]),
            partition: annotation("gpu-partition-spec").is_object(),
            best: annotation("gpu-partition-spec")["allocatePolicy"] == "Restricted",
            amounts,
        }
    }

    /// Whether it gets CPUs of its own on a node.
    pub fn binds_on(&self, node: &Node) -> bool {
        self.binds || node.binds_all()
    }

    /// How its CPUs must be bound on a node.
    pub fn bind_on<'r>(&'r self, node: &'r Node) -> Option<&'r str> {
        let of_node = match node.bind.as_deref() {
            Some("FullPCPUsOnly") => Some("FullPCPUs"),
            other => other,
        };
        self.bind.as_deref().or(of_node).filter(|_| self.binds_on(node))
    }

    /// The policy about NUMA nodes that counts on a node.
    ///
    /// # Errors
    /// Where both have another.
    pub fn policy_on<'r>(&'r self, node: &'r Node) -> Result<Option<&'r str>, &'static str> {
        match (self.policy.as_deref(), node.policy.as_deref()) {
            (Some(own), Some(other)) if own != other => Err("it and its node have different policies"),
            (own, other) => Ok(own.or(other)),
        }
    }

    /// Whole CPUs; none where it requests a fraction of one.
    pub fn cpus(&self) -> Option<usize> {
        let milli = self.amounts.get("cpu").copied().unwrap_or_default();
        usize::try_from(milli / 1000).ok().filter(|_| milli % 1000 == 0)
    }
}

impl GpuRequest {
    /// What amounts say about GPUs, in the forms that clusters are drawn with.
    fn of(amounts: &Amounts) -> Option<Self> {
        let amount = |name: &str| amounts.get(name).copied();
        let (core, ratio) = match (amount("nvidia.com/gpu"), amount("koordinator.sh/gpu")) {
            (Some(whole), _) => (Some(whole * 100), whole * 100),
            (None, Some(percent)) => (Some(percent), percent),
            (None, None) => (amount("koordinator.sh/gpu-core"), amount("koordinator.sh/gpu-memory-ratio")?),
        };
        let count = if ratio > 100 { ratio / 100 } else { 1 };
        let core = core.map(|core| ("koordinator.sh/gpu-core".to_owned(), core / count));
        let ratio = ("koordinator.sh/gpu-memory-ratio".to_owned(), ratio / count);
        Some(Self { count: usize::try_from(count).ok()?, each: core.into_iter().chain([ratio]).collect() })
    }
}

impl Parts {
    fn of(metadata: &Value) -> Self {
        let annotation = |name: &str| embedded(&metadata["annotations"][format!("scheduling.koordinator.sh/{name}")]);
        let (devices, status) = (annotation("device-allocated"), annotation("resource-status"));
        let gpus = list(&devices["gpu"]).iter();
        let zones = list(&status["numaNodeResources"]).iter();
        Self {
            gpus: gpus.filter_map(|gpu| Some((number(&gpu["minor"])?, amounts(&gpu["resources"])))).collect(),
            cpus: cpus(text(&status["cpuset"]).as_deref().unwrap_or_default()),
            zones: zones.filter_map(|zone| Some((number(&zone["node"])?, amounts(&zone["resources"])))).collect(),
            others: Devices::of(&devices),
        }
    }
}

/// The CPUs of a list such as `0-3,8`.
fn cpus(text: &str) -> BTreeSet<u32> {
    let parts = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    parts.flatten().collect()
}

/// The sum of amounts.
pub fn sum<'a>(all: impl IntoIterator<Item = &'a Amounts>) -> Amounts {
    let mut sum = Amounts::new();
    for (name, amount) in all.into_iter().flatten() {
        *sum.entry(name.clone()).or_default() += amount;
    }
    sum
}
