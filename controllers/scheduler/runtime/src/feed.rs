//! Caches of the cluster as one stream of deltas for the engine.

use std::sync::Arc;

use koord_engine::{engine::Engine, node::Node, pod::Pod};
use koord_runtime::{
    Core,
    cache::{Change, Entry},
    changes::{ChangeStream, changes},
    clock::Moment,
    key::ObjectKey,
    reflector::Selection,
    store::{Sink, Store},
    uid::Uid,
};

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
}

/// The caches, and the stream of their changes.
pub struct Feed {
    pub(crate) pods: Arc<Store<PodView>>,
    nodes: Arc<Store<NodeView>>,
    pub(crate) stream: ChangeStream<Delta>,
}

impl Feed {
    /// Asks for the caches. What they hold is part of the stream.
    pub fn of(core: &mut Core) -> Self {
        let (pods, nodes) = (core.store::<PodView>(&Selection::default()), core.store(&Selection::default()));
        let (sender, stream) = changes();
        sender.follow(&pods, |change: &Change<PodView>| of_pod(change));
        sender.follow(&nodes, |change: &Change<NodeView>| {
            Some(match &change.new {
                Some(entry) => Delta::Node(Arc::clone(&entry.value.0)),
                None => Delta::NodeGone(change.key.name().into()),
            })
        });
        Self { pods, nodes, stream }
    }

    /// All objects, as if they were new.
    pub(crate) fn everything(&self) -> Vec<Delta> {
        let (nodes, pods) = (self.nodes.read(), self.pods.read());
        let nodes = nodes.iter().map(|(_, entry)| Delta::Node(Arc::clone(&entry.value.0)));
        let living = pods.iter().filter(|(_, entry)| !entry.value.has_ended);
        nodes.chain(living.map(|(key, entry)| Delta::Pod { pod: Arc::new(pod(key, entry)), replaced: None })).collect()
    }

    /// Whether all objects are known.
    pub fn is_complete(&self) -> bool {
        self.pods.synced() && self.nodes.synced()
    }
}

impl Delta {
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
        }
    }
}

fn of_pod(change: &Change<PodView>) -> Option<Delta> {
    let living = |entry: &&Entry<PodView>| !entry.value.has_ended;
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
        deleting: entry.deleting,
    }
}
