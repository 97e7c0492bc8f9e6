//! Which topology domain each node is in, as columns: one per label of nodes that pods name as a topology key.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
};

use koord_core::intern::Sweep;

use crate::{columns::Row, labels::Labels, node::Node};

/// A topology key that is kept as a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyId(usize);

/// A value of a topology key: the nodes that have it are one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain(NonZeroU32);

impl Domain {
    /// The position in an array with one element per domain.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    fn at(index: usize) -> Option<Self> {
        u32::try_from(index + 1).ok().and_then(NonZeroU32::new).map(Self)
    }
}

/// The columns of all topology keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Topologies {
    ids: BTreeMap<Arc<str>, TopologyId>,
    columns: Vec<Topology>,
    free: Vec<TopologyId>,
    /// Keys that stay whether or not a class names them.
    pinned: BTreeSet<Arc<str>>,
    sweep: Sweep<32>,
}

#[derive(Clone, Debug, Default)]
struct Topology {
    by_row: Vec<Option<Domain>>,
    names: BTreeMap<Arc<str>, Domain>,
    /// By domain: its name, and how many nodes are in it.
    domains: Vec<(Arc<str>, u32)>,
    free: Vec<Domain>,
}

impl Topologies {
    pub(super) fn id(&self, key: &str) -> Option<TopologyId> {
        self.ids.get(key).copied()
    }

    pub(super) fn domain(&self, id: TopologyId, row: Row) -> Option<Domain> {
        self.columns.get(id.0)?.by_row.get(row.index()).copied().flatten()
    }

    pub(super) fn width(&self, id: TopologyId) -> usize {
        self.columns.get(id.0).map_or(0, |topology| topology.domains.len())
    }

    pub(super) fn pin(&mut self, key: &Arc<str>) {
        self.pinned.insert(Arc::clone(key));
    }

    /// Keeps columns for these keys from now on. The nodes are looked through once for all of them: a pod may name thousands.
    pub(super) fn track<'k, 'n>(
        &mut self,
        keys: impl IntoIterator<Item = &'k Arc<str>>,
        nodes: impl Iterator<Item = (Row, &'n Arc<Node>)>,
    ) {
        let mut new = BTreeMap::new();
        for key in keys {
            if self.ids.contains_key(key) {
                continue;
            }
            let id = self.free.pop().unwrap_or(TopologyId(self.columns.len()));
            if id.0 == self.columns.len() {
                self.columns.push(Topology::default());
            }
            self.ids.insert(Arc::clone(key), id);
            new.insert(&**key, id);
        }
        if new.is_empty() {
            return;
        }
        for (row, node) in nodes {
            for (key, value) in node.labels.iter() {
                if let Some(id) = new.get(key) {
                    self.columns[id.0].set(row, Some(value));
                }
            }
        }
    }

    /// Whether it is time to say which keys are in use.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.sweep.is_due(self.ids.len())
    }

    /// Drops the columns of keys that are not in use.
    pub(super) fn sweep(&mut self, used: &BTreeSet<Arc<str>>) {
        let Self { ids, columns, free, pinned, .. } = self;
        ids.retain(|key, id| {
            let is_used = used.contains(key) || pinned.contains(key);
            if !is_used {
                columns[id.0] = Topology::default();
                free.push(*id);
            }
            is_used
        });
        self.sweep.done(self.ids.len());
    }

    pub(super) fn set_node(&mut self, row: Row, labels: Option<&Labels>) {
        for (key, id) in &self.ids {
            self.columns[id.0].set(row, labels.and_then(|labels| labels.get(key)));
        }
    }

    /// Compares the domains of a row with its labels, and sets right what differs.
    pub(super) fn audit(&mut self, row: Row, labels: Option<&Labels>) -> Option<String> {
        let Self { ids, columns, .. } = self;
        let wrong = ids.iter().filter_map(|(key, id)| {
            let (topology, value) = (&mut columns[id.0], labels.and_then(|labels| labels.get(key)));
            let cached = topology.value(row).map(Arc::clone);
            (cached.as_deref() != value).then(|| {
                topology.set(row, value);
                format!("{key} {} instead of {}", cached.as_deref().unwrap_or("none"), value.unwrap_or("none"))
            })
        });
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }

    /// Compares how many nodes are in each domain with the domains of all rows, and sets right what differs.
    pub(super) fn audit_domains(&mut self) -> Option<String> {
        let Self { ids, columns, .. } = self;
        let wrong: Vec<String> = ids
            .iter()
            .flat_map(|(key, id)| columns[id.0].audit_domains().map(move |difference| format!("{key} {difference}")))
            .collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }
}

impl Topology {
    /// The name of the domain of a row.
    fn value(&self, row: Row) -> Option<&Arc<str>> {
        let domain = self.by_row.get(row.index()).copied().flatten()?;
        self.domains.get(domain.index()).map(|(name, _)| name)
    }

    fn audit_domains(&mut self) -> impl Iterator<Item = String> + use<> {
        let mut counts = vec![0; self.domains.len()];
        self.by_row.iter().flatten().for_each(|domain| counts[domain.index()] += 1);
        let mut wrong = Vec::new();
        for (index, ((name, nodes), count)) in self.domains.iter_mut().zip(counts).enumerate() {
            if *nodes != count {
                wrong.push(format!("{nodes} nodes instead of {count} in {name}"));
                *nodes = count;
                if let (0, Some(domain)) = (count, Domain::at(index)) {
                    self.names.remove(name);
                    self.free.push(domain);
                }
            }
        }
        wrong.into_iter()
    }

    fn set(&mut self, row: Row, value: Option<&str>) {
        if self.by_row.len() <= row.index() {
            // A key that no node has costs no column.
            if value.is_none() {
                return;
            }
            self.by_row.resize(row.index() + 1, None);
        }
        let old = self.by_row[row.index()];
        if old.and_then(|domain| self.domains.get(domain.index())).map(|(name, _)| &**name) == value {
            return;
        }
        let new = value.and_then(|value| self.enter(value));
        self.by_row[row.index()] = new;
        if let Some(domain) = old {
            self.leave(domain);
        }
    }

    fn enter(&mut self, value: &str) -> Option<Domain> {
        if let Some(domain) = self.names.get(value).copied() {
            self.domains[domain.index()].1 += 1;
            return Some(domain);
        }
        let name: Arc<str> = value.into();
        let domain = if let Some(domain) = self.free.pop() {
            self.domains[domain.index()] = (Arc::clone(&name), 1);
            domain
        } else {
            let domain = Domain::at(self.domains.len())?;
            self.domains.push((Arc::clone(&name), 1));
            domain
        };
        self.names.insert(name, domain);
        Some(domain)
    }

    fn leave(&mut self, domain: Domain) {
        let (name, nodes) = &mut self.domains[domain.index()];
        *nodes -= 1;
        if *nodes == 0 {
            self.names.remove(name);
            self.free.push(domain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(index: usize) -> Row {
        Row::at(index).unwrap()
    }

    #[test]
    fn nodes_with_the_same_value_share_a_domain_and_values_that_are_gone_give_it_back() {
        let mut topologies = Topologies::default();
        let key: Arc<str> = "zone".into();
        topologies.track([&key], std::iter::empty());
        let id = topologies.id("zone").unwrap();
        let set = |topologies: &mut Topologies, index, zone: Option<&str>| {
            let labels: Option<Labels> = zone.map(|zone| [("zone", zone)].into_iter().collect());
            topologies.set_node(row(index), labels.as_ref());
            (0..3).map(|index| topologies.domain(id, row(index)).map(Domain::index)).collect::<Vec<_>>()
        };
        assert_eq!(set(&mut topologies, 2, Some("a")), [None, None, Some(0)]);
        assert_eq!(set(&mut topologies, 0, Some("b")), [Some(1), None, Some(0)]);
        assert_eq!(set(&mut topologies, 1, Some("a")), [Some(1), Some(0), Some(0)]);
        assert_eq!(set(&mut topologies, 0, None), [None, Some(0), Some(0)]);
        assert_eq!(set(&mut topologies, 1, Some("c")), [None, Some(1), Some(0)], "the number of b is used again");
        assert_eq!(topologies.width(id), 2);
    }

    #[test]
    fn keys_that_no_node_has_cost_no_column() {
        let mut topologies = Topologies::default();
        let keys: Vec<Arc<str>> = (0..100).map(|key| format!("k{key}").into()).collect();
        let labels = [("k7", "a")].into_iter().collect();
        let node = Arc::new(Node { labels, ..Node::default() });
        topologies.track(&keys, [(row(0), &node), (row(999), &node)].into_iter());
        topologies.set_node(row(500), None);
        let rows: Vec<usize> = topologies.columns.iter().map(|topology| topology.by_row.len()).collect();
        assert_eq!((rows[7], rows.iter().sum::<usize>()), (1000, 1000));
        let id = topologies.id("k7").unwrap();
        assert_eq!([0, 500, 999].map(|at| topologies.domain(id, row(at)).is_some()), [true, false, true]);
    }

    #[test]
    fn unused_keys_are_dropped_and_pinned_ones_stay() {
        let mut topologies = Topologies::default();
        let keys: Vec<Arc<str>> = (0..32).map(|key| format!("k{key}").into()).collect();
        assert!(!topologies.is_sweep_due());
        for key in &keys {
            topologies.track([key], std::iter::empty());
        }
        topologies.pin(&keys[1]);
        assert!(topologies.is_sweep_due());
        topologies.sweep(&[Arc::clone(&keys[0])].into());
        let known: Vec<bool> = keys.iter().map(|key| topologies.id(key).is_some()).collect();
        assert_eq!((&known[..2], known.iter().filter(|known| **known).count()), (&[true, true][..], 2));
        topologies.track([&"new".into()], std::iter::empty());
        assert_eq!(topologies.columns.len(), 32, "columns are used again");
    }
}
