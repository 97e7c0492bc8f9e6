//! One node by itself: the devices, CPUs and NUMA nodes that it reports, and what its pods have of them by their annotations.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Quantity, ResourceList};
use koord_scheduling::{CpuSet, ParseCpuSetError, ResourceNames, quantity};
use koord_types::{
    device::Device as ApiDevice,
    device_protocol::DEVICE_ALLOCATED,
    node_resource_topology::Zone,
    numa::{CPU_TOPOLOGY, RESOURCE_STATUS},
    protocol::{Labels, ProtocolError},
};

use crate::{
    devices::{AllocatedDevices, Device, DeviceAmounts, DeviceResource, Kind, NodeDevices, Share},
    numa::{
        ledger::NumaAllocation,
        node::{NumaNode, Settings},
        policy::Exclusive,
        report::Report,
        state::NumaHold,
    },
};

/// The devices, CPUs and NUMA nodes of a node, counted as the scheduler counts them, and the pods that have them. Labels of the Node play no
/// part: NUMA nodes are as they are reported, without amplification.
#[derive(Clone, Debug, Default)]
pub struct NodeAllocations {
    pub devices: NodeDevices,
    pub numa: NumaNode,
    names: ResourceNames,
    /// By namespace and name.
    pods: BTreeMap<String, PodAllocation>,
}

/// What a pod has of its node.
#[derive(Clone, Debug, Default)]
struct PodAllocation {
    devices: AllocatedDevices,
    numa: NumaAllocation,
}

/// An annotation that says what a pod has, and cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableAllocation {
    #[error(transparent)]
    Annotation(#[from] ProtocolError),
    #[error("{}: {_0}", RESOURCE_STATUS.name())]
    Cpus(#[from] ParseCpuSetError),
}

/// Why allocations of a device contradict the node's report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceConflict {
    #[error("the node reports no such device")]
    Unknown,
    #[error("the device is unhealthy")]
    Unhealthy,
    #[error("more is allocated than the device has of {}", .0.join(", "))]
    Overcommitted(Vec<&'static str>),
}

/// Why allocations of CPUs contradict each other or the node's report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuConflict {
    /// Pods have CPUs of each other.
    #[error("CPUs {cpus} belong to {}", pods.join(", "))]
    Shared { cpus: CpuSet, pods: Vec<String> },
    #[error("{pod} has CPUs {cpus}, which the node does not report")]
    Unknown { cpus: CpuSet, pod: String },
}

impl NodeAllocations {
    /// The node reports these devices.
    pub fn report_devices(&mut self, report: &ApiDevice) {
        self.devices.report(report);
    }

    /// The node reports these CPUs and NUMA nodes. What pods have of resources that were not reported before does not count, so that this comes
    /// before [`Self::allocate`].
    pub fn report_topology(&mut self, metadata: &ObjectMeta, zones: &[Zone]) -> Result<(), ProtocolError> {
        if let Some(annotations) = &metadata.annotations {
            CPU_TOPOLOGY.get(annotations)?;
        }
        let report = Report::of(metadata, zones, &[], &mut self.names);
        let ledger = std::mem::take(&mut self.numa.ledger);
        self.numa = NumaNode::new(&report, &Settings::default(), &self.names, ledger);
        Ok(())
    }

    /// A pod with these annotations is on the node. Returns what of them cannot be read and does not count.
    pub fn allocate(&mut self, pod: &str, annotations: &Labels) -> Vec<UnreadableAllocation> {
        let (mut has, mut unreadable) = (PodAllocation::default(), Vec::new());
        match DEVICE_ALLOCATED.get(annotations) {
            Ok(written) => has.devices = written.as_ref().map(AllocatedDevices::read).unwrap_or_default(),
            Err(error) => unreadable.push(error.into()),
        }
        match RESOURCE_STATUS.get(annotations) {
            Ok(status) => match NumaHold::of(&status.unwrap_or_default(), Exclusive::default()) {
                Ok(hold) => has.numa = hold.allocation(&self.names),
                Err(error) => unreadable.push(error.into()),
            },
            Err(error) => unreadable.push(error.into()),
        }
        self.devices.allocate(&has.devices);
        self.numa.add(&has.numa);
        self.pods.insert(pod.to_owned(), has);
        unreadable
    }

    /// Whether nothing is known of devices, CPUs and NUMA nodes.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.numa == NumaNode::default()
    }

    /// The devices that are reported or allocated, by kind and minor number.
    pub fn all_devices(&self) -> impl Iterator<Item = (Kind, i32, &Device)> {
        Kind::ALL.into_iter().flat_map(|kind| self.devices.of(kind).map(move |(minor, device)| (kind, minor, device)))
    }

    /// How much of a device each pod has.
    pub fn shares_of(&self, kind: Kind, minor: i32) -> impl Iterator<Item = (&str, DeviceAmounts)> {
        let of_pod = move |allocation: &PodAllocation| {
            let shares = allocation.devices.of(kind).iter().filter(|share| share.minor == minor);
            shares.map(|share: &Share| share.amounts).reduce(|sum, amounts| sum.plus(&amounts))
        };
        self.pods.iter().filter_map(move |(pod, allocation)| Some((pod.as_str(), of_pod(allocation)?)))
    }

    /// The numbers of the NUMA nodes that are reported or allocated.
    pub fn numa_nodes(&self) -> BTreeSet<u32> {
        let zones = self.numa.zones.iter().map(|zone| zone.number);
        let allocated = self.pods.values().flat_map(|pod| pod.numa.shares.iter().map(|(number, _)| *number));
        zones.chain(self.numa.cpus.nodes().map(|(number, _)| number)).chain(allocated).collect()
    }

    /// The CPUs of a NUMA node; none where they are not reported.
    pub fn cpus(&self, numa_node: u32) -> Option<&CpuSet> {
        self.numa.cpus.nodes().find(|(number, _)| *number == numa_node).map(|(_, cpus)| cpus)
    }

    /// Those of them that a pod may have.
    pub fn free_cpus(&self, numa_node: u32) -> CpuSet {
        self.cpus(numa_node).map(|cpus| cpus.intersection(self.numa.available_cpus())).unwrap_or_default()
    }

    /// What a NUMA node has for pods, and what is free of it.
    pub fn zone(&self, numa_node: u32) -> Option<(ResourceList, ResourceList)> {
        let zone = self.numa.zone(numa_node)?;
        let written = |id, amount| -> (&str, Quantity) {
            let name = self.names.name(id);
            (name, quantity(name, amount, zone.format(id).unwrap_or_default()))
        };
        let total = zone.total.iter().map(|(id, amount)| written(id, amount));
        let free = zone.total.iter().map(|(id, _)| written(id, zone.free.get(id)));
        Some((total.collect(), free.collect()))
    }

    /// The pods that have CPUs of their own, by namespace and name.
    pub fn cpus_of_pods(&self) -> impl Iterator<Item = (&str, &CpuSet)> {
        let pods = self.pods.iter().map(|(pod, has)| (pod.as_str(), &has.numa.cpus));
        pods.filter(|(_, cpus)| !cpus.is_empty())
    }

    /// The devices whose allocations contradict the report.
    pub fn device_conflicts(&self) -> impl Iterator<Item = (Kind, i32, DeviceConflict)> {
        let shares = self.pods.values().flat_map(|pod| pod.devices.iter());
        let allocated: BTreeSet<(Kind, i32)> = shares.map(|(kind, share)| (kind, share.minor)).collect();
        allocated.into_iter().filter_map(|(kind, minor)| Some((kind, minor, conflict(self.devices.get(kind, minor))?)))
    }

    /// CPUs that several pods have, by the pods, and CPUs that the node does not report.
    pub fn cpu_conflicts(&self) -> Vec<CpuConflict> {
        let mut owners: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for (pod, cpus) in self.cpus_of_pods() {
            cpus.iter().for_each(|cpu| owners.entry(cpu).or_default().push(pod));
        }
        let mut shared: BTreeMap<Vec<&str>, CpuSet> = BTreeMap::new();
        for (cpu, pods) in owners.into_iter().filter(|(_, pods)| pods.len() > 1) {
            shared.entry(pods).or_default().insert(cpu);
        }
        let shared = shared
            .into_iter()
            .map(|(pods, cpus)| CpuConflict::Shared { cpus, pods: pods.into_iter().map(str::to_owned).collect() });
        let known = self.numa.cpus.cpus();
        let unknown = self.cpus_of_pods().filter(|_| !known.is_empty()).filter_map(|(pod, cpus)| {
            let cpus = cpus.difference(known);
            (!cpus.is_empty()).then(|| CpuConflict::Unknown { cpus, pod: pod.to_owned() })
        });
        shared.chain(unknown).collect()
    }
}

/// Why what pods have of a device contradicts its report. A resource that it does not report contradicts nothing.
fn conflict(device: Option<&Device>) -> Option<DeviceConflict> {
    let Some(device) = device.filter(|device| device.is_reported) else { return Some(DeviceConflict::Unknown) };
    if device.is_unhealthy {
        return Some(DeviceConflict::Unhealthy);
    }
    let exceeds = |(resource, amount): (DeviceResource, i64)| {
        device.total.get(resource).is_some_and(|total| amount > total).then(|| resource.name())
    };
    let over: Vec<&str> = device.used.iter().filter_map(exceeds).collect();
    (!over.is_empty()).then_some(DeviceConflict::Overcommitted(over))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::numa::report::tests::topology;

    /// Two healthy GPUs and an unhealthy one, and two NUMA nodes of four CPUs, with pods that have these devices and CPUs.
    fn node(pods: &[(&str, &Value, &str)]) -> NodeAllocations {
        let mut node = NodeAllocations::default();
        node.report_devices(&koord_scheduler_testing::devices::report("gpu0 gpu1 gpu2!"));
        let (metadata, zones) = topology(&json!({}));
        node.report_topology(&metadata, &zones).unwrap();
        for (pod, devices, status) in pods {
            let annotations =
                [(DEVICE_ALLOCATED.name(), devices.to_string()), (RESOURCE_STATUS.name(), (*status).to_owned())];
            let annotations = annotations.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
            assert!(node.allocate(pod, &annotations).is_empty());
        }
        node
    }

    fn core(minor: i32, percent: &str) -> Value {
        json!({"minor": minor, "resources": {"koordinator.sh/gpu-core": percent}})
    }

    #[test]
    fn what_pods_have_is_not_free() {
        let gpus = |gpus: &[Value]| json!({ "gpu": gpus });
        let (first, second) = (gpus(&[core(0, "30"), core(0, "20")]), gpus(&[core(0, "25")]));
        let node = node(&[
            (
                "a/x",
                &first,
                r#"{"cpuset":"0-1","numaNodeResources":[{"node":0,"resources":{"cpu":"2","nvidia.com/gpu":"1"}}]}"#,
            ),
            (
                "a/y",
                &second,
                r#"{"numaNodeResources":[{"node":0,"resources":{"cpu":"500m"}},{"node":1,"resources":{"cpu":"6"}}]}"#,
            ),
        ]);
        let device = node.devices.get(Kind::Gpu, 0).unwrap();
        let core = |amounts: &DeviceAmounts| amounts.amount(DeviceResource::GpuCore);
        assert_eq!((core(&device.used), core(&device.free())), (75, 25));
        let shares: Vec<_> = node.shares_of(Kind::Gpu, 0).map(|(pod, amounts)| (pod, core(&amounts))).collect();
        assert_eq!(shares, [("a/x", 50), ("a/y", 25)]);
        assert_eq!([0, 1, 2].map(|numa_node| node.free_cpus(numa_node).to_string()), ["2-3", "4-7", ""]);
        let free = |numa_node| serde_json::to_value(node.zone(numa_node).unwrap().1).unwrap();
        assert_eq!(free(0), json!({"cpu": "1500m"}));
        assert_eq!(free(1), json!({"cpu": "0", "memory": "1Gi"}), "not below zero");
        assert_eq!(node.numa_nodes(), [0, 1].into());
        assert_eq!((node.cpu_conflicts(), node.device_conflicts().count()), (vec![], 0));
    }

    #[test]
    fn allocations_of_devices_that_contradict_the_report_are_conflicts() {
        let none = "{}";
        let first = json!({"gpu": [core(0, "80"), core(2, "1"), core(7, "1")]});
        let second = json!({"gpu": [core(0, "40"), {"minor": 1, "resources": {"koordinator.sh/fpga": "900"}}]});
        let node = node(&[("a/x", &first, none), ("a/y", &second, none)]);
        let conflicts: Vec<String> =
            node.device_conflicts().map(|(kind, minor, conflict)| format!("{kind} {minor}: {conflict}")).collect();
        assert_eq!(
            conflicts,
            [
                "gpu 0: more is allocated than the device has of koordinator.sh/gpu-core",
                "gpu 2: the device is unhealthy",
                "gpu 7: the node reports no such device",
            ]
        );
    }

    #[test]
    fn cpus_of_several_pods_are_reported_once_for_the_same_pods() {
        let none = json!({});
        let pods = [("a/x", "0-3"), ("a/y", "2-4"), ("a/z", "3,12"), ("a/shares-a-pool", "")];
        let pods = pods.map(|(pod, cpus)| (pod, json!({ "cpuset": cpus }).to_string()));
        let pods: Vec<(&str, &Value, &str)> = pods.iter().map(|(pod, status)| (*pod, &none, status.as_str())).collect();
        let messages: Vec<String> = node(&pods).cpu_conflicts().iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "CPUs 2 belong to a/x, a/y",
                "CPUs 3 belong to a/x, a/y, a/z",
                "a/z has CPUs 12, which the node does not report"
            ]
        );
    }

    #[test]
    fn without_a_topology_every_cpu_may_exist_and_what_cannot_be_read_does_not_count() {
        let mut node = NodeAllocations::default();
        assert!(node.is_empty());
        let annotations = |status: &str| [(RESOURCE_STATUS.name().to_owned(), status.to_owned())].into();
        assert!(node.allocate("a/x", &annotations(r#"{"cpuset":"0-500"}"#)).is_empty());
        assert_eq!(node.cpu_conflicts(), []);
        let unreadable = node.allocate("a/y", &annotations(r#"{"cpuset":"a"}"#));
        assert!(unreadable[0].to_string().starts_with("scheduling.koordinator.sh/resource-status: "), "{unreadable:?}");
        assert_eq!(node.allocate("a/z", &annotations("{")).len(), 1);
        assert_eq!(node.cpus_of_pods().count(), 1);
    }
}
