//! NodeResourceTopology: the CPUs of the node, who may use them, and the resources of its NUMA nodes.

use std::{collections::BTreeMap, sync::Arc};

use koord_koordlet_framework::{CpuPool, Node, NodeTopology, Pod, SystemCpus};
use koord_koordlet_system::{CpuManagerState, Machine, NumaNodes};
use koord_resource::{Quantity, go_json, quantity::Format};
use koord_scheduling::{Cpu, CpuSet};
use koord_types::{
    node_annotations::{
        CPU_BASIC_INFO, CpuBasicInfo, ENABLE_NUMA_RESERVATION, NODE_RESERVATION, NodeReservation, SYSTEM_QOS_RESOURCE,
        SystemQosResource,
    },
    node_resource_topology::{ResourceInfo, ZONE_TYPE_NODE, Zone, zone_name},
    numa::{
        BE_CPU_SHARED_POOLS, CPU_SHARED_POOLS, CPU_TOPOLOGY, CpuInfo, CpuSharedPool, CpuSharedPools,
        CpuTopology as TopologyDetail, KUBELET_CPU_MANAGER_POLICY, KubeletCpuManagerPolicy, POD_CPU_ALLOCS,
        PodCpuAlloc, RESOURCE_STATUS,
    },
    protocol::Labels,
    qos::QosClass,
};

use crate::{kubelet_configuration::KubeletConfiguration, take_cpus::take_cpus};

/// What the report is made of.
#[derive(Clone, Copy, Debug)]
pub struct TopologyInput<'a> {
    pub node: &'a Node,
    pub machine: &'a Machine,
    pub numa: &'a NumaNodes,
    pub pods: &'a [Arc<Pod>],
    /// `None` when the kubelet is not asked.
    pub kubelet: Option<&'a KubeletConfiguration>,
    pub cpu_manager: &'a CpuManagerState,
    /// Whether huge pages are reported (gate HugePageReport); else they are 0.
    pub reports_huge_pages: bool,
}

/// What is reported, and the same for strategies.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyReport {
    /// Annotations of the object with their JSON texts.
    pub annotations: BTreeMap<&'static str, String>,
    /// The label that is copied from the node; `None` where the node has none.
    pub numa_reservation: Option<String>,
    pub policies: Vec<String>,
    pub zones: Vec<Zone>,
    pub topology: Arc<NodeTopology>,
    /// Annotations of pods and of the node that cannot be read; they count as absent.
    pub refused: Vec<String>,
}

/// Why nothing can be reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("no CPU is found in devices/system/cpu of sysfs")]
    NoCpus,
    #[error("devices/system/cpu names {cpus} NUMA nodes, and bus/node/devices {memory}")]
    NumaNodes { cpus: usize, memory: usize },
    #[error("the memory of NUMA node {0} is not known: its meminfo is missing or malformed")]
    Memory(u32),
}

const HUGE_PAGES: [(&str, u64); 2] = [("hugepages-1Gi", 1 << 20), ("hugepages-2Mi", 2 << 10)];

impl TopologyReport {
    /// Makes the report.
    ///
    /// # Errors
    ///
    /// What is known of CPUs and NUMA nodes does not fit together.
    pub fn new(input: TopologyInput<'_>) -> Result<Self, TopologyError> {
        let TopologyInput { node, machine, numa, pods, kubelet, cpu_manager, .. } = input;
        let cpus = &machine.topology;
        if cpus.cpus().is_empty() {
            return Err(TopologyError::NoCpus);
        }
        let (cpu_nodes, memory_nodes) = (cpus.nodes().count(), numa.nodes.len());
        if cpu_nodes != memory_nodes {
            return Err(TopologyError::NumaNodes { cpus: cpu_nodes, memory: memory_nodes });
        }
        let mut refused = Vec::new();
        let annotations = node.annotations.clone().unwrap_or_default();
        let mut read_node = |text: Result<Option<CpuSet>, String>| {
            text.unwrap_or_else(|reason| {
                refused.push(format!("node {}: {reason}", node.name));
                None
            })
        };

        // The reservation gets the CPUs that are meant by its number of CPUs.
        let reservation = NODE_RESERVATION.get(&annotations).map(Option::unwrap_or_default);
        let reservation_error = reservation.as_ref().err().map(ToString::to_string);
        let mut reservation = reservation.unwrap_or_default();
        let named = read_node(match reservation_error {
            Some(reason) => Err(reason),
            None => reservation.cpus().map(Some).map_err(|error| error.to_string()),
        });
        let count = usize::try_from(reservation.cpu_count()).unwrap_or_default();
        let reserved = match named {
            Some(named) if !named.is_empty() => named,
            _ => take_cpus(cpus, cpus.cpus().clone(), count),
        };
        if !reserved.is_empty() {
            reservation.reserved_cpus = reserved.to_string();
        }

        let system_qos = SYSTEM_QOS_RESOURCE.get(&annotations);
        let system_cpus = read_node(match &system_qos {
            Ok(Some(system)) => {
                system.cpuset.parse().map(Some).map_err(|error| format!("{}: {error}", SYSTEM_QOS_RESOURCE.name()))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.to_string()),
        });
        let system_qos = system_qos.ok().flatten();
        let system = system_cpus.filter(|cpus| !cpus.is_empty()).map(|cpus| SystemCpus {
            cpus,
            is_exclusive: system_qos.as_ref().is_some_and(SystemQosResource::is_exclusive),
        });

        let (allocations, kubelet_cpus) = kubelet_allocations(cpu_manager, pods, &mut refused);
        let (mut ls, mut be) = (cpus.cpus().difference(&kubelet_cpus), cpus.cpus().difference(&kubelet_cpus));
        for pod in pods.iter().filter(|pod| !pod.has_ended()) {
            let Some(own) = cpuset(pod, &mut refused) else { continue };
            ls.remove_all(&own);
            if pod.qos_label == Some(QosClass::Lse) {
                be.remove_all(&own);
            }
        }
        for pool in [&mut ls, &mut be] {
            pool.remove_all(&reserved);
            if let Some(system) = system.as_ref().filter(|system| system.is_exclusive) {
                pool.remove_all(&system.cpus);
            }
        }

        let topology = Arc::new(NodeTopology {
            cpus: cpus.clone(),
            shared_pools: pools(machine, &ls),
            be_shared_pools: pools(machine, &be),
            is_kubelet_static: kubelet.is_some_and(KubeletConfiguration::is_static),
            reserved,
            system,
        });
        Ok(Self {
            annotations: texts(&input, &topology, &reservation, system_qos.as_ref(), &allocations),
            numa_reservation: node.labels.get(ENABLE_NUMA_RESERVATION.name()).cloned(),
            policies: vec![kubelet.map_or("None", KubeletConfiguration::topology_policy).to_owned()],
            zones: zones(&input)?,
            topology,
            refused,
        })
    }
}

/// The CPUs that the kubelet has given to pods: those of pods that exist, in the order of their uids. Pods of the classes LS and BE, and those to which the
/// scheduler gave CPUs, do not keep what the kubelet gave them.
fn kubelet_allocations(
    state: &CpuManagerState,
    pods: &[Arc<Pod>],
    refused: &mut Vec<String>,
) -> (Vec<PodCpuAlloc>, CpuSet) {
    let by_uid: BTreeMap<&str, &Pod> = pods.iter().map(|pod| (&*pod.uid, &**pod)).collect();
    let (mut allocations, mut all) = (Vec::new(), CpuSet::default());
    for (uid, cpus) in state.cpus_of_pods() {
        // What a pod had that is gone, the kubelet takes back soon.
        let Some(pod) = by_uid.get(uid) else { continue };
        if matches!(pod.qos_label, Some(QosClass::Ls | QosClass::Be)) || cpuset(pod, refused).is_some() {
            continue;
        }
        all.insert_all(&cpus);
        allocations.push(PodCpuAlloc {
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
            uid: uid.to_owned(),
            cpuset: cpus.to_string(),
            managed_by_kubelet: true,
        });
    }
    (allocations, all)
}

/// The CPUs that the scheduler gave to a pod.
fn cpuset(pod: &Pod, refused: &mut Vec<String>) -> Option<CpuSet> {
    let mut refuse = |reason: String| {
        let text = format!("pod {}: {reason}", pod.key());
        if !refused.contains(&text) {
            refused.push(text);
        }
    };
    let status = RESOURCE_STATUS.get(&pod.annotations).inspect_err(|error| refuse(error.to_string())).ok()??;
    let cpus = status.cpus().inspect_err(|error| refuse(format!("{}: {error}", RESOURCE_STATUS.name()))).ok()?;
    (!cpus.is_empty()).then_some(cpus)
}

fn pools(machine: &Machine, cpus: &CpuSet) -> Vec<CpuPool> {
    let mut pools: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
    for Cpu { id, socket, node, .. } in cpus.iter().filter_map(|cpu| machine.topology.get(cpu)) {
        pools.entry((socket, node)).or_default().insert(id);
    }
    pools.into_iter().map(|((socket, node), cpus)| CpuPool { socket, node, cpus }).collect()
}

fn texts(
    input: &TopologyInput<'_>,
    topology: &NodeTopology,
    reservation: &NodeReservation,
    system: Option<&SystemQosResource>,
    allocations: &[PodCpuAlloc],
) -> BTreeMap<&'static str, String> {
    let signed = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let Machine { info, has_hyper_threading, has_turbo, l3_mask, .. } = input.machine;
    let detail = input.machine.topology.cpus().iter().filter_map(|cpu| input.machine.topology.get(cpu));
    let detail = detail.map(|Cpu { id, core, node, socket }| CpuInfo {
        id: signed(id),
        core: signed(core),
        socket: signed(socket),
        node: signed(node),
    });
    let pools = |pools: &[CpuPool]| {
        let pool = |pool: &CpuPool| CpuSharedPool {
            socket: signed(pool.socket),
            node: signed(pool.node),
            cpuset: pool.cpus.to_string(),
        };
        CpuSharedPools(pools.iter().map(pool).collect())
    };
    let policy = input.kubelet.map(|kubelet| KubeletCpuManagerPolicy {
        policy: kubelet.cpu_manager_policy.clone(),
        options: kubelet.cpu_manager_policy_options.clone(),
        reserved_cpus: reserved_by_kubelet(input.machine, kubelet),
    });
    // An empty list is null, as it always was.
    let allocations = (!allocations.is_empty()).then_some(allocations);
    let no_annotations = input.node.annotations.is_none();
    let system = match system {
        None if no_annotations => None,
        system => Some(system.cloned().unwrap_or_default()),
    };
    let mut texts = BTreeMap::new();
    let mut text = |name: &'static str, text: Result<String, serde_json::Error>| {
        // Strings, numbers and lists of them can always be written.
        texts.insert(name, text.unwrap_or_default());
    };
    let basic = CpuBasicInfo {
        cpu_model: info.model_name.clone(),
        hyper_thread_enabled: *has_hyper_threading,
        turbo_enabled: *has_turbo,
        cat_l3_cbm_mask: l3_mask.clone(),
        vendor_id: info.vendor_id.clone(),
    };
    text(CPU_BASIC_INFO.name(), go_json::to_string(&basic));
    text(CPU_TOPOLOGY.name(), go_json::to_string(&TopologyDetail { detail: detail.collect() }));
    text(CPU_SHARED_POOLS.name(), go_json::to_string(&pools(&topology.shared_pools)));
    text(BE_CPU_SHARED_POOLS.name(), go_json::to_string(&pools(&topology.be_shared_pools)));
    text(POD_CPU_ALLOCS.name(), go_json::to_string(&allocations));
    text(KUBELET_CPU_MANAGER_POLICY.name(), go_json::to_string(&policy.unwrap_or_default()));
    text(NODE_RESERVATION.name(), go_json::to_string(reservation));
    text(SYSTEM_QOS_RESOURCE.name(), go_json::to_string(&system));
    texts
}

/// The CPUs that the kubelet gives to no pod, under the policy `static`.
fn reserved_by_kubelet(machine: &Machine, kubelet: &KubeletConfiguration) -> String {
    if !kubelet.is_static() {
        return String::new();
    }
    if !kubelet.reserved_system_cpus.is_empty() {
        return kubelet.reserved_system_cpus.clone();
    }
    let count = kubelet.reserved_cpu_count();
    take_cpus(&machine.topology, machine.topology.cpus().clone(), count).to_string()
}

fn zones(input: &TopologyInput<'_>) -> Result<Vec<Zone>, TopologyError> {
    let TopologyInput { node, machine, numa, reports_huge_pages, .. } = *input;
    let is_reserved = node.labels.get(ENABLE_NUMA_RESERVATION.name()).is_some_and(|value| value == "true");
    let count = i64::try_from(numa.nodes.len()).unwrap_or(i64::MAX).max(1);
    // What the kubelet keeps away from pods, an equal part of each NUMA node, rounded up.
    let share = |kept: i64| if is_reserved { (kept.max(0) + count - 1) / count } else { 0 };
    let milli_share = share(node.capacity_milli_cpu() - node.allocatable("cpu").unwrap_or_default());
    let byte_share = share(node.capacity_bytes() - node.allocatable("memory").unwrap_or_default());
    let resource = |name: &str, capacity: Quantity, allocatable: Quantity| ResourceInfo {
        name: name.to_owned(),
        capacity,
        available: allocatable.clone(),
        allocatable,
    };
    let mut zones = Vec::new();
    for numa in &numa.nodes {
        let cpus = machine.topology.nodes().find(|(id, _)| *id == numa.id).map_or(0, |(_, cpus)| cpus.len());
        let milli = i64::try_from(cpus).unwrap_or(i64::MAX).saturating_mul(1000);
        let bytes = numa.memory_without_huge_pages_bytes().ok_or(TopologyError::Memory(numa.id))?;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let binary = |bytes: i64| Quantity::new(bytes, Format::BinarySI);
        let mut resources = vec![
            resource("cpu", Quantity::cpu_milli(milli), Quantity::cpu_milli((milli - milli_share).max(0))),
            resource("memory", binary(bytes), binary((bytes - byte_share).max(0))),
        ];
        for (name, page_kib) in HUGE_PAGES {
            let bytes = if reports_huge_pages { numa.huge_page_bytes(page_kib) } else { 0 };
            let amount = binary(i64::try_from(bytes).unwrap_or(i64::MAX));
            resources.push(resource(name, amount.clone(), amount));
        }
        resources.sort_by(|one, other| one.name.cmp(&other.name));
        zones.push(Zone { name: zone_name(numa.id), type_: ZONE_TYPE_NODE.to_owned(), resources, ..Zone::default() });
    }
    zones.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(zones)
}

/// Labels that the report sets.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "Koordinator");

/// The object as the API server has it, as far as the report changes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveTopology {
    pub annotations: Labels,
    pub labels: Labels,
    pub policies: Vec<String>,
    pub zones: Vec<Zone>,
}

impl TopologyReport {
    /// The merge patch that makes the object say what is reported; `None` when it does. Resources that others have in zones are kept, zones that are gone are
    /// removed.
    pub fn patch(&self, live: &LiveTopology) -> Option<serde_json::Value> {
        use serde_json::{Map, Value, json};
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut annotations = Map::new();
        for (name, text) in &self.annotations {
            let same = live.annotations.get(*name).is_some_and(|live| live == text || value(live) == value(text));
            if !same {
                annotations.insert((*name).to_owned(), json!(text));
            }
        }
        let mut labels = Map::new();
        let (managed, by) = MANAGED_BY;
        let reservation = self.numa_reservation.as_deref();
        for (name, wanted) in [(managed, Some(by)), (ENABLE_NUMA_RESERVATION.name(), reservation)] {
            if live.labels.get(name).map(String::as_str) != wanted {
                labels.insert(name.to_owned(), json!(wanted));
            }
        }
        let mut patch = Map::new();
        let mut metadata = Map::new();
        for (name, map) in [("annotations", annotations), ("labels", labels)] {
            if !map.is_empty() {
                metadata.insert(name.to_owned(), Value::Object(map));
            }
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if live.policies != self.policies {
            patch.insert("topologyPolicies".to_owned(), json!(self.policies));
        }
        let zones = merged(&self.zones, &live.zones);
        if zones != live.zones {
            patch.insert("zones".to_owned(), json!(zones));
        }
        (!patch.is_empty()).then_some(Value::Object(patch))
    }
}

fn merged(reported: &[Zone], live: &[Zone]) -> Vec<Zone> {
    let zone = |zone: &Zone| {
        let Some(live) = live.iter().find(|live| live.name == zone.name && live.type_ == zone.type_) else {
            return zone.clone();
        };
        let mut resources = zone.resources.clone();
        let others = live.resources.iter().filter(|live| resources.iter().all(|own| own.name != live.name));
        let others: Vec<ResourceInfo> = others.cloned().collect();
        resources.extend(others);
        resources.sort_by(|one, other| one.name.cmp(&other.name));
        Zone { resources, ..live.clone() }
    };
    reported.iter().map(zone).collect()
}
