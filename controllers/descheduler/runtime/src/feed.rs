//! Caches of the cluster as one stream of changes for the framework's snapshot.

use std::{any::TypeId, sync::Arc};

use koord_descheduler_framework::{
    Cluster, Node, ObjectType, Pod, UsageReport,
    objects::{DisruptionBudget, Namespace, Object, PriorityClass, VolumeClaim},
};
use koord_descheduler_migration::{
    MigrationJob,
    workloads::{CloneSet, Deployment, KruiseStatefulSet, ReplicaSet, ReplicationController, StatefulSet, Workload},
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core, Watch,
    cache::Change,
    changes::{ChangeSender, ChangeStream, changes},
    key::ObjectKey,
    projection::Projection,
    reflector::Selection,
    store::Store,
};

use crate::view::{MetricView, NodeView, ObjectView, PodView};

/// Changes that are taken at a time.
pub(crate) const DELTAS_MAX: usize = 4096;

/// A change of the cluster.
#[derive(Debug)]
pub(crate) enum Delta {
    Node(Arc<Node>),
    NodeGone(ObjectKey),
    Pod(Arc<Pod>),
    PodGone(ObjectKey),
    Metric(ObjectKey, UsageReport),
    MetricGone(ObjectKey),
    Object(Object),
    ObjectGone(TypeId, ObjectKey),
}

/// The caches, and the stream of their changes.
pub struct Feed {
    pub(crate) stream: ChangeStream<Delta>,
    watches: Vec<Arc<Watch>>,
}

/// Where caches are made.
struct Caches<'c> {
    core: &'c mut Core,
    sender: ChangeSender<Delta>,
    watches: Vec<Arc<Watch>>,
    /// The kinds that are read now.
    reads: &'c [ResourceKind],
    /// Whether other kinds may be read later.
    defers: bool,
}

impl Caches<'_> {
    fn follow<P: Projection>(&mut self, delta: impl Fn(&Change<P>) -> Option<Delta> + Send + Sync + 'static) {
        let known = self.core.watches().len();
        let store: Arc<Store<P>> = self.core.store(&Selection::default());
        self.sender.follow(&store, delta);
        let is_of_kind = |watch: &&Arc<Watch>| watch.kind == P::KIND && watch.selection.fields.is_empty();
        self.watches.extend(self.core.watches().iter().filter(is_of_kind).map(Arc::clone));
        if !self.reads(P::KIND) {
            // One that was there before is needed by another part of the program.
            self.core.watches().iter().skip(known).for_each(|watch| watch.defer());
        }
    }

    fn reads(&self, kind: ResourceKind) -> bool {
        kind == ResourceKind::NODE || kind == ResourceKind::POD || self.reads.contains(&kind)
    }

    /// Follows objects of a type, if a plugin reads its kind. Plugins that read a kind which the API server does not serve find none.
    fn follow_objects<T: ObjectType>(&mut self) {
        if !self.defers && !self.reads(T::KIND) {
            return;
        }
        let before = self.watches.len();
        self.follow(|change: &Change<ObjectView<T>>| {
            Some(match &change.new {
                Some(entry) => Delta::Object(Object::new(
                    change.key.clone(),
                    entry.uid.clone(),
                    entry.deleting,
                    Arc::clone(&entry.value.0),
                )),
                None => Delta::ObjectGone(TypeId::of::<T>(), change.key.clone()),
            })
        });
        for watch in self.watches.iter().skip(before) {
            watch.set_optional("the part of the descheduler that reads it".to_owned());
        }
    }
}

impl Feed {
    /// Asks for the caches of nodes, pods and the kinds that plugins read.
    pub fn of(core: &mut Core, reads: &[ResourceKind]) -> Self {
        Self::caching(core, reads, false)
    }

    /// The same where plugins may read further kinds later.
    pub fn that_grows(core: &mut Core, reads: &[ResourceKind]) -> Self {
        Self::caching(core, reads, true)
    }

    fn caching(core: &mut Core, reads: &[ResourceKind], defers: bool) -> Self {
        let (sender, stream) = changes();
        let mut caches = Caches { core, sender, watches: Vec::new(), reads, defers };
        caches.follow(|change: &Change<NodeView>| {
            Some(match &change.new {
                Some(entry) => Delta::Node(Arc::clone(&entry.value.0)),
                None => Delta::NodeGone(change.key.clone()),
            })
        });
        caches.follow(|change: &Change<PodView>| {
            Some(match &change.new {
                Some(entry) => Delta::Pod(Arc::clone(&entry.value.0)),
                None => Delta::PodGone(change.key.clone()),
            })
        });
        if defers || caches.reads(MetricView::KIND) {
            caches.follow(|change: &Change<MetricView>| match &change.new {
                Some(entry) => Some(Delta::Metric(change.key.clone(), entry.value.take()?)),
                None => Some(Delta::MetricGone(change.key.clone())),
            });
        }
        caches.follow_objects::<Namespace>();
        caches.follow_objects::<DisruptionBudget>();
        caches.follow_objects::<VolumeClaim>();
        caches.follow_objects::<PriorityClass>();
        caches.follow_objects::<MigrationJob>();
        caches.follow_objects::<Workload<ReplicationController>>();
        caches.follow_objects::<Workload<Deployment>>();
        caches.follow_objects::<Workload<ReplicaSet>>();
        caches.follow_objects::<Workload<StatefulSet>>();
        caches.follow_objects::<Workload<CloneSet>>();
        caches.follow_objects::<Workload<KruiseStatefulSet>>();
        let Caches { watches, .. } = caches;
        Self { stream, watches }
    }

    /// Brings a snapshot to where the caches are.
    pub fn fill(&mut self, cluster: &mut Cluster) {
        while !self.catch_up(cluster, DELTAS_MAX) {}
    }

    /// Plugins read these kinds from now on.
    pub(crate) fn require(&self, reads: &[ResourceKind]) {
        self.watches.iter().filter(|watch| reads.contains(&watch.kind)).for_each(|watch| watch.begin());
    }

    /// Whether all objects of the kinds that are read are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.watches.iter().filter(|watch| !watch.is_deferred()).all(|watch| watch.is_complete())
    }

    /// Brings a snapshot to where the caches are, by up to a number of changes. Whether it is there.
    fn catch_up(&mut self, cluster: &mut Cluster, limit: usize) -> bool {
        for delta in self.stream.take(limit) {
            delta.apply(cluster);
        }
        self.stream.backlog() == 0
    }
}

impl Delta {
    pub(crate) fn apply(self, cluster: &mut Cluster) {
        match self {
            Self::Node(node) => cluster.set_node(node),
            Self::NodeGone(key) => cluster.remove_node(key.name()),
            Self::Pod(pod) => _ = cluster.set_pod(pod),
            Self::PodGone(key) => cluster.remove_pod(key.as_str()),
            Self::Metric(key, report) => cluster.set_metric(key.name(), report),
            Self::MetricGone(key) => cluster.remove_metric(key.name()),
            Self::Object(object) => cluster.set_object(object),
            Self::ObjectGone(type_, key) => cluster.remove_object(type_, key.as_str()),
        }
    }
}
