//! The reconciler on a kernel of values, with the numbers that were recorded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{collections::BTreeMap, sync::Arc};

use koord_koordlet_framework::{CpuPool, Node, NodeSloReader, NodeTopology, Pod, Precedence, SystemCpus, read_pod};
use koord_koordlet_hooks::{
    CookieChange, CoreSchedSupport, GroupEffect, Hook, KernelSwitches, Options, Outcome, Reconciler, ResctrlMachine,
    RuleInputs, Rules, SCHED_CORE, SCHED_GROUP_IDENTITY, on_stop,
};
use koord_koordlet_system::{
    CgroupPath, Driver, Kernel as _, Layout, MapKernel, QosFolder, Resource, Value, Version,
    resctrl::{CacheMask, Schemata, Vendor},
};
use koord_types::protocol::Labels;
use serde_json::{Value as Json, json};

const LAYOUT: Layout = Layout { version: Version::V1, driver: Driver::Cgroupfs };
const GIB: i64 = 1 << 30;
const EXTENDED: &str = "node.koordinator.sh/extended-resource-spec";
const STATUS: &str = "scheduling.koordinator.sh/resource-status";

/// A node whose pods are reconciled.
struct NodeOfTest {
    options: Options,
    slo: Json,
    topology: Option<Arc<NodeTopology>>,
    ratio: Option<&'static str>,
    switches: KernelSwitches,
    kernel: MapKernel,
    reconciler: Reconciler,
    rules: Option<Arc<Rules>>,
    cookies: BTreeMap<u32, u64>,
}

impl NodeOfTest {
    fn new(hooks: &[Hook]) -> Self {
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

    fn slo(mut self, slo: Json) -> Self {
        self.slo = slo;
        self
    }

    /// Eight CPUs in two NUMA nodes, of which pods have `taken`.
    fn topology(mut self, taken: &str) -> Self {
        let taken = taken.parse().unwrap();
        let pool = |node, cpus: &str| CpuPool {
            socket: node,
            node,
            cpus: cpus.parse::<koord_scheduling::CpuSet>().unwrap().difference(&taken),
        };
        let be_pool = |node, cpus: &str| CpuPool { socket: node, node, cpus: cpus.parse().unwrap() };
        self.topology = Some(Arc::new(NodeTopology {
            shared_pools: vec![pool(0, "0-1,4-5"), pool(1, "2-3,6-7")],
            be_shared_pools: vec![be_pool(0, "0-1,4-5"), be_pool(1, "2-3,6-7")],
            ..NodeTopology::default()
        }));
        self
    }

    /// Makes the cgroups of pods: of each container with an id, and of a sandbox.
    fn add(&mut self, pods: &[Arc<Pod>]) {
        for pod in pods {
            self.kernel.add(&pod.cgroup.child("sandbox"));
            for container in &pod.containers {
                container.cgroup.iter().for_each(|cgroup| self.kernel.add(cgroup));
            }
        }
    }

    fn reconcile(&mut self, pods: &[Arc<Pod>]) -> Outcome {
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

fn annotation(key: &str, text: &str) -> Labels {
    Labels::from([(key.to_owned(), text.to_owned())])
}

fn pod(name: &str, qos: &str, class: &str, annotations: &[(&str, &str)], containers: Json, init: Json) -> Arc<Pod> {
    let labels = if qos.is_empty() { json!({}) } else { json!({"koordinator.sh/qosClass": qos}) };
    let statuses = |containers: &Json| -> Json {
        let of = |container: &Json| json!({"name": container["name"], "containerID": format!("containerd://{name}-{}", container["name"].as_str().unwrap()), "state": {"running": {}}});
        containers.as_array().unwrap().iter().map(of).collect()
    };
    let text = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels, "annotations": annotations.iter().copied().collect::<BTreeMap<_, _>>()},
        "status": {"phase": "Running", "qosClass": class, "podIP": "10.0.0.7", "containerStatuses": statuses(&containers), "initContainerStatuses": statuses(&init)},
        "spec": {"containers": containers, "initContainers": init},
    });
    Arc::new(read_pod(&text.to_string(), LAYOUT).unwrap())
}

fn batch(cpu: i64, memory: &str) -> Json {
    let amounts = json!({"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": memory});
    json!({"name": "main", "resources": {"requests": amounts, "limits": amounts}})
}

fn be(containers: Json, init: Json) -> Arc<Pod> {
    pod("be", "BE", "BestEffort", &[], containers, init)
}

fn plain(name: &str, qos: &str, class: &str, annotations: &[(&str, &str)]) -> Arc<Pod> {
    pod(name, qos, class, annotations, json!([{"name": "main"}]), json!([]))
}

fn value(outcome: &Outcome, cgroup: &CgroupPath, resource: Resource) -> Option<Value> {
    let is_it = |target: &koord_koordlet_framework::Target| matches!(target, koord_koordlet_framework::Target::Cgroup { cgroup: known, resource: of } if known == cgroup && *of == resource);
    let mut found = outcome.constraints.0.iter().filter(|constraint| is_it(&constraint.target));
    let value = found.next().map(|constraint| constraint.value.clone());
    assert!(found.next().is_none(), "two constraints for {resource} of {cgroup}");
    value
}

/// Shares, quota and memory limit, −1 for no limit.
fn limits(outcome: &Outcome, cgroup: &CgroupPath) -> [Option<i64>; 3] {
    [Resource::CpuShares, Resource::CpuQuota, Resource::MemoryLimit].map(|resource| {
        value(outcome, cgroup, resource).map(|value| match value {
            Value::Amount(amount) => amount,
            _ => -1,
        })
    })
}

fn cpus(outcome: &Outcome, cgroup: &CgroupPath) -> Option<String> {
    value(outcome, cgroup, Resource::Cpuset).map(|value| value.to_string())
}

fn identity(outcome: &Outcome, cgroup: &CgroupPath) -> Option<i64> {
    value(outcome, cgroup, Resource::GroupIdentity)?.amount()
}

#[test]
fn be_pods_and_containers_have_their_batch_resources() {
    let half = json!([batch(1000, "1Gi"), {"name": "c1", "resources": {"requests": {"kubernetes.io/batch-cpu": 500}}}]);
    let side = json!({"name": "side", "restartPolicy": "Always", "resources": {
        "requests": {"kubernetes.io/batch-cpu": 500},
        "limits": {"kubernetes.io/batch-cpu": 500, "kubernetes.io/batch-memory": "256Mi"}}});
    let prepare = json!({"name": "prep", "resources": {
        "requests": {"kubernetes.io/batch-cpu": 4000}, "limits": {"kubernetes.io/batch-cpu": 4000}}});
    let negative =
        json!([batch(1000, "1Gi"), {"name": "c1", "resources": {"requests": {"kubernetes.io/batch-cpu": -500}}}]);
    for (name, containers, init, of_pod, of_containers) in [
        ("basic", json!([batch(1500, "1Gi")]), json!([]), [1536, 150_000, GIB], vec![[1536, 150_000, GIB]]),
        (
            "huge",
            json!([batch(300_000, "1Ti")]),
            json!([]),
            [262_144, 30_000_000, 1 << 40],
            vec![[262_144, 30_000_000, 1 << 40]],
        ),
        ("tiny", json!([batch(1, "1Mi")]), json!([]), [2, 1000, 1 << 20], vec![[2, 1000, 1 << 20]]),
        ("whole CPUs by mistake", json!([batch(8, "1Gi")]), json!([]), [8, 1000, GIB], vec![[8, 1000, GIB]]),
        ("half limited", half, json!([]), [1536, -1, -1], vec![[1024, 100_000, GIB], [512, -1, -1]]),
        ("negative", negative, json!([]), [1024, -1, -1], vec![[1024, 100_000, GIB], [2, -1, -1]]),
        // The original leaves the sidecar out of the sums of the pod.
        (
            "sidecar",
            json!([batch(1000, "1Gi")]),
            json!([side, prepare]),
            [1536, 150_000, GIB + (256 << 20)],
            vec![[1024, 100_000, GIB], [512, 50_000, 256 << 20], [4096, 400_000, -1]],
        ),
    ] {
        let pod = be(containers, init);
        let outcome = NodeOfTest::new(&[Hook::BatchResource]).reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup), of_pod.map(Some), "{name}");
        for (container, expected) in pod.containers.iter().zip(of_containers) {
            assert_eq!(
                limits(&outcome, container.cgroup.as_ref().unwrap()),
                expected.map(Some),
                "{name} {}",
                container.name
            );
        }
    }
}

#[test]
fn pods_that_are_not_be_or_have_no_batch_resources_are_left_alone() {
    let containers = json!([batch(1000, "1Gi")]);
    let pods = [
        pod("ls", "LS", "Burstable", &[], containers.clone(), json!([])),
        plain("bare", "BE", "BestEffort", &[]),
        pod("none", "", "BestEffort", &[], containers, json!([])),
    ];
    let outcome = NodeOfTest::new(&[Hook::BatchResource]).reconcile(&pods);
    assert_eq!((outcome.constraints.0.len(), outcome.refused.len()), (0, 0));
}

#[test]
fn batch_resources_of_the_specification_go_before_the_annotation() {
    let annotation = r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"500"},"limits":{"kubernetes.io/batch-cpu":"500","kubernetes.io/batch-memory":null}}}}"#;
    let node = || NodeOfTest::new(&[Hook::BatchResource]);
    let annotated = plain("be", "BE", "BestEffort", &[(EXTENDED, annotation)]);
    let outcome = node().reconcile(&[Arc::clone(&annotated)]);
    assert_eq!(limits(&outcome, &annotated.cgroup), [Some(512), Some(50_000), Some(-1)]);
    let both = pod("be", "BE", "BestEffort", &[(EXTENDED, annotation)], json!([batch(1500, "1Gi")]), json!([]));
    let outcome = node().reconcile(&[Arc::clone(&both)]);
    assert_eq!(limits(&outcome, &both.cgroup), [Some(1536), Some(150_000), Some(GIB)]);
}

#[test]
fn quotas_of_be_pods_follow_ratio_and_suppression() {
    let cfs_quota =
        |enable| json!({"resourceUsedThresholdWithBE": {"enable": enable, "cpuSuppressPolicy": "cfsQuota"}});
    for (slo, ratio, quota) in [
        (json!({}), None, 150_000),
        (json!({}), Some("1.5"), 100_000),
        (json!({}), Some("1.2"), 125_000),
        (json!({}), Some("0.5"), 150_000),
        (json!({}), Some("fast"), 150_000),
        (cfs_quota(true), None, -1),
        (cfs_quota(true), Some("1.5"), -1),
        (cfs_quota(false), None, 150_000),
    ] {
        let pod = be(json!([batch(1500, "1Gi")]), json!([]));
        let mut node = NodeOfTest { ratio, ..NodeOfTest::new(&[Hook::BatchResource]).slo(slo.clone()) };
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(quota), "{slo} {ratio:?}");
        assert_eq!(limits(&outcome, pod.containers[0].cgroup.as_ref().unwrap())[1], Some(quota), "{slo} {ratio:?}");
        assert_eq!(outcome.refused.len(), usize::from(ratio == Some("fast")));
    }
}

#[test]
fn a_ratio_that_cannot_be_read_keeps_its_last_value() {
    let pod = be(json!([batch(1500, "1Gi")]), json!([]));
    let mut node = NodeOfTest::new(&[Hook::BatchResource]);
    for (ratio, quota, refused) in [
        ("1.5", 100_000, vec![]),
        ("x", 100_000, vec!["node: node.koordinator.sh/cpu-normalization-ratio"]),
        ("1.505", 100_000, vec![]),
        ("1.2", 125_000, vec![]),
    ] {
        node.ratio = Some(ratio);
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(quota), "{ratio}");
        let found: Vec<String> = outcome.refused.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), refused.len());
        assert!(found.iter().zip(refused).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
    }
}

#[test]
fn quotas_of_ls_pods_are_normalized() {
    let limited = |name: &str, qos: &str, cpu: Option<&str>, annotations: &[(&str, &str)]| {
        let limits = cpu.map_or(json!({}), |cpu| json!({"cpu": cpu}));
        pod(name, qos, "Burstable", annotations, json!([{"name": "main", "resources": {"limits": limits}}]), json!([]))
    };
    let own_cpus = [(STATUS, r#"{"cpuset":"0"}"#)];
    for (pod, ratio, quota) in [
        (limited("ls", "LS", Some("2"), &[]), "1.30", Some(153_847)),
        (limited("none", "", Some("1500m"), &[]), "1.30", Some(115_385)),
        (limited("ls", "LS", Some("1"), &own_cpus), "1.30", Some(76_924)),
        (limited("none", "", Some("1"), &own_cpus), "1.30", None),
        (limited("lsr", "LSR", Some("2"), &[]), "1.30", None),
        (limited("ls", "LS", None, &[]), "1.30", None),
        (limited("ls", "LS", Some("2"), &[]), "1.0", Some(200_000)),
        (limited("ls", "LS", Some("2"), &[]), "0.5", Some(200_000)),
        (limited("ls", "LS", Some("2"), &[]), "fast", None),
    ] {
        let mut node = NodeOfTest { ratio: Some(ratio), ..NodeOfTest::new(&[Hook::CpuNormalization]) };
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        let container = pod.containers[0].cgroup.as_ref().unwrap();
        assert_eq!(
            [&pod.cgroup, container].map(|cgroup| limits(&outcome, cgroup)[1]),
            [quota, quota],
            "{} {ratio}",
            pod.name
        );
    }
}

#[test]
fn quotas_are_restored_when_the_ratio_goes() {
    let pod =
        pod("ls", "LS", "Burstable", &[], json!([{"name": "main", "resources": {"limits": {"cpu": "2"}}}]), json!([]));
    let mut node = NodeOfTest { ratio: Some("2.0"), ..NodeOfTest::new(&[Hook::CpuNormalization]) };
    assert_eq!(limits(&node.reconcile(&[Arc::clone(&pod)]), &pod.cgroup)[1], Some(100_000));
    node.ratio = None;
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(limits(&outcome, &pod.cgroup)[1], Some(200_000));
    assert!(outcome.constraints.0.iter().all(|constraint| constraint.precedence == Precedence::Default));
    assert_eq!(NodeOfTest::new(&[Hook::CpuNormalization]).reconcile(&[pod]).constraints.0.len(), 0);
}

#[test]
fn containers_and_sandboxes_have_their_cpus() {
    let numa = |node: i32, resource: &str| {
        format!(r#"{{"numaNodeResources":[{{"node":{node},"resources":{{"{resource}":"2"}}}}]}}"#)
    };
    let batch_cpu = numa(0, "kubernetes.io/batch-cpu");
    for (name, pod, taken, binds, expected, quota) in [
        (
            "lsr-v1",
            plain("a", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]),
            "0,4",
            false,
            Some("0,4"),
            Some(-1),
        ),
        (
            "lse",
            plain("a", "LSE", "Guaranteed", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            Some(-1),
        ),
        (
            "none with cpus",
            plain("a", "", "Guaranteed", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            Some(-1),
        ),
        (
            "ls with cpus",
            plain("a", "LS", "Burstable", &[(STATUS, r#"{"cpuset":"1,5"}"#)]),
            "1,5",
            false,
            Some("1,5"),
            None,
        ),
        ("pools", plain("a", "LS", "Burstable", &[]), "0-1,4-5", false, Some("2-3,6-7"), None),
        ("pools", plain("a", "", "Burstable", &[]), "0,4", false, Some("1-3,5-7"), None),
        ("pools", plain("a", "", "BestEffort", &[]), "0,4", false, None, None),
        ("pools", plain("a", "BE", "BestEffort", &[]), "0,4", false, None, None),
        ("numa", plain("a", "LS", "Burstable", &[(STATUS, &numa(1, "cpu"))]), "", false, Some("2-3,6-7"), None),
        (
            "numa, memory only",
            plain("a", "LS", "Burstable", &[(STATUS, &numa(1, "memory"))]),
            "",
            false,
            Some("0-7"),
            None,
        ),
        ("numa", plain("a", "BE", "BestEffort", &[(STATUS, &batch_cpu)]), "", false, None, None),
        ("numa-bemanager", plain("a", "BE", "BestEffort", &[(STATUS, &batch_cpu)]), "", true, Some("0-1,4-5"), None),
        ("SYSTEM", plain("a", "SYSTEM", "Burstable", &[]), "", false, Some("0-7"), None),
    ] {
        let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology(taken);
        node.options.binds_be_to_nodes = binds;
        node.add(&[Arc::clone(&pod)]);
        let outcome = node.reconcile(&[Arc::clone(&pod)]);
        let (container, sandbox) = (pod.containers[0].cgroup.clone().unwrap(), pod.cgroup.child("sandbox"));
        for cgroup in [&container, &sandbox] {
            assert_eq!(cpus(&outcome, cgroup).as_deref(), expected, "{name} {cgroup}");
        }
        assert_eq!(cpus(&outcome, &pod.cgroup), None, "{name}");
        assert_eq!([&pod.cgroup, &container].map(|cgroup| limits(&outcome, cgroup)[1]), [quota, quota], "{name}");
        assert_eq!(limits(&outcome, &sandbox)[1], None, "{name}");
    }
}

#[test]
fn cpus_follow_the_topology() {
    let (ls, none, system) = (
        plain("ls", "LS", "Burstable", &[]),
        plain("none", "", "Guaranteed", &[]),
        plain("sys", "SYSTEM", "Burstable", &[]),
    );
    let pods = [Arc::clone(&ls), Arc::clone(&none), Arc::clone(&system)];
    let found = |node: &mut NodeOfTest| {
        let outcome = node.reconcile(&pods);
        [&ls, &none, &system].map(|pod| cpus(&outcome, pod.containers[0].cgroup.as_ref().unwrap()))
    };
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned));
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]);
    // Without a topology only CPUs of the scheduler are set.
    assert_eq!(found(&mut node), texts([None, None, None]));
    node = node.topology("0,4");
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), Some("1-3,5-7"), Some("1-3,5-7")]));
    let with = |change: fn(&mut NodeTopology), node: &NodeOfTest| {
        let mut topology = NodeTopology::clone(node.topology.as_ref().unwrap());
        change(&mut topology);
        Some(Arc::new(topology))
    };
    node.topology = with(|topology| topology.is_kubelet_static = true, &node);
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), None, None]));
    node.topology =
        with(|topology| topology.system = Some(SystemCpus { cpus: "7".parse().unwrap(), is_exclusive: true }), &node);
    assert_eq!(found(&mut node), texts([Some("1-3,5-7"), None, Some("7")]));
}

#[test]
fn sidecars_and_init_containers_have_the_cpus_of_their_pod() {
    let init = json!([{"name": "side", "restartPolicy": "Always"}, {"name": "prep"}]);
    let pod = pod("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"2-3"}"#)], json!([{"name": "main"}]), init);
    let outcome = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("2-3").reconcile(&[Arc::clone(&pod)]);
    for container in &pod.containers {
        assert_eq!(cpus(&outcome, container.cgroup.as_ref().unwrap()).as_deref(), Some("2-3"), "{}", container.name);
    }
}

#[test]
fn a_malformed_annotation_harms_its_pod_alone_and_keeps_what_could_be_read_last() {
    let (ls, good) =
        (plain("ls", "LS", "Burstable", &[]), plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]));
    let bad = plain("lsr", "LSR", "Guaranteed", &[(STATUS, "{")]);
    let bad_cpus = plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0-x"}"#)]);
    let container = good.containers[0].cgroup.clone().unwrap();
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("0,4");
    let outcome = node.reconcile(&[Arc::clone(&ls), Arc::clone(&bad)]);
    assert_eq!(cpus(&outcome, &container), None);
    assert_eq!(cpus(&outcome, ls.containers[0].cgroup.as_ref().unwrap()).as_deref(), Some("1-3,5-7"));
    assert_eq!(outcome.refused.len(), 1);
    assert!(
        outcome.refused[0]
            .to_string()
            .starts_with("pod shop/lsr: scheduling.koordinator.sh/resource-status: \"{\" is wrong")
    );
    node.reconcile(&[Arc::clone(&ls), good]);
    for bad in [bad, bad_cpus] {
        let outcome = node.reconcile(&[Arc::clone(&ls), bad]);
        assert_eq!(cpus(&outcome, &container).as_deref(), Some("0,4"));
        assert_eq!((limits(&outcome, &container)[1], outcome.refused.len()), (Some(-1), 1));
    }
}

fn all_identities() -> Json {
    let class = |identity: i64| json!({"cpuQOS": {"enable": true, "groupIdentity": identity}});
    json!({"resourceQOSStrategy": {"lsrClass": class(2), "lsClass": class(2), "beClass": class(-1)},
        "hostApplications": [{"name": "a", "qos": "LS"}, {"name": "b", "qos": "BE"}, {"name": "d", "qos": "SYSTEM"},
            {"name": "bad", "cgroupPath": {"parentDir": "../x"}}]})
}

#[test]
fn everything_below_a_pod_has_its_group_identity() {
    let (ls, be) = (plain("ls", "LS", "Burstable", &[]), plain("be", "BE", "BestEffort", &[]));
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    let pods = [Arc::clone(&ls), Arc::clone(&be)];
    node.add(&pods);
    let left = LAYOUT.pod(QosFolder::BestEffort, "gone");
    node.kernel.add(&left.child("x"));
    let outcome = node.reconcile(&pods);
    for (cgroup, value) in [
        (LAYOUT.kubepods(), 0),
        (LAYOUT.qos(QosFolder::Burstable), 2),
        (LAYOUT.qos(QosFolder::BestEffort), -1),
        (ls.cgroup.clone(), 2),
        (ls.cgroup.child("sandbox"), 2),
        (ls.containers[0].cgroup.clone().unwrap(), 2),
        (be.cgroup.clone(), -1),
        (be.cgroup.child("sandbox"), -1),
        (left.clone(), -1),
        (left.child("x"), -1),
        (CgroupPath::new("host-latency-sensitive/a"), 2),
        (CgroupPath::new("host-best-effort/b"), -1),
        (CgroupPath::new("d"), 0),
    ] {
        assert_eq!(identity(&outcome, &cgroup), Some(value), "{cgroup}");
    }
    assert_eq!(
        outcome.refused[0].to_string(),
        "host application bad: NodeSLO hostApplications.cgroupPath: \"/../x/\" leaves the hierarchy of cgroups"
    );
}

#[test]
fn the_annotation_changes_the_containers_too() {
    // In the original containers keep the value of the class.
    let annotation = [("koordinator.sh/cpuQOS", r#"{"enable":true,"groupIdentity":-1}"#)];
    let pod = plain("ls", "LS", "Burstable", &annotation);
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    node.add(&[Arc::clone(&pod)]);
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    for cgroup in [pod.cgroup.clone(), pod.cgroup.child("sandbox"), pod.containers[0].cgroup.clone().unwrap()] {
        assert_eq!(identity(&outcome, &cgroup), Some(-1), "{cgroup}");
    }
}

#[test]
fn group_identities_wait_for_their_switch() {
    let pods = [plain("be", "BE", "BestEffort", &[])];
    let mut node = NodeOfTest::new(&[Hook::GroupIdentity]).slo(all_identities());
    node.switches.group_identity = Some(false);
    let outcome = node.reconcile(&pods);
    assert_eq!((outcome.switches[0].file, outcome.switches[0].value), (SCHED_GROUP_IDENTITY, true));
    assert_eq!(outcome.constraints.0.len(), 0);
    node.switches.group_identity = Some(true);
    let outcome = node.reconcile(&pods);
    assert_eq!((outcome.switches.len(), identity(&outcome, &pods[0].cgroup)), (0, Some(-1)));
}

#[test]
fn what_did_not_change_is_not_computed_again() {
    let pods = [
        plain("lsr", "LSR", "Guaranteed", &[(STATUS, r#"{"cpuset":"0,4"}"#)]),
        be(json!([batch(1500, "1Gi")]), json!([])),
    ];
    let mut node = NodeOfTest::new(&[Hook::BatchResource, Hook::CpuSetAllocator, Hook::GroupIdentity])
        .slo(all_identities())
        .topology("0,4");
    node.add(&pods);
    let first = node.reconcile(&pods);
    let rules = node.rules.clone().unwrap();
    let second = node.reconcile(&pods);
    assert!(Arc::ptr_eq(&rules, node.rules.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&first.constraints, &second.constraints));
    // Without its pod a folder has nothing but the identity of its class.
    let third = node.reconcile(&pods[1..]);
    let of_lsr =
        third.constraints.0.iter().filter(|constraint| constraint.target.cgroup().unwrap().is_within(&pods[0].cgroup));
    assert!(of_lsr.map(|constraint| constraint.target.to_string()).all(|target| target.ends_with("cpu.bvt_warp_ns")));
    node.kernel.remove(&pods[0].cgroup);
    let fourth = node.reconcile(&pods[1..]);
    assert!(
        fourth.constraints.0.iter().all(|constraint| !constraint.target.cgroup().unwrap().is_within(&pods[0].cgroup))
    );
}

#[test]
fn a_sandbox_that_comes_later_is_found() {
    let pod = plain("ls", "LS", "Burstable", &[]);
    let mut node = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("");
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(
        outcome.unknown_sandboxes[0].to_string(),
        "the sandbox of pod shop/ls is not known: 0 of the cgroups in kubepods/burstable/podls may be it, not one"
    );
    node.add(&[Arc::clone(&pod)]);
    let outcome = node.reconcile(&[Arc::clone(&pod)]);
    assert_eq!(
        (outcome.unknown_sandboxes.len(), cpus(&outcome, &pod.cgroup.child("sandbox")).as_deref()),
        (0, Some("0-7"))
    );
}

#[test]
fn pods_in_virtual_machines_have_no_containers_here() {
    let mut pod = Pod::clone(&plain("ls", "LS", "Burstable", &[]));
    pod.runtime_class = Some("kata".into());
    let outcome = NodeOfTest::new(&[Hook::CpuSetAllocator]).topology("").reconcile(&[Arc::new(pod)]);
    assert_eq!((outcome.constraints.0.len(), outcome.unknown_sandboxes.len()), (0, 0));
}

#[test]
fn oom_scores_are_for_all_processes_of_a_container() {
    let (ls, be) = (
        plain("ls", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", "-500")]),
        plain("be", "BE", "BestEffort", &[("koordinator.sh/oom-score-adj", "900")]),
    );
    let bad = plain("bad", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", "1001")]);
    let mut node = NodeOfTest::new(&[Hook::OomScoreAdj]);
    for (pod, processes) in [(&ls, "501\n502\n"), (&be, "601\n"), (&bad, "701\n")] {
        node.kernel.set_text(pod.containers[0].cgroup.as_ref().unwrap(), Resource::Processes, processes);
        node.kernel.set_text(&pod.cgroup.child("sandbox"), Resource::Processes, "9\n");
    }
    let outcome = node.reconcile(&[ls, be, bad]);
    let scores: Vec<_> =
        outcome.oom_scores.iter().map(|score| (&*score.pod_name, score.processes.clone(), score.score)).collect();
    assert_eq!(scores, [("ls", vec![501, 502], -500), ("be", vec![601], 900)]);
    assert_eq!(
        outcome.refused[0].to_string(),
        "pod shop/bad: koordinator.sh/oom-score-adj: \"1001\" is wrong: 1001 is not from -1000 to 1000; expected an integer from -1000 to 1000"
    );
}

#[test]
fn a_score_that_cannot_be_read_keeps_its_last_value() {
    let with = |text| plain("ls", "LS", "Burstable", &[("koordinator.sh/oom-score-adj", text)]);
    let mut node = NodeOfTest::new(&[Hook::OomScoreAdj]);
    node.kernel.set_text(with("1").containers[0].cgroup.as_ref().unwrap(), Resource::Processes, "501\n");
    for (text, score, refused) in
        [("x", None, 1), ("-500", Some(-500), 0), ("x", Some(-500), 1), ("y", Some(-500), 1), ("7", Some(7), 0)]
    {
        let outcome = node.reconcile(&[with(text)]);
        let found = outcome.oom_scores.first().map(|score| score.score);
        assert_eq!((found, outcome.refused.len()), (score, refused), "{text}");
    }
}

#[test]
fn pods_with_the_annotation_have_a_resctrl_group() {
    let limited =
        plain("be", "BE", "BestEffort", &[("node.koordinator.sh/resctrl", r#"{"llc":{"schemata":{"range":[0,50]}}}"#)]);
    let other = plain("other", "BE", "BestEffort", &[]);
    let mut node = NodeOfTest::new(&[Hook::Resctrl]);
    node.options.moves_tasks = true;
    node.kernel.set_text(limited.containers[0].cgroup.as_ref().unwrap(), Resource::Threads, "301\n302\n");
    node.kernel.set_text(&limited.cgroup.child("sandbox"), Resource::Threads, "300\n");
    let outcome = node.reconcile(&[Arc::clone(&limited), Arc::clone(&other)]);
    let [GroupEffect::Ensure { group, schemata, tasks, .. }] = outcome.groups.as_slice() else { panic!() };
    assert_eq!((group.as_str(), tasks.as_slice()), ("koordlet-be", &[300, 301, 302][..]));
    assert_eq!(schemata.l3_text().as_deref(), Some("L3:0=3f;1=3f;\n"));
    assert!(outcome.needed_groups.contains("koordlet-be"));
    assert!(node.reconcile(&[other]).needed_groups.is_empty());
}

#[test]
fn cores_are_scheduled_after_group_identities_are_gone() {
    let be = plain("be", "BE", "BestEffort", &[]);
    let mut node = NodeOfTest::new(&[Hook::CoreSched, Hook::GroupIdentity]).slo(json!({"resourceQOSStrategy": {
        "policies": {"cpuPolicy": "coreSched"}, "beClass": {"cpuQOS": {"enable": true, "schedIdle": 1}}}}));
    node.add(&[Arc::clone(&be)]);
    node.kernel.set_text(be.containers[0].cgroup.as_ref().unwrap(), Resource::Processes, "11\n12\n");
    node.kernel.set_text(&be.cgroup.child("sandbox"), Resource::Processes, "10\n");
    node.cookies = [(10, 0), (11, 0), (12, 0)].into();
    node.switches.group_identity = Some(true);
    node.switches.sched_core = Some(false);

    // A kernel without core scheduling keeps its switches.
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!((outcome.switches.len(), outcome.cookies.len(), outcome.core_sched_waits.as_deref()), (0, 0, None));
    let folder = LAYOUT.qos(QosFolder::BestEffort);
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), None);

    node.switches.core_sched = CoreSchedSupport::Supported;
    node.kernel.set(&be.cgroup, Resource::GroupIdentity, Value::Amount(-1));
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!(outcome.core_sched_waits.as_deref(), Some("cpu.bvt_warp_ns of kubepods/besteffort/podbe is not 0 yet"));
    assert_eq!((identity(&outcome, &be.cgroup), outcome.switches.len(), outcome.cookies.len()), (Some(0), 0, 0));
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), Some(Value::Amount(1)));

    node.kernel.set(&be.cgroup, Resource::GroupIdentity, Value::Amount(0));
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    let switches: Vec<_> = outcome.switches.iter().map(|switch| (switch.file, switch.value)).collect();
    assert_eq!((switches, outcome.cookies.len()), (vec![(SCHED_GROUP_IDENTITY, false), (SCHED_CORE, true)], 0));

    node.switches.group_identity = Some(false);
    node.switches.sched_core = Some(true);
    let outcome = node.reconcile(&[Arc::clone(&be)]);
    assert_eq!(outcome.cookies, [CookieChange::Create { group: "".into(), first: 11, others: vec![12, 10] }]);
    node.cookies = [(10, 7), (11, 7), (12, 7)].into();
    assert_eq!(node.reconcile(&[Arc::clone(&be)]).cookies, []);

    node.slo = json!({});
    let outcome = node.reconcile(&[be]);
    assert_eq!(outcome.cookies, [CookieChange::Clear { processes: vec![11, 12, 10] }]);
    assert_eq!(value(&outcome, &folder, Resource::CpuIdle), Some(Value::Amount(0)));
    assert_eq!(on_stop(LAYOUT, &node.kernel).0.len(), 2);
    assert!(node.kernel.supports(&folder, Resource::CpuIdle));
}
