//! `koordctl deschedule` on a cluster: a plan that is shown, carried out, and refused when the cluster has changed; usage that is measured.

use std::path::{Path, PathBuf};

use koord_descheduler_testing::metrics_server::{self, node_usage, pod_usage};
use serde_json::{Value, json};

use crate::{cluster::Cluster, program::folder};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A cluster with two nodes, of which the first has two pods of a ReplicaSet.
fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::installed(name);
    for node in ["n1", "n2"] {
        let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
        let status = json!({"allocatable": amounts, "capacity": amounts});
        cluster.create("/api/v1/nodes", &json!({"metadata": {"name": node}, "status": status}));
        cluster.patch(&format!("/api/v1/nodes/{node}"), &json!({"spec": {"taints": null}}));
    }
    for pod in ["web-1", "web-2"] {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true});
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "image": "app:1"}]});
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let metadata = json!({"name": pod, "ownerReferences": [owner]});
        cluster.create(PODS, &json!({"metadata": metadata, "spec": spec, "status": status}));
    }
    cluster
}

/// A configuration that evicts by the eviction API.
fn configuration(folder: &Path, plugins: &str, args: &str) -> PathBuf {
    let file = folder.join("descheduler.yaml");
    let text = format!(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\ndeschedulingInterval: 1m\nprofiles: [{{name: p, plugins: {{{plugins}, \
         evict: {{disabled: [{{name: '*'}}], enabled: [{{name: DefaultEvictor}}]}}, filter: {{disabled: [{{name: '*'}}], enabled: [{{name: DefaultEvictor}}]}}}}, pluginConfig: [{args}]}}]\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

/// The pods that are not on their way out.
fn staying(cluster: &Cluster) -> Vec<String> {
    let list = cluster.get(PODS);
    let pods = list["items"].as_array().unwrap().iter();
    let stays = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    stays.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plan_that_was_shown_is_carried_out_once_and_refused_when_the_cluster_has_changed() {
    let cluster = cluster("apply");
    let folder = folder("apply-plans");
    let taints = "deschedule: {enabled: [{name: RemovePodsViolatingNodeTaints}]}";
    let config = format!("--config={}", configuration(&folder, taints, "").display());
    let plan = cluster.koordctl(&["deschedule", "plan", &config]).unwrap();
    assert!(plan.code == 0 && plan.text.contains("no pod would be evicted"), "{}", plan.text);

    let taint = json!([{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]);
    cluster.patch("/api/v1/nodes/n1", &json!({"spec": {"taints": taint}}));
    let shown = cluster.koordctl(&["deschedule", "plan", &config, "-o", "json"]).unwrap();
    let document: Value = serde_json::from_str(&shown.text).unwrap();
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{document:#}");
    assert!(steps.iter().all(|step| step["by"] == "Eviction" && step["successor"]["node"] == "n2"), "{document:#}");
    let saved = folder.join("plan.json");
    std::fs::write(&saved, &shown.text).unwrap();
    let saved = saved.display().to_string();

    let applied = cluster.koordctl(&["deschedule", "apply", &saved, &config]).unwrap();
    assert!(applied.code == 0, "{}", applied.text);
    assert_eq!(applied.text, "default/web-1 on n1: evicted\ndefault/web-2 on n1: evicted\n");
    assert_eq!(staying(&cluster), [""; 0]);

    let again = cluster.koordctl(&["deschedule", "apply", &saved, &config]).unwrap();
    assert!(again.code != 0 && again.text.starts_with("nothing was done, because the cluster has changed"));
    let differs = cluster.koordctl(&["deschedule", "diff", &saved, &config]).unwrap();
    assert!(differs.code != 0, "{}", differs.text);
}

#[test]
fn usage_is_measured_for_a_plan_and_what_is_not_known_is_said() {
    let cluster = cluster("usage");
    let folder = folder("usage-plans");
    let args = "{name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, metricsUtilization: {source: KubernetesMetrics}}}";
    let file = configuration(&folder, "balance: {enabled: [{name: LowNodeUtilization}]}", args);
    let config = format!("--config={}", file.display());
    let unknown = "usage is not known from KubernetesMetrics, and no pods are evicted by it: the API server does not serve metrics.k8s.io; install the metrics server";
    let plan = cluster.koordctl(&["deschedule", "plan", &config]).unwrap();
    assert!(plan.code != 0 && plan.text.starts_with(unknown), "{}", plan.text);
    let why = cluster.koordctl(&["deschedule", "why", "web-1", "-n", "default", &config]).unwrap();
    assert!(why.text.starts_with(unknown), "{}", why.text);

    for definition in metrics_server::definitions() {
        cluster.create(DEFINITIONS, &definition);
    }
    let nodes = [("n1", "3"), ("n2", "100m")].map(|(node, cpu)| node_usage(node, cpu));
    let pods = ["web-1", "web-2"].map(|pod| pod_usage(pod, "1100m"));
    for (path, metrics) in nodes.into_iter().chain(pods) {
        cluster.create(path, &metrics);
    }
    let plan = cluster.koordctl(&["deschedule", "plan", &config, "-o", "json"]).unwrap();
    let document: Value = serde_json::from_str(&plan.text).unwrap();
    assert_eq!(document["errors"], json!([]));
    let pods: Vec<&Value> = document["steps"].as_array().unwrap().iter().map(|step| &step["pod"]).collect();
    assert_eq!(pods.len(), 1, "75 % to 47.5 %: {document:#}");
}
