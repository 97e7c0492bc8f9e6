//! How much of a node's free GPUs will be lost in the end, if pods go on coming as those that the cluster knows.
//!
//! Three losses are added up, in GPUs. What is left of a shared GPU may be too little for any pod that comes. GPUs may be
//! left without CPU for the pods that would take them. And a node with some whole GPUs may have too few of them, or too
//! little CPU, for the pods that request several. A pod belongs where it adds least to the sum, or takes most from it.

use koord_scheduler_framework::pod::Template;

use super::{
    amounts::{DeviceAmounts, DeviceResource},
    combination,
};

/// What pods of one kind request of GPUs, and of CPU beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Percent of each GPU.
    pub percent: u8,
    /// How many GPUs.
    pub count: u32,
    /// CPU, in thousandths.
    pub milli_cpu: i64,
}

/// What the pods that may run on a node make of its GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// What no pod will use of a GPU of which so many percent are free, and what pods will use of it, in GPUs.
    by_free: Vec<(f64, f64)>,
    /// What a GPU in use takes of CPU: the mean, and the variance for one GPU.
    milli_cpu: f64,
    variance: f64,
    /// What pods request of CPU, from little to much, each with the share of pods that request as much or more.
    requested_cpu: Vec<(i64, f64)>,
    /// Pods that request several whole GPUs, with their share of all pods.
    several: Vec<(Demand, f64)>,
}

/// The chance that nothing comes any more, beside which the pods that fit are weighed. With 0, every remainder would wait for
/// ever for the rarest pod that fits; with 1, only the next pod would count.
const END: f64 = 0.03;

/// How much it counts that pods for several GPUs cannot use a node, where most pods can use it all the same.
const SEVERAL: f64 = 0.25;

const WHOLE: u8 = 100;

impl Demand {
    /// What pods of a template request; none where they request no GPU, or one that is measured in bytes alone.
    pub fn of(template: &Template) -> Option<Self> {
        let gpus = combination::gpus(&template.requests).ok().flatten()?;
        let percent = if gpus.is_shared { percent(&gpus.each)? } else { WHOLE };
        let milli_cpu = template.requests.amount("cpu").milli_value();
        Some(Self { percent, count: u32::try_from(gpus.count).ok()?, milli_cpu })
    }

    fn gpus(&self) -> f64 {
        f64::from(self.count) * f64::from(self.percent) / f64::from(WHOLE)
    }
}

/// The percentage of a GPU that amounts are: the larger one of cores and memory; none where neither is listed.
pub fn percent(amounts: &DeviceAmounts) -> Option<u8> {
    let listed = [DeviceResource::GpuCore, DeviceResource::GpuMemoryRatio].into_iter();
    let larger = listed.filter_map(|resource| amounts.get(resource)).max()?;
    u8::try_from(larger.clamp(0, WHOLE.into())).ok()
}

impl Default for Outlook {
    /// No pods are known: whatever is free is lost alike.
    fn default() -> Self {
        Self::of(&[])
    }
}

impl Outlook {
    /// What comes of pods with these demands, each with its share of all pods.
    pub fn of(demands: &[(Demand, f64)]) -> Self {
        let gpus: f64 = demands.iter().map(|(demand, share)| share * demand.gpus()).sum();
        let cpu: f64 = demands.iter().map(|(demand, share)| share * demand.milli_cpu as f64).sum();
        let milli_cpu = if gpus > 0.0 { cpu / gpus } else { 0.0 };
        let square = |demand: &Demand| (demand.milli_cpu as f64 - milli_cpu * demand.gpus()).powi(2);
        let squares: f64 = demands.iter().map(|(demand, share)| share * square(demand)).sum();
        let several = demands.iter().filter(|(demand, _)| demand.count > 1 && demand.percent == WHOLE);
        Self {
            by_free: (0..=WHOLE).zip(waste(demands)).map(|(free, waste)| (waste, gpu(free) - waste)).collect(),
            milli_cpu,
            variance: if gpus > 0.0 { squares / gpus } else { 0.0 },
            requested_cpu: requested_cpu(demands),
            several: several.copied().collect(),
        }
    }

    /// What is lost of GPUs of which so many percent are free, beside so much free CPU, in GPUs.
    pub fn lost(&self, free: impl Iterator<Item = u8>, milli_cpu: i64) -> f64 {
        let (mut waste, mut used, mut whole) = (0.0, 0.0, 0_u32);
        for percent in free {
            let unknown = || (0.0, gpu(percent));
            let (wasted, of_use) = self.by_free.get(usize::from(percent)).copied().unwrap_or_else(unknown);
            waste += wasted;
            used += of_use;
            whole += u32::from(percent >= WHOLE);
        }
        let fails = |demand: &Demand| whole < demand.count || milli_cpu < demand.milli_cpu;
        let failing: f64 = self.several.iter().filter(|(demand, _)| fails(demand)).map(|(_, share)| share).sum();
        waste + self.stranded(used, milli_cpu) + SEVERAL * failing * f64::from(whole)
    }

    /// How many of the GPUs that pods would use are lost for lack of CPU: what these pods will lack together, and at least the share of the
    /// pods of which not one finds enough. The first alone gives up a node too late where CPU is scarce: many small pods count as much as
    /// the large ones that no longer fit.
    fn stranded(&self, gpus: f64, milli_cpu: i64) -> f64 {
        self.lacking(gpus, milli_cpu as f64).max(self.share_above(milli_cpu) * gpus)
    }

    /// The share of pods that request more CPU.
    fn share_above(&self, milli_cpu: i64) -> f64 {
        let within = self.requested_cpu.partition_point(|(requested, _)| *requested <= milli_cpu);
        self.requested_cpu.get(within).map_or(0.0, |(_, share)| *share)
    }

    /// The mean of what pods that would use so many GPUs lack of CPU, in GPUs: what they need is distributed normally.
    fn lacking(&self, gpus: f64, milli_cpu: f64) -> f64 {
        if gpus <= 0.0 || self.milli_cpu <= 0.0 {
            return 0.0;
        }
        let (lacking, deviation) = (self.milli_cpu * gpus - milli_cpu, (self.variance * gpus).sqrt());
        let mean = if deviation > 0.0 {
            let at = lacking / deviation;
            let density = density(at);
            deviation * (density + at * distribution(at, density))
        } else {
            lacking.max(0.0)
        };
        (mean / self.milli_cpu).clamp(0.0, gpus)
    }
}

/// So many percent of a GPU, in GPUs.
fn gpu(percent: u8) -> f64 {
    f64::from(percent) / f64::from(WHOLE)
}

/// By percent: of what fits, something comes by chance, and what it leaves is wasted in part, and so on until the end.
fn waste(demands: &[(Demand, f64)]) -> Vec<f64> {
    let mut waste = vec![0.0];
    for free in 1..=WHOLE {
        let (mut sum, mut weights) = (END * f64::from(free) / f64::from(WHOLE), END);
        for (demand, share) in demands {
            if let Some(rest) = free.checked_sub(demand.percent).filter(|rest| *rest < free) {
                sum += share * waste.get(usize::from(rest)).copied().unwrap_or(0.0);
                weights += share;
            }
        }
        waste.push(sum / weights);
    }
    waste
}

/// What pods request of CPU, from little to much, each with the share of pods that request as much or more.
fn requested_cpu(demands: &[(Demand, f64)]) -> Vec<(i64, f64)> {
    let mut requested: Vec<(i64, f64)> = demands.iter().map(|(demand, share)| (demand.milli_cpu, *share)).collect();
    requested.sort_by_key(|(milli_cpu, _)| *milli_cpu);
    let all: f64 = requested.iter().map(|(_, share)| share).sum();
    let mut above = 0.0;
    for (_, share) in requested.iter_mut().rev() {
        above += *share / all;
        *share = above;
    }
    requested
}

/// The density of the standard normal distribution.
fn density(at: f64) -> f64 {
    const PEAK: f64 = 0.398_942_280_401_432_7;
    PEAK * (-at * at / 2.0).exp()
}

/// The standard normal distribution where it has this density: Abramowitz and Stegun 26.2.17, exact to seven digits.
fn distribution(at: f64, density: f64) -> f64 {
    const TERMS: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * at.abs());
    let upper = density * TERMS.iter().rev().fold(0.0, |sum, term| t * (term + sum));
    if at >= 0.0 { 1.0 - upper } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(percent: u8, count: u32, milli_cpu: i64) -> Demand {
        Demand { percent, count, milli_cpu }
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6
    }

    #[test]
    fn what_no_pod_can_use_is_wasted() {
        let outlook = Outlook::of(&[(demand(60, 1, 0), 0.5), (demand(30, 1, 0), 0.5)]);
        let lost = |percent| outlook.lost([percent].into_iter(), 1000);
        assert!(near(lost(0), 0.0) && near(lost(20), 0.2), "nothing fits into 20 %");
        assert!(lost(30) < 0.02, "{}", lost(30));
        assert!(lost(50) > 0.2, "30 % fit and leave 20 %");
        assert!(lost(90) < lost(80), "both fit into 90 %");
        assert!(near(Outlook::default().lost([20, 100].into_iter(), 0), 1.2));
    }

    #[test]
    fn gpus_without_cpu_are_lost() {
        let outlook = Outlook::of(&[(demand(100, 1, 8000), 0.5), (demand(100, 1, 16_000), 0.5)]);
        let lost = |milli_cpu| outlook.lost([100, 100].into_iter(), milli_cpu);
        assert!(lost(1_000_000) < 0.1 && near(lost(0), 2.0 - 2.0 * 0.03 / 1.03 + 2.0 * 0.03 / 1.03));
        assert!(lost(12_000) > 0.9 && lost(12_000) < 1.5, "{}", lost(12_000));
        assert!(lost(24_000) > lost(40_000), "some pods take more than the mean");
    }

    #[test]
    fn gpus_beside_too_little_cpu_for_any_pod_are_lost_whole() {
        let outlook = Outlook::of(&[(demand(50, 1, 4000), 0.9), (demand(50, 1, 40_000), 0.1)]);
        let lost = |milli_cpu| outlook.lost([50].into_iter(), milli_cpu);
        assert!(near(lost(3999), 0.5) && near(lost(0), 0.5), "there is no worse than nothing");
        assert!(lost(4000) < 0.45, "{}: most pods fit", lost(4000));
    }

    #[test]
    fn whole_gpus_stay_together_for_pods_that_request_several() {
        let outlook = Outlook::of(&[(demand(100, 4, 1000), 0.5), (demand(100, 1, 1000), 0.5)]);
        let lost = |free: &[u8], milli_cpu| outlook.lost(free.iter().copied(), milli_cpu);
        let taken = |whole: usize| lost(&vec![100; whole - 1], 100_000) - lost(&vec![100; whole], 100_000);
        assert!(taken(4) > 0.2, "a fourth one was needed");
        assert!(taken(3) < 0.0, "three cannot be used by the larger pods anyway");
        assert!(lost(&[100; 4], 900) > lost(&[100; 4], 100_000) + 0.4, "too little CPU");
    }

    #[test]
    fn the_normal_distribution_agrees_with_published_tables() {
        for (at, value) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9), (3.0, 0.998_650_1)] {
            assert!(near(distribution(at, density(at)), value), "{at}");
        }
    }
}
