//! `koordctl explain`, from files.

use koordctl::{Answer, Cli, run_on, screen::Screen};

/// A node with one prod pod, as `kubectl get -o yaml` writes it.
const OBJECTS: &str = r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: node-1, labels: {pool: a, node.koordinator.sh/cpu-reclaim-ratio: "0.65"}}
  status:
    capacity: {cpu: "100", memory: 120G}
    allocatable: {cpu: "100", memory: 120G}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop, labels: {koordinator.sh/qosClass: LS}}
  spec: {nodeName: node-1, priority: 9500, containers: [{name: c, resources: {requests: {cpu: "20"}}}]}
  status: {phase: Running, qosClass: Burstable}
- apiVersion: slo.koordinator.sh/v1alpha1
  kind: NodeMetric
  metadata: {name: node-1}
  status:
    updateTime: "2026-01-01T00:00:00Z"
    nodeMetric: {nodeUsage: {resources: {cpu: "20", memory: 20G}}, systemUsage: {resources: {cpu: "7", memory: 12G}}}
    podsMetric: [{name: web, namespace: shop, podUsage: {resources: {cpu: "11", memory: 1G}}, priority: koord-prod}]
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: slo-controller-config, namespace: koordinator-system}
  data:
    colocation-config: '{"enable":true}'
    resource-threshold-config: >-
      {"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":60},
       "nodeStrategies":[{"name":"pool-a","nodeSelector":{"matchLabels":{"pool":"a"}},"cpuSuppressThresholdPercent":50}]}
"#;

fn explained(arguments: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, OBJECTS).unwrap();
    let start = ["koordctl", "explain"].map(str::to_owned).into_iter();
    let given = arguments.iter().map(|argument| (*argument).to_owned());
    let cli =
        <Cli as clap::Parser>::try_parse_from(start.chain(given).chain(["-f".to_owned(), file.display().to_string()]));
    let answer =
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run_on(cli.unwrap(), Screen::ENDLESS));
    let Answer { text, code } = answer.map_err(|error| format!("{error:#}"))?;
    assert_eq!(code, 0);
    Ok(text)
}

#[test]
fn batch_amounts_are_explained_term_by_term() {
    let text = explained(&["batch", "node-1", "--at", "2026-01-01T00:05:00Z"]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "kubernetes.io/batch-cpu on node-1: 47k");
    for (sign, amount, what, source) in [
        ("", "100", "capacity", "Node node-1 status.capacity.cpu"),
        ("-", "35", "safety margin", "Node node-1 label node.koordinator.sh/cpu-reclaim-ratio → 65%"),
        ("·", "7", "used by the system", "NodeMetric node-1 status.nodeMetric.systemUsage cpu"),
        ("·", "11", "usage", "Pod shop/web cpu"),
        ("-", "11", "taken by prod and mid pods", ""),
        ("=", "47", "for batch pods", ""),
    ] {
        let found = lines.iter().any(|line| {
            let line = line.trim();
            let rest = line.strip_prefix(sign).map(str::trim).unwrap_or_default();
            rest.strip_prefix(amount).is_some_and(|rest| rest.trim().starts_with(what) && rest.ends_with(source))
        });
        assert!(found, "{sign} {amount} {what} {source}\n{text}");
    }
}

#[test]
fn what_is_not_there_is_explained_too() {
    let text = explained(&["mid", "node-1", "--at", "2026-01-01T01:00:00Z"]).unwrap();
    let first = "kubernetes.io/mid-cpu on node-1: none, because the NodeMetric is older than degradeTimeMinutes";
    assert_eq!(text.lines().next(), Some(first));
    assert!(explained(&["batch", "m"]).unwrap_err().contains("there is no node m"));
    assert!(explained(&["zone", "node-1"]).unwrap_err().contains("names no zone"));
}

#[test]
fn programs_read_json() {
    let text = explained(&["batch", "node-1", "--at", "2026-01-01T00:05:00Z", "-o", "json"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["amounts"][0]["amount"], "47k");
    assert_eq!(json["amounts"][0]["terms"][1]["operation"], "minus");
    assert_eq!(json["amounts"][0]["terms"][1]["amount"], "35");
}

#[test]
fn values_of_a_node_slo_name_their_origin() {
    let text = explained(&["slo", "node-1"]).unwrap();
    for (field, value, origin) in [
        ("enable", "true", "resource-threshold-config clusterStrategy"),
        ("cpuSuppressThresholdPercent", "50", "resource-threshold-config nodeStrategies[pool-a]"),
        ("memoryEvictThresholdPercent", "70", "default"),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("resourceUsedThresholdWithBE.{field} ")));
        let (_, rest) = line.and_then(|line| line.split_once(' ')).unwrap_or_default();
        let (found, from) = rest.trim().split_once(' ').unwrap_or_default();
        assert_eq!((found, from.trim()), (value, origin), "{field}");
    }
}

#[test]
fn memory_is_shown_in_binary_units_and_exactly_to_programs() {
    let about = ["batch", "node-1", "--at", "2026-01-01T00:05:00Z"];
    let text = explained(&about).unwrap();
    // 120 GB of capacity.
    let capacity = text.lines().find(|line| line.contains("status.capacity.memory")).unwrap();
    assert!(capacity.contains(" 111.76Gi "), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&explained(&[&about[..], &["-o", "json"]].concat()).unwrap()).unwrap();
    let yaml: serde_json::Value =
        serde_saphyr::from_str(&explained(&[&about[..], &["-o", "yaml"]].concat()).unwrap()).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json["amounts"][1]["terms"][0]["amount"], "120G");
}

#[test]
fn a_waterfall_fits_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml").display().to_string();
    std::fs::write(&file, OBJECTS).unwrap();
    let line = ["koordctl", "explain", "batch", "node-1", "--at", "2026-01-01T00:05:00Z", "-f", &file];
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let Answer { text, .. } = runtime.block_on(run_on(cli, Screen::of(110))).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    assert!(text.split_whitespace().any(|word| word == "status.nodeMetric.systemUsage"), "words stay whole: {text}");
}

/// A node with two GPUs and eight CPUs on two NUMA nodes, as koordlet reports it, and pods as the scheduler annotates them.
const ALLOCATED: &str = r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: train
    namespace: ml
    annotations:
      scheduling.koordinator.sh/device-allocated: '{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory":"48Gi"}}]}'
      scheduling.koordinator.sh/resource-status: '{"cpuset":"0-1","numaNodeResources":[{"node":0,"resources":{"cpu":"2"}}]}'
  spec: {nodeName: node-1}
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata:
    name: finished
    namespace: ml
    annotations: {scheduling.koordinator.sh/resource-status: '{"cpuset":"0-7"}'}
  spec: {nodeName: node-1}
  status: {phase: Succeeded}
- apiVersion: scheduling.koordinator.sh/v1alpha1
  kind: Device
  metadata: {name: node-1}
  spec:
    devices:
    - {type: gpu, minor: 0, health: true, resources: {koordinator.sh/gpu-core: "100", koordinator.sh/gpu-memory: 85899345920},
       topology: {socketID: 0, nodeID: 0, pcieID: "0"}}
    - {type: gpu, minor: 1, health: false, resources: {koordinator.sh/gpu-core: "100"}}
- apiVersion: topology.node.k8s.io/v1alpha1
  kind: NodeResourceTopology
  metadata:
    name: node-1
    annotations:
      node.koordinator.sh/cpu-topology: '{"detail":[{"id":0,"core":0,"socket":0,"node":0},{"id":1,"core":0,"socket":0,"node":0},{"id":2,"core":1,"socket":0,"node":0},{"id":3,"core":1,"socket":0,"node":1}]}'
  topologyPolicies: []
  zones:
  - {name: node-0, type: Node, resources: [{name: cpu, capacity: "3", allocatable: "3", available: "3"}]}
"#;

fn node_explained(objects: &str, more: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, objects).unwrap();
    let file = file.display().to_string();
    let line = [&["koordctl", "explain", "node", "node-1", "-f", &file], more].concat();
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map(|answer| answer.text).map_err(|error| format!("{error:#}"))
}

#[test]
fn free_devices_and_cpus_of_a_node_are_shown_with_the_pods_that_have_the_rest() {
    let text = node_explained(ALLOCATED, &[]).unwrap();
    let rows: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        "gpu 0 healthy 0 koordinator.sh/gpu-core 100 40 ml/train 60",
        "gpu 0 healthy 0 koordinator.sh/gpu-memory 80Gi 32Gi ml/train 48Gi",
        "gpu 1 unhealthy - - - - -",
        "0 CPUs 0-2 2",
        "0 cpu 3 1",
        "1 CPUs 3 3",
        "ml/train 0-1",
    ] {
        assert!(rows.iter().any(|known| known == row), "{row} is not in\n{text}");
    }
    assert!(!text.contains("finished") && !text.contains("conflict"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&node_explained(ALLOCATED, &["-o=json"]).unwrap()).unwrap();
    assert_eq!(json["devices"][0]["free"]["koordinator.sh/gpu-memory"], "32Gi");
    assert_eq!(json["cpusOfPods"], serde_json::json!({"ml/train": "0-1"}));
    assert_eq!(json["conflicts"], serde_json::json!([]));
}

#[test]
fn allocations_that_contradict_each_other_are_shown() {
    let second = r#"- apiVersion: v1
  kind: Pod
  metadata:
    name: other
    annotations:
      scheduling.koordinator.sh/device-allocated: '{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60"}},{"minor":5}]}'
      scheduling.koordinator.sh/resource-status: '{"cpuset":"1-2,9"}'
  spec: {nodeName: node-1}
- apiVersion: v1
  kind: Pod
  metadata: {name: odd, annotations: {scheduling.koordinator.sh/device-allocated: "{"}}
  spec: {nodeName: node-1}
"#;
    let objects = format!("{ALLOCATED}{second}");
    let text = node_explained(&objects, &[]).unwrap();
    for conflict in [
        "gpu 0: more is allocated than the device has of koordinator.sh/gpu-core; allocated to default/other, ml/train",
        "gpu 5: the node reports no such device; allocated to default/other",
        "CPUs 1 belong to default/other, ml/train",
        "default/other has CPUs 9, which the node does not report",
        "Pod default/odd: ",
    ] {
        assert!(text.contains(&format!("conflict: {conflict}")), "{conflict} is not in\n{text}");
    }
    assert_eq!(text.matches("conflict: ").count(), 5, "{text}");
}

#[test]
fn a_node_without_reports_is_an_error() {
    let error = node_explained("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n", &[]).unwrap_err();
    assert!(error.contains("there is no Device and no NodeResourceTopology"), "{error}");
}
