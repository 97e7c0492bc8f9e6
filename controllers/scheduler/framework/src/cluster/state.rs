//! What plugins keep about the cluster: sums and indexes of their own, brought up to date with every change.
//!
//! A state is part of the [`Cluster`], so that a trial changes it and undoes the change as it does with the columns.

use std::{
    any::{Any, TypeId},
    fmt::Debug,
    hash::{Hash, Hasher},
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

    /// The node of a pod has rejected it because it lacks a resource, and the pod is removed next. Gives the rows about which something
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
    places: Places,
}

/// The place of each state by its type. States are looked up several times for every node, those too that no plugin has; they are never
/// listed from here, for the order of types is another in each program.
#[derive(Clone, Debug, Default)]
struct Places {
    /// No two states have the same slot; [`FREE`] where none has it. Who looks here compares the types.
    slots: Vec<usize>,
    /// By which hashes are multiplied so that it is so. The highest bits are the slot.
    factor: u64,
    shift: u32,
}

/// The place of no state.
const FREE: usize = usize::MAX;

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

impl Places {
    /// Where the state of a type is, if there is one.
    #[inline]
    fn get(&self, type_: TypeId) -> Option<usize> {
        self.slots.get(self.slot(type_)).copied()
    }

    #[inline]
    fn slot(&self, type_: TypeId) -> usize {
        let mut hash = OfType::default();
        type_.hash(&mut hash);
        (hash.finish().wrapping_mul(self.factor) >> self.shift) as usize
    }

    /// Of these types, in the order of their places. They are all different, and two of so many seldom have the same of so many slots:
    /// one of the first factors will do.
    fn of(types: &[TypeId]) -> Self {
        let width = types.len().pow(2).next_power_of_two().max(2);
        let shift = u64::BITS - width.trailing_zeros();
        let with = |factor| Self { slots: vec![FREE; width], factor, shift }.with(types);
        (1..).step_by(2).find_map(with).unwrap_or_default()
    }

    /// With these types; none where two of them would have the same slot.
    fn with(mut self, types: &[TypeId]) -> Option<Self> {
        for (place, type_) in types.iter().enumerate() {
            let slot = self.slot(*type_);
            let is_taken = std::mem::replace(self.slots.get_mut(slot)?, place) != FREE;
            if is_taken {
                return None;
            }
        }
        Some(self)
    }
}

impl States {
    pub(crate) fn get<T: State>(&self) -> Option<&T> {
        (&**self.states.get(self.places.get(TypeId::of::<T>())?)? as &dyn Any).downcast_ref()
    }

    pub(crate) fn get_mut<T: State>(&mut self) -> Option<&mut T> {
        let place = self.places.get(TypeId::of::<T>())?;
        (&mut **self.states.get_mut(place)? as &mut dyn Any).downcast_mut()
    }

    /// Adds a state; one whose type is there joins that.
    pub(crate) fn add(&mut self, state: Box<dyn State>) {
        let type_of = |state: &dyn State| (state as &dyn Any).type_id();
        let mut types: Vec<TypeId> = self.states.iter().map(|state| type_of(&**state)).collect();
        if let Some(place) = types.iter().position(|known| *known == type_of(&*state)) {
            self.states[place].join(state);
        } else {
            types.push(type_of(&*state));
            self.states.push(state);
            self.places = Places::of(&types);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Of<const NUMBER: usize>(usize);

    impl<const NUMBER: usize> State for Of<NUMBER> {
        fn copy(&self) -> Box<dyn State> {
            Box::new(*self)
        }

        fn join(&mut self, _: Box<dyn State>) {
            self.0 += 1;
        }
    }

    fn number<const NUMBER: usize>(states: &mut States) -> [Option<usize>; 2] {
        [states.get::<Of<NUMBER>>().map(|state| state.0), states.get_mut::<Of<NUMBER>>().map(|state| state.0)]
    }

    #[test]
    fn states_are_found_by_their_types_and_those_of_one_type_join() {
        let mut states = States::default();
        assert_eq!(number::<0>(&mut states), [None; 2]);
        let added: [Box<dyn State>; 7] = [
            Box::new(Of::<0>(0)),
            Box::new(Of::<1>(10)),
            Box::new(Of::<2>(20)),
            Box::new(Of::<1>(99)),
            Box::new(Of::<3>(30)),
            Box::new(Of::<4>(40)),
            Box::new(Of::<3>(99)),
        ];
        for state in added {
            states.add(state);
        }
        assert_eq!(states.len(), 5);
        let mut states = states.clone();
        assert_eq!([number::<0>(&mut states), number::<1>(&mut states)], [[Some(0); 2], [Some(11); 2]]);
        assert_eq!([number::<2>(&mut states), number::<3>(&mut states)], [[Some(20); 2], [Some(31); 2]]);
        assert_eq!([number::<4>(&mut states), number::<5>(&mut states)], [[Some(40); 2], [None; 2]]);
    }
}
