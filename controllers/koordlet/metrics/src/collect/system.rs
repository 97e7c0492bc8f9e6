//! What of the node is used neither by pods nor by host applications.

use std::time::Duration;

use koord_core::clock::Moment;

use super::{
    host_application::HostApplicationCollector, node_resource::NodeCollector, pod_resource::PodCollector,
    reader::Activity,
};
use crate::store::{Measure, Store, Subject};

/// Computes what the system uses from the samples of the round; it reads nothing.
///
/// System = max(node − Σ pods − Σ host applications, 0). Of a NUMA node: memory = max(node's − Σ pods', 0), CPUs = the system's × the NUMA node's share of the
/// CPUs in use on all NUMA nodes. There is no sample while one of the three is missing or older than the limit. In a round with a new pod, whose CPUs are not
/// known yet, there is none either, unless that has lasted for five seconds: the pod would count as system.
#[derive(Debug)]
pub struct SystemCollector {
    /// Samples that are older than this are not used.
    outdated: Duration,
    last: Option<Moment>,
}

const NEW_PODS_MAX: Duration = Duration::from_secs(5);

impl SystemCollector {
    pub fn new(outdated: Duration) -> Self {
        Self { outdated, last: None }
    }

    /// Takes a sample of what the others have.
    pub fn collect(
        &mut self,
        now: Moment,
        node: &NodeCollector,
        pods: &PodCollector,
        host_applications: &HostApplicationCollector,
        store: &mut Store,
    ) {
        let is_young = |at: Moment| now.since(at) <= self.outdated;
        let (Some(of_node), Some(of_pods), Some(of_applications)) = (
            node.usage().filter(|usage| is_young(usage.at)),
            pods.usage().filter(|usage| is_young(usage.at)),
            host_applications.usage().filter(|usage| is_young(usage.at)),
        ) else {
            return;
        };
        if of_pods.has_new_pods && self.last.is_some_and(|last| now.since(last) < NEW_PODS_MAX) {
            return;
        }
        let cpu = (of_node.cpu - of_pods.cpu - of_applications.cpu).max(0.0);
        let memory = (of_node.memory - of_pods.memory - of_applications.memory).max(0.0);
        store.append(Subject::System, Measure::Cpu, of_node.at, cpu);
        store.append(Subject::System, Measure::Memory, of_node.at, memory);
        let numa_cpu: f64 = node.numa_usage().iter().filter_map(|numa| numa.cpu).sum();
        for numa in node.numa_usage() {
            let subject = Subject::SystemNuma(numa.node);
            let share = if numa_cpu > 0.0 { numa.cpu.unwrap_or(0.0) / numa_cpu } else { 0.0 };
            store.append(subject, Measure::Cpu, numa.at, cpu * share);
            store.append(subject, Measure::Memory, numa.at, (numa.memory - pods.numa_bytes(numa.node)).max(0.0));
        }
        self.last = Some(now);
    }

    /// Whether there was a sample.
    pub fn has_started(&self) -> bool {
        self.last.is_some()
    }

    /// Degraded while what it is computed from is missing.
    pub fn activity(&self, now: Moment) -> Activity {
        if self.last.is_some_and(|last| now.since(last) <= self.outdated.max(NEW_PODS_MAX)) {
            return Activity::Active;
        }
        Activity::Degraded {
            reason: "no sample of the node, of pods or of host applications is young enough".into(),
            remedy: "check that the NodeSLO of this node exists, and the collectors that are degraded",
        }
    }
}
