//! The workloads of pods: how many replicas they are to have, and which pods are theirs.

use std::{cell::OnceCell, collections::BTreeMap, marker::PhantomData, rc::Rc, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_descheduler_framework::{
    ByClass, Cluster, ObjectType, Pod, PodId, SnapshotError, objects::Object, pod::Owner,
};
use koord_resource::controller::ResourceKind;
use serde::Deserialize;
use serde_json::Value;

/// A kind of workloads.
pub trait WorkloadKind: Clone + std::fmt::Debug + Default + PartialEq + Send + Sync + 'static {
    const KIND: ResourceKind;
}

/// A workload of some kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload<K> {
    pub uid: Uid,
    /// How many pods it is to have.
    pub replicas: i32,
    /// The Deployment that controls it: where it does, that one is the workload.
    pub deployment: Option<(ObjectKey, Uid)>,
    kind: PhantomData<K>,
}

macro_rules! kinds {
    ($($name:ident: $group:literal, $version:literal, $kind:literal, $plural:literal;)*) => {
        $(
            #[doc = concat!("`", $kind, "` of the group `", $group, "`.")]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name;

            impl WorkloadKind for $name {
                const KIND: ResourceKind =
                    ResourceKind { group: $group, version: $version, kind: $kind, plural: $plural, namespaced: true };
            }
        )*

        /// All kinds of workloads that are watched.
        pub const WORKLOAD_KINDS: &[ResourceKind] = &[$($name::KIND),*];

        /// Adds a workload of a kind that is watched to a snapshot, or replaces it. Whether it is of such a kind.
        ///
        /// # Errors
        ///
        /// The object has not the form of its kind.
        pub fn set_workload(cluster: &mut Cluster, object: &Value) -> Result<bool, SnapshotError> {
            let text = |name: &str| object[name].as_str().unwrap_or_default();
            let (group, kind) = (group_of(text("apiVersion")), text("kind"));
            $(
                if (group, kind) == ($group, $kind) {
                    return cluster.set_json::<Workload<$name>>(object).map(|()| true);
                }
            )*
            Ok(false)
        }

        /// The replicas and the Deployment of the workload of a kind, name and uid.
        fn find<'a>(cluster: &'a Cluster, kind: (&str, &str), key: &str, uid: &Uid) -> Found<'a> {
            $(
                if kind == ($group, $kind) {
                    return match cluster.objects().get::<Workload<$name>>(key) {
                        Some(workload) if workload.uid == *uid => {
                            Found::Workload(workload.replicas, workload.deployment.as_ref())
                        }
                        _ => Found::Nothing,
                    };
                }
            )*
            Found::OtherKind
        }
    };
}

/// What is found under the name of a controller.
enum Found<'a> {
    /// Its replicas, and the Deployment that controls it.
    Workload(i32, Option<&'a (ObjectKey, Uid)>),
    Nothing,
    /// Its kind is not watched.
    OtherKind,
}

kinds! {
    ReplicationController: "", "v1", "ReplicationController", "replicationcontrollers";
    Deployment: "apps", "v1", "Deployment", "deployments";
    ReplicaSet: "apps", "v1", "ReplicaSet", "replicasets";
    StatefulSet: "apps", "v1", "StatefulSet", "statefulsets";
    CloneSet: "apps.kruise.io", "v1alpha1", "CloneSet", "clonesets";
    KruiseStatefulSet: "apps.kruise.io", "v1beta1", "StatefulSet", "statefulsets";
}

/// A workload as its API has it, as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ApiWorkload {
    metadata: ObjectMeta,
    spec: ApiSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ApiSpec {
    replicas: Option<i32>,
}

/// What the scale subresource of a controller of any other kind says. The snapshot has it under the uid of the controller; see [`Scale::object`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// `spec.replicas`.
    Replicas(i32),
    /// The controller does not exist or has another uid, or its kind has no such subresource: `NotFound`.
    NotFound,
    /// Any other error, such as an API that is not served.
    Failed,
}

/// Why the workload of a pod is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The controller does not exist, another has its name, or its kind cannot be scaled.
    Missing,
    /// It is of a kind that is not watched, and its scale subresource cannot be read.
    LookupFailed,
    /// It is of a kind that is not watched, and its scale subresource was not read yet.
    NotLookedUp,
}

/// The workload of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownWorkload {
    /// That of the Deployment, where a ReplicaSet is controlled by one.
    pub uid: Uid,
    /// How many pods it is to have.
    pub replicas: i32,
    /// How many of its pods are not available.
    pub(crate) unavailable: usize,
}

/// What is known of the workload of a pod.
pub type Resolution = Result<KnownWorkload, Unresolved>;

/// The workloads of one snapshot. Each is looked up when one of its pods is asked for, and once for all of them.
pub struct Workloads<'a> {
    cluster: &'a Cluster,
    /// The ReplicaSets of each Deployment.
    replica_sets: OnceCell<BTreeMap<&'a Uid, Vec<&'a Uid>>>,
    resolved: ByClass<Option<Rc<Resolution>>>,
}

impl Scale {
    /// As an object of a snapshot, for a controller with this uid.
    pub fn object(self, controller: &Uid) -> Object {
        let key = ObjectKey::cluster(&controller.to_string());
        Object::new(key, controller.clone(), false, Arc::new(self))
    }
}

impl<K: WorkloadKind> ObjectType for Workload<K> {
    const KIND: ResourceKind = K::KIND;
    type Api = ApiWorkload;

    fn of(object: &Self::Api) -> Self {
        let metadata = &object.metadata;
        let owners = metadata.owner_references.iter().flatten();
        let deployment = owners.filter(|owner| owner.controller == Some(true)).find(|owner| {
            owner.kind == Deployment::KIND.kind && group_of(&owner.api_version) == Deployment::KIND.group
        });
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Self {
            uid: Uid::from(metadata.uid.as_deref().unwrap_or_default()),
            replicas: object.spec.replicas.unwrap_or(1),
            deployment: deployment.map(|owner| (ObjectKey::new(namespace, &owner.name), Uid::from(&*owner.uid))),
            kind: PhantomData,
        }
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl<'a> Workloads<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, replica_sets: OnceCell::new(), resolved: ByClass::default() }
    }

    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The workload of a pod of the snapshot; `None` for a pod that no object controls.
    pub fn of(&self, id: PodId, pod: &Pod) -> Option<Rc<Resolution>> {
        self.resolved.of(self.cluster, id, || Some(Rc::new(self.resolve(pod.namespace(), pod.controller()?))))
    }

    fn resolve(&self, namespace: &str, owner: &Owner) -> Resolution {
        let (uid, replicas) = expected_replicas(self.cluster, namespace, owner)?;
        let unavailable = self.unavailable(&uid);
        Ok(KnownWorkload { uid, replicas, unavailable })
    }

    /// How many pods of a workload are not available, those that have ended too. Those of a Deployment are the pods of its ReplicaSets.
    fn unavailable(&self, workload: &Uid) -> usize {
        let replica_sets = self.replica_sets.get_or_init(|| replica_sets(self.cluster));
        let replica_sets = replica_sets.get(workload).into_iter().flatten().copied();
        std::iter::once(workload).chain(replica_sets).map(|uid| self.cluster.unavailable_pods_of(uid)).sum()
    }
}

fn replica_sets(cluster: &Cluster) -> BTreeMap<&Uid, Vec<&Uid>> {
    let mut replica_sets = BTreeMap::<&Uid, Vec<&Uid>>::new();
    for (_, replica_set) in cluster.objects().of::<Workload<ReplicaSet>>() {
        if let Some((_, deployment)) = &replica_set.deployment {
            replica_sets.entry(deployment).or_default().push(&replica_set.uid);
        }
    }
    replica_sets
}

/// The workload of a controller, and how many pods it is to have.
pub(crate) fn expected_replicas(
    cluster: &Cluster,
    namespace: &str,
    controller: &Owner,
) -> Result<(Uid, i32), Unresolved> {
    let objects = cluster.objects();
    let key = ObjectKey::new(namespace, &controller.name);
    let kind = (group_of(&controller.api_version), &*controller.kind);
    match find(cluster, kind, key.as_str(), &controller.uid) {
        Found::Workload(replicas, None) => Ok((controller.uid.clone(), replicas)),
        Found::Workload(_, Some((deployment, uid))) => {
            let deployment = objects.get::<Workload<Deployment>>(deployment.as_str());
            let deployment = deployment.filter(|deployment| deployment.uid == *uid).ok_or(Unresolved::Missing)?;
            Ok((uid.clone(), deployment.replicas))
        }
        Found::Nothing => Err(Unresolved::Missing),
        Found::OtherKind => match objects.get::<Scale>(&controller.uid.to_string()) {
            Some(Scale::Replicas(replicas)) => Ok((controller.uid.clone(), *replicas)),
            Some(Scale::NotFound) => Err(Unresolved::Missing),
            Some(Scale::Failed) => Err(Unresolved::LookupFailed),
            // A batch Job has no such subresource.
            None if kind.0 == "batch" => Err(Unresolved::Missing),
            None => Err(Unresolved::NotLookedUp),
        },
    }
}

/// The controllers of pods whose scale subresource is not known and would be of use, each with the namespace of its pods.
pub fn controllers_to_look_up(cluster: &Cluster) -> BTreeMap<Uid, (String, Arc<Owner>)> {
    let is_wanted = |owner: &Owner| {
        let group = group_of(&owner.api_version);
        let is_watched = WORKLOAD_KINDS.iter().any(|kind| (kind.group, kind.kind) == (group, &*owner.kind));
        // Pods of these kinds are never evicted, or cannot be scaled.
        let is_useless = group == "batch" || matches!(&*owner.kind, "DaemonSet" | "Node");
        !is_watched && !is_useless && cluster.objects().get::<Scale>(&owner.uid.to_string()).is_none()
    };
    let mut controllers = BTreeMap::new();
    for uid in cluster.owners() {
        let as_controller = |(_, pod): (_, &Arc<Pod>)| {
            let first = pod.owners.iter().find(|reference| reference.is_controller)?;
            (first.owner.uid == *uid).then(|| (pod.namespace().to_owned(), Arc::clone(&first.owner)))
        };
        if let Some((namespace, owner)) =
            cluster.pods_of(uid).find_map(as_controller).filter(|(_, owner)| is_wanted(owner))
        {
            controllers.insert(uid.clone(), (namespace, owner));
        }
    }
    controllers
}

#[cfg(test)]
mod tests;
