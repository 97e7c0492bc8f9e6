//! How many pods of which class are on a row.
//!
//! Selectors are matched with classes and not with pods: what a plugin looks up about other pods costs as much as there are
//! classes, and sums over the rows on which those are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Class, ClassId, Placed};
use crate::columns::Row;

/// The pods of one class on one row.
#[derive(Clone, Debug)]
pub struct Residents {
    pub class: Arc<Class>,
    /// A small number of the class, valid while it has a pod on any row.
    pub index: usize,
    /// How many they are.
    pub pods: u32,
    /// How many of them are being deleted.
    pub deleting: u32,
}

/// The pods of all rows, by class.
#[derive(Clone, Debug, Default)]
pub(super) struct Population {
    rows: Vec<Vec<Residents>>,
    /// By the index of the class.
    classes: Vec<Option<OfClass>>,
    indexes: BTreeMap<ClassId, usize>,
    free: Vec<usize>,
    /// Classes whose pods say something about other pods.
    classes_with_pod_affinity: BTreeSet<usize>,
    /// Changes whenever such a class appears or vanishes.
    epoch: u64,
}

/// The pods of one class.
#[derive(Clone, Debug)]
struct OfClass {
    class: Arc<Class>,
    /// How many they are.
    pods: u64,
    /// The rows that they are on, in no order.
    rows: Vec<Row>,
}

impl Population {
    pub(super) fn grow(&mut self, rows: usize) {
        self.rows.resize_with(rows, Vec::new);
    }

    pub(super) fn add(&mut self, placed: &Placed) {
        let index = self.appear(&placed.class);
        let Some(of_class) = self.classes.get_mut(index).and_then(Option::as_mut) else { return };
        of_class.pods += 1;
        let Some(row) = self.rows.get_mut(placed.row.index()) else { return };
        let deleting = u32::from(placed.pod.deleting);
        if let Some(residents) = row.iter_mut().find(|residents| residents.index == index) {
            residents.pods += 1;
            residents.deleting += deleting;
        } else {
            row.push(Residents { class: Arc::clone(&placed.class), index, pods: 1, deleting });
            of_class.rows.push(placed.row);
        }
    }

    pub(super) fn remove(&mut self, placed: &Placed) {
        let Some(index) = self.indexes.get(&placed.class.id()).copied() else { return };
        if let Some(row) = self.rows.get_mut(placed.row.index())
            && let Some(at) = row.iter().position(|residents| residents.index == index)
        {
            row[at].pods -= 1;
            row[at].deleting -= u32::from(placed.pod.deleting);
            if row[at].pods == 0 {
                row.swap_remove(at);
                self.leave(index, placed.row);
            }
        }
        self.decrease(index, 1);
    }

    /// Counts the pods of a row anew.
    pub(super) fn recount(&mut self, row: Row, placed: &[Placed]) {
        let Some(residents) = self.rows.get_mut(row.index()).map(std::mem::take) else { return };
        for Residents { index, pods, .. } in residents {
            self.leave(index, row);
            self.decrease(index, u64::from(pods));
        }
        for placed in placed {
            self.add(placed);
        }
    }

    /// The requests of these classes have other numbers now.
    pub(super) fn renew(&mut self, classes: &BTreeMap<ClassId, Arc<Class>>) {
        let known = self.classes.iter_mut().flatten().map(|of_class| &mut of_class.class);
        let residents = self.rows.iter_mut().flatten().map(|residents| &mut residents.class);
        for class in known.chain(residents) {
            if let Some(new) = classes.get(&class.id()) {
                *class = Arc::clone(new);
            }
        }
    }

    /// Compares how many pods each class has on all rows, and on which, with these, by its index, and takes them where they differ.
    pub(super) fn audit(&mut self, actual: &[(u64, BTreeSet<Row>)]) -> Option<String> {
        let mut wrong = Vec::new();
        for (index, of_class) in self.classes.iter_mut().enumerate() {
            let Some(OfClass { class, pods, rows }) = of_class else { continue };
            let (counted, on) = actual.get(index).cloned().unwrap_or_default();
            let namespace = &class.template().namespace;
            if *pods != counted {
                wrong.push(format!("{pods} pods instead of {counted} in {namespace}"));
                *pods = counted;
            }
            if rows.len() != on.len() || rows.iter().any(|row| !on.contains(row)) {
                wrong.push(format!("{} rows instead of {} in {namespace}", rows.len(), on.len()));
                *rows = on.into_iter().collect();
            }
        }
        for index in 0..self.classes.len() {
            self.decrease(index, 0);
        }
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }

    pub(super) fn on(&self, row: Row) -> &[Residents] {
        self.rows.get(row.index()).map_or(&[], Vec::as_slice)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = Option<&Arc<Class>>> {
        self.classes.iter().map(|known| known.as_ref().map(|of_class| &of_class.class))
    }

    /// The pods of a class, by its index, on each row that has one.
    pub(super) fn of_class(&self, index: usize) -> impl Iterator<Item = (Row, &Residents)> {
        let rows = self.classes.get(index).and_then(Option::as_ref).map_or(&[][..], |of_class| &of_class.rows);
        rows.iter().filter_map(move |row| {
            self.on(*row).iter().find(|residents| residents.index == index).map(|residents| (*row, residents))
        })
    }

    pub(super) fn classes_with_pod_affinity(&self) -> impl Iterator<Item = &Arc<Class>> {
        self.classes_with_pod_affinity.iter().filter_map(|index| Some(&self.classes.get(*index)?.as_ref()?.class))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The index of a class, which has one from now on.
    fn appear(&mut self, class: &Arc<Class>) -> usize {
        if let Some(index) = self.indexes.get(&class.id()) {
            return *index;
        }
        let index = self.free.pop().unwrap_or(self.classes.len());
        if index == self.classes.len() {
            self.classes.push(None);
        }
        self.classes[index] = Some(OfClass { class: Arc::clone(class), pods: 0, rows: Vec::new() });
        self.indexes.insert(class.id(), index);
        if !class.template().pod_affinity.is_empty() {
            self.classes_with_pod_affinity.insert(index);
            self.epoch += 1;
        }
        index
    }

    /// A class has no pod on a row any more.
    fn leave(&mut self, index: usize, row: Row) {
        let Some(OfClass { rows, .. }) = self.classes.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(at) = rows.iter().rposition(|known| *known == row) {
            rows.swap_remove(at);
        }
    }

    /// A class has so many pods less, and is forgotten without any.
    fn decrease(&mut self, index: usize, by: u64) {
        let Some(OfClass { pods, .. }) = self.classes.get_mut(index).and_then(Option::as_mut) else { return };
        *pods = pods.saturating_sub(by);
        if *pods == 0 {
            self.vanish(index);
        }
    }

    fn vanish(&mut self, index: usize) {
        let Some(OfClass { class, .. }) = self.classes.get_mut(index).and_then(Option::take) else { return };
        self.indexes.remove(&class.id());
        self.free.push(index);
        if self.classes_with_pod_affinity.remove(&index) {
            self.epoch += 1;
        }
    }
}

#[cfg(test)]
impl Population {
    /// Says that a class has pods on a row on which it has none.
    pub(super) fn spoil(&mut self) {
        if let Some(of_class) = self.classes.iter_mut().flatten().next() {
            of_class.rows.extend(Row::at(self.rows.len()));
        }
    }
}
