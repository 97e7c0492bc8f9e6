//! The openb traces: nodes of a cluster with GPUs, and the pods that came to it, most of them for a part of a GPU.
//!
//! They are the material of "Beware of Fragmentation" (USENIX ATC 2023). A folder has the list of nodes and one list of pods
//! for each trace. What is read of them are plain values, and the objects of Kubernetes that say the same. The crate knows no
//! scheduler and no clock.
//!
//! Read first: [`read()`] (the files), [`arrivals`] (the published experiment), [`Demand::of_no_use`] (its measure).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod demand;
mod objects;
mod read;

use koord_core::random::Random;
pub use objects::MODEL;
pub use read::{Node, Pod, ReadError, read};

pub use self::demand::Demand;

/// The list of nodes in a folder of traces.
pub const NODES: &str = "openb_node_list_all_node.csv";

/// The file with the pods of a trace, such as `default`.
pub fn pods_file(trace: &str) -> String {
    format!("openb_pod_list_{trace}.csv")
}

/// What a pod requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// CPU, in thousandths.
    pub cpu_milli: i64,
    /// Memory, in MiB.
    pub memory_mib: i64,
    /// How many GPUs.
    pub gpus: i64,
    /// Of each GPU, in thousandths.
    pub each_milli: i64,
    /// The models of GPUs that it may have; any where there is none.
    pub models: Vec<String>,
}

impl Request {
    /// Of all GPUs together, in thousandths.
    pub fn gpu_milli(&self) -> i64 {
        self.gpus.saturating_mul(self.each_milli)
    }

    /// What it requests of GPUs, and of CPU beside them.
    pub fn demand(&self) -> Demand {
        Demand { each_milli: self.each_milli, gpus: self.gpus, cpu_milli: self.cpu_milli }
    }

    /// Whether it may have GPUs of this model.
    pub fn allows(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|allowed| allowed == model)
    }
}

/// Requests in the order in which they come in the published experiment: those of the trace, shuffled, then some of them at
/// random again, until so many thousandths of GPUs are requested. Those that are too many are taken out at random.
pub fn arrivals(requests: &[Request], gpu_milli_max: i64, random: &Random) -> Vec<Request> {
    let mut arriving = requests.to_vec();
    for at in (1..arriving.len()).rev() {
        arriving.swap(at, index(random, at + 1));
    }
    let mut demand: i64 = arriving.iter().map(Request::gpu_milli).sum();
    while demand > gpu_milli_max && !arriving.is_empty() {
        demand -= arriving.remove(index(random, arriving.len())).gpu_milli();
    }
    // Without a demand for GPUs there would be no end.
    while requests.iter().any(|request| request.gpu_milli() > 0) {
        let Some(request) = requests.get(index(random, requests.len())) else { break };
        demand += request.gpu_milli();
        if demand > gpu_milli_max {
            break;
        }
        arriving.push(request.clone());
    }
    arriving
}

fn index(random: &Random, length: usize) -> usize {
    let below = random.below(u64::try_from(length).unwrap_or(u64::MAX));
    usize::try_from(below).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(gpus: i64) -> Request {
        Request { cpu_milli: 1000, memory_mib: 1, gpus, each_milli: 500, models: Vec::new() }
    }

    #[test]
    fn pods_come_until_the_demand_is_reached_and_in_an_order_of_the_seed() {
        let requests: Vec<Request> = (0..10).map(request).collect();
        let of = |max, seed| arrivals(&requests, max, &Random::seeded(seed));
        let demand = |arriving: &[Request]| arriving.iter().map(Request::gpu_milli).sum::<i64>();
        for max in [5_000, 22_500, 100_000] {
            let arriving = of(max, 1);
            assert!(demand(&arriving) <= max && demand(&arriving) > max - 4_500, "{max}: {}", demand(&arriving));
            assert_eq!(arriving, of(max, 1));
            assert_ne!(arriving, of(max, 2));
        }
        let without = [request(0), request(0)];
        assert_eq!(arrivals(&without, 1000, &Random::seeded(1)).len(), 2, "each once");
        assert!(arrivals(&[], 1000, &Random::seeded(1)).is_empty());
    }
}
