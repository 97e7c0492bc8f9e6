//! The clusters that are measured: their nodes, the pods that run, and those that wait.

use integration::objects::Object;
use serde_json::{Value, json};

/// The scheduler of the pods.
pub(crate) const SCHEDULER: &str = "koord-scheduler";

/// What the pods are that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pods {
    /// Of one Deployment.
    Plain,
    /// Gangs of twenty, which are placed together.
    Gangs,
    /// By turns spread over zones, apart from their own where possible, of class batch, and plain.
    Mixed,
}

/// Members of a gang.
pub(crate) const GANG: usize = 20;

/// A node, in one of ten zones.
pub(crate) fn node(number: usize) -> Object {
    let name = node_name(number);
    let has = json!({
        "cpu": "96", "memory": "384Gi", "pods": "110", "ephemeral-storage": "1Ti",
        "kubernetes.io/batch-cpu": "32000", "kubernetes.io/batch-memory": "128Gi",
    });
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": format!("zone-{}", number % 10),
    });
    let status = json!({"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]});
    ("/api/v1/nodes".to_owned(), json!({"metadata": {"name": name, "labels": labels}, "status": status}))
}

/// Name of a node.
pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

/// A pod of a Deployment of fifty that runs on a node.
pub(crate) fn running(number: usize, node: usize) -> Object {
    let mut pod = pod(&format!("run-{:04}", number / 50), number, SCHEDULER);
    pod["spec"]["nodeName"] = node_name(node).into();
    pod["status"] = json!({"phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z"});
    at(pod)
}

/// A pod that waits for this scheduler.
pub(crate) fn waiting(pods: Pods, number: usize, scheduler: &str) -> Object {
    match pods {
        Pods::Plain => at(pod("plain", number, scheduler)),
        Pods::Gangs => {
            let gang = number / GANG;
            let mut pod = pod(&format!("gang-{gang:05}"), number, scheduler);
            pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/name"] = format!("gang-{gang:05}").into();
            pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/min-available"] = GANG.to_string().into();
            at(pod)
        }
        Pods::Mixed => {
            let kind = ["spread", "apart", "batch", "plain"][number % 4];
            let mut pod = pod(kind, number, scheduler);
            let own = json!({"matchLabels": {"app": kind}});
            match kind {
                "spread" => {
                    pod["spec"]["topologySpreadConstraints"] = json!([{
                        "maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own,
                    }]);
                }
                "apart" => {
                    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": own});
                    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
                    pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                        preferred;
                }
                "batch" => {
                    pod["metadata"]["labels"]["koordinator.sh/qosClass"] = "BE".into();
                    let amounts = json!({"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "1Gi"});
                    pod["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
                }
                _ => {}
            }
            at(pod)
        }
    }
}

fn at(pod: Value) -> Object {
    ("/api/v1/namespaces/default/pods".to_owned(), pod)
}

fn pod(workload: &str, number: usize, scheduler: &str) -> Value {
    let name = format!("{workload}-6c9f7d5b8-{scheduler}-{number:06}");
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{workload}-6c9f7d5b8"),
        "uid": "30000000-0000-4000-8000-000000000000", "controller": true,
    });
    let container = json!({
        "name": "main", "image": format!("registry.example.com/team/{workload}:1.2.3"), "args": ["--listen=:8080"],
        "env": [{"name": "REGION", "value": "eu-west-1"}], "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
    });
    json!({
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": workload, "pod-template-hash": "6c9f7d5b8"},
            "annotations": {"prometheus.io/scrape": "true"}, "ownerReferences": [owner],
        },
        "spec": {"schedulerName": scheduler, "containers": [container]},
    })
}
