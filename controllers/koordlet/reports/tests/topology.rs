//! The NodeResourceTopology of a machine with two sockets of two cores with two threads each.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use koord_koordlet_framework::{Node, Pod, read_pod};
use koord_koordlet_reports::{KubeletConfiguration, LiveTopology, TopologyInput, TopologyReport};
use koord_koordlet_system::{CpuManagerState, Driver, Layout, Machine, NumaMemInfo, NumaNode, NumaNodes, Version};
use koord_scheduling::Cpu;
use serde_json::{Value, json};

struct Setting {
    node: Node,
    machine: Machine,
    numa: NumaNodes,
    pods: Vec<Arc<Pod>>,
    kubelet: KubeletConfiguration,
    cpu_manager: CpuManagerState,
}

fn setting() -> Setting {
    let topology = (0..8).map(|id| Cpu { id, core: id % 4, node: id % 4 / 2, socket: id % 4 / 2 }).collect();
    let memory = NumaMemInfo::parse(
        b"Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1 kB\nNode 0 Active(file): 0 kB\nNode 0 Inactive(file): 0 kB\nNode 0 SReclaimable: 0 kB\n",
    );
    let memory = Some(memory.unwrap());
    let node = |id| NumaNode { id, memory, ..NumaNode::default() };
    Setting {
        node: Node { name: "n".into(), ..Node::default() },
        machine: Machine { topology, ..Machine::default() },
        numa: NumaNodes { nodes: vec![node(0), node(1)], skipped: Vec::new() },
        pods: Vec::new(),
        kubelet: KubeletConfiguration::parse(br#"{"kubeletconfig":{"cpuManagerPolicy":"none"}}"#).unwrap(),
        cpu_manager: CpuManagerState::default(),
    }
}

fn pod(name: &str, qos: &str, status: &str) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"name": name, "namespace": "a", "uid": name, "labels": {"koordinator.sh/qosClass": qos},
            "annotations": {"scheduling.koordinator.sh/resource-status": status}},
        "status": {"phase": "Running", "qosClass": "Guaranteed"},
    });
    Arc::new(read_pod(&pod.to_string(), Layout::new(Version::V1, Driver::Systemd)).unwrap())
}

impl Setting {
    fn report(&self) -> TopologyReport {
        TopologyReport::new(TopologyInput {
            node: &self.node,
            machine: &self.machine,
            numa: &self.numa,
            pods: &self.pods,
            kubelet: Some(&self.kubelet),
            cpu_manager: &self.cpu_manager,
            reports_huge_pages: false,
        })
        .unwrap()
    }

    fn annotate(&mut self, name: &str, text: &str) {
        self.node.annotations.get_or_insert_default().insert(name.to_owned(), text.to_owned());
    }
}

fn annotation(report: &TopologyReport, name: &str) -> Value {
    let (_, text) = report.annotations.iter().find(|(key, _)| key.ends_with(name)).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_plain_node_shares_all_cpus_in_pools_of_its_numa_nodes() {
    let report = setting().report();
    let pools = json!([{"socket": 0, "node": 0, "cpuset": "0-1,4-5"}, {"socket": 1, "node": 1, "cpuset": "2-3,6-7"}]);
    assert_eq!(annotation(&report, "/cpu-shared-pools"), pools);
    assert_eq!(annotation(&report, "/be-cpu-shared-pools"), pools);
    assert_eq!(annotation(&report, "/pod-cpu-allocs"), Value::Null);
    assert_eq!(annotation(&report, "/reservation"), json!({}));
    assert_eq!(annotation(&report, "/system-qos-resource"), Value::Null);
    assert_eq!(annotation(&report, "/cpu-manager-policy"), json!({"policy": "none"}));
    assert_eq!(report.policies, ["None"]);
    let names: Vec<&str> = report.zones[0].resources.iter().map(|resource| &*resource.name).collect();
    assert_eq!(names, ["cpu", "hugepages-1Gi", "hugepages-2Mi", "memory"]);
    assert_eq!(serde_json::to_value(&report.zones[1].resources[3]).unwrap()["capacity"], "8Gi");
    assert_eq!(report.topology.shared_pool_text(), "0-1,4-5,2-3,6-7");
}

#[test]
fn lse_pods_leave_both_pools_and_lsr_pods_that_of_ls() {
    let mut setting = setting();
    setting.pods = vec![pod("lse", "LSE", r#"{"cpuset":"1,5"}"#), pod("lsr", "LSR", r#"{"cpuset":"0,4"}"#)];
    let report = setting.report();
    let pools = |name| {
        annotation(&report, name).as_array().unwrap().iter().map(|pool| pool["cpuset"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(pools("/cpu-shared-pools"), ["2-3,6-7"]);
    assert_eq!(pools("/be-cpu-shared-pools"), ["0,4", "2-3,6-7"]);
}

#[test]
fn one_pod_with_a_malformed_annotation_harms_no_other() {
    let mut setting = setting();
    setting.pods =
        vec![pod("bad", "LSR", "{"), pod("odd", "LSR", r#"{"cpuset":"x"}"#), pod("lsr", "LSR", r#"{"cpuset":"0,4"}"#)];
    let report = setting.report();
    assert_eq!(report.topology.shared_pools[0].cpus.to_string(), "1,5");
    assert_eq!(report.refused.len(), 2);
    assert!(
        report.refused[0].starts_with("pod a/bad: annotation") || report.refused[0].starts_with("pod a/bad: "),
        "{:?}",
        report.refused
    );
}

#[test]
fn reserved_cpus_are_chosen_by_the_topology_and_leave_the_pools() {
    for (annotation_text, reserved, pool) in [
        (r#"{"reservedCPUs":"0-1"}"#, json!({"reservedCPUs": "0-1"}), "4-5"),
        (r#"{"resources":{"cpu":"1500m"}}"#, json!({"reservedCPUs": "0,4", "resources": {"cpu": "1500m"}}), "1,5"),
        (r#"{"resources":{"cpu":"-1"}}"#, json!({"resources": {"cpu": "-1"}}), "0-1,4-5"),
    ] {
        let mut setting = setting();
        setting.annotate("node.koordinator.sh/reservation", annotation_text);
        let report = setting.report();
        assert_eq!(annotation(&report, "/reservation"), reserved);
        assert_eq!(report.topology.shared_pools[0].cpus.to_string(), pool);
        assert_eq!(annotation(&report, "/system-qos-resource"), json!({}));
    }
}

#[test]
fn cpus_of_the_system_leave_the_pools_when_they_are_exclusive() {
    for (text, pool) in [
        (r#"{"cpuset":"0,4","cpusetExclusive":false}"#, "0-1,4-5"),
        (r#"{"cpuset":"0,4"}"#, "1,5"),
        (r#"{"cpuset":"zero"}"#, "0-1,4-5"),
    ] {
        let mut setting = setting();
        setting.annotate("node.koordinator.sh/system-qos-resource", text);
        assert_eq!(setting.report().topology.shared_pools[0].cpus.to_string(), pool, "{text}");
    }
}

#[test]
fn what_the_kubelet_gave_to_pods_leaves_the_pools() {
    let mut setting = setting();
    setting.kubelet = KubeletConfiguration::parse(
        br#"{"kubeletconfig":{"cpuManagerPolicy":"static","cpuManagerPolicyOptions":{"full-pcpus-only":"true"},"kubeReserved":{"cpu":"500m"},"systemReserved":{"cpu":"600m"}}}"#,
    )
    .unwrap();
    setting.cpu_manager = CpuManagerState::parse(
        br#"{"policyName":"static","defaultCpuSet":"2-3,6-7","entries":{"g-1":{"main":"0,4"},"g-2":{"main":"1,5"},"gone":{"main":"2"},"ls":{"main":"3"}}}"#,
    )
    .unwrap();
    setting.pods = vec![pod("g-1", "", "{}"), pod("g-2", "", "{}"), pod("ls", "LS", "{}")];
    let report = setting.report();
    assert_eq!(report.topology.shared_pools.len(), 1);
    assert_eq!(report.topology.shared_pools[0].cpus.to_string(), "2-3,6-7");
    assert_eq!(
        annotation(&report, "/pod-cpu-allocs"),
        json!([
            {"namespace": "a", "name": "g-1", "uid": "g-1", "cpuset": "0,4", "managedByKubelet": true},
            {"namespace": "a", "name": "g-2", "uid": "g-2", "cpuset": "1,5", "managedByKubelet": true},
        ])
    );
    let policy = json!({"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0,4"});
    assert_eq!(annotation(&report, "/cpu-manager-policy"), policy);
}

#[test]
fn what_the_kubelet_keeps_is_taken_from_each_numa_node_when_the_node_says_so() {
    let mut setting = setting();
    let amounts = |cpu: &str, memory: &str| {
        [("cpu".to_owned(), cpu.parse().unwrap()), ("memory".to_owned(), memory.parse().unwrap())].into_iter().collect()
    };
    setting.node.capacity = amounts("8", "16Gi");
    setting.node.allocatable = amounts("7500m", "15Gi");
    assert_eq!(setting.report().zones[0].resources[0].allocatable.to_string(), "4");
    setting.node.labels.insert("node.koordinator.sh/enable-numa-reservation".to_owned(), "true".to_owned());
    let zones = setting.report().zones;
    assert_eq!(zones[0].resources[0].allocatable.to_string(), "3750m");
    assert_eq!(zones[1].resources[3].allocatable.to_string(), "7680Mi");
}

#[test]
fn only_what_differs_is_written_and_what_others_wrote_is_kept() {
    let report = setting().report();
    let whole = report.patch(&LiveTopology::default()).unwrap();
    assert_eq!(whole["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "Koordinator"}));
    let mut live = LiveTopology {
        annotations: report.annotations.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
        labels: [("app.kubernetes.io/managed-by".to_owned(), "Koordinator".to_owned())].into(),
        policies: report.policies.clone(),
        zones: report.zones.clone(),
    };
    assert_eq!(report.patch(&live), None);
    live.annotations.insert("node.koordinator.sh/cpu-shared-pools".to_owned(), "[]".to_owned());
    live.labels.insert("node.koordinator.sh/enable-numa-reservation".to_owned(), "true".to_owned());
    let mut gpu = live.zones[0].resources[0].clone();
    "koordinator.sh/gpu".clone_into(&mut gpu.name);
    live.zones[0].resources.push(gpu.clone());
    live.zones[0].resources.sort_by(|one, other| one.name.cmp(&other.name));
    live.zones[1].resources[0].allocatable = "1".parse().unwrap();
    let patch = report.patch(&live).unwrap();
    assert_eq!(patch["metadata"]["annotations"].as_object().unwrap().len(), 1);
    assert_eq!(patch["metadata"]["labels"], json!({"node.koordinator.sh/enable-numa-reservation": null}));
    let resources = patch["zones"][0]["resources"].as_array().unwrap();
    assert!(resources.iter().any(|resource| resource["name"] == "koordinator.sh/gpu"));
    assert_eq!(patch["zones"][1]["resources"][0]["allocatable"], "4");
}
