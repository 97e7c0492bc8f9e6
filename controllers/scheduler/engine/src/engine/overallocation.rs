//! What is given to more than may have it: what plugins have given twice, and nodes whose pods request more than there is.
//!
//! Nothing of it is set right. A node may shrink below what its pods request, other schedulers may bind to it, and a pod that was bound
//! by hand may have what another has, so whose pods they are is said beside it.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduler_framework::{
    DoubleAllocation, Figure,
    cluster::{Cluster, Placed, Subject, Turn},
    columns::Row,
};

use super::Engine;

/// How many things are given twice, by what they are and whose pods have them.
const GIVEN_TWICE: &str = "koord_scheduler_given_twice";
/// How many nodes offer less of a resource than their pods request, by whose pods request more than there is.
const OVERCOMMITTED: &str = "koord_scheduler_nodes_overcommitted";

/// Whose pods have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// Pods of this scheduler's profiles alone.
    ThisScheduler,
    /// Pods of other schedulers are among them.
    Others,
}

/// Something that is given to more than may have it, as an audit reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overallocation {
    /// The node or the object.
    pub subject: Subject,
    /// Which kind of thing it is, in one word.
    pub what: &'static str,
    /// Which one it is, and who has it.
    pub details: String,
    /// Whose pods have it.
    pub whose: Whose,
}

/// What was found when each row was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Overallocations {
    /// By row; of no row what belongs to no single node.
    twice: BTreeMap<Option<Row>, Vec<Overallocation>>,
    /// By row, the resources of which its pods request more than it offers.
    overcommitted: BTreeMap<Row, BTreeMap<String, Whose>>,
}

impl Whose {
    /// As the label of a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ThisScheduler => "own",
            Self::Others => "others",
        }
    }
}

impl Overallocations {
    /// Keeps what is given twice now. Gives what was not when it was looked at last.
    fn note(&mut self, row: Option<Row>, found: Vec<Overallocation>) -> Vec<Overallocation> {
        let known = self.twice.remove(&row).unwrap_or_default();
        let new = found.iter().filter(|one| !known.contains(one)).cloned().collect();
        if !found.is_empty() {
            self.twice.insert(row, found);
        }
        new
    }

    /// For metrics.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let twice = self.twice.values().flatten().map(|excess| (GIVEN_TWICE, excess.what, excess.whose));
        let nodes = self.overcommitted.values().flatten();
        let nodes = nodes.map(|(resource, whose)| (OVERCOMMITTED, resource.as_str(), *whose));
        let counts = twice.chain(nodes).fold(BTreeMap::<_, u32>::new(), |mut counts, one| {
            *counts.entry(one).or_default() += 1;
            counts
        });
        let figure = |((name, what, whose), count): ((&'static str, &str, Whose), u32)| Figure {
            name,
            labels: vec![what.to_owned(), whose.as_str().to_owned()],
            value: f64::from(count),
        };
        counts.into_iter().map(figure).collect()
    }
}

impl Engine {
    /// Looks for what is given to more than may have it, among the rows at which [`Engine::audit`] looks in this turn; what belongs to
    /// no single node is looked at after the last of them. Gives what was given twice and was not when it was looked at last.
    pub fn overallocations(&mut self, turn: Turn, rows: usize) -> Vec<Overallocation> {
        match turn {
            Turn::Rows(from) => {
                let end = from.saturating_add(rows).min(self.cluster.width());
                (from..end).filter_map(Row::at).flat_map(|row| self.excesses_of(row)).collect()
            }
            Turn::Whole(0) => {
                let found = self.double_allocations(None);
                self.overallocations.note(None, found)
            }
            Turn::Whole(_) => Vec::new(),
        }
    }

    fn excesses_of(&mut self, row: Row) -> Vec<Overallocation> {
        let overcommitted = overcommitted(&self.cluster, row);
        if overcommitted.is_empty() {
            self.overallocations.overcommitted.remove(&row);
        } else {
            self.overallocations.overcommitted.insert(row, overcommitted);
        }
        let found = self.double_allocations(Some(row));
        self.overallocations.note(Some(row), found)
    }

    /// What plugins have given twice. A plugin of several profiles is asked once.
    fn double_allocations(&self, row: Option<Row>) -> Vec<Overallocation> {
        let name = row.and_then(|row| self.cluster.name(row));
        let of = |DoubleAllocation { what, details, pods, subject }| {
            let is_own = |uid| self.cluster.pod(uid).is_some_and(|placed| !self.cluster.is_foreign(&placed.pod));
            let whose = if pods.iter().all(is_own) { Whose::ThisScheduler } else { Whose::Others };
            let node = || name.map_or(Subject::Cluster, |name| Subject::Node(Arc::clone(name)));
            Overallocation { subject: subject.unwrap_or_else(node), what, details, whose }
        };
        let plugins = self.profiles.iter().flat_map(|profile| &profile.plugins);
        let plugins: BTreeMap<&str, _> = plugins.map(|plugin| (plugin.name(), plugin)).collect();
        let points = plugins.values().filter_map(|plugin| plugin.audit.as_ref());
        points.flat_map(|point| point.double_allocations(&self.cluster, row)).map(of).collect()
    }
}

/// The resources of which the pods of a node request more than it offers, with whose they are: this scheduler's where its own pods alone
/// request more. A reserve pod is not counted, for its owners are counted themselves.
fn overcommitted(cluster: &Cluster, row: Row) -> BTreeMap<String, Whose> {
    if cluster.node(row).is_none() {
        return BTreeMap::new();
    }
    let names = cluster.resources().names().filter_map(|name| Some((name, cluster.resources().get(name)?)));
    let over = names.filter(|(_, resource)| cluster.requested(*resource, row) > cluster.allocatable(*resource, row));
    let whose = over.filter_map(|(name, resource)| {
        let sum = |is_counted: &dyn Fn(&Placed) -> bool| {
            let pods = cluster.pods_on(row).filter(|placed| !placed.pod.is_reservation() && is_counted(placed));
            pods.map(|placed| placed.class.requests().get(resource)).fold(0, i64::saturating_add)
        };
        let offered = cluster.allocatable(resource, row);
        let own_requests = sum(&|placed: &Placed| !cluster.is_foreign(&placed.pod));
        let whose = if own_requests > offered { Whose::ThisScheduler } else { Whose::Others };
        (sum(&|_: &Placed| true) > offered).then(|| (name.to_owned(), whose))
    });
    whose.collect()
}
