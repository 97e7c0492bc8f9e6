//! Fragmentation: what is free and of no use to the pods that come, as "Beware of Fragmentation" (USENIX ATC 2023) measures it.
//!
//! For each of the most frequent kinds of pods it is asked of every node whether one more of it would have a place there. What is
//! free on the nodes where it has none is of no use to it, and so is what is left of a GPU that is too small for it. The measure
//! is the mean over the kinds, each as often as its pods come.

use std::collections::{BTreeMap, BTreeSet};

use koord_scheduler_framework::{
    cluster::{Cluster, Position},
    columns::Row,
    node::Node,
};
use koord_scheduler_openb::Demand;
use koord_scheduling::ResourceId;

use super::{GPUS, gpus};
use crate::survey::{Kind, Survey};

/// Asks the nodes of a cluster: all of them at first, then those that have changed.
#[derive(Default)]
pub(crate) struct Rooms {
    kinds: Vec<Asking>,
    rows: BTreeMap<Row, Room>,
    seen: Option<Position>,
}

/// A kind of pods in the numbers of the columns.
struct Asking {
    amounts: Vec<(ResourceId, i64)>,
    demand: Demand,
    /// The rows that it may run on. Nodes stay as they are.
    allowed: BTreeSet<Row>,
    weight: f64,
}

/// What of a row is free and of no use, in the mean, and what there is: of cpu, memory and GPUs.
#[derive(Clone, Copy, Default)]
struct Room {
    of_no_use: [f64; 3],
    all: [i64; 3],
}

impl Rooms {
    /// The share of all of each resource that is free and of no use.
    pub(crate) fn fragmented(&mut self, cluster: &Cluster, survey: &Survey) -> BTreeMap<String, f64> {
        let pods: usize = survey.kinds.iter().map(|kind| kind.pods).sum();
        if self.kinds.is_empty() {
            self.kinds = survey.kinds.iter().map(|kind| asking(cluster, kind, pods)).collect();
        }
        let changed: Option<BTreeSet<Row>> =
            self.seen.and_then(|seen| cluster.changed_since(seen)).map(Iterator::collect);
        self.seen = Some(cluster.position());
        for (row, _) in cluster.rows() {
            if changed.as_ref().is_none_or(|changed| changed.contains(&row)) || !self.rows.contains_key(&row) {
                self.rows.insert(row, self.room(cluster, row));
            }
        }
        let mut sum = Room::default();
        for room in self.rows.values() {
            for (sum, part) in sum.of_no_use.iter_mut().zip(room.of_no_use) {
                *sum += part;
            }
            for (sum, part) in sum.all.iter_mut().zip(room.all) {
                *sum = sum.saturating_add(part);
            }
        }
        let shares = ["cpu", "memory", GPUS].into_iter().zip(sum.of_no_use).zip(sum.all);
        let shares = shares.filter(|(_, all)| *all > 0 && pods > 0);
        shares.map(|((name, of_no_use), all)| (name.to_owned(), of_no_use / all as f64)).collect()
    }

    fn room(&self, cluster: &Cluster, row: Row) -> Room {
        let all = |id: ResourceId| cluster.allocatable(id, row);
        let free = |id: ResourceId| all(id).saturating_sub(cluster.requested(id, row));
        let (cpu, memory) = (free(ResourceId::CPU), free(ResourceId::MEMORY));
        let devices = gpus(cluster, row);
        let free_gpus: Vec<i64> = devices.iter().map(|(_, free)| *free).collect();
        let gpus = devices.iter().map(|(total, _)| total).sum();
        let mut room = Room { all: [all(ResourceId::CPU), all(ResourceId::MEMORY), gpus], ..Room::default() };
        for kind in &self.kinds {
            let is_allowed = kind.allowed.contains(&row);
            let has_place = is_allowed && kind.amounts.iter().all(|(id, amount)| *amount <= free(*id));
            let unused = |free: i64| if has_place { 0 } else { free.max(0) };
            let parts = [unused(cpu), unused(memory), kind.demand.of_no_use(&free_gpus, cpu, is_allowed)];
            for (sum, part) in room.of_no_use.iter_mut().zip(parts) {
                *sum += part as f64 * kind.weight;
            }
        }
        room
    }
}

fn asking(cluster: &Cluster, kind: &Kind, pods: usize) -> Asking {
    let allows = |node: &Node| {
        let selects = || kind.affinity.selects(&node.name, |key| node.labels.get(key));
        !node.unschedulable && (kind.affinity.is_everything() || selects())
    };
    // A resource that no node has ever named is offered by none.
    let offered = kind.amounts.iter().filter(|(_, amount)| **amount > 0);
    let amounts: Option<Vec<_>> =
        offered.map(|(name, amount)| Some((cluster.resources().get(name)?, *amount))).collect();
    let rows = cluster.rows().filter(|(_, node)| amounts.is_some() && allows(node)).map(|(row, _)| row);
    let allowed = rows.collect();
    let weight = kind.pods as f64 / pods.max(1) as f64;
    Asking { amounts: amounts.unwrap_or_default(), demand: kind.demand, allowed, weight }
}
