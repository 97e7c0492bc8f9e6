//! Caches of the cluster as one stream of deltas for the engine.

mod object;

use std::{any::TypeId, sync::Arc};

use koord_api::elastic_quota::ElasticQuota;
use koord_engine::{
    engine::{Engine, Reads},
    node::Node,
    object::Object,
    pod::Pod,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core, Watch,
    cache::{Change, Entry},
    changes::{ChangeSender, ChangeStream, changes},
    clock::Moment,
    key::ObjectKey,
    reflector::Selection,
    store::{Sink, Store},
    uid::Uid,
};

use self::object::{Kind, Whole};
use crate::view::{NodeView, PodView};

/// A change of the cluster.
#[derive(Clone, Debug)]
pub enum Delta {
    /// A node was added or changed.
    Node(Arc<Node>),
    /// A node is gone.
    NodeGone(Arc<str>),
    /// A pod was added or changed. Another of its name is gone where it had replaced that.
    Pod {
        /// As it is.
        pod: Arc<Pod>,
        /// The one that it has replaced.
        replaced: Option<Uid>,
    },
    /// A pod is gone, or has ended.
    PodGone(Uid),
    /// What there is of a pod's name now, after nobody knows which of its pods were told before.
    PodAgain {
        /// The namespace and name.
        key: ObjectKey,
        /// The pod; none that lives.
        pod: Option<Arc<Pod>>,
    },
    /// An object of another kind was added or changed.
    Object(Object),
    /// An object of this type is gone.
    ObjectGone(TypeId, ObjectKey),
}

/// The caches, and the stream of their changes.
pub struct Feed {
    pub(crate) pods: Arc<Store<PodView>>,
    pub(crate) nodes: Arc<Store<NodeView>>,
    others: Vec<Followed>,
    pub(crate) stream: ChangeStream<Delta>,
}

/// The cache of a kind that plugins read.
struct Followed {
    kind: ResourceKind,
    watches: Vec<Arc<Watch>>,
    all: Box<dyn Fn() -> Vec<Delta> + Send + Sync>,
}

/// Where the caches of the kinds that plugins read are made.
pub(crate) struct Caches<'c> {
    core: &'c mut Core,
    sender: ChangeSender<Delta>,
    reads: &'c Reads,
    followed: Vec<Followed>,
}

impl Caches<'_> {
    /// Follows a kind, if a plugin reads it.
    pub(crate) fn follow<T: Kind>(&mut self) {
        self.follow_some::<T>(&Selection::default());
    }

    /// Follows a part of a kind, if a plugin reads it.
    pub(crate) fn follow_some<T: Kind>(&mut self, selection: &Selection) {
        let kind = ResourceKind::typed::<T>();
        let Some(plugins) = self.reads.get(&kind) else { return };
        let plugins: Vec<&str> = plugins.iter().copied().collect();
        let store: Arc<Store<Whole<T>>> = self.core.store(selection);
        self.sender.follow(&store, |change: &Change<Whole<T>>| Some(object::delta(change)));
        let watches: Vec<Arc<Watch>> =
            self.core.watches().iter().filter(|watch| watch.kind == kind).map(Arc::clone).collect();
        // Plugins that read a kind which the API server does not serve have nothing to do.
        for watch in &watches {
            watch.set_optional(format!("plugin {}", plugins.join(", ")));
        }
        self.followed.push(Followed { kind, watches, all: Box::new(move || object::all(&store)) });
    }
}

impl Feed {
    /// Asks for the caches of nodes, pods and the kinds that plugins read. What they hold is part of the stream.
    pub fn of(core: &mut Core, reads: &Reads) -> Self {
        let (pods, nodes) = (core.store::<PodView>(&Selection::default()), core.store(&Selection::default()));
        let (sender, stream) = changes();
        sender.follow(&pods, |change: &Change<PodView>| of_pod(change));
        sender.follow(&nodes, |change: &Change<NodeView>| {
            Some(match &change.new {
                Some(entry) => Delta::Node(Arc::clone(&entry.value.0)),
                None => Delta::NodeGone(change.key.name().into()),
            })
        });
        let mut caches = Caches { core, sender, reads, followed: Vec::new() };
        object::follow(&mut caches);
        Self { pods, nodes, others: caches.followed, stream }
    }

    /// Brings an engine that knows nothing to where the caches are.
    pub fn fill(&self, engine: &mut Engine, now: Moment) {
        for delta in self.everything() {
            delta.apply(engine, now);
        }
    }

    /// All objects, as if they were new.
    fn everything(&self) -> Vec<Delta> {
        let (nodes, pods) = (self.nodes.read(), self.pods.read());
        let nodes = nodes.iter().map(|(_, entry)| Delta::Node(Arc::clone(&entry.value.0)));
        let others = self.others.iter().flat_map(|followed| (followed.all)());
        let living = pods.iter().filter(|(_, entry)| !entry.value.has_ended);
        let pods = living.map(|(key, entry)| Delta::Pod { pod: Arc::new(pod(key, entry)), replaced: None });
        nodes.chain(others).chain(pods).collect()
    }

    /// Whether all objects are known.
    pub fn is_complete(&self) -> bool {
        self.pods.synced() && self.nodes.synced() && self.watches().all(|watch| watch.is_complete())
    }

    /// Whether the API server has not this kind, which plugins can do without.
    pub(crate) fn is_absent(&self, kind: ResourceKind) -> bool {
        let watches =
            self.others.iter().filter(|followed| followed.kind == kind).flat_map(|followed| &followed.watches);
        watches.into_iter().any(|watch| watch.idle().is_some())
    }

    fn watches(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.others.iter().flat_map(|followed| &followed.watches)
    }
}

impl Delta {
    /// What it does to a quota; none where it is about something else.
    pub(crate) fn quota_operation(&self) -> Option<&'static str> {
        match self {
            Self::Object(object) => object.get::<ElasticQuota>().map(|_| "UpdateQuota"),
            Self::ObjectGone(type_, _) => (*type_ == TypeId::of::<ElasticQuota>()).then_some("DeleteQuota"),
            _ => None,
        }
    }

    /// Brings the engine to where the cluster is.
    pub fn apply(self, engine: &mut Engine, now: Moment) {
        match self {
            Self::Node(node) => engine.set_node(node, now),
            Self::NodeGone(name) => engine.remove_node(&name),
            Self::Pod { pod, replaced } => {
                if let Some(replaced) = replaced {
                    engine.remove_pod(&replaced, now);
                }
                engine.set_pod(pod, now);
            }
            Self::PodGone(uid) => engine.remove_pod(&uid, now),
            Self::PodAgain { key, pod } => {
                engine.remove_others(&key, pod.as_ref().map(|pod| &pod.uid), now);
                if let Some(pod) = pod {
                    engine.set_pod(pod, now);
                }
            }
            Self::Object(object) => engine.set_object(object, now),
            Self::ObjectGone(type_, key) => engine.remove_object(type_, key.as_str(), now),
        }
    }
}

fn of_pod(change: &Change<PodView>) -> Option<Delta> {
    let living = |entry: &&Entry<PodView>| !entry.value.has_ended;
    if change.again {
        let pod = change.new.as_ref().filter(living).map(|new| Arc::new(pod(&change.key, new)));
        return Some(Delta::PodAgain { key: change.key.clone(), pod });
    }
    let known = change.old.as_ref().filter(living).map(|old| &old.uid);
    match change.new.as_ref().filter(living) {
        Some(new) => {
            let replaced = known.filter(|known| **known != new.uid).cloned();
            Some(Delta::Pod { pod: Arc::new(pod(&change.key, new)), replaced })
        }
        None => known.cloned().map(Delta::PodGone),
    }
}

fn pod(key: &ObjectKey, entry: &Entry<PodView>) -> Pod {
    let view = &entry.value;
    Pod {
        key: key.clone(),
        uid: entry.uid.clone(),
        template: Arc::clone(&view.template),
        gates: view.gates.clone(),
        node: view.node.clone(),
        nominated: view.nominated.clone(),
        deleting: entry.deleting,
        ends: view.ends,
        is_preempted: view.is_preempted,
        given: view.given.clone(),
        generated_claims: view.generated_claims.clone(),
        created: view.created,
        started: view.started,
        scheduled: view.scheduled,
        initialized: view.initialized,
        controller: view.controller.clone(),
        is_running: view.is_running,
        is_ready: view.is_ready,
        reservation: None,
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;

    use super::*;

    fn entry(members: &str) -> Entry<PodView> {
        let mut cache = Cache::<PodView>::default();
        let metadata = r#"{"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1"}"#;
        cache.upsert(&format!(r#"{{"metadata": {metadata}, "spec": {{"containers": []}}, {members}}}"#)).unwrap();
        cache.get("ns/a").cloned().unwrap()
    }

    #[test]
    fn what_was_told_before_does_not_matter_where_nobody_knows_it() {
        let (living, ended) = (|| entry(r#""status": {}"#), || entry(r#""status": {"phase": "Failed"}"#));
        let delta = |old: Option<Entry<PodView>>, new, again| {
            of_pod(&Change { key: ObjectKey::new("ns", "a"), old, new: Some(new), again })
        };
        assert!(matches!(delta(Some(living()), ended(), false), Some(Delta::PodGone(_))));
        assert!(delta(None, ended(), false).is_none(), "nobody was told of it");
        assert!(matches!(delta(None, ended(), true), Some(Delta::PodAgain { pod: None, .. })));
        assert!(matches!(delta(None, living(), true), Some(Delta::PodAgain { pod: Some(_), .. })));
    }
}
