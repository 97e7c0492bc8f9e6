//! Which resources have a column: those of which some node offers any, and no others. What else pods request is [`super::Unoffered`].
//!
//! A resource gets its column with the first node that offers it, and what pods request of it is counted then. Columns that no node
//! needs any more are dropped together, in time.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    sync::Arc,
};

use koord_scheduling::{ResourceNames, ResourceVector, count};

use super::{Class, ClassId, Cluster, Unoffered};
use crate::{
    columns::{Columns, Row},
    node::Node,
};

/// What is known of the numbers of resources beside their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// By number: how many nodes offer any of it.
    offering: Vec<u32>,
    /// Changes whenever the numbers of a class's requests do.
    epoch: u64,
}

impl Numbering {
    /// Columns that no node needs are kept while there are fewer.
    const IDLE_MAX: usize = 64;

    /// So many nodes offer each of these resources.
    fn count(&mut self, amounts: impl Iterator<Item = i64>, count: impl Fn(u32) -> u32) {
        for (resource, _) in amounts.enumerate().filter(|(_, amount)| *amount != 0) {
            if self.offering.len() <= resource {
                self.offering.resize(resource + 1, 0);
            }
            self.offering[resource] = count(self.offering[resource]);
        }
    }

    /// Compares how many nodes offer each resource with the columns of all rows, and sets right what differs.
    pub(super) fn audit(&mut self, allocatable: &Columns, rows: usize) -> Option<String> {
        let mut actual = Self::default();
        let rows = (0..rows).filter_map(Row::at);
        rows.for_each(|row| actual.count(allocatable.row(row), |nodes| nodes + 1));
        let width = self.offering.len().max(actual.offering.len());
        self.offering.resize(width, 0);
        actual.offering.resize(width, 0);
        (self.offering != actual.offering).then(|| {
            let details = format!("{:?} instead of {:?}", self.offering, actual.offering);
            self.offering = actual.offering;
            details
        })
    }

    fn is_idle(&self, resource: usize) -> bool {
        self.offering.get(resource).is_none_or(|nodes| *nodes == 0)
    }

    /// Whether so many columns are of no use that it is time to drop them.
    fn is_due(&self, names: &ResourceNames) -> bool {
        let idle = (0..names.len()).filter(|resource| self.is_idle(*resource)).count();
        idle >= Self::IDLE_MAX && (2 * idle >= names.len() || names.is_full())
    }
}

impl Cluster {
    /// Changes whenever what pods request is numbered differently: nothing holds then that was prepared by the numbers.
    pub fn resources_epoch(&self) -> u64 {
        self.numbering.epoch
    }

    /// The names of a number ([`Unoffered::number`]); none when they are unused by now.
    pub fn unoffered(&self, number: NonZeroU16) -> Option<Arc<Unoffered>> {
        self.classes.unoffered().get(number)
    }

    /// The resources that a node offers and that are left out, because more are offered than can be counted.
    pub fn uncounted(&self) -> BTreeSet<&str> {
        if !self.resources.is_full() {
            return BTreeSet::new();
        }
        let offered = self.rows().flat_map(|(_, node)| offered(node));
        offered.filter(|name| self.resources.get(name).is_none()).collect()
    }

    /// Whether a node brings names for which columns are to be dropped first that no node needs any more. Numbers mean something else
    /// after that: see [`Cluster::forget_idle_resources`].
    pub fn has_idle_resources(&self, node: &Node) -> bool {
        offered(node).any(|name| self.resources.get(name).is_none()) && self.numbering.is_due(&self.resources)
    }

    /// Drops the columns that no node needs.
    pub fn forget_idle_resources(&mut self) {
        let mut resources = ResourceNames::default();
        for (number, name) in self.resources.names().enumerate() {
            if !self.numbering.is_idle(number) {
                resources.intern(name);
            }
        }
        self.resources = resources;
        self.numbering.offering.clear();
        (self.allocatable, self.requested) = (Columns::default(), Columns::default());
        for columns in [&mut self.allocatable, &mut self.requested] {
            columns.grow(self.slots.len());
        }
        let nodes: Vec<(Row, Arc<Node>)> = self.rows().map(|(row, node)| (row, Arc::clone(node))).collect();
        for (row, node) in &nodes {
            let allocatable = self.resources.known(&node.allocatable);
            self.set_allocatable(*row, &allocatable);
        }
        self.number_classes(|_| true);
        for row in self.rows.values().copied().collect::<Vec<_>>() {
            self.recount(row);
        }
        for (row, _) in nodes {
            self.node_changed(row);
        }
    }

    /// What a node offers, by number. Pods are counted anew that request what no node has offered before.
    pub(super) fn number(&mut self, node: &Node) -> ResourceVector {
        let unknown = offered(node).filter(|name| self.resources.get(name).is_none());
        let unknown: Vec<&str> = unknown.collect();
        let new: BTreeSet<&str> = unknown.into_iter().filter(|name| self.resources.intern(name).is_some()).collect();
        if !new.is_empty() {
            let requests_new = |unoffered: &Arc<Unoffered>| unoffered.names().any(|name| new.contains(name));
            let rows = self.number_classes(|class| class.unoffered().is_some_and(requests_new));
            for row in rows {
                self.recount(row);
                self.node_changed(row);
            }
        }
        self.resources.known(&node.allocatable)
    }

    /// A node offers this.
    pub(super) fn set_allocatable(&mut self, row: Row, allocatable: &ResourceVector) {
        let Self { allocatable: columns, numbering, .. } = self;
        numbering.count(columns.row(row), |nodes| nodes.saturating_sub(1));
        columns.set_row(row, allocatable);
        numbering.count(columns.row(row), |nodes| nodes + 1);
    }

    /// Numbers the requests of these classes again. Gives the rows on which their pods are.
    fn number_classes(&mut self, is_meant: impl Fn(&Class) -> bool) -> BTreeSet<Row> {
        self.numbering.epoch += 1;
        let renewed: BTreeMap<ClassId, Arc<Class>> = self.classes.number(is_meant, &self.resources);
        let mut rows = BTreeSet::new();
        for placed in self.pods.values_mut() {
            if let Some(class) = renewed.get(&placed.class.id()) {
                placed.class = Arc::clone(class);
                rows.insert(placed.row);
            }
        }
        self.population.renew(&renewed);
        rows
    }
}

#[cfg(test)]
impl Numbering {
    /// Makes a sum wrong.
    pub(super) fn spoil(&mut self) {
        self.count(std::iter::once(1), |nodes| nodes + 17);
    }
}

/// The resources of which a node offers any.
fn offered(node: &Node) -> impl Iterator<Item = &str> {
    node.allocatable.iter().filter(|(name, amount)| count(name, amount) != 0).map(|(name, _)| name)
}
