//! ReplicaSets keep their number of pods, as kube-controller-manager has them do: pods that are gone or have ended are replaced, those that are too many are
//! deleted.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::fleet::{PAUSE_AFTER_FAILURE, has_code};

/// Changes that wait for their turn; the watches are read no faster than they are dealt with.
const WAITING_MAX: usize = 1024;
/// What deleting a pod costs, compared with others of its ReplicaSet.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Keeps the pods of all ReplicaSets.
#[derive(Clone)]
pub struct ReplicaSets {
    client: Client,
}

/// What has come by a watch.
enum Seen {
    Set(Box<ReplicaSet>),
    SetGone(String),
    Pod(Box<Pod>),
    PodGone(Box<Pod>),
    /// All sets that a list has.
    Sets(Vec<ReplicaSet>),
    /// All pods that a list has.
    Pods(Vec<Pod>),
}

/// What is known of a pod of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    /// Those that are to be deleted first come first: without a node, not ready, cheap, new.
    is_bound: bool,
    is_ready: bool,
    cost: i32,
    age: std::cmp::Reverse<String>,
    name: String,
    uid: String,
}

/// The sets and their pods, by the uid of the set.
#[derive(Default)]
struct Known {
    sets: BTreeMap<String, ReplicaSet>,
    members: BTreeMap<String, BTreeMap<String, Member>>,
}

impl ReplicaSets {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Works for as long as it is polled.
    pub async fn run(self) {
        let (seen, mut waiting) = mpsc::channel(WAITING_MAX);
        let sets = follow::<ReplicaSet>(
            &self.client,
            &seen,
            Seen::Sets,
            |set| Seen::Set(Box::new(set)),
            |set| Seen::SetGone(set.uid().unwrap_or_default()),
        );
        let pods = follow::<Pod>(
            &self.client,
            &seen,
            Seen::Pods,
            |pod| Seen::Pod(Box::new(pod)),
            |pod| Seen::PodGone(Box::new(pod)),
        );
        let working = async {
            let mut known = Known::default();
            while let Some(first) = waiting.recv().await {
                let mut changed = known.note(first);
                while let Ok(more) = waiting.try_recv() {
                    changed.extend(known.note(more));
                }
                for uid in changed {
                    self.reconcile(&mut known, &uid).await;
                }
            }
        };
        tokio::select! { biased; () = sets => {}, () = pods => {}, () = working => {} }
    }

    /// Brings a set to its number of pods. What fails is tried again by the next change, or the next list.
    async fn reconcile(&self, known: &mut Known, uid: &str) {
        let Some(set) = known.sets.get(uid).cloned() else { return };
        let namespace = set.namespace().unwrap_or_default();
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let members = known.members.entry(uid.to_owned()).or_default();
        if set.metadata.deletion_timestamp.is_none() {
            let wanted = usize::try_from(set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)).unwrap_or(0);
            for _ in members.len()..wanted {
                let Ok(pod) = api.create(&PostParams::default(), &pod_of(&set)).await else { break };
                if let Some(member) = Member::of(&pod) {
                    members.insert(member.name.clone(), member);
                }
            }
            for member in first_to_go(members, wanted) {
                let preconditions = Preconditions { uid: Some(member.uid.clone()), resource_version: None };
                let deleted = api.delete(&member.name, &DeleteParams::default().preconditions(preconditions)).await;
                if deleted.is_ok() || deleted.is_err_and(|error| has_code(&error, 404)) {
                    members.remove(&member.name);
                }
            }
        }
        let status = status(&set, members);
        let is_new = serde_json::to_value(&set.status).ok().is_none_or(|known| !covers(&known, &status));
        if is_new {
            let api: Api<ReplicaSet> = Api::namespaced(self.client.clone(), &namespace);
            let patch = json!({"metadata": {"uid": uid}, "status": status});
            // The next change shows whether it was written.
            let _ = api.patch_status(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        }
    }
}

/// Follows a collection for as long as it is polled.
async fn follow<K>(
    client: &Client,
    seen: &mpsc::Sender<Seen>,
    all: fn(Vec<K>) -> Seen,
    changed: fn(K) -> Seen,
    gone: fn(K) -> Seen,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    loop {
        let once = async {
            let list = api.list(&ListParams::default()).await?;
            let version = list.metadata.resource_version.unwrap_or_default();
            // The receiver lives as long as this future.
            let _ = seen.send(all(list.items)).await;
            let mut events = api.watch(&WatchParams::default(), &version).await?.boxed();
            while let Some(event) = events.try_next().await? {
                let change = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => changed(object),
                    WatchEvent::Deleted(object) => gone(object),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(_) => break,
                };
                let _ = seen.send(change).await;
            }
            Ok::<(), kube::Error>(())
        };
        // Whether the watch ended, expired or failed: the next list shows everything.
        let _ = Box::pin(once).await;
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
}

impl Known {
    /// Takes in what has come. Gives the sets that may have something to do.
    fn note(&mut self, seen: Seen) -> BTreeSet<String> {
        match seen {
            Seen::Set(set) => {
                let uid = set.uid().unwrap_or_default();
                self.sets.insert(uid.clone(), *set);
                [uid].into()
            }
            Seen::SetGone(uid) => {
                self.sets.remove(&uid);
                self.members.remove(&uid);
                BTreeSet::new()
            }
            Seen::Pod(pod) => owner(&pod).map(|owner| self.note_pod(&owner, &pod, false)).into_iter().collect(),
            Seen::PodGone(pod) => owner(&pod).map(|owner| self.note_pod(&owner, &pod, true)).into_iter().collect(),
            Seen::Sets(sets) => {
                self.sets = sets.into_iter().map(|set| (set.uid().unwrap_or_default(), set)).collect();
                self.sets.keys().cloned().collect()
            }
            Seen::Pods(pods) => {
                self.members.clear();
                for pod in pods {
                    if let Some(owner) = owner(&pod) {
                        self.note_pod(&owner, &pod, false);
                    }
                }
                self.sets.keys().cloned().collect()
            }
        }
    }

    fn note_pod(&mut self, owner: &str, pod: &Pod, is_gone: bool) -> String {
        let members = self.members.entry(owner.to_owned()).or_default();
        match Member::of(pod).filter(|_| !is_gone) {
            Some(member) => _ = members.insert(member.name.clone(), member),
            None => _ = members.remove(&pod.name_any()),
        }
        owner.to_owned()
    }
}

impl Member {
    /// What is known of a pod; none where it is being deleted or has ended, and is to be replaced.
    fn of(pod: &Pod) -> Option<Self> {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() || matches!(phase, "Succeeded" | "Failed") {
            return None;
        }
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let is_ready = conditions.into_iter().flatten().any(|known| known.type_ == "Ready" && known.status == "True");
        let cost = pod.annotations().get(DELETION_COST).and_then(|text| text.parse().ok()).unwrap_or(0);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
        let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
        Some(Self { is_bound, is_ready, cost, age: std::cmp::Reverse(created), name, uid })
    }
}

/// The uid of the ReplicaSet that controls a pod.
fn owner(pod: &Pod) -> Option<String> {
    let is_ours = |reference: &&OwnerReference| reference.controller == Some(true) && reference.kind == "ReplicaSet";
    pod.owner_references().iter().find(is_ours).map(|reference| reference.uid.clone())
}

/// The pods that are too many.
fn first_to_go(members: &BTreeMap<String, Member>, wanted: usize) -> Vec<Member> {
    let mut members: Vec<Member> = members.values().cloned().collect();
    members.sort();
    let too_many = members.len().saturating_sub(wanted);
    members.truncate(too_many);
    members
}

fn pod_of(set: &ReplicaSet) -> Pod {
    let PodTemplateSpec { metadata, spec } =
        set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    let template = metadata.unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", set.name_any())),
            namespace: set.namespace(),
            labels: template.labels,
            annotations: template.annotations,
            finalizers: template.finalizers,
            owner_references: set.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

fn status(set: &ReplicaSet, members: &BTreeMap<String, Member>) -> Value {
    let ready = members.values().filter(|member| member.is_ready).count();
    json!({
        "replicas": members.len(), "fullyLabeledReplicas": members.len(),
        "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set.metadata.generation,
    })
}

/// Whether an object has these members already; what is 0 may be left out.
fn covers(known: &Value, wanted: &Value) -> bool {
    let members = wanted.as_object().into_iter().flatten();
    members
        .into_iter()
        .all(|(name, value)| known[name] == *value || known[name].is_null() && (*value == 0 || value.is_null()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, change: &Value) -> Pod {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set", "controller": true});
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "ownerReferences": [owner], "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "nodeName": "n1"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (part, members) in change.as_object().unwrap() {
            for (name, value) in members.as_object().unwrap() {
                pod[part][name] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    fn members(pods: &[Pod]) -> BTreeMap<String, Member> {
        pods.iter().filter_map(Member::of).map(|member| (member.name.clone(), member)).collect()
    }

    #[test]
    fn pods_that_are_deleted_or_have_ended_are_replaced() {
        for change in [
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:01Z"}}),
            json!({"status": {"phase": "Failed"}}),
            json!({"status": {"phase": "Succeeded"}}),
        ] {
            assert_eq!(Member::of(&pod("a", &change)), None, "{change}");
        }
        let mut known = Known::default();
        assert_eq!(known.note(Seen::Pod(Box::new(pod("a", &json!({}))))), ["set".to_owned()].into());
        assert_eq!(known.members["set"].len(), 1);
        known.note(Seen::PodGone(Box::new(pod("a", &json!({})))));
        assert!(known.members["set"].is_empty());
    }

    #[test]
    fn pods_without_a_node_go_first_then_those_not_ready_then_cheap_ones_then_new_ones() {
        let pods = [
            pod("old", &json!({})),
            pod("new", &json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}})),
            pod("cheap", &json!({"metadata": {"annotations": {DELETION_COST: "-1"}}})),
            pod("unready", &json!({"status": {"conditions": []}})),
            pod("waiting", &json!({"spec": {"nodeName": null}, "status": {"conditions": []}})),
        ];
        let names: Vec<String> = first_to_go(&members(&pods), 0).into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["waiting", "unready", "cheap", "new", "old"]);
        assert_eq!(first_to_go(&members(&pods), 4).len(), 1);
        assert_eq!(first_to_go(&members(&pods), 9), []);
    }

    #[test]
    fn a_pod_is_made_of_the_template_and_belongs_to_the_set() {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "set", "generation": 3},
            "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        }))
        .unwrap();
        let pod = pod_of(&set);
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
        assert_eq!((owner(&pod).as_deref(), pod.labels()["app"].as_str()), (Some("set"), "web"));
        let wanted = status(&set, &BTreeMap::new());
        assert!(covers(&json!({"replicas": 0, "observedGeneration": 3}), &wanted));
        assert!(!covers(&json!({"replicas": 1, "observedGeneration": 3}), &wanted));
    }
}
