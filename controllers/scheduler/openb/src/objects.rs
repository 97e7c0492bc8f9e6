//! Nodes and pods of a trace as objects of Kubernetes.

use serde_json::{Value, json};

use super::{Node, Request};

/// The label of a node with the model of its GPUs.
pub const MODEL: &str = "node.koordinator.sh/gpu-model";

impl Node {
    /// The node and, where it has GPUs, the report of its devices.
    pub fn objects(&self, name: &str) -> Vec<Value> {
        let mut allocatable = json!({
            "cpu": format!("{}m", self.cpu_milli), "memory": format!("{}Mi", self.memory_mib), "pods": "110",
        });
        let mut labels = json!({"kubernetes.io/hostname": name});
        if self.gpus > 0 {
            let percent = (100 * self.gpus).to_string();
            allocatable["koordinator.sh/gpu-core"] = json!(percent);
            allocatable["koordinator.sh/gpu-memory-ratio"] = json!(percent);
            labels[MODEL] = json!(self.model);
        }
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"capacity": allocatable, "allocatable": allocatable},
        });
        let resources = json!({
            "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi",
        });
        let gpu = |minor: i64| json!({"type": "gpu", "minor": minor, "health": true, "resources": resources});
        let devices: Vec<Value> = (0..self.gpus).map(gpu).collect();
        let report = json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
            "metadata": {"name": name, "uid": name}, "spec": {"devices": devices},
        });
        if self.gpus > 0 { vec![node, report] } else { vec![node] }
    }
}

impl Request {
    /// The spec of a pod that requests this of a scheduler. Where several GPUs are shared, each is so in the same part.
    pub fn spec(&self, scheduler: &str) -> Value {
        let mut requests = json!({"cpu": format!("{}m", self.cpu_milli), "memory": format!("{}Mi", self.memory_mib)});
        if self.gpus > 0 {
            for name in ["koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"] {
                requests[name] = json!((self.gpu_milli() / 10).to_string());
            }
        }
        let container = json!({"name": "main", "resources": {"requests": requests}});
        let mut spec = json!({"schedulerName": scheduler, "containers": [container]});
        if !self.models.is_empty() {
            let terms = json!([{"matchExpressions": [{"key": MODEL, "operator": "In", "values": self.models}]}]);
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        }
        spec
    }
}
