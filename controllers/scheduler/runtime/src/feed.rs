//! Caches of the cluster as one stream of deltas for the engine.

pub(crate) mod object;
mod pods;
mod shown;

use std::{any::TypeId, sync::Arc};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core, Watch,
    cache::Change,
    changes::{ChangeSender, ChangeStream, changes},
    clock::{Moment, SharedClock},
    key::ObjectKey,
    reflector::Selection,
    store::{Sink, Store},
    uid::Uid,
};
use koord_scheduler_engine::{Engine, Reads};
use koord_scheduler_framework::{node::Node, object::Object, pod::Pod};
use koord_types::elastic_quota::ElasticQuota;

use self::object::{Kind, Whole};
pub(crate) use self::pods::{PodStatus, Pods};
pub(crate) use self::shown::Objects;
use crate::{extender::Webhook, transform::Transformers, view::NodeView};

/// Changes that are taken at a time.
const DELTAS_MAX: usize = 4096;

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
    /// The node of a pod has rejected it because it lacks a resource, and it has failed.
    PodRejected {
        uid: Uid,
        /// Such as `cpu`.
        resource: Arc<str>,
    },
    /// The pods of a name now, when it is unknown which of them were reported before.
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
    pub(crate) pods: Arc<Pods>,
    pub(crate) nodes: Arc<Store<NodeView>>,
    nodes_watches: Vec<Arc<Watch>>,
    others: Vec<Followed>,
    pub(crate) objects: Option<Objects>,
    pub(crate) stream: ChangeStream<Delta>,
}

/// The caches as they are compared with the API server, independent of the stream of their changes.
pub(crate) struct Watched {
    pub(crate) pods: Arc<Pods>,
    /// What feeds all caches.
    pub(crate) watches: Vec<Arc<Watch>>,
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
    /// Follows a kind, if a plugin reads it: all of its objects, or those that are named.
    pub(crate) fn follow<T: Kind>(&mut self) {
        let Some(names) = self.reads.only.get(&ResourceKind::typed::<T>()) else {
            return self.follow_some::<T>(&Selection::default());
        };
        for name in names {
            self.follow_some::<T>(&Selection { fields: format!("metadata.name={name}"), ..Selection::default() });
        }
    }

    fn follow_some<T: Kind>(&mut self, selection: &Selection) {
        let kind = ResourceKind::typed::<T>();
        let Some(plugins) = self.reads.kinds.get(&kind) else { return };
        let plugins: Vec<&str> = plugins.iter().copied().collect();
        let store: Arc<Store<Whole<T>>> = self.core.store(selection);
        self.sender.follow(&store, |change: &Change<Whole<T>>| Some(object::delta(change)));
        let watches: Vec<Arc<Watch>> = self
            .core
            .watches()
            .iter()
            .filter(|watch| watch.kind == kind && watch.selection.fields == selection.fields)
            .map(Arc::clone)
            .collect();
        // Plugins that read a kind which the API server does not serve have nothing to do.
        for watch in &watches {
            watch.set_optional(format!("plugin {}", plugins.join(", ")));
            watch.set_versions(object::further_versions(kind));
        }
        self.followed.push(Followed { kind, watches, all: Box::new(move || object::all(&store)) });
    }
}

impl Feed {
    /// Asks for the caches of nodes, pods and the kinds that plugins read. What they hold is part of the stream.
    pub fn of(core: &mut Core, reads: &Reads) -> Self {
        Self::transforming(core, reads, Transformers::default())
    }

    /// The same, with pods as these transformers make them.
    pub fn transforming(core: &mut Core, reads: &Reads, transformers: Transformers) -> Self {
        let (sender, stream) = changes();
        let pods = Arc::new(Pods::of(core, &sender, transformers));
        let nodes = core.store(&Selection::default());
        sender.follow(&nodes, |change: &Change<NodeView>| {
            Some(match &change.new {
                Some(entry) => Delta::Node(Arc::clone(&entry.value.0)),
                None => Delta::NodeGone(change.key.name().into()),
            })
        });
        let is_of_nodes = |watch: &&Arc<Watch>| watch.kind == ResourceKind::NODE && watch.selection.fields.is_empty();
        let nodes_watches = core.watches().iter().filter(is_of_nodes).map(Arc::clone).collect();
        let mut caches = Caches { core, sender, reads, followed: Vec::new() };
        object::follow(&mut caches);
        Self { pods, nodes, nodes_watches, others: caches.followed, objects: None, stream }
    }

    /// Keeps whole pods too, and whole nodes where these webhooks do not know them.
    pub fn keep_objects(&mut self, core: &mut Core, webhooks: &[Webhook]) {
        if !webhooks.is_empty() {
            self.objects = Some(Objects::of(core, webhooks.iter().any(|webhook| !webhook.knows_objects)));
        }
    }

    /// Brings an engine that knows nothing to where the caches are.
    pub fn fill(&self, engine: &mut Engine, now: Moment) {
        for delta in self.everything() {
            delta.apply(engine, now);
        }
    }

    /// Waits for changes, and brings an engine there that knows what came before.
    pub async fn follow(&mut self, engine: &mut Engine, clock: &SharedClock) {
        let deltas = self.stream.next(DELTAS_MAX).await;
        apply(deltas, engine, clock.moment());
    }

    /// Brings an engine that knows what came before to where the caches are.
    pub fn catch_up(&mut self, engine: &mut Engine, now: Moment) {
        loop {
            apply(self.stream.take(DELTAS_MAX), engine, now);
            if self.stream.backlog() == 0 {
                return;
            }
        }
    }

    /// A kind of these that may not be watched, and what helps.
    pub fn forbidden(&self) -> Option<String> {
        self.watches().find_map(|watch| Some(format!("{}: {}", watch.kind.kind, watch.forbidden()?)))
    }

    /// All objects, as if they were new.
    fn everything(&self) -> Vec<Delta> {
        let nodes = self.nodes.read();
        let nodes = nodes.iter().map(|(_, entry)| Delta::Node(Arc::clone(&entry.value.0)));
        let others = self.others.iter().flat_map(|followed| (followed.all)());
        nodes.chain(others).chain((self.pods.all)()).collect()
    }

    /// Whether all objects are known.
    pub fn is_complete(&self) -> bool {
        let are_objects = self.objects.as_ref().is_none_or(Objects::is_complete);
        (self.pods.are_complete)()
            && self.nodes.synced()
            && are_objects
            && self.watches().all(|watch| watch.is_complete())
    }

    /// Whether the API server has not this kind, which plugins can do without.
    pub(crate) fn is_absent(&self, kind: ResourceKind) -> bool {
        let watches =
            self.others.iter().filter(|followed| followed.kind == kind).flat_map(|followed| &followed.watches);
        watches.into_iter().any(|watch| watch.idle().is_some())
    }

    /// The kind in the version in which the API server serves it.
    pub(crate) fn served(&self, kind: ResourceKind) -> ResourceKind {
        self.watches().find(|watch| watch.kind == kind).map_or(kind, |watch| watch.asked())
    }

    /// The caches without the stream.
    pub(crate) fn watched(&self) -> Watched {
        let watches = self.pods.watches.iter().chain(&self.nodes_watches).chain(self.watches());
        Watched { pods: Arc::clone(&self.pods), watches: watches.map(Arc::clone).collect() }
    }

    fn watches(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.others.iter().flat_map(|followed| &followed.watches)
    }
}

fn apply(deltas: Vec<Delta>, engine: &mut Engine, now: Moment) {
    for delta in deltas {
        delta.apply(engine, now);
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
            Self::NodeGone(name) => engine.remove_node(&name, now),
            Self::Pod { pod, replaced } => {
                if let Some(replaced) = replaced {
                    engine.remove_pod(&replaced, now);
                }
                engine.set_pod(pod, now);
            }
            Self::PodGone(uid) => engine.remove_pod(&uid, now),
            Self::PodRejected { uid, resource } => engine.reject_pod(&uid, &resource, now),
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
