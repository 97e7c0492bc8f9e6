//! Sums over the pods of each topology domain, kept right while rows change.

use std::collections::BTreeMap;

use koord_scheduler_framework::{
    cluster::{Cluster, Domain, TopologyId},
    columns::Row,
    pod::Template,
};

use super::Amounts;

/// Of each topology key, the sum over the pods of each domain.
#[derive(Default)]
pub(super) struct DomainSums {
    sums: Vec<(TopologyId, Vec<i64>)>,
    /// What each row has added; rows that have added nothing are not there.
    rows: BTreeMap<Row, Vec<(TopologyId, Domain, i64)>>,
}

impl DomainSums {
    /// Sums what `amounts` says about one pod of a template over all pods.
    pub(super) fn new(cluster: &Cluster, amounts: impl Fn(&Template) -> Amounts) -> Self {
        let mut sums = Self::default();
        let mut by_row: BTreeMap<Row, Amounts> = BTreeMap::new();
        for (index, class) in cluster.classes().enumerate() {
            let of_class = class.map(|class| amounts(class.template())).unwrap_or_default();
            if of_class.is_empty() {
                continue;
            }
            for (row, residents) in cluster.residents_of(index).filter(|(row, _)| cluster.node(*row).is_some()) {
                let of_residents = of_class.iter().map(|(key, amount)| (*key, amount * i64::from(residents.pods)));
                by_row.entry(row).or_default().extend(of_residents);
            }
        }
        for (row, amounts) in by_row {
            sums.set(cluster, row, amounts.into_iter());
        }
        sums
    }

    /// Whether nothing is summed.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The sum of a domain.
    pub(super) fn get(&self, key: TopologyId, domain: Domain) -> i64 {
        let of_key = self.sums.iter().find(|(known, _)| *known == key);
        of_key.and_then(|(_, sums)| sums.get(domain.index())).copied().unwrap_or(0)
    }

    /// The sums of all domains that a node is in.
    pub(super) fn sum(&self, cluster: &Cluster, row: Row) -> i64 {
        self.of_row(cluster, row).sum()
    }

    /// Whether a domain that a node is in has any.
    pub(super) fn is_positive(&self, cluster: &Cluster, row: Row) -> bool {
        self.of_row(cluster, row).any(|sum| sum > 0)
    }

    fn of_row(&self, cluster: &Cluster, row: Row) -> impl Iterator<Item = i64> {
        let domain = move |key: &TopologyId| cluster.domain(*key, row).map(Domain::index);
        self.sums.iter().filter_map(move |(key, sums)| sums.get(domain(key)?).copied())
    }

    pub(super) fn refresh(&mut self, cluster: &Cluster, row: Row, amounts: impl Fn(&Template) -> Amounts) {
        let residents = if cluster.node(row).is_some() { cluster.residents(row) } else { &[] };
        let amounts = residents.iter().flat_map(|residents| {
            let of_class = amounts(residents.class.template()).into_iter();
            of_class.map(|(key, amount)| (key, amount * i64::from(residents.pods)))
        });
        self.set(cluster, row, amounts);
    }

    /// Replaces what a row adds.
    fn set(&mut self, cluster: &Cluster, row: Row, amounts: impl Iterator<Item = (TopologyId, i64)>) {
        for (key, domain, amount) in self.rows.remove(&row).unwrap_or_default() {
            self.add(key, domain, -amount);
        }
        let new: Vec<_> = amounts.filter_map(|(key, amount)| Some((key, cluster.domain(key, row)?, amount))).collect();
        for (key, domain, amount) in &new {
            self.add(*key, *domain, *amount);
        }
        if !new.is_empty() {
            self.rows.insert(row, new);
        }
    }

    fn add(&mut self, key: TopologyId, domain: Domain, amount: i64) {
        let at = self.sums.iter().position(|(known, _)| *known == key).unwrap_or(self.sums.len());
        if at == self.sums.len() {
            self.sums.push((key, Vec::new()));
        }
        let sums = &mut self.sums[at].1;
        if sums.len() <= domain.index() {
            sums.resize(domain.index() + 1, 0);
        }
        sums[domain.index()] += amount;
    }
}
