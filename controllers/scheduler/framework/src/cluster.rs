//! The state of the cluster: nodes as rows of columns, and the pods on them.
//!
//! One writer changes it by deltas. What a decision wants to try (a victim gone, a pod of its gang placed) it tries on the
//! state itself, in a [`Trial`] that is undone at its end; nothing is copied, and the trial changes the same sums as the
//! real thing.

mod audit;
mod class;
mod discrepancies;
mod excluded;
mod foreign;
mod images;
mod log;
mod nominations;
mod numbering;
mod pods;
mod population;
pub mod state;
#[cfg(test)]
mod tests;
mod topologies;
mod trial;
mod unoffered;

use std::{any::TypeId, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use koord_core::uid::Uid;
use koord_scheduling::{ResourceId, ResourceNames, ResourceVector};

pub use self::{
    audit::{Mismatch, Subject, Turn},
    class::{Class, ClassId, ReservedId},
    discrepancies::Discrepancy,
    excluded::ExcludedPods,
    images::Image,
    log::Position,
    population::Residents,
    topologies::{Domain, TopologyId},
    trial::{Mark, Trial},
    unoffered::Unoffered,
};
use self::{
    class::Classes,
    foreign::Scheduling,
    images::Images,
    log::ChangeLog,
    numbering::Numbering,
    population::Population,
    state::{State, States},
    topologies::Topologies,
};
use crate::{
    columns::{Columns, Row, RowAmounts},
    hold::Holds,
    node::Node,
    object::{Object, ObjectChange, Objects},
    pod::{Pod, Template},
};

/// Nodes, and the pods that are bound to them or assumed to be.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    resources: ResourceNames,
    numbering: Numbering,
    classes: Classes,
    slots: Vec<Slot>,
    rows: BTreeMap<Arc<str>, Row>,
    /// Slots without a node and without pods.
    free: Vec<Row>,
    nodes: usize,
    /// Nodes with a taint that pods only prefer to avoid.
    softly_tainted: usize,
    allocatable: Columns,
    requested: Columns,
    /// By row, of cpu and memory.
    assumed_usage: [Vec<i64>; 2],
    pods: BTreeMap<Uid, Placed>,
    /// How many of them are assumed to be there.
    assumed: usize,
    /// Pods that are nowhere, of all schedulers.
    pending: BTreeMap<Uid, Arc<Pod>>,
    /// Nominated pods, by uid.
    nominated: BTreeMap<Uid, (Arc<Pod>, Row)>,
    /// Pods whose eviction is ordered, each with the pod for which.
    evicted: BTreeMap<Uid, Uid>,
    /// Pods that are to be excluded for the pod that is tried, by row.
    to_exclude: Arc<[(Row, Uid)]>,
    /// Pods that are not seen during the attempt of another.
    excluded_pods: BTreeMap<Row, BTreeMap<Uid, Placed>>,
    /// Trials that are under way.
    trials: u32,
    scheduling: Scheduling,
    objects: Objects,
    states: States,
    time: Timestamp,
    population: Population,
    topologies: Topologies,
    images: Images,
    log: ChangeLog,
}

/// What is in a row beside the columns.
#[derive(Clone, Debug, Default)]
struct Slot {
    name: Arc<str>,
    /// None where pods are bound to a node that is not known, or is gone.
    node: Option<Arc<Node>>,
    /// Its pods, in the order of their uids.
    pods: Vec<Uid>,
}

/// A pod in its place.
#[derive(Clone, Debug)]
pub struct Placed {
    pub pod: Arc<Pod>,
    /// What it shares with others.
    pub class: Arc<Class>,
    pub row: Row,
    /// What it was given there.
    pub holds: Holds,
}

/// How many nodes and pods a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub nodes: usize,
    /// Pods that are bound or assumed to be.
    pub pods: usize,
    /// Pods that are assumed to be bound.
    pub assumed: usize,
}

impl Cluster {
    /// The names of the resources that some node offers, as the columns number them.
    pub fn resources(&self) -> &ResourceNames {
        &self.resources
    }

    /// What the pods of a template have in common, as the columns number it.
    pub fn class(&mut self, template: &Arc<Template>) -> Arc<Class> {
        if let Some(class) = self.classes.get(template) {
            return class;
        }
        let class = self.classes.of(template, &self.resources);
        let Self { topologies, slots, classes, .. } = self;
        topologies.track(template.topology_keys(), rows_of(slots));
        if topologies.is_sweep_due() {
            let used = classes.iter().flat_map(|class| class.template().topology_keys().cloned().collect::<Vec<_>>());
            topologies.sweep(&used.collect());
        }
        class
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// How many nodes and pods there are.
    pub fn sizes(&self) -> Sizes {
        Sizes { nodes: self.nodes, pods: self.pods.len(), assumed: self.assumed }
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// How many nodes have a taint that pods only prefer to avoid.
    pub fn softly_tainted(&self) -> usize {
        self.softly_tainted
    }

    /// How many rows the columns have; some may be without a node.
    pub fn width(&self) -> usize {
        self.slots.len()
    }

    /// The rows of all nodes, in order.
    pub fn rows(&self) -> impl Iterator<Item = (Row, &Arc<Node>)> {
        rows_of(&self.slots)
    }

    /// The node of a row.
    #[inline]
    pub fn node(&self, row: Row) -> Option<&Arc<Node>> {
        self.slots.get(row.index())?.node.as_ref()
    }

    /// The name of a row's node, be it that only pods name it.
    pub fn name(&self, row: Row) -> Option<&Arc<str>> {
        self.slots.get(row.index()).map(|slot| &slot.name)
    }

    /// The row of a node.
    pub fn row(&self, name: &str) -> Option<Row> {
        self.rows.get(name).copied().filter(|row| self.node(*row).is_some())
    }

    /// What a node offers of a resource.
    #[inline]
    pub fn allocatable(&self, resource: ResourceId, row: Row) -> i64 {
        self.allocatable.get(resource, row)
    }

    /// What the pods of a node request of a resource; of [`ResourceId::PODS`] how many they are.
    #[inline]
    pub fn requested(&self, resource: ResourceId, row: Row) -> i64 {
        self.requested.get(resource, row)
    }

    /// What a node offers of all resources.
    #[inline]
    pub fn allocatable_on(&self, row: Row) -> RowAmounts<'_> {
        self.allocatable.of(row)
    }

    /// What the pods of a node request of all resources.
    #[inline]
    pub fn requested_on(&self, row: Row) -> RowAmounts<'_> {
        self.requested.of(row)
    }

    /// What the pods of a node are assumed to use of cpu and memory.
    #[inline]
    pub fn assumed_usage(&self, row: Row) -> [i64; 2] {
        [self.assumed_usage[0][row.index()], self.assumed_usage[1][row.index()]]
    }

    /// The pods of a node, by class.
    pub fn residents(&self, row: Row) -> &[Residents] {
        self.population.on(row)
    }

    /// The classes that have a pod on some row, at their index in [`Residents`]; none where an index is not in use.
    pub fn classes(&self) -> impl Iterator<Item = Option<&Arc<Class>>> {
        self.population.classes()
    }

    /// The pods of the class with an index in [`Residents`], on each row that has one.
    pub fn residents_of(&self, index: usize) -> impl Iterator<Item = (Row, &Residents)> {
        self.population.of_class(index)
    }

    /// Those of the classes whose pods say something about other pods.
    pub fn classes_with_pod_affinity(&self) -> impl Iterator<Item = &Arc<Class>> {
        self.population.classes_with_pod_affinity()
    }

    /// Changes whenever such a class appears or vanishes.
    pub fn bearers_epoch(&self) -> u64 {
        self.population.epoch()
    }

    /// The column of a topology key; none where neither a class nor a plugin has named it.
    pub fn topology(&self, key: &str) -> Option<TopologyId> {
        self.topologies.id(key)
    }

    /// The domain that a node is in; none without that label.
    pub fn domain(&self, topology: TopologyId, row: Row) -> Option<Domain> {
        self.topologies.domain(topology, row)
    }

    /// Above the index of every domain.
    pub fn domains_width(&self, topology: TopologyId) -> usize {
        self.topologies.width(topology)
    }

    /// Keeps a column for a topology key, whether or not a pod names it.
    pub fn pin_topology(&mut self, key: &Arc<str>) {
        self.topologies.pin(key);
        self.topologies.track([key], rows_of(&self.slots));
    }

    /// An image that some node has.
    pub fn image(&self, name: &str) -> Option<&Image> {
        self.images.get(name)
    }

    /// Changes whenever a node has other images, or there are more or fewer nodes.
    pub fn images_epoch(&self) -> u64 {
        self.images.epoch()
    }

    /// Up to where [`Cluster::changed_since`] knows what has changed.
    pub fn position(&self) -> Position {
        self.log.end()
    }

    /// The rows that have changed since, each once; none where that is too long ago to be known.
    pub fn changed_since(&self, position: Position) -> Option<impl Iterator<Item = Row> + '_> {
        self.log.since(position)
    }

    /// Changes with everything that is known of a node and its pods; it never becomes less.
    pub fn generation(&self, row: Row) -> u64 {
        self.log.generation(row)
    }

    /// Objects beside nodes and pods.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The state of a plugin.
    pub fn state<T: State>(&self) -> Option<&T> {
        self.states.get()
    }

    /// The state of a plugin, for what it decides beyond single pods.
    pub fn state_mut<T: State>(&mut self) -> Option<&mut T> {
        self.states.get_mut()
    }

    /// The time of day, as of the last tick.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Adds the state of a plugin, before anything is known; a second one of its type joins the first ([`State::join`]).
    pub fn add_state(&mut self, state: Box<dyn State>) {
        self.states.add(state);
    }

    /// What is to be decided about a node has changed.
    pub fn touch(&mut self, row: Row) {
        self.log.note(row);
    }

    /// An object was added or changed.
    pub fn set_object(&mut self, object: Object) -> ObjectChange {
        let change = self.objects.set(object);
        self.object_changed(&change);
        change
    }

    /// An object was deleted.
    pub fn remove_object(&mut self, type_: TypeId, key: &str) -> Option<ObjectChange> {
        let change = self.objects.remove(type_, key)?;
        self.object_changed(&change);
        Some(change)
    }

    fn object_changed(&mut self, change: &ObjectChange) {
        self.with_states(|states, cluster| {
            let rows: Vec<Row> = states.iter_mut().flat_map(|state| state.object(cluster, change)).collect();
            for row in rows {
                cluster.log.note(row);
            }
        });
    }

    /// The node of a pod has rejected it because it lacks a resource.
    pub fn rejected(&mut self, placed: &Placed, resource: &str) {
        self.with_states(|states, cluster| {
            let rejected = |state: &mut Box<dyn State>| state.rejected(cluster, placed, resource);
            let rows: Vec<Row> = states.iter_mut().flat_map(rejected).collect();
            for row in rows {
                cluster.log.note(row);
            }
        });
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Timestamp) {
        let was_set_back = now.as_second() < self.time.as_second();
        self.time = now;
        if !was_set_back && self.states.wake_at().is_none_or(|at| at > now) {
            return;
        }
        self.with_states(|states, cluster| {
            let tick = |state: &mut Box<dyn State>| {
                let mut rows = if was_set_back { state.set_back(cluster) } else { Vec::new() };
                rows.extend(state.tick(cluster, now));
                rows
            };
            let rows: Vec<Row> = states.iter_mut().flat_map(tick).collect();
            for row in rows {
                cluster.log.note(row);
            }
        });
    }

    /// When [`Cluster::tick`] matters next; none while only changes do.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.states.wake_at()
    }

    fn with_states<T>(&mut self, with: impl FnOnce(&mut States, &mut Self) -> T) -> T {
        let mut states = std::mem::take(&mut self.states);
        let result = with(&mut states, self);
        self.states = states;
        result
    }

    fn node_changed(&mut self, row: Row) {
        self.log.note(row);
        self.with_states(|states, cluster| states.iter_mut().for_each(|state| state.node(cluster, row)));
    }

    /// A node was added or changed. Gives what was known of it before.
    pub fn set_node(&mut self, node: Arc<Node>) -> Option<Arc<Node>> {
        let row = self.row_of(&node.name);
        let allocatable = self.number(&node);
        self.set_allocatable(row, &allocatable);
        self.softly_tainted += usize::from(node.is_softly_tainted());
        self.topologies.set_node(row, Some(&node.labels));
        self.images.change(row, self.slots[row.index()].node.as_ref(), Some(&node));
        let old = self.slots[row.index()].node.replace(node);
        self.nodes += usize::from(old.is_none());
        self.softly_tainted -= usize::from(old.as_ref().is_some_and(|old| old.is_softly_tainted()));
        self.node_changed(row);
        old
    }

    /// A node was deleted. Its pods stay known until they are deleted too. Gives what was known of it.
    pub fn remove_node(&mut self, name: &str) -> Option<Arc<Node>> {
        let row = self.row(name)?;
        let old = self.slots[row.index()].node.take();
        self.nodes -= usize::from(old.is_some());
        self.softly_tainted -= usize::from(old.as_ref().is_some_and(|old| old.is_softly_tainted()));
        self.set_allocatable(row, &ResourceVector::default());
        self.topologies.set_node(row, None);
        self.images.change(row, old.as_ref(), None);
        self.node_changed(row);
        self.release(row);
        old
    }

    /// Tries something that is undone when the trial ends.
    pub fn trial(&mut self) -> Trial<'_> {
        Trial::new(self)
    }

    /// Whether pods come and go in a trial, for plugins that are about what is and not about what would be.
    pub fn is_trial(&self) -> bool {
        self.trials > 0
    }

    /// The row of this name, made where there is none.
    fn row_of(&mut self, name: &Arc<str>) -> Row {
        if let Some(row) = self.rows.get(name) {
            return *row;
        }
        let row = self.free.pop().unwrap_or_else(|| {
            // A cluster of 2³² nodes does not fit into memory.
            let row = Row::at(self.slots.len()).unwrap_or_else(|| unreachable!());
            self.slots.push(Slot::default());
            let rows = self.slots.len();
            self.allocatable.grow(rows);
            self.requested.grow(rows);
            self.population.grow(rows);
            self.assumed_usage.iter_mut().for_each(|column| column.resize(rows, 0));
            row
        });
        self.slots[row.index()].name = Arc::clone(name);
        self.rows.insert(Arc::clone(name), row);
        row
    }

    /// Gives a row back that has neither node nor pods.
    fn release(&mut self, row: Row) {
        let slot = &self.slots[row.index()];
        if slot.node.is_none() && slot.pods.is_empty() && self.rows.remove(&slot.name).is_some() {
            self.free.push(row);
            // What will be in the row is another node.
            self.nominated.retain(|_, (_, at)| *at != row);
        }
    }
}

/// The rows of all nodes, in order.
fn rows_of(slots: &[Slot]) -> impl Iterator<Item = (Row, &Arc<Node>)> {
    let slots = slots.iter().enumerate();
    slots.filter_map(|(index, slot)| Some((Row::at(index)?, slot.node.as_ref()?)))
}
