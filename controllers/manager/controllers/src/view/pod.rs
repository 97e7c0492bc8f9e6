//! What of a pod counts on its node: class, requests, place.

use std::{borrow::Cow, cmp::Ordering, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    index::{By, Term},
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Labels, Projection, WireObject, nullable, part, text},
};
use koord_scheduling::PodRequests;
use koord_types::{
    classes::Classes,
    numa::RESOURCE_STATUS,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    qos::{KubernetesQos, QOS_LABEL, QosClass},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::amount::CpuMemory;

/// A pod and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct PodView {
    /// The node; empty before it is scheduled.
    pub node: Arc<str>,
    /// What of it counts there.
    pub claim: Arc<Claim>,
}

/// What of a pod counts on its node: the same for all replicas of a workload, and kept once for them.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whether it is pending or running.
    pub is_active: bool,
    /// Its priority class, by label, priority or QoS class.
    pub class: Option<PriorityClass>,
    /// Whether its QoS class is LSE: its CPUs are its own whether it uses them or not.
    pub is_exclusive: bool,
    /// What it requests as a whole.
    pub request: CpuMemory,
    /// The NUMA nodes that it was given.
    pub numa_nodes: Box<[i32]>,
}

impl Claim {
    /// Whether it is of class batch or free.
    pub fn is_best_effort(&self) -> bool {
        matches!(self.class, Some(PriorityClass::Batch | PriorityClass::Free))
    }

    /// By what equal ones are found. The order means nothing.
    fn parts(&self) -> impl Ord {
        let Self { is_active, class, is_exclusive, request, numa_nodes } = self;
        (request.cpu, request.memory, is_active, class, is_exclusive, numa_nodes)
    }
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pods by their node.
#[derive(Debug)]
pub struct ByNode;

impl Term<PodView> for ByNode {
    type Value = Arc<str>;

    fn terms(_: &ObjectKey, pod: &PodView, found_by: &mut dyn FnMut(Arc<str>)) {
        if !pod.node.is_empty() {
            found_by(Arc::clone(&pod.node));
        }
    }
}

/// What is read of a Pod.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    spec: Option<Spec<'a>>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    node_name: Cow<'a, str>,
    priority: Option<i32>,
    #[serde(borrow)]
    containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<Container<'a>>>,
    overhead: Option<CpuMemory>,
    resources: Option<PodResources>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    restart_policy: Cow<'a, str>,
    #[serde(borrow, default)]
    resources: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Resources {
    #[serde(default)]
    requests: Option<CpuMemory>,
}

/// Requests of the pod as a whole, where they are said.
#[derive(Deserialize)]
struct PodResources {
    #[serde(default)]
    requests: Option<Stated>,
}

#[derive(Deserialize)]
struct Stated {
    #[serde(default)]
    cpu: Option<crate::amount::Amount>,
    #[serde(default)]
    memory: Option<crate::amount::Amount>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    phase: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "nullable")]
    qos_class: Cow<'a, str>,
}

impl Container<'_> {
    fn request(&self) -> Result<CpuMemory, DecodeError> {
        let resources: Option<Resources> = part("spec.containers.resources", self.resources)?;
        Ok(resources.and_then(|resources| resources.requests).unwrap_or_default())
    }
}

impl Spec<'_> {
    /// The request of the pod as a whole.
    fn request(&self) -> Result<CpuMemory, DecodeError> {
        let mut requests = PodRequests::default();
        for container in self.containers.iter().flatten() {
            requests.container(container.request()?);
        }
        for container in self.init_containers.iter().flatten() {
            requests.init_container(container.request()?, container.restart_policy == "Always");
        }
        let stated = self.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let whole = |sum: CpuMemory| CpuMemory {
            cpu: stated.and_then(|stated| stated.cpu).unwrap_or(sum.cpu),
            memory: stated.and_then(|stated| stated.memory).unwrap_or(sum.memory),
        };
        Ok(requests.total(whole, self.overhead.as_ref()))
    }

    /// The class of a pod whose status does not name it, such as one from a file.
    fn qos(&self) -> KubernetesQos {
        let containers = |of: &Option<Vec<Container<'_>>>| -> Vec<Value> {
            let resources = of.iter().flatten().map(|container| text(container.resources));
            resources.map(|text| json!({"name": "", "resources": serde_json::from_str::<Value>(text).ok()})).collect()
        };
        let spec =
            json!({"containers": containers(&self.containers), "initContainers": containers(&self.init_containers)});
        KubernetesQos::of_pod(&serde_json::from_value::<Pod>(json!({ "spec": spec })).unwrap_or_default())
    }
}

// By hand: the requests of all containers are kept as one, shared by the replicas of a workload.
impl Projection for PodView {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = By<PodView, ByNode>;

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let spec = wire.members.spec.unwrap_or_default();
        let status = wire.members.status.unwrap_or_default();
        let wanted = |key: &str| matches!(key, QOS_LABEL | PRIORITY_CLASS_LABEL);
        let labels = Labels::read_some("metadata.labels", wire.metadata.labels, strings, wanted)?;
        let kubernetes = || match &*status.qos_class {
            "" => spec.qos().as_str().to_owned(),
            shown => shown.to_owned(),
        };
        let classes = Classes::of(|key| labels.get(key), spec.priority, kubernetes);
        let place = |key: &str| key == RESOURCE_STATUS.name();
        let annotations = Labels::read_some("metadata.annotations", wire.metadata.annotations, strings, place)?;
        let claim = Claim {
            is_active: matches!(&*status.phase, "Pending" | "Running"),
            class: classes.priority,
            is_exclusive: classes.qos == Some(QosClass::Lse),
            request: spec.request()?,
            numa_nodes: annotations.get(RESOURCE_STATUS.name()).map_or_else(Box::default, numa_nodes),
        };
        Ok(Self { node: strings.intern(&spec.node_name), claim: strings.share(claim) })
    }
}

/// A place that cannot be read is no place: the pod counts on all NUMA nodes.
fn numa_nodes(text: &str) -> Box<[i32]> {
    let status = RESOURCE_STATUS.read(text).unwrap_or_default();
    let mut nodes: Vec<i32> = status.numa_node_resources.iter().map(|numa| numa.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.into()
}

#[cfg(test)]
mod tests {
    use koord_resource::Quantity;
    use koord_runtime::cache::Cache;

    use super::*;
    use crate::amount::Amount;

    fn pod(metadata: Value, spec: Value, status: Value) -> Arc<PodView> {
        let mut pod = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
        let Value::Object(metadata) = metadata else { panic!("{metadata}") };
        pod["metadata"].as_object_mut().unwrap().extend(metadata);
        (pod["spec"], pod["status"]) = (spec, status);
        let mut cache = Cache::<PodView>::default();
        cache.upsert(&pod.to_string()).unwrap();
        Arc::clone(&cache.get("n/a").unwrap().value)
    }

    fn cpu(requests: &str) -> Value {
        json!({"name": requests, "resources": {"requests": {"cpu": requests}}})
    }

    #[test]
    fn the_request_counts_sidecars_init_containers_and_overhead() {
        let mut sidecar = cpu("2");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"containers": [cpu("1"), cpu("1")], "initContainers": [cpu("3"), sidecar, cpu("4")],
                          "overhead": {"cpu": "100m"}});
        let request = |spec| pod(json!({}), spec, json!({})).claim.request.cpu;
        let amount = |text: &str| Amount::from(&text.parse::<Quantity>().unwrap());
        assert_eq!(request(spec.clone()), amount("6100m"), "the last init container beside the sidecar");
        let mut whole = spec;
        whole["resources"] = json!({"requests": {"cpu": "5"}});
        assert_eq!(request(whole), amount("5100m"), "what the pod says for itself");
    }

    #[test]
    fn the_class_is_that_of_label_priority_or_qos() {
        let class = |labels: Value, priority: Value, qos: &str| {
            pod(json!({ "labels": labels }), json!({ "priority": priority }), json!({ "qosClass": qos })).claim.class
        };
        let labelled = |class: &str| json!({ PRIORITY_CLASS_LABEL: class });
        assert_eq!(class(labelled("koord-mid"), json!(9500), "Guaranteed"), Some(PriorityClass::Mid));
        assert_eq!(class(json!({}), json!(5500), "Guaranteed"), Some(PriorityClass::Batch));
        assert_eq!(class(json!({}), json!(0), "BestEffort"), Some(PriorityClass::Batch));
        assert_eq!(class(labelled("bogus"), Value::Null, "Burstable"), Some(PriorityClass::Prod));
        assert_eq!(class(json!({}), Value::Null, ""), Some(PriorityClass::Batch), "computed: no requests at all");
    }

    #[test]
    fn numa_nodes_are_read_where_they_make_sense() {
        let nodes = |text: &str| {
            pod(json!({"annotations": {RESOURCE_STATUS.name(): text}}), json!({}), json!({})).claim.numa_nodes.to_vec()
        };
        assert_eq!(nodes(r#"{"numaNodeResources":[{"node":1},{"node":0},{"node":1}]}"#), [0, 1]);
        assert_eq!(nodes("{"), [0; 0]);
    }
}
