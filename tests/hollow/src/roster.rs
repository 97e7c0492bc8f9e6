//! Which pods run on which node: what the kubelet saw last and the koordlet reports.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod};
use koord_resource::Quantity;
use parking_lot::Mutex;

use crate::report::RunningPod;

type Key = (String, String);

/// The pods of all nodes; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Roster(Arc<Mutex<Pods>>);

#[derive(Debug, Default)]
struct Pods {
    by_node: BTreeMap<String, BTreeMap<Key, RunningPod>>,
    nodes: BTreeMap<Key, String>,
}

impl Roster {
    /// Forgets everything: a new list follows.
    pub fn clear(&self) {
        *self.0.lock() = Pods::default();
    }

    /// Notes a pod as it is now. One that does not run is not on the roster.
    pub fn note(&self, pod: &Pod) {
        let key = key(pod);
        let mut pods = self.0.lock();
        pods.forget(&key);
        let running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        if let Some(node) = node_name(pod).filter(|_| running) {
            pods.nodes.insert(key.clone(), node.to_owned());
            pods.by_node.entry(node.to_owned()).or_default().insert(key, running_pod(pod));
        }
    }

    /// Strikes a pod that is gone.
    pub fn strike(&self, pod: &Pod) {
        self.0.lock().forget(&key(pod));
    }

    /// The pods that run on a node, by namespace and name.
    pub fn on(&self, node: &str) -> Vec<RunningPod> {
        self.0.lock().by_node.get(node).into_iter().flat_map(|pods| pods.values().cloned()).collect()
    }
}

impl Pods {
    fn forget(&mut self, key: &Key) {
        let Some(node) = self.nodes.remove(key) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(key);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}

/// The node that a pod is bound to.
pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

fn key(pod: &Pod) -> Key {
    let metadata = &pod.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

pub(crate) fn running_pod(pod: &Pod) -> RunningPod {
    let (namespace, name) = key(pod);
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let spec = pod.spec.as_ref();
    let sum = |native: &str, batch: &str, mid: &str| -> u64 {
        let amount = |container: &Container| -> i64 {
            let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            let quantity = |name: &str| requests?.get(name)?.0.parse::<Quantity>().ok();
            // batch and mid CPU are counted in thousandths of a core already
            match (quantity(native), quantity(batch).or_else(|| quantity(mid))) {
                (Some(quantity), _) if native == "cpu" => quantity.milli_value(),
                (Some(quantity), _) | (None, Some(quantity)) => quantity.value(),
                (None, None) => 0,
            }
        };
        let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        containers.iter().map(amount).fold(0, u64::saturating_add_signed)
    };
    RunningPod {
        namespace,
        name,
        cpu_milli: sum("cpu", "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu"),
        memory_bytes: sum("memory", "kubernetes.io/batch-memory", "kubernetes.io/mid-memory"),
        priority_class: spec.and_then(|spec| spec.priority_class_name.clone()).unwrap_or_default(),
        qos_class: label("koordinator.sh/qosClass").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: &str, phase: &str, requests: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": "BE"}},
            "spec": {"nodeName": node, "priorityClassName": "koord-batch",
                     "containers": [{"name": "a", "resources": {"requests": requests}}, {"name": "b"}]},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn a_running_pod_is_on_the_roster_of_its_node_until_it_ends() {
        let roster = Roster::default();
        roster.note(&pod("web", "hollow-0", "Pending", &json!({})));
        assert!(roster.on("hollow-0").is_empty());
        roster.note(&pod("web", "hollow-0", "Running", &json!({"cpu": "1500m", "memory": "1Gi"})));
        let on = roster.on("hollow-0");
        assert_eq!((on[0].cpu_milli, on[0].memory_bytes), (1500, 1 << 30));
        assert_eq!((on[0].priority_class.as_str(), on[0].qos_class.as_str()), ("koord-batch", "BE"));
        roster.note(&pod("web", "hollow-0", "Succeeded", &json!({})));
        assert!(roster.on("hollow-0").is_empty());
    }

    #[test]
    fn batch_resources_count_as_what_they_are() {
        let roster = Roster::default();
        let requests = json!({"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": "1Gi"});
        roster.note(&pod("job", "hollow-1", "Running", &requests));
        let on = roster.on("hollow-1");
        assert_eq!((on[0].cpu_milli, on[0].memory_bytes), (2000, 1 << 30));
    }

    #[test]
    fn a_struck_pod_is_gone_and_requests_that_cannot_be_read_count_nothing() {
        let roster = Roster::default();
        let web = pod("web", "hollow-0", "Running", &json!({"cpu": "many"}));
        roster.note(&web);
        assert_eq!(roster.on("hollow-0")[0].cpu_milli, 0);
        roster.strike(&web);
        assert!(roster.on("hollow-0").is_empty());
    }
}
