//! What is kept of pods and nodes: what the engine knows of them.

mod made_of;
mod node;
mod wire;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use koord_resource::{Time, controller::ResourceKind};
use koord_runtime::{
    intern::{Interner, Kept},
    key::ObjectKey,
    projection::{DecodeError, Projection, Text, WireObject},
    uid::Uid,
};
use koord_scheduler_framework::{
    dynamic::GeneratedClaim,
    labels::Labels,
    pod::{FurtherOwner, Owner, Pod},
    template::{is_given, is_wish},
    workload::Controller,
};
use koord_types::reservation_protocol::OPERATING_MODE;
use serde_json::value::RawValue;

use self::{made_of::MadeOf, wire::Status};
pub(crate) use self::{node::NodeView, wire::PodMembers};
use crate::transform::Transformers;

/// A pod: what the engine knows of it, and what a status says beside that.
#[derive(Debug)]
pub(crate) struct PodView {
    pub(crate) pod: Arc<Pod>,
    pub(crate) life: Life,
    /// Counts changes of its spec; 0 where the API server does not.
    pub(crate) generation: i64,
}

/// Whether a pod uses anything.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It waits or runs.
    Living {
        /// The message of the condition `PodScheduled`, while it is `False`.
        unscheduled: Option<Arc<str>>,
    },
    /// It has succeeded or failed: it uses nothing any more.
    Ended {
        /// The resource whose lack is why its node has rejected it.
        lacked: Option<Arc<str>>,
    },
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
        let (metadata, PodMembers { spec, status }) = (wire.metadata, wire.members);
        let annotations = texts(metadata.annotations, "metadata.annotations")?;
        let mut owners = owners(metadata.owner_references)?;
        let is_of_daemon_set = owners.iter().any(|owner| owner.kind == "DaemonSet");
        let controls = owners.iter().position(|owner| owner.controller == Some(true));
        let owner = controls.map(|at| owners.remove(at));
        let made_of = MadeOf {
            namespace: &metadata.namespace,
            controller: owner.as_ref().and_then(spreading_controller),
            labels: metadata.labels,
            annotations: annotations.iter().filter(|(key, _)| is_wish(key)).map(|(k, v)| (&**k, &**v)).collect(),
            spec: &spec,
        };
        let template = made_of.template(&status, strings, transformers)?;
        let evicted = status.condition("DisruptionTarget", "True").and_then(|known| known.reason.as_deref());
        let gates = spec.scheduling_gates.iter().flatten().map(|gate| strings.intern(&gate.name));
        let since = |condition: &str| {
            let known = status.condition(condition, "True")?;
            known.last_transition_time.as_deref().and_then(seconds)
        };
        let is_ready =
            template.labels.get(OPERATING_MODE.name()).is_some() && status.condition("Ready", "True").is_some();
        let claims = status.resource_claim_statuses.map(|raw| serde_json::from_str::<Vec<_>>(raw.get())).transpose();
        let claims = claims.map_err(|error| DecodeError::new("status.resourceClaimStatuses", error))?;
        let pod = Pod {
            gates: gates.collect(),
            template,
            node: named(spec.node_name.as_ref(), strings),
            nominated: named(status.nominated_node_name.as_ref(), strings),
            deleting: metadata.deletion_timestamp.is_some(),
            ends: metadata
                .deletion_timestamp
                .and_then(|text| serde_json::from_str::<&str>(text.get()).ok().and_then(seconds)),
            is_preempted: evicted == Some("PreemptionByScheduler"),
            given: annotations.iter().filter(|(key, _)| is_given(key)).map(|(key, value)| (&**key, &**value)).collect(),
            generated_claims: GeneratedClaim::of(&claims.unwrap_or_default()),
            created: metadata.creation_timestamp.as_deref().and_then(seconds).unwrap_or_default(),
            started: status.start_time.as_deref().and_then(seconds),
            scheduled: since("PodScheduled"),
            initialized: since("Initialized"),
            controller: owner.map(|owner| shared_owner(&owner, strings)),
            further_owners: owners.iter().map(|owner| further_owner(owner, strings)).collect(),
            is_of_daemon_set,
            is_running: status.phase == "Running",
            is_ready,
            ..Pod::default()
        };
        Ok(Self { pod: Arc::new(pod), life: Life::of(&status, strings), generation: metadata.generation })
    }

    /// Whether it uses nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.life, Life::Ended { .. })
    }

    /// What its condition says of why it has no node.
    pub(crate) fn unscheduled(&self) -> Option<&Arc<str>> {
        match &self.life {
            Life::Living { unscheduled } => unscheduled.as_ref(),
            Life::Ended { .. } => None,
        }
    }
}

impl Life {
    fn of(status: &Status<'_>, strings: &mut Interner) -> Self {
        match &*status.phase {
            "Succeeded" => Self::Ended { lacked: None },
            "Failed" => {
                let lacked = status.reason.as_deref().and_then(|reason| reason.strip_prefix("OutOf"));
                Self::Ended { lacked: lacked.filter(|name| !name.is_empty()).map(|name| strings.intern(name)) }
            }
            _ => {
                let unscheduled = status.condition("PodScheduled", "False");
                let message = unscheduled.map(|known| known.message.as_deref().unwrap_or_default().into());
                Self::Living { unscheduled: message }
            }
        }
    }
}

impl PartialEq for PodView {
    fn eq(&self, other: &Self) -> bool {
        self.life == other.life && self.generation == other.generation && self.pod == other.pod
    }
}

fn named(node: Option<&Text<'_>>, strings: &mut Interner) -> Option<Arc<str>> {
    node.filter(|node| !node.is_empty()).map(|node| strings.intern(node))
}

/// All owners of the object.
fn owners(owners: Option<&RawValue>) -> Result<Vec<wire::Owner<'_>>, DecodeError> {
    let Some(owners) = owners else { return Ok(Vec::new()) };
    serde_json::from_str(owners.get()).map_err(|error| DecodeError::new("metadata.ownerReferences", error))
}

fn spreading_controller(owner: &wire::Owner<'_>) -> Option<Controller> {
    Controller::of(&owner.api_version, &owner.kind, &owner.name)
}

fn further_owner(owner: &wire::Owner<'_>, strings: &mut Interner) -> FurtherOwner {
    FurtherOwner { owner: shared_owner(owner, strings), controller: owner.controller }
}

/// All pods of an owner share what is known of it.
fn shared_owner(owner: &wire::Owner<'_>, strings: &mut Interner) -> Arc<Owner> {
    let uid = Uid::from(&*owner.uid);
    let is_same = |known: &&Arc<Owner>| {
        (&*known.api_version, &*known.kind, &*known.name) == (&*owner.api_version, &*owner.kind, &*owner.name)
    };
    let owners = strings.own::<Kept<Uid, Owner>>();
    if let Some(known) = owners.find(&uid).filter(is_same) {
        return Arc::clone(known);
    }
    let (api_version, kind, name) = (&*owner.api_version, &*owner.kind, &*owner.name);
    let new = Owner { api_version: api_version.into(), kind: kind.into(), name: name.into(), uid: uid.clone() };
    owners.keep(uid, new)
}

/// Seconds since 1970.
fn seconds(time: &str) -> Option<i64> {
    time.parse::<Time>().ok().map(|time| time.at().as_second())
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
    fn all_owners_of_a_pod_are_known_and_shared_with_other_pods() {
        let store = Store::<PodViewBy<0>>::default();
        let owner = |name: &str, controller: &Value| {
            let mut owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name});
            if !controller.is_null() {
                owner["controller"] = controller.clone();
            }
            owner
        };
        for name in ["a", "b"] {
            let owners = [owner("x", &Value::Null), owner("y", &json!(true)), owner("z", &json!(false))];
            let metadata = json!({
                "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "ownerReferences": owners,
            });
            store.upsert(&json!({"metadata": metadata, "spec": {"containers": []}}).to_string()).unwrap();
        }
        let cache = store.read();
        let [a, b] = ["ns/a", "ns/b"].map(|key| &cache.get(key).unwrap().value.0.pod);
        let shown: Vec<(&str, Option<bool>)> = a.owners().map(|(owner, controls)| (&*owner.name, controls)).collect();
        assert_eq!(shown, [("y", Some(true)), ("x", None), ("z", Some(false))]);
        assert!(a.owners().zip(b.owners()).all(|((one, _), (other, _))| std::ptr::eq(one, other)));
    }

    #[test]
    fn a_pod_is_of_a_daemon_set_whichever_of_its_owners_that_is() {
        let is_of_daemon_set = |owners: &Value| {
            let metadata =
                json!({"name": "a", "namespace": "ns", "uid": "a", "resourceVersion": "1", "ownerReferences": owners});
            let store = Store::<PodViewBy<0>>::default();
            store.upsert(&json!({"metadata": metadata, "spec": {"containers": []}}).to_string()).unwrap();
            store.read().get("ns/a").unwrap().value.0.pod.is_of_daemon_set
        };
        let owner = |kind: &str, controls: &Value| {
            let mut owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": kind, "uid": kind});
            if !controls.is_null() {
                owner["controller"] = controls.clone();
            }
            owner
        };
        let (set, other) = (owner("ReplicaSet", &json!(true)), owner("DaemonSet", &Value::Null));
        assert!(is_of_daemon_set(&json!([owner("DaemonSet", &json!(true))])));
        assert!(is_of_daemon_set(&json!([set, other])), "another owner controls it");
        assert!(!is_of_daemon_set(&json!([owner("ReplicaSet", &json!(true))])) && !is_of_daemon_set(&Value::Null));
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
