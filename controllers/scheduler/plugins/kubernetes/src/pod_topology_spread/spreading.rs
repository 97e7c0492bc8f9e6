//! How many pods that a constraint selects are in each domain, kept right while rows change.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduler_framework::{
    affinity::SpreadConstraint,
    cluster::{Cluster, Domain, Residents, TopologyId},
    columns::Row,
    node::Node,
    pod::Template,
};
use koord_scheduling::{Effect, untolerated};

use super::{HOSTNAME, selects};

/// The constraints of a class, counted.
pub(super) struct Spreading {
    template: Arc<Template>,
    /// Whether nodes count only where they have the labels of all constraints.
    pub(super) needs_all: bool,
    pub(super) tallies: Vec<Tally>,
}

/// One constraint, counted.
pub(super) struct Tally {
    pub(super) constraint: SpreadConstraint,
    /// 1 where the constraint selects the pod itself.
    pub(super) itself: i64,
    topology: Option<TopologyId>,
    rows: Vec<Counted>,
    domains: Vec<InDomain>,
    /// How many domains have how many pods.
    levels: BTreeMap<i64, i64>,
    /// How many domains there are.
    known: i64,
}

/// What a row adds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    /// Where; nowhere where the node does not count.
    domain: Option<Domain>,
    pods: i64,
}

#[derive(Clone, Copy, Default)]
struct InDomain {
    pods: i64,
    nodes: i64,
}

impl Spreading {
    pub(super) fn new(
        template: &Arc<Template>,
        constraints: Vec<SpreadConstraint>,
        needs_all: bool,
        cluster: &Cluster,
    ) -> Self {
        let tallies = constraints.into_iter().map(|constraint| Tally::new(constraint, template, cluster)).collect();
        let mut spreading = Self { template: Arc::clone(template), needs_all, tallies };
        let pods: Vec<Vec<i64>> = spreading.tallies.iter().map(|tally| tally.pods_by_row(template, cluster)).collect();
        for (row, node) in cluster.rows() {
            spreading.count(cluster, row, node, |index, _| pods[index][row.index()]);
        }
        spreading
    }

    /// Whether a node has the labels of all constraints.
    pub(super) fn has_all(&self, cluster: &Cluster, row: Row) -> bool {
        self.tallies.iter().all(|tally| tally.domain(cluster, row).is_some())
    }

    pub(super) fn refresh(&mut self, cluster: &Cluster, row: Row) {
        let Some(node) = cluster.node(row) else {
            return self.tallies.iter_mut().for_each(|tally| tally.set(row, Counted::default()));
        };
        let template = Arc::clone(&self.template);
        self.count(cluster, row, node, |_, constraint| {
            let residents = cluster.residents(row).iter();
            let counted = residents.filter(|residents| counts(constraint, &template, residents.class.template()));
            counted.map(lasting).sum()
        });
    }

    /// Counts a row, with how many of its pods each constraint counts.
    fn count(&mut self, cluster: &Cluster, row: Row, node: &Node, pods: impl Fn(usize, &SpreadConstraint) -> i64) {
        let is_complete = !self.needs_all || self.has_all(cluster, row);
        for (index, tally) in self.tallies.iter_mut().enumerate() {
            let is_counted = is_complete && includes(&tally.constraint, &self.template, node);
            let domain = is_counted.then(|| tally.domain(cluster, row)).flatten();
            let pods = pods(index, &tally.constraint);
            tally.set(row, Counted { domain, pods });
        }
    }
}

impl Tally {
    fn new(constraint: SpreadConstraint, template: &Template, cluster: &Cluster) -> Self {
        Self {
            itself: i64::from(selects(&constraint, &template.labels)),
            topology: cluster.topology(&constraint.topology_key),
            constraint,
            rows: vec![Counted::default(); cluster.width()],
            domains: Vec::new(),
            levels: BTreeMap::new(),
            known: 0,
        }
    }

    /// Whether each node is a domain of its own.
    pub(super) fn is_per_node(&self) -> bool {
        &*self.constraint.topology_key == HOSTNAME
    }

    pub(super) fn domain(&self, cluster: &Cluster, row: Row) -> Option<Domain> {
        cluster.domain(self.topology?, row)
    }

    /// The pods of a domain.
    pub(super) fn pods(&self, domain: Domain) -> i64 {
        self.domains.get(domain.index()).map_or(0, |counted| counted.pods)
    }

    /// The pods of a node, whether or not it counts.
    pub(super) fn pods_on(&self, row: Row) -> i64 {
        self.rows.get(row.index()).map_or(0, |counted| counted.pods)
    }

    /// The pods of the emptiest domain.
    pub(super) fn fewest(&self) -> i64 {
        let fewest = self.levels.first_key_value().map_or(0, |(pods, _)| *pods);
        if self.known < self.constraint.domains_min { 0 } else { fewest }
    }

    /// In how many domains these nodes are. Nodes without the label are one more.
    pub(super) fn domains_among(&self, cluster: &Cluster, rows: &[Row]) -> usize {
        let mut seen = vec![false; self.topology.map_or(0, |topology| cluster.domains_width(topology)) + 1];
        for row in rows {
            let at = self.domain(cluster, *row).map_or(0, |domain| domain.index() + 1);
            seen.get_mut(at).into_iter().for_each(|seen| *seen = true);
        }
        seen.into_iter().filter(|seen| *seen).count()
    }

    /// How many pods count on each row.
    fn pods_by_row(&self, template: &Template, cluster: &Cluster) -> Vec<i64> {
        let mut pods = vec![0; cluster.width()];
        for (index, class) in cluster.classes().enumerate() {
            if class.is_some_and(|class| counts(&self.constraint, template, class.template())) {
                for (row, residents) in cluster.residents_of(index) {
                    pods[row.index()] += lasting(residents);
                }
            }
        }
        pods
    }

    fn set(&mut self, row: Row, new: Counted) {
        if self.rows.len() <= row.index() {
            self.rows.resize(row.index() + 1, Counted::default());
        }
        let old = std::mem::replace(&mut self.rows[row.index()], new);
        if old != new {
            self.add(old, -1);
            self.add(new, 1);
        }
    }

    fn add(&mut self, Counted { domain, pods }: Counted, sign: i64) {
        let Some(index) = domain.map(Domain::index) else { return };
        if self.domains.len() <= index {
            self.domains.resize(index + 1, InDomain::default());
        }
        let before = self.domains[index];
        let after = InDomain { pods: before.pods + sign * pods, nodes: before.nodes + sign };
        self.domains[index] = after;
        for (counted, sign) in [(before, -1), (after, 1)] {
            if counted.nodes > 0 {
                self.known += sign;
                let level = self.levels.entry(counted.pods).or_default();
                *level += sign;
                if *level == 0 {
                    self.levels.remove(&counted.pods);
                }
            }
        }
    }
}

/// Pods that are going do not count.
fn lasting(residents: &Residents) -> i64 {
    i64::from(residents.pods) - i64::from(residents.deleting)
}

/// Whether a constraint of a pod counts the pods of another template.
///
/// QUIRK: a selector that selects everything counts no pods, though it counts the pod itself
/// (`a_selector_of_everything_counts_the_pod_itself_and_no_other`).
fn counts(constraint: &SpreadConstraint, template: &Template, other: &Template) -> bool {
    let is_everything = constraint.selector.as_ref().is_some_and(koord_scheduling::Selector::is_everything);
    !is_everything && template.namespace == other.namespace && selects(constraint, &other.labels)
}

/// Whether a constraint of a pod counts what is on a node.
fn includes(constraint: &SpreadConstraint, template: &Template, node: &Node) -> bool {
    let is_selected = || template.affinity.selects(&node.name, |key| node.labels.get(key));
    let is_tolerated = || untolerated(&node.taints, &template.tolerations, &Effect::HARD).is_none();
    (!constraint.honors_affinity || is_selected()) && (!constraint.honors_taints || is_tolerated())
}
