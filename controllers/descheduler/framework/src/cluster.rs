//! The snapshot: nodes, pods and objects, kept up to date by their changes.

mod by_class;
mod by_label;
mod classes;
mod owned;

use std::{any::TypeId, collections::BTreeMap, sync::Arc};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::labels::Labels;
use koord_scheduling::{ResourceNames, ResourceVector};

pub use self::by_class::ByClass;
use self::{
    by_label::NodesByLabel,
    classes::{ClassId, Classes},
    owned::Owners,
};
use crate::{
    metric::{NodeMetric, UsageReport},
    node::Node,
    objects::{Object, Objects},
    pod::{Pod, Template},
};

/// The number of a node in a [`Cluster`]. It is not given to another while anything of the node is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// The number of a pod in a [`Cluster`]. It may be given to another when the pod is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId(u32);

/// All that plugins see. Nodes come in the order of their names, and the pods of a node in the order of their namespaces and names.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    resources: ResourceNames,
    classes: Classes,
    nodes: Vec<NodeSlot>,
    free_nodes: Vec<NodeId>,
    node_ids: BTreeMap<Arc<str>, NodeId>,
    by_label: NodesByLabel,
    pods: Vec<Option<PodSlot>>,
    free_pods: Vec<PodId>,
    pod_ids: BTreeMap<ObjectKey, PodId>,
    owners: Owners,
    objects: Objects,
}

/// What is known under the name of a node: a pod or a NodeMetric may be known before it.
#[derive(Clone, Debug, Default)]
struct NodeSlot {
    name: Arc<str>,
    node: Option<Arc<Node>>,
    allocatable: ResourceVector,
    /// What its active pods request.
    requested: ResourceVector,
    active: usize,
    pods: Vec<PodId>,
    /// Shared with copies of the snapshot.
    metric: Option<Arc<NodeMetric>>,
}

#[derive(Clone, Debug)]
struct PodSlot {
    pod: Arc<Pod>,
    class: ClassId,
    node: Option<NodeId>,
    /// Known here as well, as is the next, such that going through the pods of nodes need not read all of them.
    is_active: bool,
    is_deleting: bool,
}

// === impl NodeId ===

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl PodId ===

impl PodId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Cluster ===

impl Cluster {
    /// The names of resources, with the numbers that they have in vectors.
    pub fn resources(&self) -> &ResourceNames {
        &self.resources
    }

    /// The objects beside nodes, pods and NodeMetrics.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Arc<Node>)> {
        self.node_ids.values().filter_map(|id| Some((*id, self.slot(*id)?.node.as_ref()?)))
    }

    /// The number of a node; `None` where it is not known.
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.node_ids.get(name).copied().filter(|id| self.slot(*id).is_some_and(|slot| slot.node.is_some()))
    }

    pub fn node(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.slot(id)?.node.as_ref()
    }

    /// The name of a node; empty where it is not known.
    pub fn node_name(&self, id: NodeId) -> &str {
        self.slot(id).map_or("", |slot| &slot.name)
    }

    /// The nodes with a label, in no particular order.
    pub fn nodes_labelled(&self, key: &str, value: &str) -> &[NodeId] {
        self.by_label.of(key, value)
    }

    /// What is allocatable on a node.
    pub fn allocatable(&self, id: NodeId) -> &ResourceVector {
        self.slot(id).map_or(&NOTHING, |slot| &slot.allocatable)
    }

    /// What the active pods of a node request.
    pub fn requested(&self, id: NodeId) -> &ResourceVector {
        self.slot(id).map_or(&NOTHING, |slot| &slot.requested)
    }

    /// How many active pods a node has.
    pub fn active_pods(&self, id: NodeId) -> usize {
        self.slot(id).map_or(0, |slot| slot.active)
    }

    /// What koordlet reported of a node.
    pub fn metric(&self, id: NodeId) -> Option<&NodeMetric> {
        self.slot(id)?.metric.as_deref()
    }

    /// All pods of a node, those that have ended too, by namespace and name.
    pub fn pods_on(&self, id: NodeId) -> impl Iterator<Item = (PodId, &Arc<Pod>)> {
        let pods = self.slot(id).into_iter().flat_map(|slot| &slot.pods);
        pods.filter_map(|id| Some((*id, self.pod(*id)?)))
    }

    /// The pods of a node that have not ended.
    pub fn active_pods_on(&self, id: NodeId) -> impl Iterator<Item = (PodId, &Arc<Pod>)> {
        let pods = self.slot(id).into_iter().flat_map(|slot| &slot.pods);
        pods.filter_map(|id| {
            let slot = self.pod_slot(*id)?;
            slot.is_active.then_some((*id, &slot.pod))
        })
    }

    /// All pods, by namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = (PodId, &Arc<Pod>)> {
        self.pod_ids.values().filter_map(|id| Some((*id, self.pod(*id)?)))
    }

    pub fn pod(&self, id: PodId) -> Option<&Arc<Pod>> {
        Some(&self.pod_slot(id)?.pod)
    }

    /// The number of a pod; `None` where it is not known.
    pub fn pod_id(&self, key: &str) -> Option<PodId> {
        self.pod_ids.get(key).copied()
    }

    /// The node of a pod, if the node is known.
    pub fn node_of(&self, id: PodId) -> Option<NodeId> {
        let node = self.pod_slot(id)?.node?;
        self.slot(node)?.node.is_some().then_some(node)
    }

    /// The number of the name to which a pod is bound, be a node of this name known or not.
    pub fn bound_to(&self, id: PodId) -> Option<NodeId> {
        self.pod_slot(id)?.node
    }

    /// Whether a pod is being deleted.
    pub fn is_deleting(&self, id: PodId) -> bool {
        self.pod_slot(id).is_some_and(|slot| slot.is_deleting)
    }

    /// What a pod requests.
    pub fn requests(&self, id: PodId) -> &ResourceVector {
        self.pod_slot(id).and_then(|slot| self.classes.requests(slot.class)).unwrap_or(&NOTHING)
    }

    /// The pods of which an object is an owner, be it their controller or not.
    pub fn pods_of<'a>(&'a self, owner: &Uid) -> impl Iterator<Item = (PodId, &'a Arc<Pod>)> + use<'a> {
        self.owners.pods(owner).iter().filter_map(|id| Some((*id, self.pod(*id)?)))
    }

    /// How many of the pods that an object controls are not available.
    pub fn unavailable_pods_of(&self, controller: &Uid) -> usize {
        self.owners.unavailable(controller)
    }

    /// The objects that own pods.
    pub fn owners(&self) -> impl Iterator<Item = &Uid> {
        self.owners.all()
    }

    /// The number of a pod's equivalence class. Pods of one class have the same template, hence the same namespace, and the same owners. See [`ByClass`].
    pub fn equivalence_class(&self, id: PodId) -> usize {
        self.pod_slot(id).map_or(0, |slot| slot.class.index())
    }

    /// How many pods an equivalence class has.
    pub fn equivalence_class_size(&self, class: usize) -> usize {
        self.classes.size(class)
    }

    /// The templates of all pods, those of each class once.
    pub fn templates(&self) -> impl Iterator<Item = &Arc<Template>> {
        self.classes.templates()
    }

    /// The bound that is greater than the number of every equivalence class.
    pub fn equivalence_classes_max(&self) -> usize {
        self.classes.max()
    }

    /// The bound that is greater than the number of every node.
    pub fn nodes_max(&self) -> usize {
        self.nodes.len()
    }

    /// The bound that is greater than the number of every pod.
    pub fn pods_max(&self) -> usize {
        self.pods.len()
    }

    // --- changes ---

    /// A node was added or changed.
    pub fn set_node(&mut self, node: Arc<Node>) {
        let allocatable = self.resources.vector(&node.allocatable);
        let id = self.node_slot(&node.name);
        if let Some(slot) = self.nodes.get_mut(id.index()) {
            let was = slot.node.as_ref().map(|node| node.labels.clone()).unwrap_or_default();
            self.by_label.change(id, &was, &node.labels);
            (slot.allocatable, slot.node) = (allocatable, Some(node));
        }
    }

    /// A node is gone.
    pub fn remove_node(&mut self, name: &str) {
        let Some(id) = self.node_ids.get(name).copied() else { return };
        if let Some(slot) = self.nodes.get_mut(id.index()) {
            if let Some(node) = &slot.node {
                self.by_label.change(id, &node.labels, &Labels::default());
            }
            (slot.allocatable, slot.node) = (ResourceVector::default(), None);
        }
        self.drop_if_empty(id);
    }

    /// A NodeMetric was added or changed.
    pub fn set_metric(&mut self, name: &str, report: UsageReport) {
        let pod_ids = &self.pod_ids;
        let known = |key: &ObjectKey| pod_ids.get_key_value(key).map(|(known, _)| known.clone());
        let metric = NodeMetric::of(report, known, &mut self.resources);
        let id = self.node_slot(name);
        if let Some(slot) = self.nodes.get_mut(id.index()) {
            slot.metric = Some(Arc::new(metric));
        }
    }

    /// A NodeMetric is gone.
    pub fn remove_metric(&mut self, name: &str) {
        let Some(id) = self.node_ids.get(name).copied() else { return };
        if let Some(slot) = self.nodes.get_mut(id.index()) {
            slot.metric = None;
        }
        self.drop_if_empty(id);
    }

    /// A pod was added or changed, or has taken the name of another.
    pub fn set_pod(&mut self, pod: Arc<Pod>) -> PodId {
        self.remove_pod(pod.key.as_str());
        let node = pod.node.as_ref().map(|node| self.node_slot(node));
        let class = self.classes.enter(&pod, &mut self.resources);
        let (is_active, is_deleting) = (pod.is_active(), pod.is_deleting);
        let id = self.free_pods.pop().unwrap_or_else(|| {
            self.pods.push(None);
            PodId(u32::try_from(self.pods.len() - 1).unwrap_or(u32::MAX))
        });
        self.owners.add(id, &pod);
        self.pod_ids.insert(pod.key.clone(), id);
        if let Some(node) = node {
            let key = |id: &PodId| self.pods.get(id.index()).and_then(|slot| Some(&slot.as_ref()?.pod.key));
            let pods = &self.nodes[node.index()].pods;
            let at = pods.partition_point(|other| key(other) < Some(&pod.key));
            let requests = self.classes.requests(class).unwrap_or(&NOTHING);
            let slot = &mut self.nodes[node.index()];
            slot.pods.insert(at, id);
            if is_active {
                slot.requested.add(requests);
                slot.active += 1;
            }
        }
        self.pods[id.index()] = Some(PodSlot { pod, class, node, is_active, is_deleting });
        id
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, key: &str) {
        let Some(id) = self.pod_ids.remove(key) else { return };
        let Some(slot) = self.pods.get_mut(id.index()).and_then(Option::take) else { return };
        let PodSlot { pod, class, node, is_active, .. } = slot;
        self.owners.remove(id, &pod);
        if let Some(node) = node
            && let Some(slot) = self.nodes.get_mut(node.index())
        {
            slot.pods.retain(|other| *other != id);
            if is_active {
                slot.requested.subtract(self.classes.requests(class).unwrap_or(&NOTHING));
                slot.active -= 1;
            }
            self.drop_if_empty(node);
        }
        self.classes.leave(class);
        self.free_pods.push(id);
    }

    /// A pod is replaced by another one, which uses as much: what its NodeMetric reports moves with it.
    pub fn replace_pod(&mut self, key: &ObjectKey, successor: Arc<Pod>) {
        let from = self.pod_id(key.as_str()).and_then(|id| self.pod(id)?.node.clone());
        let usage = from.and_then(|from| self.metric_mut(&from)?.take_pod(key));
        if let (Some(usage), Some(to)) = (usage, &successor.node)
            && let Some(metric) = self.metric_mut(to)
        {
            metric.add_pod(successor.key.clone(), usage);
        }
        self.remove_pod(key.as_str());
        self.set_pod(successor);
    }

    /// An object of another kind was added or changed.
    pub fn set_object(&mut self, object: Object) {
        self.objects.set(object);
    }

    /// An object of another kind is gone.
    pub fn remove_object(&mut self, type_: TypeId, key: &str) {
        self.objects.remove(type_, key);
    }

    fn slot(&self, id: NodeId) -> Option<&NodeSlot> {
        self.nodes.get(id.index())
    }

    fn metric_mut(&mut self, node: &str) -> Option<&mut NodeMetric> {
        let id = self.node_ids.get(node).copied()?;
        self.nodes.get_mut(id.index())?.metric.as_mut().map(Arc::make_mut)
    }

    fn pod_slot(&self, id: PodId) -> Option<&PodSlot> {
        self.pods.get(id.index())?.as_ref()
    }

    /// The slot of a name, which is given one if it has none.
    fn node_slot(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.node_ids.get(name) {
            return *id;
        }
        let id = self.free_nodes.pop().unwrap_or_else(|| {
            self.nodes.push(NodeSlot::default());
            NodeId(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
        });
        let name: Arc<str> = name.into();
        self.nodes[id.index()] = NodeSlot { name: Arc::clone(&name), ..NodeSlot::default() };
        self.node_ids.insert(name, id);
        id
    }

    /// A name of which nothing is known any more gives its slot back.
    fn drop_if_empty(&mut self, id: NodeId) {
        let Some(slot) = self.nodes.get_mut(id.index()) else { return };
        if slot.node.is_none() && slot.metric.is_none() && slot.pods.is_empty() {
            self.node_ids.remove(&std::mem::take(slot).name);
            self.free_nodes.push(id);
        }
    }
}

static NOTHING: std::sync::LazyLock<ResourceVector> = std::sync::LazyLock::new(ResourceVector::default);

#[cfg(test)]
mod tests;
