//! Whole pods and nodes, for those who are shown them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use koord_runtime::{
    Core,
    reflector::Selection,
    store::{Sink as _, Store},
};
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};
use koord_types::reservation::Reservation;
use serde_json::{Value, json};

use super::object::Whole;

/// The caches of whole pods, and of whole nodes where these are needed.
pub(crate) struct Objects {
    pods: Arc<Store<Whole<ApiPod>>>,
    nodes: Option<Arc<Store<Whole<ApiNode>>>>,
}

impl Objects {
    /// Asks for the caches. They share the watches of pods and nodes.
    pub(super) fn of(core: &mut Core, with_nodes: bool) -> Self {
        let nodes = with_nodes.then(|| core.store(&Selection::default()));
        Self { pods: core.store(&Selection::default()), nodes }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.pods.synced() && self.nodes.as_ref().is_none_or(|nodes| nodes.synced())
    }

    /// A pod; for a reserve pod, what the template of its Reservation makes of it.
    pub(crate) fn pod(&self, pod: &Pod, cluster: &Cluster) -> Option<Value> {
        if let Some(reference) = &pod.reservation {
            let mut reservations = cluster.objects().of::<Reservation>();
            let (_, reservation) = reservations.find(|(key, _)| **key == reference.key)?;
            let template = serde_json::to_value(&reservation.spec.template).ok()?;
            let mut object =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
            object["metadata"]["name"] = json!(pod.key.name());
            object["metadata"]["namespace"] = json!(pod.key.namespace());
            object["metadata"]["uid"] = json!(pod.uid);
            return Some(object);
        }
        let pods = self.pods.read();
        let entry = pods.get(pod.key.as_str()).filter(|entry| entry.uid == pod.uid)?;
        serde_json::to_value(entry.value.object()).ok()
    }

    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        serde_json::to_value(self.nodes.as_ref()?.read().get(name)?.value.object()).ok()
    }
}
