//! Sums, compared with what the objects amount to and set right: a guard against mistakes, for a program that runs for months.

mod whole;

use std::{any::Any, collections::BTreeMap, sync::Arc};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::controller::{ObjectScope, ResourceKind};
use koord_scheduling::ResourceVector;

use super::{Class, ClassId, Cluster};
use crate::columns::{Columns, Row};

/// A sum that was not what the objects amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What it is a sum of.
    pub subject: Subject,
    /// Which sum, in one word.
    pub sum: &'static str,
    /// What was kept, and what it should have been.
    pub details: String,
}

/// What is summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The pods of this node; it need not be known where only pods name it.
    Node(Arc<str>),
    /// What belongs to this object.
    Object { kind: ResourceKind, key: ObjectKey, uid: Uid },
    /// Something that has no object.
    Cluster,
}

/// What an audit looks at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Rows, from this one on.
    Rows(usize),
    /// A part of what is summed up of the cluster as a whole: the first is the engine's own, each further one the state of a plugin.
    Whole(usize),
}

impl Default for Turn {
    fn default() -> Self {
        Self::Rows(0)
    }
}

impl Subject {
    /// The object of this type and name, if it is known.
    pub fn of<T: Any + k8s_openapi::Resource<Scope: ObjectScope>>(cluster: &Cluster, key: &ObjectKey) -> Self {
        cluster.objects().entry::<T>(key.as_str()).map_or(Self::Cluster, |object| Self::Object {
            kind: ResourceKind::typed::<T>(),
            key: key.clone(),
            uid: object.uid.clone(),
        })
    }
}

impl Mismatch {
    /// Of this sum, with what was kept and what it should have been.
    pub fn new(subject: Subject, sum: &'static str, details: impl Into<String>) -> Self {
        Self { subject, sum, details: details.into() }
    }
}

impl Cluster {
    /// Compares the sums that are kept of a row with what its node and pods amount to. Those that differ are set right, and
    /// everything is evaluated anew about the row.
    pub fn audit(&mut self, row: Row) -> Vec<Mismatch> {
        let Some(node) = self.slots.get(row.index()).map(|slot| Arc::clone(&slot.name)) else { return Vec::new() };
        let mut found = Vec::new();
        let mut mismatch = |sum: &'static str, details: String| {
            found.push(Mismatch::new(Subject::Node(Arc::clone(&node)), sum, details));
        };
        if let Some(details) = self.audit_pods_of(row) {
            mismatch("pods_by_row", details);
        }
        let allocatable = self.node(row).cloned().map(|node| self.resources.known(&node.allocatable));
        let allocatable = allocatable.unwrap_or_default();
        if let Some(details) = difference(&self.allocatable, row, &allocatable, self) {
            self.allocatable.set_row(row, &allocatable);
            mismatch("allocatable", details);
        }
        let requested = self.recount_requested(row);
        if let Some(details) = difference(&self.requested, row, &requested, self) {
            self.requested.set_row(row, &requested);
            mismatch("requested", details);
        }
        let (cached, usage) = (self.assumed_usage(row), self.recount_usage(row));
        if cached != usage {
            for (column, usage) in self.assumed_usage.iter_mut().zip(usage) {
                column[row.index()] = usage;
            }
            mismatch("assumed_usage", format!("{cached:?} instead of {usage:?}"));
        }
        let (cached, residents) = (self.cached_residents(row), self.recount_residents(row));
        if cached != residents {
            let placed: Vec<_> = self.pods_on(row).cloned().collect();
            self.population.recount(row, &placed);
            mismatch("pods_by_class", format!("{} classes instead of {}", cached.len(), residents.len()));
        }
        if let Some(node) = self.node(row).cloned()
            && let Some(details) = self.images.audit_row(row, &node)
        {
            mismatch("images", details);
        }
        let labels = self.node(row).map(|node| node.labels.clone());
        if let Some(details) = self.topologies.audit(row, labels.as_ref()) {
            mismatch("domains", details);
        }
        let of_states = self.with_states(|states, cluster| {
            let audits = states.iter_mut().flat_map(|state| state.audit(cluster, row));
            audits.collect::<Vec<_>>()
        });
        for (sum, details) in of_states {
            mismatch(sum, details);
        }
        if !found.is_empty() {
            self.log.note(row);
        }
        found
    }

    /// Counts anew what the pods of a row request and are assumed to use.
    pub(super) fn recount(&mut self, row: Row) {
        let (requested, usage) = (self.recount_requested(row), self.recount_usage(row));
        self.requested.set_row(row, &requested);
        for (column, usage) in self.assumed_usage.iter_mut().zip(usage) {
            column[row.index()] = usage;
        }
    }

    /// What the pods of a row request.
    fn recount_requested(&self, row: Row) -> ResourceVector {
        self.pods_on(row).fold(ResourceVector::default(), |mut sum, placed| {
            sum.add(placed.class.requests());
            sum
        })
    }

    /// What the pods of a row are assumed to use.
    fn recount_usage(&self, row: Row) -> [i64; 2] {
        self.pods_on(row).fold([0; 2], |[cpu, memory], placed| {
            let [more_cpu, more_memory] = placed.class.template().assumed_usage;
            [cpu.saturating_add(more_cpu), memory.saturating_add(more_memory)]
        })
    }

    /// How many pods of each class are on a row, and how many of them are being deleted.
    fn recount_residents(&self, row: Row) -> BTreeMap<ClassId, (u32, u32)> {
        self.pods_on(row).fold(BTreeMap::new(), |mut counts, placed| {
            let (pods, deleting) = counts.entry(placed.class.id()).or_default();
            (*pods, *deleting) = (*pods + 1, *deleting + u32::from(placed.pod.deleting));
            counts
        })
    }

    fn cached_residents(&self, row: Row) -> BTreeMap<ClassId, (u32, u32)> {
        let id = |class: &Arc<Class>| class.id();
        self.residents(row).iter().map(|one| (id(&one.class), (one.pods, one.deleting))).collect()
    }
}

/// How the amounts of a row differ from these.
fn difference(columns: &Columns, row: Row, actual: &ResourceVector, cluster: &Cluster) -> Option<String> {
    let names = cluster.resources.names().filter_map(|name| Some((name, cluster.resources.get(name)?)));
    let amounts = names.map(|(name, id)| (name, columns.get(id, row), actual.get(id)));
    let wrong: Vec<String> = amounts
        .filter(|(_, cached, actual)| cached != actual)
        .map(|(name, cached, actual)| format!("{name} {cached} instead of {actual}"))
        .collect();
    (!wrong.is_empty()).then(|| wrong.join(", "))
}
