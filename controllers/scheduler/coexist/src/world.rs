//! What of a cluster matters to schedulers that run beside each other.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use koord_program::{
    error_text::in_words,
    findings::Report,
    lease::Lease,
    listing::{self, is_absent},
};
use koord_resource::{Quantity, Resource as _, controller::ResourceKind};
use koord_scheduling::{Amounts, PodRequests, count};
use koord_types::{
    cluster_colocation_profile::ClusterColocationProfile, device::Device, device_protocol, gang,
    node_resource_topology::v1alpha1::NodeResourceTopology, numa, pod_group::PodGroup, quota, reservation::Reservation,
    reservation_protocol, resource_names,
};
use kube::Client;
use serde_json::Value;

use crate::{
    DEFAULT_SCHEDULER,
    membership::{Demand, Membership},
};

/// The path of the webhook that changes new pods.
const MUTATE_POD: &str = "/mutate-pod";

/// Set on pods that the kubelet has of files.
const STATIC_POD: &str = "kubernetes.io/config.mirror";

/// What is known of a cluster.
#[derive(Default)]
pub(crate) struct World {
    /// Pods that have not ended, without static pods.
    pub(crate) pods: Vec<Pod>,
    /// What nodes have for pods.
    pub(crate) allocatable: BTreeMap<String, Amount>,
    /// Nodes whose kubelet gives whole CPUs to pods.
    pub(crate) static_cpus: BTreeSet<String>,
    /// Nodes with a Device.
    pub(crate) with_devices: BTreeSet<String>,
    /// What Available Reservations have left for owners, with the name of their node.
    pub(crate) reservations: Vec<(String, Amount)>,
    /// PodGroups, by namespace and name, and what they need.
    pub(crate) pod_groups: BTreeMap<String, Demand>,
    /// Leases, with their names.
    pub(crate) leases: Vec<(String, Lease)>,
    /// PriorityClasses: names and values.
    pub(crate) classes: Vec<(String, i32)>,
    /// Profiles, and the schedulerName that they set.
    pub(crate) profiles: Vec<(String, String)>,
    /// The entries of webhooks that change new pods for koord-manager.
    pub(crate) entries: Vec<Entry>,
}

/// A pod, as far as it matters who has placed it.
pub(crate) struct Pod {
    /// Namespace and name.
    pub(crate) key: String,
    pub(crate) scheduler: String,
    pub(crate) node: Option<String>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) priority: i32,
    pub(crate) priority_class: String,
    /// Whether it evicts no other pod.
    pub(crate) never_preempts: bool,
    pub(crate) is_daemon: bool,
    /// Whether a scheduler has reported something about it, or must not look at it yet.
    pub(crate) is_reported: bool,
    /// What it says of its gang; none of a pod on its own.
    pub(crate) gang: Option<Membership>,
    /// Names of labels, annotations and resources that koord-scheduler alone honours.
    pub(crate) koordinator_only: Vec<String>,
    /// Whether it requests devices that a vendor's device plugin gives out.
    pub(crate) wants_device_plugin: bool,
    /// Whether the static CPU manager of a kubelet gives it whole CPUs.
    pub(crate) is_given_cpus_by_kubelet: bool,
    /// Whether koord-scheduler has given it CPUs.
    pub(crate) has_cpus: bool,
    /// Whether koord-scheduler has given it devices.
    pub(crate) has_devices: bool,
    pub(crate) requests: Amount,
}

/// An entry of a webhook configuration.
pub(crate) struct Entry {
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// Whether pods are refused when it cannot be called.
    pub(crate) is_strict: bool,
}

/// CPU in thousandths of cores, and bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    cpu_milli: i64,
    memory_bytes: i64,
}

// === impl World ===

impl World {
    /// What is read of a cluster, each collection once. Collections that cannot be read are reported.
    pub(crate) async fn of_cluster(client: &Client, report: &mut Report) -> Self {
        let mut world = Self::default();
        for kind in kinds() {
            let path = kind.url_path("", None);
            let listed = listing::each(client, &path, "", listing::Part::Whole, |text| {
                world.add(kind.kind, &serde_json::from_str(text)?);
                Ok(())
            });
            match listed.await {
                // Kinds of Koordinator that are not installed have no objects.
                Err(error) if is_absent(&error) => {}
                Err(error) => report.warning(
                    path,
                    format!("cannot be looked at: {}", in_words(&error)),
                    "ask as a user who may list it (--context, --kubeconfig), or give the objects in files (-f)",
                ),
                Ok(()) => {}
            }
        }
        world
    }

    pub(crate) fn of_objects(objects: &[Value]) -> Self {
        let mut world = Self::default();
        for object in objects {
            world.add(text(&object["kind"]), object);
        }
        world
    }

    /// Takes what matters of an object.
    fn add(&mut self, kind: &str, object: &Value) {
        let name = text(&object["metadata"]["name"]).to_owned();
        match kind {
            "Pod" => self.pods.extend(Pod::read(object)),
            "Node" => _ = self.allocatable.insert(name, Amount::of(&object["status"]["allocatable"])),
            "Device" => _ = self.with_devices.insert(name),
            "NodeResourceTopology" => {
                let policy = text(&object["metadata"]["annotations"][numa::KUBELET_CPU_MANAGER_POLICY.name()]);
                if numa::KUBELET_CPU_MANAGER_POLICY.read(policy).is_ok_and(|kubelet| kubelet.policy == "static") {
                    self.static_cpus.insert(name);
                }
            }
            "Reservation" => {
                let status = &object["status"];
                let left = Amount::of(&status["allocatable"]).minus(Amount::of(&status["allocated"]));
                if status["phase"] == "Available" {
                    self.reservations.push((text(&status["nodeName"]).to_owned(), left));
                }
            }
            "PodGroup" => {
                let key = format!("{}/{name}", or(&object["metadata"]["namespace"], "default"));
                self.pod_groups.insert(key, Demand::of_pod_group(object));
            }
            "Lease" => self.leases.push((name, Lease::read(object))),
            "PriorityClass" => self.classes.push((name, number(&object["value"]))),
            "ClusterColocationProfile" => {
                let scheduler = text(&object["spec"]["schedulerName"]);
                if !scheduler.is_empty() {
                    self.profiles.push((name, scheduler.to_owned()));
                }
            }
            "MutatingWebhookConfiguration" => self.entries.extend(entries(&name, object)),
            _ => {}
        }
    }
}

/// The kinds that are read.
fn kinds() -> [ResourceKind; 10] {
    [
        ResourceKind::POD,
        ResourceKind::NODE,
        ResourceKind::of(&Device::INFO),
        ResourceKind::of(&NodeResourceTopology::INFO),
        ResourceKind::of(&Reservation::INFO),
        ResourceKind::of(&PodGroup::INFO),
        ResourceKind::LEASE,
        ResourceKind::PRIORITY_CLASS,
        ResourceKind::of(&ClusterColocationProfile::INFO),
        ResourceKind::typed::<MutatingWebhookConfiguration>(),
    ]
}

/// The entries of a webhook configuration that call koord-manager about new pods.
fn entries<'v>(configuration: &'v str, object: &'v Value) -> impl Iterator<Item = Entry> + 'v {
    let calls = |entry: &&Value| {
        let client = &entry["clientConfig"];
        client["service"]["path"] == MUTATE_POD || text(&client["url"]).ends_with(MUTATE_POD)
    };
    object["webhooks"].as_array().into_iter().flatten().filter(calls).map(move |entry| Entry {
        configuration: configuration.to_owned(),
        name: text(&entry["name"]).to_owned(),
        is_strict: entry["failurePolicy"] != "Ignore",
    })
}

// === impl Pod ===

impl Pod {
    /// None of a pod that has ended, or that no scheduler places.
    fn read(object: &Value) -> Option<Self> {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let (annotations, labels) = (&metadata["annotations"], &metadata["labels"]);
        let has_ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
        if has_ended || !annotations[STATIC_POD].is_null() {
            return None;
        }
        let list = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        let (scheduler, resources) = (or(&spec["schedulerName"], DEFAULT_SCHEDULER), resources(spec));
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let cpus = text(&annotations[numa::RESOURCE_STATUS.name()]);
        let namespace = or(&metadata["namespace"], "default");
        Some(Self {
            gang: Membership::of_pod(metadata, &namespace),
            key: format!("{namespace}/{}", text(&metadata["name"])),
            node: spec["nodeName"].as_str().filter(|node| !node.is_empty()).map(str::to_owned),
            created: metadata["creationTimestamp"].as_str().and_then(|time| time.parse().ok()),
            priority: number(&spec["priority"]),
            priority_class: text(&spec["priorityClassName"]).to_owned(),
            never_preempts: spec["preemptionPolicy"] == "Never",
            is_daemon: owners.any(|owner| owner["kind"] == "DaemonSet"),
            is_reported: list(&spec["schedulingGates"])
                || conditions.any(|condition| condition["type"] == "PodScheduled"),
            koordinator_only: koordinator_only(annotations, labels, &resources, &scheduler),
            wants_device_plugin: resources.iter().any(|name| is_of_device_plugin(name)),
            is_given_cpus_by_kubelet: status["qosClass"] == "Guaranteed" && wants_whole_cpus(spec),
            has_cpus: numa::RESOURCE_STATUS.read(cpus).is_ok_and(|given| !given.cpuset.is_empty()),
            has_devices: !annotations[device_protocol::DEVICE_ALLOCATED.name()].is_null(),
            requests: requests(spec),
            scheduler,
        })
    }
}

/// A text, or another where there is none.
fn or(value: &Value, default: &str) -> String {
    match text(value) {
        "" => default.to_owned(),
        text => text.to_owned(),
    }
}

/// What a pod of a scheduler says that koord-scheduler alone honours.
fn koordinator_only(annotations: &Value, labels: &Value, resources: &BTreeSet<&str>, scheduler: &str) -> Vec<String> {
    let of_annotations = [
        gang::NAME.name(),
        numa::RESOURCE_SPEC.name(),
        numa::NUMA_TOPOLOGY_SPEC.name(),
        device_protocol::DEVICE_ALLOCATE_HINT.name(),
        device_protocol::DEVICE_JOINT_ALLOCATE.name(),
        device_protocol::GPU_PARTITION_SPEC.name(),
        reservation_protocol::RESERVATION_AFFINITY.name(),
    ];
    let of_annotations = of_annotations.into_iter().filter(|name| !annotations[*name].is_null());
    // Other schedulers than kube-scheduler may know PodGroups.
    let is_of_group = scheduler == DEFAULT_SCHEDULER && !labels[gang::POD_GROUP_LABEL].is_null();
    let is_in_quota = !labels[quota::NAME].is_null();
    let of_labels =
        [(gang::POD_GROUP_LABEL, is_of_group), (quota::NAME, is_in_quota)].into_iter().filter(|(_, is_set)| *is_set);
    let of_resources = resources.iter().copied().filter(|name| is_of_koordinator(name));
    of_annotations.chain(of_labels.map(|(name, _)| name)).chain(of_resources).map(str::to_owned).collect()
}

/// Whether a resource is a device of Koordinator's, of which the scheduler gives each pod its part.
fn is_of_koordinator(resource: &str) -> bool {
    use resource_names::{FPGA, GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED, RDMA};
    [GPU, GPU_SHARED, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, RDMA, FPGA].contains(&resource)
}

/// Whether a resource is one that device plugins of vendors give out, and DeviceShare too.
fn is_of_device_plugin(resource: &str) -> bool {
    use resource_names::{AMD_GPU, HYGON_DCU, NVIDIA_GPU};
    [NVIDIA_GPU, AMD_GPU, HYGON_DCU].contains(&resource) || resource.starts_with("huawei.com/npu")
}

fn containers<'v>(spec: &'v Value, field: &'static str) -> impl Iterator<Item = &'v Value> {
    spec[field].as_array().into_iter().flatten()
}

/// The names of the resources that a pod requests.
fn resources(spec: &Value) -> BTreeSet<&str> {
    let all = containers(spec, "initContainers").chain(containers(spec, "containers"));
    let lists = all.flat_map(|container| ["requests", "limits"].map(|list| &container["resources"][list]));
    lists.filter_map(Value::as_object).flat_map(|list| list.keys().map(String::as_str)).collect()
}

fn wants_whole_cpus(spec: &Value) -> bool {
    containers(spec, "containers").any(|container| {
        let Amount { cpu_milli, .. } = Amount::of(&container["resources"]["requests"]);
        cpu_milli > 0 && cpu_milli % 1000 == 0
    })
}

fn requests(spec: &Value) -> Amount {
    let mut requests = PodRequests::<Amount>::default();
    let of = |container: &Value| Amount::of(&container["resources"]["requests"]);
    for container in containers(spec, "initContainers") {
        requests.init_container(of(container), container["restartPolicy"] == "Always");
    }
    for container in containers(spec, "containers") {
        requests.container(of(container));
    }
    let pod_requests = &spec["resources"]["requests"];
    let of_pod = Amount::of(pod_requests);
    let pod_level = |sum: Amount| Amount {
        cpu_milli: if pod_requests["cpu"].is_null() { sum.cpu_milli } else { of_pod.cpu_milli },
        memory_bytes: if pod_requests["memory"].is_null() { sum.memory_bytes } else { of_pod.memory_bytes },
    };
    requests.total(pod_level, Some(&Amount::of(&spec["overhead"])))
}

// === impl Amount ===

impl Amount {
    /// What a list of resources has; what cannot be read is nothing.
    fn of(list: &Value) -> Self {
        let amount = |name: &str| {
            let written = match &list[name] {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return 0,
            };
            written.parse::<Quantity>().map_or(0, |amount| count(name, &amount))
        };
        Self { cpu_milli: amount("cpu"), memory_bytes: amount("memory") }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// What is left without another; nothing where that is more.
    fn minus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli).max(0),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes).max(0),
        }
    }

    /// Whether it is more of something than another.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.cpu_milli > other.cpu_milli || self.memory_bytes > other.memory_bytes
    }
}

impl Amounts for Amount {
    fn add(&mut self, other: &Self) {
        *self = self.plus(*other);
    }

    fn larger(self, other: Self) -> Self {
        Self { cpu_milli: self.cpu_milli.max(other.cpu_milli), memory_bytes: self.memory_bytes.max(other.memory_bytes) }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> i32 {
    value.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
}
