//! What pods of the cluster request of GPUs, and what that means for each node.

mod audit;

use std::{collections::BTreeMap, sync::Arc};

use koord_core::uid::Uid;
use koord_scheduler_framework::{cluster::Cluster, columns::Row, node::Node, pod::Pod};
use koord_scheduling::NodeAffinity;

use super::outlook::{Demand, Outlook};

/// The pods with GPUs that are known, running or waiting, and the outlooks that they give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    pods: BTreeMap<Uid, (Demand, u8)>,
    /// The nodes that pods allow, each with the number of its pods.
    affinities: Vec<(NodeAffinity, u64)>,
    /// What the outlooks were made of.
    adopted: Adopted,
    /// By the affinities, as bits, that allow a node.
    outlooks: BTreeMap<u64, Arc<Outlook>>,
    rows: Vec<Option<Arc<Outlook>>>,
    epoch: u64,
}

/// A mix of pods, as it was when there were so many of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Adopted {
    pods: usize,
    /// The demands of pods with each affinity, with their shares of all pods.
    demands: Vec<(NodeAffinity, Vec<(Demand, f64)>)>,
}

impl Mix {
    /// More sets of allowed nodes are not distinguished: further pods count as if every node were allowed.
    const AFFINITIES_MAX: usize = 64;

    /// The outlook of a node.
    pub fn outlook(&self, row: Row) -> Option<&Arc<Outlook>> {
        self.rows.get(row.index())?.as_ref()
    }

    /// Changes with all outlooks.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A pod became known, is known differently, or is gone.
    pub fn pod(&mut self, cluster: &Cluster, uid: &Uid, new: Option<&Pod>) {
        let demand = new.and_then(|pod| Demand::of(&pod.template));
        let old = self.pods.get(uid).copied();
        if old.is_none() && demand.is_none() {
            return;
        }
        if let (Some((old, slot)), Some(demand), Some(pod)) = (old, demand, new)
            && old == demand
            && self.affinities.get(usize::from(slot)).is_some_and(|(known, _)| *known == pod.template.affinity)
        {
            return;
        }
        if let Some((_, slot)) = old
            && let Some((_, pods)) = self.affinities.get_mut(usize::from(slot))
        {
            *pods -= 1;
        }
        if let (Some(demand), Some(pod)) = (demand, new) {
            let slot = self.slot(&pod.template.affinity);
            self.pods.insert(uid.clone(), (demand, slot));
        } else {
            self.pods.remove(uid);
        }
        // Outlooks change little with every pod, and much is kept by them.
        let (now, then) = (self.pods.len(), self.adopted.pods);
        if now > then + then / 4 || now < then - then / 4 {
            self.adopt(cluster);
        }
    }

    /// A node was added, changed or deleted.
    pub fn node(&mut self, cluster: &Cluster, row: Row) {
        let outlook = cluster.node(row).map(|node| self.outlook_of(node));
        if row.index() >= self.rows.len() {
            self.rows.resize(row.index() + 1, None);
        }
        self.rows[row.index()] = outlook;
    }

    /// The place of an affinity, with one more pod: its own, that of one without pods, or that of every node.
    fn slot(&mut self, affinity: &NodeAffinity) -> u8 {
        if self.affinities.is_empty() {
            self.affinities.push((NodeAffinity::default(), 0));
        }
        let known_slot = self.affinities.iter().position(|(known, _)| known == affinity);
        let empty = || (1..self.affinities.len()).find(|index| self.affinities[*index].1 == 0);
        let slot = known_slot.or_else(empty).unwrap_or(self.affinities.len());
        let slot = if slot < Self::AFFINITIES_MAX { slot } else { 0 };
        match self.affinities.get_mut(slot) {
            Some((_, pods)) if slot == 0 || known_slot.is_some() => *pods += 1,
            Some(free) => *free = (affinity.clone(), 1),
            None => self.affinities.push((affinity.clone(), 1)),
        }
        u8::try_from(slot).unwrap_or(0)
    }

    fn adopt(&mut self, cluster: &Cluster) {
        let mut counts: BTreeMap<(u8, Demand), u32> = BTreeMap::new();
        for (demand, slot) in self.pods.values() {
            *counts.entry((*slot, *demand)).or_default() += 1;
        }
        let all = f64::from(u32::try_from(self.pods.len()).unwrap_or(u32::MAX).max(1));
        let of = |(slot, (affinity, _)): (u8, &(NodeAffinity, u64))| {
            let slot_counts = counts.iter().filter(|((at, _), _)| *at == slot);
            let demands: Vec<(Demand, f64)> =
                slot_counts.map(|((_, demand), pods)| (*demand, f64::from(*pods) / all)).collect();
            (affinity.clone(), demands)
        };
        let demands = (0..).zip(&self.affinities).map(of).collect();
        self.adopted = Adopted { pods: self.pods.len(), demands };
        self.outlooks.clear();
        self.rows.clear();
        for (row, _) in cluster.rows() {
            self.node(cluster, row);
        }
        self.epoch += 1;
    }

    fn outlook_of(&mut self, node: &Node) -> Arc<Outlook> {
        let allows = |affinity: &NodeAffinity| {
            affinity.is_everything() || affinity.selects(&node.name, |key| node.labels.get(key))
        };
        let demands = &self.adopted.demands;
        let bits = (0..)
            .zip(demands)
            .filter(|(_, (affinity, _))| allows(affinity))
            .fold(0, |bits, (at, _)| bits | 1_u64 << at);
        let outlook = self.outlooks.entry(bits).or_insert_with(|| {
            let allowed = (0..).zip(demands).filter(|(at, _)| bits & 1_u64 << at != 0);
            let allowed: Vec<(Demand, f64)> = allowed.flat_map(|(_, (_, demands))| demands).copied().collect();
            Arc::new(Outlook::of(&allowed))
        });
        Arc::clone(outlook)
    }
}
