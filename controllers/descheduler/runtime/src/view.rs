//! What is kept of nodes, pods and objects: what the framework knows of them.

mod templates;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node as ApiNode, PodStatus},
    apimachinery::pkg::apis::meta::v1::OwnerReference as ApiOwner,
};
use koord_descheduler_framework::{
    Node, ObjectType, Pod, UsageReport,
    pod::{OwnerReference, State},
};
use koord_descheduler_migration::controller::PodProjection;
use koord_resource::{ResourceList, Time, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Metadata, MetadataOnly, Projection, WireMetadata, WireObject},
    uid::Uid,
};
use koord_types::node_metric::NodeMetric;
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use self::templates::{Shape, Templates};

/// A pod.
#[derive(Debug, PartialEq)]
pub(crate) struct PodView(pub(crate) Arc<Pod>);

impl PodProjection for PodView {
    fn pod(&self) -> &Arc<Pod> {
        &self.0
    }
}

/// What is read of a pod. The spec is decoded only where no pod before had an equal one.
#[derive(Deserialize)]
pub(crate) struct PodMembers<'a> {
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(default)]
    status: Option<PodStatus>,
}

impl Projection for PodView {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = WireObject<'a, PodMembers<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let (metadata, PodMembers { spec, status }) = (wire.metadata, wire.members);
        let annotations: BTreeMap<Cow<'_, str>, Cow<'_, str>> = borrowed("metadata.annotations", metadata.annotations)?;
        let shape = Shape::of(spec)?;
        let template = Templates::template(&metadata, &annotations, &shape, strings)?;
        let owners: Vec<ApiOwner> = borrowed("metadata.ownerReferences", metadata.owner_references)?;
        let owners: Arc<[OwnerReference]> = owners.iter().map(|owner| OwnerReference::of(owner, strings)).collect();
        let status = status.unwrap_or_default();
        let state = State::of(&status, strings);
        let pod = Pod {
            template,
            node: shape.node.as_deref().map(|node| strings.intern(node)),
            owners: Arc::clone(&strings.share(owners)),
            annotations: Pod::read_annotations(annotations.iter().map(|(key, value)| (&**key, &**value))),
            created: metadata.created()?.map_or(0, Timestamp::as_second),
            started: status.start_time.as_ref().map(|time| time.0.as_second()),
            is_deleting: metadata.deletion_timestamp.is_some(),
            transitions: Pod::transitions(&status),
            state: strings.share(state),
            ..Pod::default()
        };
        Ok(Self(Arc::new(pod)))
    }

    /// The framework knows a pod by its key and uid, and shares the pod with the cache.
    fn shared(mut self, key: &ObjectKey, uid: &Uid, _: &mut Interner) -> Arc<Self> {
        let pod = Arc::make_mut(&mut self.0);
        (pod.key, pod.uid) = (key.clone(), uid.clone());
        Arc::new(self)
    }
}

/// A part that borrows from the text.
fn borrowed<'a, T: Deserialize<'a> + Default>(
    field: &'static str,
    raw: Option<&'a RawValue>,
) -> Result<T, DecodeError> {
    let Some(raw) = raw else { return Ok(T::default()) };
    serde_json::from_str::<Option<T>>(raw.get())
        .map(Option::unwrap_or_default)
        .map_err(|error| DecodeError::new(field, error))
}

/// An object that is decoded whole before what is needed of it is kept.
pub(crate) struct Whole<'a, T> {
    metadata: WireMetadata<'a>,
    object: T,
}

impl<'a, T> Metadata<'a> for Whole<'a, T> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<'de: 'a, 'a, T: DeserializeOwned> Deserialize<'de> for Whole<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        let error = serde::de::Error::custom::<serde_json::Error>;
        let MetadataOnly { metadata } = serde_json::from_str(text).map_err(error)?;
        Ok(Self { metadata, object: serde_json::from_str(text).map_err(error)? })
    }
}

/// A node.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeView(pub(crate) Arc<Node>);

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = Whole<'a, ApiNode>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let node = Node::of(&wire.object).map_err(|error| DecodeError::new("status.allocatable", error))?;
        Ok(Self(Arc::new(node)))
    }
}

/// A NodeMetric. What it reports is in the framework alone, and here until it is handed over: usage takes as much memory as all pods.
#[derive(Debug)]
pub(crate) struct MetricView {
    report: Mutex<Option<UsageReport>>,
    /// Of the text of the status.
    digest: u64,
}

impl MetricView {
    /// What was reported; `None` where it has been handed over.
    pub(crate) fn take(&self) -> Option<UsageReport> {
        self.report.lock().take()
    }
}

impl PartialEq for MetricView {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// What is read of a NodeMetric.
#[derive(Deserialize)]
pub(crate) struct MetricMembers<'a> {
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricStatus<'a> {
    update_time: Option<Time>,
    node_metric: Option<SystemMetric>,
    #[serde(borrow)]
    pods_metric: Option<Vec<PodMetric<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SystemMetric {
    system_usage: Usage,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodMetric<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    pod_usage: Usage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    resources: Option<ResourceList>,
}

impl Projection for MetricView {
    const KIND: ResourceKind = ResourceKind::typed::<NodeMetric>();
    type Wire<'a> = WireObject<'a, MetricMembers<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let text = wire.members.status.map_or("null", RawValue::get);
        let status: Option<MetricStatus<'_>> =
            serde_json::from_str(text).map_err(|error| DecodeError::new("status", error))?;
        let status = status.unwrap_or_default();
        let pods = status.pods_metric.into_iter().flatten();
        let report = UsageReport {
            updated_ms: status.update_time.map(|time| time.at().as_millisecond()),
            system: status.node_metric.map(|metric| metric.system_usage.resources.unwrap_or_default()),
            pods: pods
                .map(|pod| (ObjectKey::new(&pod.namespace, &pod.name), pod.pod_usage.resources.unwrap_or_default()))
                .collect(),
        };
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Ok(Self { report: Mutex::new(Some(report)), digest: hasher.finish() })
    }
}

/// An object of another kind.
#[derive(Debug, PartialEq)]
pub(crate) struct ObjectView<T>(pub(crate) Arc<T>);

impl<T: ObjectType> Projection for ObjectView<T> {
    const KIND: ResourceKind = T::KIND;
    type Wire<'a> = Whole<'a, T::Api>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(Arc::new(T::of(&wire.object))))
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::{
        cache::{Applied, Cache},
        store::{Sink as _, Store},
    };
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, change: &Value) -> String {
        let mount = json!({"name": format!("token-{name}"), "mountPath": "/t"});
        let container = json!({"name": "c", "image": "app:1", "volumeMounts": [mount]});
        let volume = json!({"name": format!("token-{name}"), "projected": {}});
        let object = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "labels": {"app": "web"}},
            "spec": {"containers": [container], "volumes": [volume], "nodeName": "n1"},
        });
        koord_resource::schema::patch::merge::apply(object, change).to_string()
    }

    #[test]
    fn pods_of_a_workload_share_their_template_whatever_their_names_nodes_and_volumes() {
        let store = Store::<PodView>::default();
        for (name, change) in [
            ("a", json!({})),
            ("b", json!({"spec": {"nodeName": "n2"}})),
            ("c", json!({"spec": {"priority": 5}})),
            ("d", json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})),
            ("e", json!({"spec": {"volumes": [{"name": "w", "emptyDir": {}}]}})),
            ("f", json!({"metadata": {"labels": {"app": "other"}}})),
        ] {
            store.upsert(&pod(name, &change)).unwrap();
        }
        let cache = store.read();
        assert_eq!(cache.quarantine_len(), 0, "{:?}", cache.quarantined("ns/b"));
        let template = |name: &str| Arc::clone(&cache.get(&format!("ns/{name}")).unwrap().value.0.template);
        for (one, other, are_shared) in
            [("a", "b", true), ("a", "c", false), ("a", "d", false), ("d", "e", true), ("a", "f", false)]
        {
            assert_eq!(Arc::ptr_eq(&template(one), &template(other)), are_shared, "{one} {other}");
        }
        assert!(template("d").has_local_storage && !template("a").has_local_storage);
        assert_eq!(template("c").placement.priority, 5);
    }

    #[test]
    fn a_pod_has_what_the_framework_makes_of_the_whole_object() {
        let object = pod(
            "a",
            &json!({
                "metadata": {
                    "creationTimestamp": "1970-01-01T00:01:00Z",
                    "annotations": {"descheduler.alpha.kubernetes.io/evict": "", "other": "x"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": true}],
                },
                "status": {"phase": "Failed", "reason": "Evicted", "startTime": "1970-01-01T00:02:00Z",
                    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:03:00Z"}]},
            }),
        );
        let mut cache = Cache::<PodView>::default();
        cache.upsert(&object).unwrap();
        let whole = Pod::of(&serde_json::from_str(&object).unwrap(), &mut Interner::default()).unwrap();
        assert_eq!(*cache.get("ns/a").unwrap().value.0, whole);
        assert_eq!((whole.created, whole.started, &*whole.transitions), (60, Some(120), &[180][..]));
    }

    #[test]
    fn a_pod_that_cannot_be_read_names_the_field() {
        let error = |change: &Value| {
            let mut cache = Cache::<PodView>::default();
            cache.upsert(&pod("a", change)).unwrap();
            cache.quarantined("ns/a").unwrap().reason.to_string()
        };
        let amount = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}});
        assert!(error(&amount).contains("spec.containers.resources"), "{}", error(&amount));
        assert!(error(&json!({"spec": {"nodeName": 5}})).contains("spec"));
    }

    #[test]
    fn a_metric_is_handed_over_once_and_changes_with_its_text() {
        let metric = |revision: u32, cpu: &str| {
            let usage = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
            let pods =
                json!([{"namespace": "ns", "name": "a", "podUsage": usage(cpu)}, {"namespace": "ns", "name": "b"}]);
            let status = json!({"updateTime": "1970-01-01T00:01:00Z", "nodeMetric": {"systemUsage": usage("1")}, "podsMetric": pods});
            json!({"metadata": {"name": "n", "uid": "n", "resourceVersion": revision.to_string()}, "status": status})
                .to_string()
        };
        let mut cache = Cache::<MetricView>::default();
        let is_changed = |applied: Applied<MetricView>| matches!(applied, Applied::Changed(_));
        assert!(is_changed(cache.upsert(&metric(1, "2")).unwrap().1));
        let report = cache.get("n").unwrap().value.take().unwrap();
        let shown: Vec<(&str, String)> =
            report.pods.iter().map(|(key, usage)| (key.name(), usage.amount("cpu").to_string())).collect();
        assert_eq!(shown, [("a", "2".to_owned()), ("b", "0".to_owned())]);
        assert_eq!(
            (report.updated_ms, report.system.unwrap().amount("cpu").to_string()),
            (Some(60_000), "1".to_owned())
        );
        assert!(cache.get("n").unwrap().value.take().is_none());
        assert!(!is_changed(cache.upsert(&metric(2, "2")).unwrap().1));
        assert!(is_changed(cache.upsert(&metric(3, "3")).unwrap().1));
    }
}
