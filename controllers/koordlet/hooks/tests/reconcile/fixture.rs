//! A node with its pods, on a kernel of values.

use std::{collections::BTreeMap, sync::Arc};

use koord_koordlet_framework::{CpuPool, Node, NodeSloReader, NodeTopology, Pod, Target, read_pod};
use koord_koordlet_hooks::{Hook, KernelSwitches, Options, Outcome, Reconciler, ResctrlMachine, RuleInputs, Rules};
use koord_koordlet_system::{
    CgroupPath, Driver, Layout, MapKernel, Resource, Value, Version,
    resctrl::{CacheMask, Schemata, Vendor},
};
use koord_scheduling::CpuSet;
use koord_types::protocol::Labels;
use serde_json::{Value as Json, json};

pub(crate) const LAYOUT: Layout = Layout::new(Version::V1, Driver::Cgroupfs);
pub(crate) const GIB: i64 = 1 << 30;
pub(crate) const EXTENDED: &str = "node.koordinator.sh/extended-resource-spec";
pub(crate) const STATUS: &str = "scheduling.koordinator.sh/resource-status";

/// A node whose pods are reconciled.
pub(crate) struct NodeOfTest {
    pub(crate) options: Options,
    pub(crate) slo: Json,
    pub(crate) topology: Option<Arc<NodeTopology>>,
    pub(crate) ratio: Option<&'static str>,
    pub(crate) switches: KernelSwitches,
    pub(crate) kernel: MapKernel,
    pub(crate) reconciler: Reconciler,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) cookies: BTreeMap<u32, u64>,
}

impl NodeOfTest {
    pub(crate) fn new(hooks: &[Hook]) -> Self {
        Self {
            options: Options { hooks: hooks.iter().copied().collect(), ..Options::default() },
            slo: json!({}),
            topology: None,
            ratio: None,
            switches: KernelSwitches { has_group_identity_file: true, ..KernelSwitches::default() },
            kernel: MapKernel::new(LAYOUT),
            reconciler: Reconciler::default(),
            rules: None,
            cookies: BTreeMap::new(),
        }
    }

    pub(crate) fn slo(mut self, slo: Json) -> Self {
        self.slo = slo;
        self
    }

    /// Eight CPUs in two NUMA nodes, of which pods have `taken`.
    pub(crate) fn topology(mut self, taken: &str) -> Self {
        let taken = taken.parse().unwrap();
        let pool =
            |node, cpus: &str| CpuPool { socket: node, node, cpus: cpus.parse::<CpuSet>().unwrap().difference(&taken) };
        let be_pool = |node, cpus: &str| CpuPool { socket: node, node, cpus: cpus.parse().unwrap() };
        self.topology = Some(Arc::new(NodeTopology {
            shared_pools: vec![pool(0, "0-1,4-5"), pool(1, "2-3,6-7")],
            be_shared_pools: vec![be_pool(0, "0-1,4-5"), be_pool(1, "2-3,6-7")],
            ..NodeTopology::default()
        }));
        self
    }

    /// Makes the cgroups of pods: of each container with an id, and of a sandbox.
    pub(crate) fn add(&mut self, pods: &[Arc<Pod>]) {
        for pod in pods {
            self.kernel.add(&pod.cgroup.child("sandbox"));
            for container in &pod.containers {
                container.cgroup.iter().for_each(|cgroup| self.kernel.add(cgroup));
            }
        }
    }

    pub(crate) fn reconcile(&mut self, pods: &[Arc<Pod>]) -> Outcome {
        let (slo, _) = NodeSloReader::default().read(&self.slo);
        let annotations = self.ratio.map(|ratio| annotation("node.koordinator.sh/cpu-normalization-ratio", ratio));
        let node = Node { annotations, ..Node::default() };
        let root = Schemata::parse(b"MB:0=100;1=100\nL3:0=7ff;1=7ff\n").unwrap();
        let machine = Arc::new(ResctrlMachine { vendor: Vendor::Intel, ways: CacheMask::parse(b"7ff").unwrap(), root });
        let inputs = RuleInputs {
            options: &self.options,
            layout: LAYOUT,
            slo: Some(&slo),
            topology: self.topology.as_ref(),
            node: Some(&node),
            switches: self.switches,
            resctrl: Some(&machine),
        };
        let rules = match &self.rules {
            Some(rules) => Rules::updated(rules, inputs),
            None => Arc::new(Rules::new(inputs, None)),
        };
        self.rules = Some(Arc::clone(&rules));
        let cookies = &self.cookies;
        self.reconciler.reconcile(pods, &rules, &self.kernel, &|process| cookies.get(&process).copied())
    }
}

pub(crate) fn annotation(key: &str, text: &str) -> Labels {
    Labels::from([(key.to_owned(), text.to_owned())])
}

pub(crate) fn pod(
    name: &str,
    qos: &str,
    class: &str,
    annotations: &[(&str, &str)],
    containers: &Json,
    init: &Json,
) -> Arc<Pod> {
    let labels = if qos.is_empty() { json!({}) } else { json!({"koordinator.sh/qosClass": qos}) };
    let statuses = |containers: &Json| -> Json {
        let of = |container: &Json| json!({"name": container["name"], "containerID": format!("containerd://{name}-{}", container["name"].as_str().unwrap()), "state": {"running": {}}});
        containers.as_array().unwrap().iter().map(of).collect()
    };
    let text = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels, "annotations": annotations.iter().copied().collect::<BTreeMap<_, _>>()},
        "status": {"phase": "Running", "qosClass": class, "podIP": "10.0.0.7", "containerStatuses": statuses(containers), "initContainerStatuses": statuses(init)},
        "spec": {"containers": containers, "initContainers": init},
    });
    Arc::new(read_pod(&text.to_string(), LAYOUT).unwrap())
}

pub(crate) fn batch(cpu: i64, memory: &str) -> Json {
    let amounts = json!({"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": memory});
    json!({"name": "main", "resources": {"requests": amounts, "limits": amounts}})
}

pub(crate) fn be(containers: &Json, init: &Json) -> Arc<Pod> {
    pod("be", "BE", "BestEffort", &[], containers, init)
}

pub(crate) fn plain(name: &str, qos: &str, class: &str, annotations: &[(&str, &str)]) -> Arc<Pod> {
    pod(name, qos, class, annotations, &json!([{"name": "main"}]), &json!([]))
}

pub(crate) fn value(outcome: &Outcome, cgroup: &CgroupPath, resource: Resource) -> Option<Value> {
    let is_it = |target: &Target| matches!(target, Target::Cgroup { cgroup: known, resource: of } if known == cgroup && *of == resource);
    let mut found = outcome.constraints.0.iter().filter(|constraint| is_it(&constraint.target));
    let value = found.next().map(|constraint| constraint.value.clone());
    assert!(found.next().is_none(), "two constraints for {resource} of {cgroup}");
    value
}

/// Shares, quota and memory limit, −1 for no limit.
pub(crate) fn limits(outcome: &Outcome, cgroup: &CgroupPath) -> [Option<i64>; 3] {
    [Resource::CpuShares, Resource::CpuQuota, Resource::MemoryLimit].map(|resource| {
        value(outcome, cgroup, resource).map(|value| match value {
            Value::Amount(amount) => amount,
            _ => -1,
        })
    })
}

pub(crate) fn cpus(outcome: &Outcome, cgroup: &CgroupPath) -> Option<String> {
    value(outcome, cgroup, Resource::Cpuset).map(|value| value.to_string())
}

pub(crate) fn identity(outcome: &Outcome, cgroup: &CgroupPath) -> Option<i64> {
    value(outcome, cgroup, Resource::GroupIdentity)?.amount()
}
