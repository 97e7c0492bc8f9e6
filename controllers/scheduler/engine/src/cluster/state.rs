//! What plugins keep about the cluster: sums and indexes of their own, brought up to date with every change.
//!
//! A state is part of the [`Cluster`], so that a trial changes it and undoes the change as it does with the columns.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt::Debug,
    hash::{BuildHasherDefault, Hasher},
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

/// The states of all plugins.
#[derive(Debug, Default)]
pub(crate) struct States {
    states: Vec<Box<dyn State>>,
    /// The place of each by its type. States are looked up several times for every node, those too that no plugin has; they are never
    /// listed from here, for the order of types is another in each program.
    places: HashMap<TypeId, usize, BuildHasherDefault<OfType>>,
}

/// The hash of a type is a part of its number, which is one already.
#[derive(Clone, Copy, Debug, Default)]
struct OfType(u64);

impl Hasher for OfType {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl States {
    pub(crate) fn get<T: State>(&self) -> Option<&T> {
        (&**self.states.get(self.place(TypeId::of::<T>())?)? as &dyn Any).downcast_ref()
    }

    pub(crate) fn get_mut<T: State>(&mut self) -> Option<&mut T> {
        let place = self.place(TypeId::of::<T>())?;
        (&mut **self.states.get_mut(place)? as &mut dyn Any).downcast_mut()
    }

    fn place(&self, type_: TypeId) -> Option<usize> {
        self.places.get(&type_).copied()
    }

    /// Adds a state; one whose type is there joins that.
    pub(crate) fn add(&mut self, state: Box<dyn State>) {
        let type_ = (&*state as &dyn Any).type_id();
        if let Some(place) = self.place(type_) {
            self.states[place].join(state);
        } else {
            self.places.insert(type_, self.states.len());
            self.states.push(state);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn State>> {
        self.states.iter_mut()
    }

    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.states.iter().filter_map(|state| state.wake_at()).min()
    }
}

impl Clone for States {
    fn clone(&self) -> Self {
        Self { states: self.states.iter().map(|state| state.copy()).collect(), places: self.places.clone() }
    }
}
