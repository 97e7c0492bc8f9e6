//! What is kept of pods and nodes: what the engine knows of them.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{
        ContainerImage, Node as ApiNode, NodeSpec, NodeStatus, PodCondition, PodResourceClaimStatus, PodSpec,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use koord_api::{
    node_annotations::NODE_RESERVATION, pod_annotations::REPLACE_RESOURCES, reservation_protocol::OPERATING_MODE,
};
use koord_engine::{
    dynamic::GeneratedClaim,
    labels::Labels,
    node::Node,
    pod::{Owner, Pod, Template},
    template::{given, of_koordinator},
    workload::Controller,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Projection, WireObject},
    uid::Uid,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    resize::{self, ContainerResources},
    transform::{self, Transformers},
};

/// A pod: what the engine knows of it, and what a status says beside that.
#[derive(Debug)]
pub(crate) struct PodView {
    pub(crate) pod: Arc<Pod>,
    /// It has succeeded or failed: it uses nothing any more.
    pub(crate) has_ended: bool,
    /// The message of the condition `PodScheduled`, while it is `False`.
    pub(crate) unscheduled: Option<Arc<str>>,
}

#[derive(Deserialize)]
pub(crate) struct PodMembers<'a> {
    spec: PodSpec,
    #[serde(default, borrow)]
    status: PodStatusWire<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatusWire<'a> {
    #[serde(borrow)]
    phase: Cow<'a, str>,
    #[serde(borrow)]
    nominated_node_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    start_time: Option<Cow<'a, str>>,
    conditions: Vec<PodCondition>,
    container_statuses: Vec<ContainerResources>,
    init_container_statuses: Vec<ContainerResources>,
    /// As Kubernetes before 1.33 says what the condition `PodResizePending` says now.
    #[serde(borrow)]
    resize: Cow<'a, str>,
    resource_claim_statuses: Vec<PodResourceClaimStatus>,
}

impl PodStatusWire<'_> {
    fn is_true(&self, condition: &str) -> bool {
        self.conditions.iter().any(|known| known.type_ == condition && known.status == "True")
    }

    /// The pod as it counts while its containers are resized; none where it counts as it is.
    fn resized(&mut self, spec: &PodSpec) -> Option<PodSpec> {
        let pending = self.conditions.iter().find(|known| known.type_ == "PodResizePending");
        let is_infeasible = pending.map_or(&*self.resize, |known| known.reason.as_deref().unwrap_or_default());
        let is_infeasible = is_infeasible == "Infeasible";
        self.container_statuses.append(&mut self.init_container_statuses);
        resize::resized(spec, &self.container_statuses, is_infeasible)
    }

    /// Since when a condition is true, in seconds since 1970.
    fn since(&self, condition: &str) -> Option<i64> {
        let known = self.conditions.iter().find(|known| known.type_ == condition && known.status == "True");
        known?.last_transition_time.as_ref().map(|time| time.0.as_second())
    }
}

/// A pod as the transformers of these bits make it.
#[derive(Debug, PartialEq)]
pub(crate) struct PodViewBy<const T: u8>(pub(crate) PodView);

impl<const T: u8> Projection for PodViewBy<T> {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = WireObject<'a, PodMembers<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        PodView::read(wire, strings, Transformers::of_bits(T)).map(Self)
    }

    /// The engine knows a pod by its key and uid, and shares the pod with the cache.
    fn shared(mut self, key: &ObjectKey, uid: &Uid, _: &mut Interner) -> Arc<Self> {
        let pod = Arc::make_mut(&mut self.0.pod);
        (pod.key, pod.uid) = (key.clone(), uid.clone());
        Arc::new(self)
    }
}

impl PodView {
    pub(crate) fn read(
        wire: WireObject<'_, PodMembers<'_>>,
        strings: &mut Interner,
        transformers: Transformers,
    ) -> Result<Self, DecodeError> {
        let PodMembers { mut spec, mut status } = wire.members;
        let mut resized = status.resized(&spec);
        let labels = labels(wire.metadata.labels, strings)?;
        let annotations = texts(wire.metadata.annotations, "metadata.annotations")?;
        for spec in [&mut spec].into_iter().chain(&mut resized) {
            transform::pod(spec, &labels);
            transformers.replace_resources(spec, annotations.get(REPLACE_RESOURCES.name()).map(|text| &**text));
        }
        let annotations = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
        let given = given(&annotations);
        let owners =
            wire.metadata.owner_references.map(|owners| serde_json::from_str::<Vec<OwnerReference>>(owners.get()));
        let owners = owners.transpose().map_err(|error| DecodeError::new("metadata.ownerReferences", error))?;
        let controller = owners.into_iter().flatten().find(|owner| owner.controller == Some(true));
        let template = Template::of(&wire.metadata.namespace, labels, &annotations, &spec)
            .and_then(|template| match &resized {
                Some(resized) => template.resized(resized),
                None => Ok(template),
            })
            .map_err(|error| DecodeError::new("spec.containers.resources", error))?;
        let mut template = Template { controller: controller.as_ref().and_then(spreading_controller), ..template };
        transformers.apply_to(&mut template, spec.priority);
        let key = key(&template, &spec, resized.is_some());
        let shared = strings.share(Keyed { key, template: Arc::new(template) });
        let unscheduled =
            status.conditions.iter().find(|known| known.type_ == "PodScheduled" && known.status == "False");
        let is_evicted = |known: &&PodCondition| {
            let reason = known.reason.as_deref();
            (&*known.type_, &*known.status, reason) == ("DisruptionTarget", "True", Some("PreemptionByScheduler"))
        };
        let gates = spec.scheduling_gates.iter().flatten().map(|gate| strings.intern(&gate.name));
        let pod = Pod {
            gates: gates.collect(),
            template: Arc::clone(&shared.template),
            node: spec.node_name.as_deref().filter(|node| !node.is_empty()).map(|node| strings.intern(node)),
            nominated: status
                .nominated_node_name
                .as_deref()
                .filter(|node| !node.is_empty())
                .map(|node| strings.intern(node)),
            deleting: wire.metadata.deletion_timestamp.is_some(),
            ends: wire
                .metadata
                .deletion_timestamp
                .and_then(|text| serde_json::from_str::<&str>(text.get()).ok().and_then(seconds)),
            is_preempted: status.conditions.iter().find(is_evicted).is_some(),
            given,
            generated_claims: GeneratedClaim::of(&status.resource_claim_statuses),
            created: wire.metadata.creation_timestamp.as_deref().and_then(seconds).unwrap_or_default(),
            started: status.start_time.as_deref().and_then(seconds),
            scheduled: status.since("PodScheduled"),
            initialized: status.since("Initialized"),
            controller: controller.map(|owner| strings.share(owner_of(&owner))),
            is_running: status.phase == "Running",
            is_ready: shared.template.labels.get(OPERATING_MODE.name()).is_some() && status.is_true("Ready"),
            ..Pod::default()
        };
        Ok(Self {
            pod: Arc::new(pod),
            has_ended: matches!(&*status.phase, "Succeeded" | "Failed"),
            unscheduled: unscheduled.map(|known| known.message.as_deref().unwrap_or_default().into()),
        })
    }
}

impl PartialEq for PodView {
    fn eq(&self, other: &Self) -> bool {
        (self.has_ended, &self.unscheduled) == (other.has_ended, &other.unscheduled) && self.pod == other.pod
    }
}

fn spreading_controller(owner: &OwnerReference) -> Option<Controller> {
    Controller::of(&owner.api_version, &owner.kind, &owner.name)
}

fn owner_of(owner: &OwnerReference) -> Owner {
    Owner {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: Uid::from(&*owner.uid),
    }
}

/// Seconds since 1970.
fn seconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// A template with the text by which equal ones are found: one template serves all pods of a workload.
#[derive(Debug)]
struct Keyed {
    key: Box<str>,
    template: Arc<Template>,
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Keyed {}

/// Everything that a template is made of, as text: what [`Template::of`] reads of the pod.
fn key(template: &Template, spec: &PodSpec, is_resized: bool) -> Box<str> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let containers: Vec<_> = containers
        .map(|container| (&container.image, &container.resources, &container.ports, &container.restart_policy))
        .collect();
    let controller = template.controller.as_ref().map(|Controller { kind, name }| (format!("{kind:?}"), &**name));
    let labels: BTreeMap<&str, &str> = template.labels.iter().collect();
    let annotations: BTreeMap<&str, &str> = template.annotations.iter().collect();
    let parts = (
        (&*template.namespace, &*template.scheduler, template.priority, template.preempts, labels, annotations),
        (containers, spec.containers.len(), &spec.resources, &spec.overhead),
        (&spec.node_selector, &spec.affinity, &spec.tolerations, &spec.topology_spread_constraints, controller),
        format!("{:?}{:?}", template.volumes, template.resource_claims),
        is_resized.then_some((&template.requests, template.assumed_usage)),
    );
    // Types of the API are JSON.
    serde_json::to_string(&parts).unwrap_or_default().into()
}

/// A node.
#[derive(Debug)]
pub(crate) struct NodeView(pub(crate) Arc<Node>);

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeMembers {
    spec: NodeSpec,
    status: NodeStatusWire,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatusWire {
    allocatable: Option<BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
    images: Option<Vec<ContainerImage>>,
}

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = WireObject<'a, NodeMembers>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let NodeMembers { spec, status: NodeStatusWire { mut allocatable, images } } = wire.members;
        allocatable.iter_mut().for_each(transform::rename);
        let annotations = texts(wire.metadata.annotations, "metadata.annotations")?;
        let metadata = ObjectMeta { name: Some(wire.metadata.name.into_owned()), ..ObjectMeta::default() };
        let status = NodeStatus { allocatable, images, ..NodeStatus::default() };
        let object = ApiNode { metadata, spec: Some(spec), status: Some(status) };
        let mut node = Node::of(&object).map_err(|error| DecodeError::new("status.allocatable", error))?;
        let reservation = annotations.get(NODE_RESERVATION.name());
        transform::keep_away(reservation.map(|text| &**text), &mut node.allocatable);
        let annotations = of_koordinator(annotations.iter().map(|(key, value)| (&**key, &**value)));
        let images = node.images.iter().map(|(name, size)| (strings.intern(name), *size)).collect();
        let labels = labels(wire.metadata.labels, strings)?;
        Ok(Self(Arc::new(Node { labels, annotations, images, ..node })))
    }
}

impl PartialEq for NodeView {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

fn labels(raw: Option<&RawValue>, strings: &mut Interner) -> Result<Labels, DecodeError> {
    let labels = texts(raw, "metadata.labels")?;
    Ok(labels.iter().map(|(key, value)| (strings.intern(key), strings.intern(value))).collect())
}

/// A map of texts, borrowed where the JSON has them unescaped.
fn texts<'a>(
    raw: Option<&'a RawValue>,
    field: &'static str,
) -> Result<BTreeMap<Cow<'a, str>, Cow<'a, str>>, DecodeError> {
    let Some(raw) = raw else { return Ok(BTreeMap::new()) };
    serde_json::from_str(raw.get()).map_err(|error| DecodeError::new(field, error))
}

#[cfg(test)]
mod tests {
    use koord_runtime::{
        cache::Applied,
        store::{Sink as _, Store},
    };
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, spec: &Value) -> String {
        let metadata =
            json!({"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "labels": {"app": "web"}});
        json!({"metadata": metadata, "spec": spec}).to_string()
    }

    #[test]
    fn pods_of_a_workload_share_their_template_whatever_their_names_and_volumes() {
        let store = Store::<PodViewBy<0>>::default();
        let spec = |volume: &str, cpu: &str| {
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            json!({"containers": [container], "volumes": [{"name": volume}], "schedulerName": "koord-scheduler"})
        };
        for (name, volume, cpu) in [("a", "kube-api-access-x7", "1"), ("b", "kube-api-access-y8", "1"), ("c", "v", "2")]
        {
            store.upsert(&pod(name, &spec(volume, cpu))).unwrap();
        }
        for (name, claim) in [("d", "x"), ("e", "y")] {
            let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}});
            store.upsert(&pod(name, &json!({"containers": [], "volumes": [volume]}))).unwrap();
        }
        let cache = store.read();
        let template = |name: &str| Arc::clone(&cache.get(&format!("ns/{name}")).unwrap().value.0.pod.template);
        assert!(Arc::ptr_eq(&template("a"), &template("b")) && !Arc::ptr_eq(&template("a"), &template("c")));
        assert!(!Arc::ptr_eq(&template("d"), &template("e")), "claims are not alike");
        assert_eq!(
            (&*template("c").scheduler, template("c").requests.amount("cpu").to_string()),
            ("koord-scheduler", "2".to_owned())
        );
    }

    #[test]
    fn a_pod_that_is_resized_has_a_template_of_its_own_and_keeps_its_class() {
        let store = Store::<PodViewBy<0>>::default();
        let amounts = |cpu: &str| json!({"cpu": cpu, "koordinator.sh/batch-cpu": "1", "memory": "1Gi"});
        let pod = |name: &str, has: &str| {
            let resources = json!({"requests": amounts("1"), "limits": amounts("1")});
            let spec = json!({"containers": [{"name": "c", "resources": resources}]});
            let status = json!({"containerStatuses": [{"name": "c", "resources": {"requests": amounts(has)}}]});
            let metadata = json!({"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"});
            store.upsert(&json!({"metadata": metadata, "spec": spec, "status": status}).to_string()).unwrap();
            Arc::clone(&store.read().get(&format!("ns/{name}")).unwrap().value.0.pod.template)
        };
        let (plain, same, resized) = (pod("a", "1"), pod("b", "1000m"), pod("c", "3"));
        assert!(Arc::ptr_eq(&plain, &same));
        let requests = ["cpu", "kubernetes.io/batch-cpu"].map(|name| resized.requests.amount(name).to_string());
        assert_eq!((requests, resized.assumed_usage[0]), (["3", "1"].map(str::to_owned), 3000));
        assert_eq!((resized.limits.amount("cpu").to_string(), resized.kubernetes_qos), ("1".to_owned(), "Guaranteed"));
    }

    #[test]
    fn a_pod_ends_when_its_deletion_says() {
        let mut cache = koord_runtime::cache::Cache::<PodViewBy<0>>::default();
        let mut ends = |revision: u64, deletion: Value| {
            let metadata = json!({
                "name": "a", "namespace": "ns", "uid": "a", "resourceVersion": revision.to_string(),
                "deletionTimestamp": deletion,
            });
            cache.upsert(&json!({"metadata": metadata, "spec": {"containers": []}}).to_string()).unwrap();
            cache.get("ns/a").unwrap().value.0.pod.ends
        };
        assert_eq!(ends(1, Value::Null), None);
        assert_eq!(ends(2, json!("1970-01-01T00:01:30Z")), Some(90));
        assert_eq!(ends(3, json!("1970-01-01T00:00:40Z")), Some(40), "it was given less time");
    }

    #[test]
    fn pods_that_are_placed_differently_share_no_template() {
        let store = Store::<PodViewBy<0>>::default();
        let constraint =
            |skew: u32| json!([{"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
        let container = |image: &str| json!([{"name": "c", "image": image}]);
        let controlled = |kind: &str| {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": true});
            let metadata = json!({"name": kind, "namespace": "ns", "uid": kind, "resourceVersion": "1", "ownerReferences": [owner]});
            json!({"metadata": metadata, "spec": {"containers": container("a")}}).to_string()
        };
        let texts = [
            pod("a", &json!({"containers": container("a")})),
            pod("b", &json!({"containers": container("b")})),
            pod("c", &json!({"containers": container("a"), "topologySpreadConstraints": constraint(1)})),
            pod("d", &json!({"containers": container("a"), "topologySpreadConstraints": constraint(2)})),
            controlled("ReplicaSet"),
            controlled("StatefulSet"),
            controlled("DaemonSet"),
        ];
        for text in &texts {
            store.upsert(text).unwrap();
        }
        let cache = store.read();
        let templates: std::collections::BTreeSet<usize> =
            cache.iter().map(|(_, entry)| Arc::as_ptr(&entry.value.0.pod.template).addr()).collect();
        assert_eq!(templates.len(), texts.len());
    }

    #[test]
    fn what_does_not_matter_to_the_scheduler_is_no_change() {
        let mut cache = koord_runtime::cache::Cache::<NodeView>::default();
        let node = |revision: u64, cpu: &str, image: &str, ports: u32| {
            let metadata = json!({"name": "n", "uid": "u", "resourceVersion": revision.to_string()});
            let images = json!([{"names": [image], "sizeBytes": 1}]);
            json!({"metadata": metadata, "status": {"allocatable": {"cpu": cpu}, "images": images, "ports": ports}})
                .to_string()
        };
        let mut changed = |text: &str| matches!(cache.upsert(text).unwrap().1, Applied::Changed(_));
        let states = [node(1, "4", "a", 1), node(2, "4", "a", 2), node(3, "5", "a", 2), node(4, "5", "b", 2)];
        assert_eq!(states.map(|text| changed(&text)), [true, false, true, true]);
    }
}
