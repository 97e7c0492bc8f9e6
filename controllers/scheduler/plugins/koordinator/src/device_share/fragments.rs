//! Nodes and GPUs compared by what a pod would cause to be lost of the free GPUs.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduler_allocation::devices::{
    combination::RequestedGpus,
    gpus::Gpu,
    node::{NodeDevices, completed},
    outlook::{Outlook, percent},
    request::{GpuRequest, Kind},
    state::Devices,
};
use koord_scheduler_framework::{NodeScore, SCORE_MAX, Scale, cluster::Cluster, columns::Row};
use koord_scheduling::ResourceId;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Compares nodes for pods of a class by what they would cause to be lost of the free GPUs: the best node has the highest
/// score, and each further hundredth of a GPU takes a point.
#[derive(Debug)]
pub(super) struct Fragments {
    taken: Taken,
    /// What they gain on nodes that were filtered lately, each in a place of its own. Many nodes are alike: where nodes are filtered for a
    /// new class, or again because pods come in another mix, it is calculated for few of them.
    lately: Mutex<Vec<Option<Known>>>,
}

/// What a pod takes of a node.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    gpus: Option<RequestedGpus>,
    milli_cpu: i64,
}

/// What is free of a node.
struct Free<'a> {
    node: &'a NodeDevices,
    outlook: &'a Arc<Outlook>,
    /// The GPUs that the node reports, in their order.
    gpus: &'a [Gpu],
    milli_cpu: i64,
}

/// What is gained on nodes of which so much is free.
#[derive(Clone, Debug)]
struct Known {
    outlook: Arc<Outlook>,
    milli_cpu: i64,
    gpus: SmallVec<[Gpu; 8]>,
    gain: i64,
}

/// A point of the score, in millionths of a GPU.
const POINT: i64 = 10_000;

impl Taken {
    /// What a pod takes that requests so much CPU and these GPUs.
    pub(super) fn of(milli_cpu: i64, gpus: Option<&GpuRequest>) -> Self {
        let gpus = gpus.map(|gpus| RequestedGpus { each: gpus.each, count: gpus.count, is_shared: gpus.is_shared });
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
        let reported = free.node.of(Kind::Gpu).filter(|(_, device)| device.is_reported);
        let minors: SmallVec<[i32; 16]> = reported.map(|(minor, _)| minor).collect();
        let by_gpu = free
            .fitting(gpus)
            .into_iter()
            .filter_map(|taken| Some((*minors.get(taken.0)?, millionths(-free.lost_after(self.milli_cpu, &[taken])))));
        by_gpu.collect()
    }

    /// What a node would gain, in millionths of a GPU; below 0 what it would lose.
    fn gain(&self, free: &Free<'_>) -> i64 {
        let before = free.lost_after(0, &[]);
        let after = match &self.gpus {
            None => Some(free.lost_after(self.milli_cpu, &[])),
            Some(gpus) => Self::least_lost(self.milli_cpu, gpus, free),
        };
        after.map_or(0, |after| millionths(before - after))
    }

    fn least_lost(milli_cpu: i64, gpus: &RequestedGpus, free: &Free<'_>) -> Option<f64> {
        let mut fitting = free.fitting(gpus);
        fitting.sort_by_key(|(at, _)| free.gpus[*at].free_percent);
        if gpus.count > 1 || !gpus.is_shared {
            let taken = fitting.get(..gpus.count)?;
            return Some(free.lost_after(milli_cpu, taken));
        }
        fitting.dedup_by_key(|(at, _)| free.gpus[*at].free_percent);
        let lost = fitting.iter().map(|taken| free.lost_after(milli_cpu, &[*taken]));
        lost.reduce(f64::min)
    }
}

impl Fragments {
    const PLACES: usize = 1 << Self::PLACE_BITS;
    const PLACE_BITS: u32 = 7;

    /// Compares nodes for pods that take this.
    pub(super) fn of(taken: Taken) -> Self {
        Self { taken, lately: Mutex::new(vec![None; Self::PLACES]) }
    }

    /// What such a node would gain.
    fn gain(&self, free: &Free<'_>) -> i64 {
        let mut lately = self.lately.lock();
        let known = &mut lately[Self::place(free)];
        if let Some(known) = known.as_ref().filter(|known| known.is_of(free)) {
            return known.gain;
        }
        let gain = self.taken.gain(free);
        let Free { outlook, gpus, milli_cpu, .. } = free;
        *known = Some(Known { outlook: Arc::clone(outlook), milli_cpu: *milli_cpu, gpus: (*gpus).into(), gain });
        gain
    }

    /// Where it is kept what is gained on such nodes.
    fn place(free: &Free<'_>) -> usize {
        // Fibonacci hashing: an odd constant near 2⁶⁴ over the golden ratio spreads numbers over the highest bits.
        let spread = |hash: u64, part: u8| (hash ^ u64::from(part)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = free.gpus.iter().fold(free.milli_cpu as u64, |hash, gpu| spread(hash, gpu.free_percent));
        (hash >> (u64::BITS - Self::PLACE_BITS)) as usize
    }
}

impl Known {
    fn is_of(&self, free: &Free<'_>) -> bool {
        Arc::ptr_eq(&self.outlook, free.outlook) && self.milli_cpu == free.milli_cpu && *self.gpus == *free.gpus
    }
}

impl<'a> Free<'a> {
    /// None where nothing is known of the node's GPUs.
    fn of(cluster: &'a Cluster, row: Row) -> Option<Self> {
        let devices = cluster.state::<Devices>()?;
        let (node, outlook) = (devices.of(row)?, devices.mix.outlook(row)?);
        let [offered, requested] = [cluster.allocatable(ResourceId::CPU, row), cluster.requested(ResourceId::CPU, row)];
        let milli_cpu = offered.saturating_sub(requested);
        Some(Self { node, outlook, gpus: &node.gpus.each, milli_cpu })
    }

    /// The GPUs of which a pod may take a part, each with the percentage that it takes.
    fn fitting(&self, taken: &RequestedGpus) -> SmallVec<[(usize, u8); 16]> {
        // Mostly all GPUs of a node have the same memory.
        let mut last: Option<(i64, Option<u8>)> = None;
        let mut needed = |gpu: &Gpu| match last {
            Some((memory, needed)) if memory == gpu.memory => needed,
            _ => {
                let needed = percent(&completed(gpu.memory, &taken.each));
                last = Some((gpu.memory, needed));
                needed
            }
        };
        let fitting = |(at, gpu): (usize, &Gpu)| {
            let needed = needed(gpu).filter(|needed| *needed <= gpu.free_percent)?;
            Some((at, needed))
        };
        self.gpus.iter().enumerate().filter_map(fitting).collect()
    }

    /// What is lost once so much CPU and these percentages of GPUs are taken.
    fn lost_after(&self, milli_cpu: i64, taken: &[(usize, u8)]) -> f64 {
        let of = |at: usize| taken.iter().find(|(taken, _)| *taken == at).map_or(0, |(_, percent)| *percent);
        let left = self.gpus.iter().enumerate().map(|(at, gpu)| gpu.free_percent.saturating_sub(of(at)));
        self.outlook.lost(left, self.milli_cpu.saturating_sub(milli_cpu))
    }
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

impl NodeScore for Fragments {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        Free::of(cluster, row).map_or(0, |free| self.gain(&free))
    }

    fn scale(&self) -> Option<Scale> {
        Some(worse)
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_allocation::devices::{
        amounts::{DeviceAmounts, DeviceResource},
        outlook::Demand,
    };
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// What users and nodes may say of CPU, as it is read.
    const EXTREMES: [i64; 5] = [i64::MIN, -1, 0, 1, i64::MAX];

    #[test]
    fn cpu_may_be_as_much_or_little_as_can_be_written() {
        let each: DeviceAmounts = [(DeviceResource::GpuCore, 50), (DeviceResource::GpuMemory, 1)].into_iter().collect();
        let (node, gpus) = (NodeDevices::default(), [Gpu { memory: 1, free_percent: 100 }]);
        for extreme in EXTREMES {
            for demanded in EXTREMES {
                let demand = Demand { percent: 50, count: 1, milli_cpu: demanded };
                let outlook = Arc::new(Outlook::of(&[(demand, 1.0)]));
                for milli_cpu in EXTREMES {
                    for gpus_requested in [None, Some(RequestedGpus { each, count: 1, is_shared: true })] {
                        let taken = Taken { gpus: gpus_requested, milli_cpu: extreme };
                        let free = Free { node: &node, outlook: &outlook, gpus: &gpus, milli_cpu };
                        let gain = Fragments::of(taken).gain(&free);
                        assert!((-1_000_000..=1_000_000).contains(&gain), "{gain}: there is one GPU");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_of_nodes_alike_is_what_is_calculated_for_each(
            nodes in vec((0..2_usize, 0..3_i64, vec((0..3_u8, 1..3_i64), 1..4)), 1..300),
            (percent, count) in prop_oneof![(Just(50), Just(1)), (Just(100), Just(1)), (Just(100), Just(2))],
        ) {
            let each: DeviceAmounts = [(DeviceResource::GpuCore, percent), (DeviceResource::GpuMemory, 1)].into_iter().collect();
            let taken = Taken { gpus: Some(RequestedGpus { each, count, is_shared: percent < 100 }), milli_cpu: 1000 };
            let fragments = Fragments::of(taken);
            let demand = |percent, milli_cpu| Demand { percent, count: 1, milli_cpu };
            let outlooks = [[(demand(50, 1000), 1.0)], [(demand(60, 3000), 1.0)]].map(|demands| Arc::new(Outlook::of(&demands)));
            let node = NodeDevices::default();
            for (outlook, cpu, gpus) in nodes {
                let gpus = gpus.into_iter().map(|(free, memory)| Gpu { memory, free_percent: 50 * free });
                let gpus: Vec<Gpu> = gpus.collect();
                let free = Free { node: &node, outlook: &outlooks[outlook], gpus: &gpus, milli_cpu: 1000 * cpu };
                prop_assert_eq!(fragments.gain(&free), fragments.taken.gain(&free));
            }
        }
    }
}
