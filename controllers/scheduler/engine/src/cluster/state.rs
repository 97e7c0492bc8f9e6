//! What plugins keep about the cluster: sums and indexes of their own, brought up to date with every change.
//!
//! A state is part of the [`Cluster`], so that a trial changes it and undoes the change as it does with the columns.

use std::{
    any::{Any, TypeId},
    fmt::Debug,
    sync::Arc,
};

use jiff::Timestamp;

use super::{Cluster, Mismatch, Placed};
use crate::{columns::Row, object::ObjectChange, pod::Pod};

/// The state of a plugin. While one of its functions runs, the cluster that is handed over shows no states.
pub trait State: Any + Send + Sync + Debug {
    /// A copy, for a copy of the cluster.
    fn copy(&self) -> Box<dyn State>;

    /// Another plugin, as a rule that of another profile, has a state of this type too: this one serves both from now on. Nothing
    /// is known yet.
    fn join(&mut self, _other: Box<dyn State>) {}

    /// A pod is on its row from now on: it is bound, assumed to be, or tried there.
    fn placed(&mut self, _cluster: &Cluster, _placed: &Placed) {}

    /// A pod is not on its row any more. Undoes what [`State::placed`] did, exactly.
    fn removed(&mut self, _cluster: &Cluster, _placed: &Placed) {}

    /// A pod became known, or is known differently: with a node or without, of this scheduler or of another.
    fn pod(&mut self, _cluster: &Cluster, _old: Option<&Arc<Pod>>, _new: Option<&Arc<Pod>>) {}

    /// The node of a pod has rejected it for want of a resource, and the pod is removed next. Gives the rows about which something
    /// else is to be decided now.
    fn rejected(&mut self, _cluster: &Cluster, _placed: &Placed, _resource: &str) -> Vec<Row> {
        Vec::new()
    }

    /// The node of a row was added, changed or deleted. A row without a node and without pods may become another node's.
    fn node(&mut self, _cluster: &Cluster, _row: Row) {}

    /// An object was added, changed or deleted. Gives the rows about which something else is to be decided now.
    fn object(&mut self, _cluster: &Cluster, _change: &ObjectChange) -> Vec<Row> {
        Vec::new()
    }

    /// Time has passed. Gives the rows about which something else is to be decided now.
    fn tick(&mut self, _cluster: &Cluster, _now: Timestamp) -> Vec<Row> {
        Vec::new()
    }

    /// The clock was set back. Gives the rows about which something else is to be decided now.
    fn set_back(&mut self, _cluster: &Cluster) -> Vec<Row> {
        Vec::new()
    }

    /// Compares what is summed up of a row with what its node, its pods and the objects about them amount to, and sets right what
    /// differs: which sum, and how it differed.
    fn audit(&mut self, _cluster: &Cluster, _row: Row) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The same of what is summed up of the cluster as a whole.
    fn audit_whole(&mut self, _cluster: &Cluster) -> Vec<Mismatch> {
        Vec::new()
    }

    /// When [`State::tick`] has something to do next; none while only changes matter.
    fn wake_at(&self) -> Option<Timestamp> {
        None
    }
}

/// The states of all plugins, each with its type: they are looked up for every node.
#[derive(Debug, Default)]
pub(crate) struct States(Vec<(TypeId, Box<dyn State>)>);

impl States {
    pub(crate) fn get<T: State>(&self) -> Option<&T> {
        let (_, state) = self.0.iter().find(|(type_, _)| *type_ == TypeId::of::<T>())?;
        (&**state as &dyn Any).downcast_ref()
    }

    pub(crate) fn get_mut<T: State>(&mut self) -> Option<&mut T> {
        let (_, state) = self.0.iter_mut().find(|(type_, _)| *type_ == TypeId::of::<T>())?;
        (&mut **state as &mut dyn Any).downcast_mut()
    }

    /// Adds a state; one whose type is there joins that.
    pub(crate) fn add(&mut self, state: Box<dyn State>) {
        let type_ = (&*state as &dyn Any).type_id();
        match self.0.iter_mut().find(|(known, _)| *known == type_) {
            Some((_, known)) => known.join(state),
            None => self.0.push((type_, state)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn State>> {
        self.0.iter_mut().map(|(_, state)| state)
    }

    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|(_, state)| state.wake_at()).min()
    }
}

impl Clone for States {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(type_, state)| (*type_, state.copy())).collect())
    }
}
