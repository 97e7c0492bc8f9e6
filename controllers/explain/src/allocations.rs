//! What pods have of the devices, CPUs and NUMA nodes of their nodes: the annotations of the scheduler held against the reports of koordlet.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_scheduler_allocation::{CpuConflict, NodeAllocations};
use koord_types::{
    device::Device, device_protocol::DEVICE_ALLOCATED, node_resource_topology::Zone, numa::RESOURCE_STATUS,
};
use serde::Deserialize;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct OnNode {
    pub allocations: NodeAllocations,
    /// Annotations that cannot be read, with their objects.
    unreadable: Vec<String>,
}

/// All nodes, by name.
#[derive(Clone, Debug, Default)]
pub struct Allocations(BTreeMap<String, OnNode>);

#[derive(Deserialize)]
struct Topology {
    metadata: ObjectMeta,
    #[serde(default)]
    zones: Vec<Zone>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: PodMetadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

// === impl Allocations ===

impl Allocations {
    /// The kinds that [`Self::add`] takes.
    pub const KINDS: [&str; 3] = ["Device", "NodeResourceTopology", "Pod"];

    /// Takes an object of one of [`Self::KINDS`]. Devices and topologies come before pods.
    pub fn add(&mut self, kind: &str, text: &str) -> Result<()> {
        match kind {
            "Device" => {
                let device: Device = serde_json::from_str(text)?;
                let name = device.metadata.name.clone().unwrap_or_default();
                self.0.entry(name).or_default().allocations.report_devices(&device);
            }
            "NodeResourceTopology" => {
                let Topology { metadata, zones } = serde_json::from_str(text)?;
                let name = metadata.name.clone().unwrap_or_default();
                let node = self.0.entry(name.clone()).or_default();
                if let Err(error) = node.allocations.report_topology(&metadata, &zones) {
                    node.unreadable.push(format!("NodeResourceTopology {name}: {error}"));
                }
            }
            _ => self.add_pod(serde_json::from_str(text)?),
        }
        Ok(())
    }

    fn add_pod(&mut self, pod: Pod) {
        let Pod { metadata: PodMetadata { name, namespace, annotations }, spec, status } = pod;
        let is_finished = ["Succeeded", "Failed"].contains(&status.phase.as_str());
        let Some(annotations) = annotations.filter(|_| !spec.node_name.is_empty() && !is_finished) else { return };
        if !DEVICE_ALLOCATED.is_present(&annotations) && !RESOURCE_STATUS.is_present(&annotations) {
            return;
        }
        let namespace = if namespace.is_empty() { "default" } else { &namespace };
        let pod = format!("{namespace}/{name}");
        let node = self.0.entry(spec.node_name).or_default();
        let unreadable = node.allocations.allocate(&pod, &annotations);
        node.unreadable.extend(unreadable.iter().map(|error| format!("Pod {pod}: {error}")));
    }

    /// A node; an empty one where nothing is known of it.
    pub fn of_node(mut self, name: &str) -> OnNode {
        self.0.remove(name).unwrap_or_default()
    }

    /// The nodes by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &OnNode)> {
        self.0.iter()
    }
}

// === impl OnNode ===

impl OnNode {
    /// Whether neither devices nor CPUs nor NUMA nodes are known.
    pub fn is_empty(&self) -> bool {
        self.allocations.is_empty() && self.unreadable.is_empty()
    }

    /// What contradicts itself, in words.
    pub fn conflicts(&self) -> Vec<String> {
        let devices = self.allocations.device_conflicts().map(|(kind, minor, conflict)| {
            let pods: Vec<&str> = self.allocations.shares_of(kind, minor).map(|(pod, _)| pod).collect();
            format!("{kind} {minor}: {conflict}; allocated to {}", pods.join(", "))
        });
        let cpus = self.allocations.cpu_conflicts();
        devices.chain(cpus.iter().map(CpuConflict::to_string)).chain(self.unreadable.iter().cloned()).collect()
    }
}
