//! Nodes and GPUs compared by what a pod would cause to be lost of the free GPUs.

use std::collections::BTreeMap;

use koord_engine::{
    cluster::Cluster,
    columns::Row,
    plugin::{SCORE_MAX, Scale, Score},
};
use koord_scheduling::ResourceId;
use smallvec::SmallVec;

use super::{
    combination::Gpus,
    node::{Device, NodeDevices},
    outlook::{Outlook, percent},
    request::{GpuRequest, Kind},
    state::Devices,
};

/// Compares nodes for pods of a class by what they would cause to be lost of the free GPUs: the best node has the highest
/// score, and each further hundredth of a GPU takes a point.
#[derive(Clone, Debug)]
pub(super) struct Fragments(pub(super) Taken);

/// What a pod takes of a node.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    gpus: Option<Gpus>,
    milli_cpu: i64,
}

/// What is free of a node.
struct Free<'a> {
    node: &'a NodeDevices,
    outlook: &'a Outlook,
    /// In percent, of the GPUs that the node reports, in their order.
    gpus: SmallVec<[u8; 16]>,
    milli_cpu: i64,
}

/// A point of the score, in millionths of a GPU.
const POINT: i64 = 10_000;

impl Taken {
    /// What a pod takes that requests so much CPU and these GPUs.
    pub(super) fn of(milli_cpu: i64, gpus: Option<&GpuRequest>) -> Self {
        let gpus = gpus.map(|gpus| Gpus { each: gpus.each, count: gpus.count, is_shared: gpus.is_shared });
        Self { gpus, milli_cpu }
    }

    /// Whether it is nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.gpus.is_none() && self.milli_cpu == 0
    }

    /// For a share of a GPU: what the node would gain by each GPU that has it, by minor number, in millionths of a GPU.
    pub(super) fn by_gpu(&self, cluster: &Cluster, row: Row) -> BTreeMap<i32, i64> {
        let shared = self.gpus.as_ref().filter(|gpus| gpus.is_shared && gpus.count == 1);
        let (Some(gpus), Some(free)) = (shared, Free::of(cluster, row)) else { return BTreeMap::new() };
        let by_gpu = (0..).zip(reported(free.node)).filter_map(|(at, (minor, device))| {
            Some((minor, -millionths(free.lost_after(self.milli_cpu, &[(at, needed(gpus, device, free.gpus[at])?)]))))
        });
        by_gpu.collect()
    }

    /// What a node would gain, in millionths of a GPU; below 0 what it would lose.
    fn gain(&self, cluster: &Cluster, row: Row) -> i64 {
        let Some(free) = Free::of(cluster, row) else { return 0 };
        let before = free.lost_after(0, &[]);
        let after = match &self.gpus {
            None => Some(free.lost_after(self.milli_cpu, &[])),
            Some(gpus) => self.least_lost(gpus, &free),
        };
        after.map_or(0, |after| millionths(before - after))
    }

    fn least_lost(&self, gpus: &Gpus, free: &Free<'_>) -> Option<f64> {
        let fitting = (0..).zip(reported(free.node));
        let mut fitting: SmallVec<[(usize, u8); 16]> =
            fitting.filter_map(|(at, (_, device))| Some((at, needed(gpus, device, free.gpus[at])?))).collect();
        fitting.sort_by_key(|(at, _)| free.gpus[*at]);
        if gpus.count > 1 || !gpus.is_shared {
            let taken = fitting.get(..gpus.count)?;
            return Some(free.lost_after(self.milli_cpu, taken));
        }
        fitting.dedup_by_key(|(at, _)| free.gpus[*at]);
        let lost = fitting.iter().map(|taken| free.lost_after(self.milli_cpu, &[*taken]));
        lost.reduce(f64::min)
    }
}

impl<'a> Free<'a> {
    /// None where nothing is known of the node's GPUs.
    fn of(cluster: &'a Cluster, row: Row) -> Option<Self> {
        let devices = cluster.state::<Devices>()?;
        let (node, outlook) = (devices.of(row)?, devices.mix.outlook(row)?);
        let gpus = reported(node).map(|(_, device)| free(device)).collect();
        let milli_cpu = cluster.allocatable(ResourceId::CPU, row) - cluster.requested(ResourceId::CPU, row);
        Some(Self { node, outlook, gpus, milli_cpu })
    }

    /// What is lost once so much CPU and these percentages of GPUs are taken.
    fn lost_after(&self, milli_cpu: i64, taken: &[(usize, u8)]) -> f64 {
        let of = |at: usize| taken.iter().find(|(taken, _)| *taken == at).map_or(0, |(_, percent)| *percent);
        let left = self.gpus.iter().enumerate().map(|(at, free)| free.saturating_sub(of(at)));
        self.outlook.lost(left, self.milli_cpu - milli_cpu)
    }
}

/// The GPUs that a node reports.
fn reported(node: &NodeDevices) -> impl Iterator<Item = (i32, &Device)> {
    node.of(Kind::Gpu).filter(|(_, device)| device.is_reported)
}

/// What is free of a GPU, in percent: of its cores or of its memory, whichever is less.
fn free(device: &Device) -> u8 {
    let used = percent(&device.used).unwrap_or(0);
    percent(&device.total).unwrap_or(0).saturating_sub(used)
}

/// The percentage of a GPU that a pod takes; none where less is free.
fn needed(gpus: &Gpus, device: &Device, free: u8) -> Option<u8> {
    percent(&device.complete(&gpus.each)).filter(|needed| *needed <= free)
}

#[expect(clippy::cast_possible_truncation, reason = "a node has fewer than millions of GPUs")]
fn millionths(gpus: f64) -> i64 {
    (gpus * 1e6).round() as i64
}

/// How much less is gained than at best, in points.
fn worse(gain: i64, highest: i64) -> i64 {
    let worse = highest.saturating_sub(gain).saturating_add(POINT - 1) / POINT;
    SCORE_MAX - worse.min(SCORE_MAX)
}

impl Score for Fragments {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        self.0.gain(cluster, row)
    }

    fn scale(&self) -> Option<Scale> {
        Some(worse)
    }

    fn is_local(&self) -> bool {
        false
    }
}
