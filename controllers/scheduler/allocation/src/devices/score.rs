//! How devices and nodes are compared.

use std::collections::BTreeMap;

use koord_scheduler_framework::share;

use super::{
    amounts::{DeviceAmounts, DeviceResource},
    view::Seen,
};

/// How devices and nodes are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceScorer {
    preference: Preference,
    /// With LeastFragmented, what a share of each GPU is worth, by minor number.
    by_gpu: BTreeMap<i32, i64>,
    /// How much each resource counts.
    weights: Vec<(DeviceResource, i64)>,
}

/// Which devices are best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    #[default]
    LeastAllocated,
    MostAllocated,
    /// Those that leave the least of GPUs without a use; the fullest of other devices.
    LeastFragmented,
}

/// All devices are alike: of those that have enough, the first ones are taken.
pub static ALIKE: DeviceScorer =
    DeviceScorer { preference: Preference::LeastAllocated, by_gpu: BTreeMap::new(), weights: Vec::new() };

impl Default for DeviceScorer {
    /// The emptiest by memory of GPUs, network cards and FPGAs.
    fn default() -> Self {
        use DeviceResource::{Fpga, GpuMemory, GpuMemoryRatio, Rdma};
        let weights = [GpuMemoryRatio, GpuMemory, Rdma, Fpga].map(|resource| (resource, 1));
        Self { preference: Preference::default(), by_gpu: BTreeMap::new(), weights: weights.into() }
    }
}

impl DeviceScorer {
    /// Compares by resources of these names and weights. Names of resources that no device has do not count.
    pub fn new<'a>(preference: Preference, weights: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        let known = weights.into_iter().filter_map(|(name, weight)| Some((DeviceResource::of(name)?, weight)));
        Self { preference, by_gpu: BTreeMap::new(), weights: known.collect() }
    }

    /// Whether nodes are compared by what they leave of GPUs without a use.
    pub fn is_least_fragmented(&self) -> bool {
        self.preference == Preference::LeastFragmented
    }

    /// The same, with what a share of each GPU is worth.
    pub fn with(&self, by_gpu: BTreeMap<i32, i64>) -> Self {
        Self { by_gpu, ..self.clone() }
    }

    /// What a share of this GPU is worth beside that of others; 0 unless that was found out.
    pub fn worth(&self, minor: i32) -> i64 {
        self.by_gpu.get(&minor).copied().unwrap_or(0)
    }

    /// The score of a device, or of the sum of several, for a request.
    pub fn score(&self, request: &DeviceAmounts, total: &DeviceAmounts, free: &DeviceAmounts) -> i64 {
        let (mut score, mut weights) = (0_i64, 0_i64);
        for (resource, weight) in &self.weights {
            let (total, free) = (total.amount(*resource), free.amount(*resource));
            if total <= 0 {
                continue;
            }
            let requested = if total >= free {
                total.saturating_sub(free).saturating_add(request.amount(*resource))
            } else {
                total
            };
            score = score.saturating_add(self.preference.score(requested, total).saturating_mul(*weight));
            weights = weights.saturating_add(*weight);
        }
        score.checked_div(weights).unwrap_or(0)
    }

    /// The score of a node by its devices of one kind, for what is requested of each.
    pub fn score_all(&self, request: &DeviceAmounts, devices: &[Seen<'_>]) -> i64 {
        let sum = |of: fn(&Seen<'_>) -> DeviceAmounts| {
            devices.iter().fold(DeviceAmounts::default(), |sum, seen| sum.plus(&of(seen)))
        };
        self.score(request, &sum(|seen| seen.device.total), &sum(|seen| seen.free))
    }
}

impl Preference {
    fn score(self, requested: i64, total: i64) -> i64 {
        let part = match self {
            Self::LeastAllocated => total.saturating_sub(requested),
            Self::MostAllocated | Self::LeastFragmented => requested,
        };
        share(part, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_preferences_are_means_over_what_devices_have() {
        let amounts = |ratio, memory| -> DeviceAmounts {
            [(DeviceResource::GpuMemoryRatio, ratio), (DeviceResource::GpuMemory, memory)].into_iter().collect()
        };
        let (total, free) = (amounts(100, 1000), amounts(70, 700));
        let request: DeviceAmounts = [(DeviceResource::GpuMemoryRatio, 50)].into_iter().collect();
        // 80 of 100 percent and 300 of 1000 bytes; network cards and FPGAs do not count.
        assert_eq!(DeviceScorer::default().score(&request, &total, &free), 45, "20 and 70");
        let names = [("koordinator.sh/gpu-memory-ratio", 3), ("koordinator.sh/gpu-memory", 1), ("cpu", 5)];
        let most = DeviceScorer::new(Preference::MostAllocated, names);
        assert_eq!(most.score(&request, &total, &free), (3 * 80 + 30) / 4);
        let too_much: DeviceAmounts = [(DeviceResource::GpuMemoryRatio, 90)].into_iter().collect();
        assert_eq!(most.score(&too_much, &total, &free), (3 * 100 + 30) / 4);
        assert_eq!(DeviceScorer::default().score(&too_much, &total, &free), 70 / 2);
        assert_eq!(DeviceScorer::default().score(&request, &DeviceAmounts::default(), &DeviceAmounts::default()), 0);
    }
}
