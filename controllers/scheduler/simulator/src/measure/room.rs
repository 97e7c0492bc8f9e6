//! Fragmentation: what is free and of no use to the pods that come, as "Beware of Fragmentation" (USENIX ATC 2023) measures it.
//!
//! For each of the most frequent kinds of pods it is asked of every node whether one more of it would have a place there. What is
//! free on the nodes where it has none is of no use to it, and so is what is left of a GPU that is too small for it. The measure
//! is the mean over the kinds, each as often as its pods come.

use std::collections::BTreeMap;

use koord_engine::{cluster::Cluster, node::Node};

use super::{GPUS, gpus, of_row};
use crate::survey::{Kind, Survey};

/// Asks the nodes of a cluster. Which nodes a kind may run on is asked once, because nodes stay as they are.
#[derive(Default)]
pub(crate) struct Rooms {
    /// By kind and node.
    allowed: Vec<Vec<bool>>,
}

impl Rooms {
    /// The share of all of each resource that is free and of no use.
    pub(crate) fn fragmented(&mut self, cluster: &Cluster, survey: &Survey) -> BTreeMap<String, f64> {
        if self.allowed.is_empty() {
            self.allowed = survey.kinds.iter().map(|kind| allowed(cluster, kind)).collect();
        }
        let pods: usize = survey.kinds.iter().map(|kind| kind.pods).sum();
        let mut lost: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for (index, (row, _)) in cluster.rows().enumerate() {
            let amounts = of_row(cluster, row, &survey.capacity);
            let free: BTreeMap<&str, i64> =
                amounts.iter().map(|(name, used, all)| (*name, all.saturating_sub(*used))).collect();
            let devices = gpus(cluster, row);
            let free_gpus: Vec<i64> = devices.iter().map(|(_, free)| *free).collect();
            let cpu = free.get("cpu").copied().unwrap_or_default();
            for (kind, allowed) in survey.kinds.iter().zip(&self.allowed) {
                let is_allowed = allowed.get(index).copied().unwrap_or_default();
                let fits = |(name, amount): (&String, &i64)| free.get(name.as_str()).is_some_and(|free| amount <= free);
                let has_place = is_allowed && kind.amounts.iter().filter(|(_, amount)| **amount > 0).all(fits);
                let weight = kind.pods as f64;
                for name in ["cpu", "memory"] {
                    let unused = if has_place { 0 } else { free.get(name).copied().unwrap_or_default().max(0) };
                    lost.entry(name).or_default().0 += unused as f64 * weight;
                }
                if !devices.is_empty() {
                    let unused = kind.demand.of_no_use(&free_gpus, cpu, is_allowed);
                    lost.entry(GPUS).or_default().0 += unused as f64 * weight;
                }
            }
            let all = amounts.iter().map(|(name, _, all)| (*name, *all));
            let all = all.chain([(GPUS, devices.iter().map(|(total, _)| total).sum())]);
            for (name, all) in all {
                if let Some((_, sum)) = lost.get_mut(name) {
                    *sum += all as f64;
                }
            }
        }
        let share = |(name, (lost, all)): (&str, (f64, f64))| {
            (all > 0.0 && pods > 0).then(|| (name.to_owned(), lost / (pods as f64 * all)))
        };
        lost.into_iter().filter_map(share).collect()
    }
}

fn allowed(cluster: &Cluster, kind: &Kind) -> Vec<bool> {
    let allows = |node: &Node| {
        let selects = || kind.affinity.selects(&node.name, |key| node.labels.get(key));
        !node.unschedulable && (kind.affinity.is_everything() || selects())
    };
    cluster.rows().map(|(_, node)| allows(node)).collect()
}
