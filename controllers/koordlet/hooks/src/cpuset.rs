//! CPUs of containers: those that the scheduler gave, else the pools of their class.

use std::sync::Arc;

use koord_koordlet_framework::{CpuPool, NodeTopology};
use koord_koordlet_system::{QosFolder, Value};
use koord_scheduling::{CpuSet, count};
use koord_types::{
    numa::{RESOURCE_STATUS, ResourceStatus},
    qos::QosClass,
    resource_names::BATCH_CPU,
};

use crate::{
    pod_view::PodView,
    refused::Refused,
    values::{Cpus, Wanted},
};

const POOLS: &str = "NodeResourceTopology node.koordinator.sh/cpu-shared-pools";
const BE_POOLS: &str = "NodeResourceTopology node.koordinator.sh/be-cpu-shared-pools";
const SYSTEM_CPUS: &str = "node.koordinator.sh/system-qos-resource";

/// The CPUs of the node and who may use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpusetRule {
    /// `None` until the topology is known: then only CPUs that the scheduler gave are set.
    pub(crate) topology: Option<Arc<NodeTopology>>,
    /// Whether BE pods are bound to the NUMA nodes that the scheduler chose.
    pub(crate) binds_be_to_nodes: bool,
    /// Whether pods with CPUs of their own have no CFS quota.
    pub(crate) lifts_quota: bool,
}

impl CpusetRule {
    /// The CPUs of a pod's containers and sandbox. `None` leaves them as they are.
    pub(crate) fn cpus(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<Wanted<Cpus>> {
        let (status, cpus) = pod.resource_status(refused).ok()?;
        if !status.cpuset.is_empty() {
            let formula = format!("cpuset {} of the scheduler", status.cpuset);
            return Some(Wanted::new(Cpus { text: status.cpuset, cpus }, RESOURCE_STATUS.name(), formula));
        }
        self.pool_cpus(pod, &status)
    }

    fn pool_cpus(&self, pod: &PodView<'_>, status: &ResourceStatus) -> Option<Wanted<Cpus>> {
        let topology = self.topology.as_deref()?;
        let class = pod.qos_label();
        let is_be = class == Some(QosClass::Be);
        let nodes = nodes(status);
        if !nodes.is_empty() && (!is_be || self.binds_be_to_nodes) {
            let (pools, setting) =
                if is_be { (&topology.be_shared_pools, BE_POOLS) } else { (&topology.shared_pools, POOLS) };
            let pools = pools.iter().filter(|pool| nodes.contains(&pool.node));
            let nodes = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return joined(
                pools,
                setting,
                &format!("pools of NUMA node {nodes} (scheduling.koordinator.sh/resource-status)"),
            );
        }
        match (class, &topology.system) {
            (Some(QosClass::System), Some(system)) if !system.cpus.is_empty() => {
                let cpus = Cpus { text: system.cpus.to_string(), cpus: system.cpus.clone() };
                return Some(Wanted::new(cpus, SYSTEM_CPUS, "CPUs of pods of class SYSTEM"));
            }
            (Some(QosClass::Ls), _) => {}
            // CPUs of BE pods are those of the folder above, which suppression narrows.
            _ if pod.folder() == QosFolder::BestEffort => return None,
            // The kubelet gives CPUs to pods of no class.
            _ if topology.is_kubelet_static => return None,
            _ => {}
        }
        joined(topology.shared_pools.iter(), POOLS, "all pools of LS pods")
    }

    /// Whether a pod has no CFS quota, as it has CPUs of its own.
    pub(crate) fn quota(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<Wanted<Value>> {
        if !self.lifts_quota {
            return None;
        }
        // CPUs that cannot be read are not set, so that the quota must stay.
        let (status, _) = pod.resource_status(refused).ok()?;
        let formula = || format!("no quota: the pod has the CPUs {}", status.cpuset);
        (!status.cpuset.is_empty()).then(|| Wanted::new(Value::Unlimited, RESOURCE_STATUS.name(), formula()))
    }

    /// The CPUs of a host application: only those of class LS have some.
    pub(crate) fn host_application(&self) -> Option<Wanted<Cpus>> {
        let topology = self.topology.as_deref()?;
        joined(topology.shared_pools.iter(), POOLS, "all pools of LS pods")
    }
}

/// The NUMA nodes of which the pod was given CPUs.
fn nodes(status: &ResourceStatus) -> Vec<u32> {
    let has_cpus = |resources: &koord_resource::ResourceList| {
        ["cpu", BATCH_CPU].iter().any(|name| resources.get(name).is_some_and(|amount| count(name, amount) > 0))
    };
    let nodes = status.numa_node_resources.iter().filter(|node| has_cpus(&node.resources));
    nodes.filter_map(|node| u32::try_from(node.node).ok()).collect()
}

/// The pools in their order, joined by commas: `1,5,2-3,6-7`. `None` when they are all empty.
fn joined<'a>(pools: impl Iterator<Item = &'a CpuPool>, setting: &'static str, formula: &str) -> Option<Wanted<Cpus>> {
    let (mut text, mut cpus) = (String::new(), CpuSet::default());
    for pool in pools.filter(|pool| !pool.cpus.is_empty()) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&pool.cpus.to_string());
        cpus.insert_all(&pool.cpus);
    }
    let formula = format!("{formula}: {text}");
    (!text.is_empty()).then(|| Wanted::new(Cpus { text, cpus }, setting, formula))
}
