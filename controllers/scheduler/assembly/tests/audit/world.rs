//! A cluster and what happens to it.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSINode, StorageClass, VolumeAttachment},
};
use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_assembly::build;
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    dynamic::{DeviceClass, ResourceClaim, ResourceSlice},
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
    template::given,
};
use koord_types::{
    cluster_network_topology::ClusterNetworkTopology, device::Device, elastic_quota::ElasticQuota,
    node_metric::NodeMetric, node_resource_topology::v1alpha1::NodeResourceTopology, pod_group::PodGroup,
    reservation::Reservation,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::filled;

/// What appears in a history. A number that is too large means the rest of its division.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cast {
    /// Forms of nodes.
    pub(crate) nodes: Vec<Value>,
    /// Forms of pods: their metadata and spec.
    pub(crate) pods: Vec<Value>,
    /// Objects beside them: the kind, the name and the forms of each.
    pub(crate) objects: Vec<(&'static str, &'static str, Vec<Value>)>,
    /// Feature gates.
    pub(crate) gates: Vec<&'static str>,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A node is added or changed.
    Node(u8, u8),
    /// A node is deleted.
    NodeGone(u8),
    /// A pod is added, or changed where it is.
    Pod(u8, u8),
    /// A pod is bound by another scheduler, or was before the history began: perhaps to a node that is not known.
    Elsewhere(u8, u8, u8),
    /// A pod is deleted.
    PodGone(u8),
    /// A pod is being deleted.
    Deleting(u8),
    /// A pod of this name is another one.
    Recreated(u8, u8),
    /// An object is added or changed.
    Object(u8, u8),
    /// An object is deleted.
    ObjectGone(u8),
    /// An object of this name is another one; its deletion was not seen.
    ObjectRecreated(u8, u8),
    /// Pods are tried.
    Attempts(u8),
    /// A pod that is assumed to have its node is seen there.
    Bound(u8),
    /// The binding of such a pod has failed.
    BindFailed(u8),
    /// Time passes.
    Passes(u8),
}

pub(crate) fn histories() -> impl Strategy<Value = Vec<Step>> {
    let some = any::<u8>;
    let step = prop_oneof![
        3 => (some(), some()).prop_map(|(name, form)| Step::Node(name, form)),
        1 => some().prop_map(Step::NodeGone),
        4 => (some(), some()).prop_map(|(name, form)| Step::Pod(name, form)),
        3 => (some(), some(), some()).prop_map(|(name, form, node)| Step::Elsewhere(name, form, node)),
        2 => some().prop_map(Step::PodGone),
        1 => some().prop_map(Step::Deleting),
        1 => (some(), some()).prop_map(|(name, form)| Step::Recreated(name, form)),
        4 => (some(), some()).prop_map(|(name, form)| Step::Object(name, form)),
        1 => some().prop_map(Step::ObjectGone),
        1 => (some(), some()).prop_map(|(name, form)| Step::ObjectRecreated(name, form)),
        4 => some().prop_map(Step::Attempts),
        3 => some().prop_map(Step::Bound),
        2 => some().prop_map(Step::BindFailed),
        2 => some().prop_map(Step::Passes),
    ];
    // Nodes and objects are there before pods in most histories.
    let first = (0..2_u8).prop_flat_map(|_| {
        let node = (0..NODES, any::<u8>()).prop_map(|(name, form)| Step::Node(name, form));
        let object = (any::<u8>(), any::<u8>()).prop_map(|(name, form)| Step::Object(name, form));
        (prop::collection::vec(node, 0..4), prop::collection::vec(object, 0..6))
    });
    (first, prop::collection::vec(step, 1..50))
        .prop_map(|((nodes, objects), steps)| nodes.into_iter().chain(objects).chain(steps).collect())
}

/// Each case has many steps, and each step many checks.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }
}

/// After every step of a history all sums are what the objects amount to; at its end, nodes take as many pods as they say.
pub(crate) fn holds(cast: &Cast, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(cast);
    for (number, step) in steps.iter().enumerate() {
        world.take(step);
        let found = world.engine.audit_all();
        prop_assert!(found.is_empty(), "after step {number}, {step:?}: {found:#?}");
        prop_assert_eq!(world.engine.cluster().discrepancies(), []);
    }
    filled::as_tried(&world.engine, world.templates.values())
}

const NODES: u8 = 3;
const PODS: u8 = 6;
const CONFIGURATION: &str = include_str!("../../../../../config/koord-scheduler.config.yaml");

/// A pod as it is stored.
#[derive(Clone, Debug)]
struct Stored {
    uid: String,
    form: usize,
    node: Option<String>,
    /// What was written into it.
    annotations: BTreeMap<String, String>,
    deleting: bool,
}

pub(crate) struct World<'c> {
    cast: &'c Cast,
    pub(crate) engine: Engine,
    seconds: u32,
    pods: BTreeMap<String, Stored>,
    objects: BTreeMap<usize, (String, Value)>,
    /// Pods that are assumed to have their nodes.
    attempts: Vec<Attempt>,
    templates: BTreeMap<String, Arc<Template>>,
    made: u32,
}

impl<'c> World<'c> {
    pub(crate) fn new(cast: &'c Cast) -> Self {
        let document = koord_resource::yaml::parse(CONFIGURATION).unwrap();
        let configuration = SchedulerConfiguration::of(&document).unwrap();
        let profile = build(&configuration.profiles[0].resolved(), &|gate| cast.gates.contains(&gate)).unwrap().profile;
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        engine.tick(time(0));
        let (pods, objects, templates) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { cast, engine, seconds: 0, pods, objects, attempts: Vec::new(), templates, made: 0 }
    }

    fn now(&self) -> Moment {
        Moment::at(Duration::from_secs(self.seconds.into()))
    }

    fn uid(&mut self, name: &str) -> String {
        self.made += 1;
        format!("{name}-{}", self.made)
    }

    pub(crate) fn take(&mut self, step: &Step) {
        let now = self.now();
        match step {
            Step::Node(name, form) => {
                let mut object = self.cast.nodes[usize::from(*form) % self.cast.nodes.len()].clone();
                object["metadata"]["name"] = json!(node_name(*name));
                self.engine.set_node(Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap()), now);
            }
            Step::NodeGone(name) => self.engine.remove_node(&node_name(*name), now),
            Step::Pod(name, form) => {
                let (name, form) = (pod_name(*name), usize::from(*form));
                let known = self.pods.get(&name).cloned();
                let stored = known.map_or_else(|| self.stored(&name, form, None), |known| Stored { form, ..known });
                self.set_pod(&name, stored);
            }
            Step::Elsewhere(name, form, node) => {
                let name = pod_name(*name);
                if !self.pods.contains_key(&name) {
                    let node = format!("n{}", node % (NODES + 1));
                    let stored = self.stored(&name, usize::from(*form), Some(node));
                    self.set_pod(&name, stored);
                }
            }
            Step::PodGone(name) => {
                if let Some(Stored { uid, .. }) = self.pods.remove(&pod_name(*name)) {
                    self.engine.remove_pod(&Uid::from(&*uid), now);
                }
            }
            Step::Deleting(name) => {
                if let Some(stored) = self.pods.get(&pod_name(*name)).cloned() {
                    self.set_pod(&pod_name(*name), Stored { deleting: true, ..stored });
                }
            }
            Step::Recreated(name, form) => {
                let name = pod_name(*name);
                if self.pods.remove(&name).is_some() {
                    let stored = self.stored(&name, usize::from(*form), None);
                    let (key, uid) = (ObjectKey::new("ns", &name), Uid::from(&*stored.uid));
                    self.engine.remove_others(&key, Some(&uid), now);
                    self.set_pod(&name, stored);
                }
            }
            Step::Object(..) | Step::ObjectGone(_) | Step::ObjectRecreated(..) if self.cast.objects.is_empty() => {}
            Step::Object(which, form) => {
                let which = usize::from(*which) % self.cast.objects.len();
                let known = self.objects.get(&which).map(|(uid, _)| uid.clone());
                let uid = known.unwrap_or_else(|| self.uid(self.cast.objects[which].1));
                self.set_object(which, uid, &self.form(which, *form));
            }
            Step::ObjectGone(which) => {
                let which = usize::from(*which) % self.cast.objects.len();
                if let Some((uid, value)) = self.objects.remove(&which) {
                    let (type_, object) = object(self.cast.objects[which].0, self.cast.objects[which].1, &uid, &value);
                    self.engine.remove_object(type_, object.key.as_str(), now);
                }
            }
            Step::ObjectRecreated(which, form) => {
                let which = usize::from(*which) % self.cast.objects.len();
                let uid = self.uid(self.cast.objects[which].1);
                self.set_object(which, uid, &self.form(which, *form));
            }
            Step::Attempts(times) => {
                let attempts = (0..=(times % 4)).map_while(|_| self.engine.attempt(now)).collect::<Vec<_>>();
                self.attempts.extend(attempts.into_iter().filter(|one| matches!(one.outcome, Outcome::Bind { .. })));
            }
            Step::Bound(which) => self.bound(*which),
            Step::BindFailed(which) => {
                if let Some(attempt) = self.attempt(*which) {
                    self.engine.bind_failed(&attempt, now);
                }
            }
            Step::Passes(seconds) => {
                self.seconds += u32::from(*seconds);
                self.engine.tick(time(self.seconds));
            }
        }
    }

    fn attempt(&mut self, which: u8) -> Option<Attempt> {
        (!self.attempts.is_empty()).then(|| self.attempts.swap_remove(usize::from(which) % self.attempts.len()))
    }

    fn bound(&mut self, which: u8) {
        let Some(Attempt { pod, outcome: Outcome::Bind { node, patch, .. }, .. }) = self.attempt(which) else { return };
        if pod.is_reservation() {
            let known = self.objects.iter().find(|(_, (uid, _))| **uid == *pod.uid.to_string());
            if let Some((which, (uid, mut value))) = known.map(|(which, known)| (*which, known.clone())) {
                value["status"] = json!({"phase": "Available", "nodeName": &*node});
                self.set_object(which, uid, &value);
            }
            return;
        }
        let name = pod.key.name().to_owned();
        let Some(mut stored) = self.pods.get(&name).filter(|stored| *stored.uid == *pod.uid.to_string()).cloned()
        else {
            return;
        };
        for (annotation, text) in patch.annotations {
            match text {
                Some(text) => _ = stored.annotations.insert(annotation, text),
                None => _ = stored.annotations.remove(&annotation),
            }
        }
        stored.node = Some(node.to_string());
        self.set_pod(&name, stored);
    }

    fn stored(&mut self, name: &str, form: usize, node: Option<String>) -> Stored {
        let uid = self.uid(name);
        Stored { uid, form, node, annotations: BTreeMap::new(), deleting: false }
    }

    fn set_pod(&mut self, name: &str, stored: Stored) {
        let form = &self.cast.pods[stored.form % self.cast.pods.len()];
        let of_form = |part: &str| -> BTreeMap<String, String> {
            serde_json::from_value(form["metadata"][part].clone()).unwrap_or_default()
        };
        let mut annotations = of_form("annotations");
        annotations.extend(stored.annotations.clone());
        let annotations: BTreeMap<&str, &str> = annotations.iter().map(|(key, text)| (&**key, &**text)).collect();
        let mut spec = form["spec"].clone();
        spec["schedulerName"] = json!("koord-scheduler");
        let labels = of_form("labels");
        let template = self.templates.entry(format!("{labels:?} {annotations:?} {spec}")).or_insert_with(|| {
            let labels: Labels = labels.iter().map(|(key, value)| (&**key, &**value)).collect();
            Arc::new(Template::of("ns", labels, &annotations, &serde_json::from_value(spec).unwrap()).unwrap())
        });
        let is_bound = stored.node.is_some();
        let pod = Pod {
            key: ObjectKey::new("ns", name),
            uid: Uid::from(&*stored.uid),
            template: Arc::clone(template),
            node: stored.node.as_deref().map(Arc::from),
            deleting: stored.deleting,
            ends: stored.deleting.then(|| i64::from(self.seconds) + 30),
            given: given(&annotations),
            created: self.seconds.into(),
            scheduled: is_bound.then(|| self.seconds.into()),
            is_running: is_bound,
            is_ready: is_bound,
            ..Pod::default()
        };
        self.pods.insert(name.to_owned(), stored);
        self.engine.set_pod(Arc::new(pod), self.now());
    }

    fn form(&self, which: usize, form: u8) -> Value {
        let forms = &self.cast.objects[which].2;
        forms[usize::from(form) % forms.len()].clone()
    }

    fn set_object(&mut self, which: usize, uid: String, value: &Value) {
        let (kind, name, _) = &self.cast.objects[which];
        let (_, object) = object(kind, name, &uid, value);
        self.objects.insert(which, (uid, value.clone()));
        self.engine.set_object(object, self.now());
    }
}

fn node_name(number: u8) -> String {
    format!("n{}", number % NODES)
}

fn pod_name(number: u8) -> String {
    format!("p{}", number % PODS)
}

fn time(seconds: u32) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::from(seconds)).unwrap()
}

fn object(kind: &str, name: &str, uid: &str, value: &Value) -> (TypeId, Object) {
    match kind {
        "device" => cluster::<Device>(name, uid, value),
        "topology" => cluster::<NodeResourceTopology>(name, uid, value),
        "metric" => cluster::<NodeMetric>(name, uid, value),
        "reservation" => cluster::<Reservation>(name, uid, value),
        "network" => cluster::<ClusterNetworkTopology>(name, uid, value),
        "volume" => cluster::<PersistentVolume>(name, uid, value),
        "class" => cluster::<StorageClass>(name, uid, value),
        "csinode" => cluster::<CSINode>(name, uid, value),
        "attachment" => cluster::<VolumeAttachment>(name, uid, value),
        "slice" => cluster::<ResourceSlice>(name, uid, value),
        "deviceclass" => cluster::<DeviceClass>(name, uid, value),
        "quota" => typed::<ElasticQuota>(ObjectKey::new("ns", name), uid, value),
        "podgroup" => typed::<PodGroup>(ObjectKey::new("ns", name), uid, value),
        "claim" => typed::<PersistentVolumeClaim>(ObjectKey::new("ns", name), uid, value),
        "resourceclaim" => typed::<ResourceClaim>(ObjectKey::new("ns", name), uid, value),
        other => panic!("{other}"),
    }
}

fn cluster<T: Any + Send + Sync + serde::de::DeserializeOwned>(
    name: &str,
    uid: &str,
    value: &Value,
) -> (TypeId, Object) {
    typed::<T>(ObjectKey::cluster(name), uid, value)
}

fn typed<T: Any + Send + Sync + serde::de::DeserializeOwned>(
    key: ObjectKey,
    uid: &str,
    value: &Value,
) -> (TypeId, Object) {
    let mut value = value.clone();
    for (field, text) in [("name", key.name()), ("namespace", key.namespace()), ("uid", uid)] {
        value["metadata"][field] = json!(text);
    }
    let value: T = serde_json::from_value(value).unwrap();
    (TypeId::of::<T>(), Object::new(key, Uid::from(uid), false, Arc::new(value)))
}

/// A node of so many CPUs, with these labels and annotations.
pub(crate) fn node(cpu: &str, labels: Value, annotations: Value) -> Value {
    let allocatable = json!({"cpu": cpu, "memory": "64Gi", "pods": "20", "koordinator.sh/gpu": "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200", "koordinator.sh/gpu-memory": "160Gi", "koordinator.sh/rdma": "100"});
    described(json!({"status": {"allocatable": allocatable}}), labels, annotations)
}

/// A pod with these labels and annotations whose container requests this, and is limited to it.
pub(crate) fn pod(labels: Value, annotations: Value, requests: Value) -> Value {
    let mut container = json!({"name": "c", "image": "i", "resources": {"limits": requests}});
    container["resources"]["requests"] = requests;
    described(json!({"spec": {"containers": [container]}}), labels, annotations)
}

fn described(mut object: Value, labels: Value, annotations: Value) -> Value {
    for (field, value) in [("labels", labels), ("annotations", annotations)] {
        object["metadata"][field] = value;
    }
    object
}
