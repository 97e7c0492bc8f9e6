//! QoS classes, and how the class of a pod is derived.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Pod, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as TextQuantity,
};
use koord_resource::Quantity;
use koord_scheduling::{Bounds, kubernetes_qos};

use crate::{protocol::Labels, word::words};

/// The label that names a pod's QoS class.
pub const QOS_LABEL: &str = "koordinator.sh/qosClass";

words! {
    /// Koordinator's QoS class of a pod: how its CPUs and memory are shared.
    pub enum QosClass {
        /// Latency sensitive, with CPUs that nobody else uses.
        Lse = "LSE",
        /// Latency sensitive, with CPUs reserved that others may use while they idle.
        Lsr = "LSR",
        /// Latency sensitive, on shared CPUs.
        Ls = "LS",
        /// Best effort: uses what others leave, and gives way to them.
        Be = "BE",
        /// Daemons of the node.
        System = "SYSTEM",
    }
}

impl QosClass {
    /// The class that a label names; an unknown name is none.
    pub fn of_label(label: Option<&str>) -> Option<Self> {
        Some(match label? {
            "LSE" => Self::Lse,
            "LSR" => Self::Lsr,
            "LS" => Self::Ls,
            "BE" => Self::Be,
            "SYSTEM" => Self::System,
            _ => return None,
        })
    }

    /// The class of a pod that declares none, by Kubernetes' own class.
    pub fn of_kubernetes(qos: &str) -> Option<Self> {
        match qos {
            "Guaranteed" => Some(Self::Lsr),
            "Burstable" => Some(Self::Ls),
            "BestEffort" => Some(Self::Be),
            _ => None,
        }
    }
}

words! {
    /// Kubernetes' own QoS class of a pod.
    pub open enum KubernetesQos {
        /// Every container, or the pod as a whole, has limits of CPU and memory, and requests them.
        Guaranteed = "Guaranteed",
        /// Something is requested or limited.
        Burstable = "Burstable",
        /// Nothing is requested or limited.
        BestEffort = "BestEffort",
    }
}

impl QosClass {
    /// The class of a pod: the one that its label names, else the one that goes with Kubernetes' class.
    pub fn of_pod(labels: &Labels, kubernetes: &KubernetesQos) -> Option<Self> {
        let label = labels.get(QOS_LABEL).map(String::as_str);
        Self::of_label(label).or_else(|| Self::of_kubernetes(kubernetes.as_str()))
    }
}

impl KubernetesQos {
    /// The class in the pod's status, or else the one that follows from its containers.
    pub fn of_pod(pod: &Pod) -> Self {
        let status = pod.status.as_ref().and_then(|status| status.qos_class.as_deref()).filter(|qos| !qos.is_empty());
        status.map_or_else(|| Self::computed(pod), Self::from)
    }

    /// The class that follows from the requests and limits of CPU and memory: of the pod as a whole where it has
    /// `resources`, though they are empty, and else of all containers.
    fn computed(pod: &Pod) -> Self {
        let of_pod = pod.spec.as_ref().and_then(|spec| spec.resources.as_ref());
        let spec = pod.spec.iter();
        let containers = spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        let resources: Vec<Option<&ResourceRequirements>> = match of_pod {
            Some(_) => vec![of_pod],
            None => containers.map(|container| container.resources.as_ref()).collect(),
        };
        // Texts that are no quantities count as nothing; the API server refuses them.
        let amount = |amounts: Option<&BTreeMap<String, TextQuantity>>, name: &str| {
            amounts?.get(name).and_then(|text| Quantity::try_from(text).ok())
        };
        let amounts: Vec<[[Option<Quantity>; 2]; 2]> = resources
            .into_iter()
            .map(|resources| {
                let requests = resources.and_then(|resources| resources.requests.as_ref());
                let limits = resources.and_then(|resources| resources.limits.as_ref());
                ["cpu", "memory"].map(|name| [amount(requests, name), amount(limits, name)])
            })
            .collect();
        let bounds = amounts.iter().map(|bounds| {
            bounds.each_ref().map(|[request, limit]| Bounds { request: request.as_ref(), limit: limit.as_ref() })
        });
        Self::from(kubernetes_qos(bounds))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(containers: &Value) -> Pod {
        serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
    }

    #[test]
    fn kubernetes_class_follows_from_the_containers() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = json!({"name": "a", "resources": {"requests": both, "limits": both}});
        let bare = json!({"name": "b"});
        let part = json!({"name": "c", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}});
        let zero = json!({"name": "d", "resources": {"requests": {"cpu": "0"}}});
        for (containers, class) in [
            (json!([full]), KubernetesQos::Guaranteed),
            (json!([full, bare]), KubernetesQos::Burstable),
            (json!([part]), KubernetesQos::Burstable),
            (json!([bare]), KubernetesQos::BestEffort),
            (json!([zero]), KubernetesQos::BestEffort),
        ] {
            assert_eq!(KubernetesQos::of_pod(&pod(&containers)), class, "{containers}");
        }
    }

    #[test]
    fn what_the_pod_has_as_a_whole_decides_alone() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = json!({"requests": both, "limits": both});
        for (of_pod, of_container, class) in [
            (&full, json!({}), KubernetesQos::Guaranteed),
            (&json!({"requests": {"cpu": "1"}}), full.clone(), KubernetesQos::Burstable),
            (&json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}), full.clone(), KubernetesQos::Burstable),
            (&json!({}), full.clone(), KubernetesQos::BestEffort),
            (&Value::Null, full.clone(), KubernetesQos::Guaranteed),
        ] {
            let spec = json!({"resources": of_pod, "containers": [{"name": "a", "resources": of_container}]});
            let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
            assert_eq!(KubernetesQos::of_pod(&pod), class, "{of_pod} {of_container}");
        }
    }

    #[test]
    fn the_label_goes_before_kubernetes_class() {
        let labels = |text: &str| Labels::from([(QOS_LABEL.to_owned(), text.to_owned())]);
        assert_eq!(QosClass::of_pod(&labels("BE"), &KubernetesQos::Guaranteed), Some(QosClass::Be));
        assert_eq!(QosClass::of_pod(&labels("?"), &KubernetesQos::Guaranteed), Some(QosClass::Lsr));
        assert_eq!(QosClass::of_pod(&Labels::new(), &KubernetesQos::Burstable), Some(QosClass::Ls));
        assert_eq!(QosClass::of_pod(&Labels::new(), &KubernetesQos::BestEffort), Some(QosClass::Be));
        assert_eq!(QosClass::of_pod(&Labels::new(), &KubernetesQos::Other(String::new())), None);
    }
}
