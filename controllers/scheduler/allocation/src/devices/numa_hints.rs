//! The NUMA nodes that have devices for a pod (`spec/scheduler.md` 3F.6).

use koord_scheduler_framework::NumaHint;
use koord_scheduling::NumaMask;

use crate::devices::{
    allocate::{Allocator, DeviceLimits},
    allocation::AllocatedDevices,
    refusal::Refused,
    request::Kind,
};

/// The score of NUMA nodes that have the GPUs which would be taken anyway.
const BEST: i64 = 500;

/// The kinds of devices that matter for the choice of NUMA nodes, and all sets of at most so many NUMA nodes that have the devices
/// which the pod requests, the same for each kind. No kinds where the node does not report on which NUMA nodes its devices are.
pub fn numa_hints(
    allocator: &Allocator<'_>,
    nodes_max: u32,
    limits: &DeviceLimits,
) -> Result<(Vec<Kind>, Vec<NumaHint>), Refused> {
    let all = allocator.node.numa_nodes();
    if all.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let on = |nodes| Allocator { numa_nodes: Some(nodes), ..*allocator };
    let counts = allocator.counts()?;
    let gpus =
        |allocation: &AllocatedDevices| allocation.of(Kind::Gpu).iter().map(|share| share.minor).collect::<Vec<_>>();
    let mut best = gpus(&on(all).within(all, &counts, limits)?);
    best.sort_unstable();
    let found = all.subsets().take_while(|nodes| nodes.len() <= nodes_max).filter_map(|nodes| {
        let mut minors = gpus(&on(nodes).within(nodes, &counts, limits).ok()?);
        minors.sort_unstable();
        Some((nodes, if minors == best { BEST } else { 0 }))
    });
    let found: Vec<(NumaMask, i64)> = found.collect();
    let fewest = found.iter().map(|(nodes, _)| nodes.len()).min();
    let hint = |(nodes, score): (NumaMask, i64)| NumaHint { nodes, is_preferred: Some(nodes.len()) == fewest, score };
    Ok((counts.iter().map(|(kind, _)| *kind).collect(), found.into_iter().map(hint).collect()))
}

impl Allocator<'_> {
    /// The devices of these NUMA nodes, its own, that the pod would get, where they have enough of each kind that is there at all.
    fn within(
        &self,
        nodes: NumaMask,
        counts: &[(Kind, usize)],
        limits: &DeviceLimits,
    ) -> Result<AllocatedDevices, Refused> {
        let on = |kind| self.node.numa_nodes_of(kind).filter(|numa_node| nodes.contains(*numa_node)).count();
        if counts.iter().any(|(kind, count)| (1..*count).contains(&on(*kind))) {
            return Err(Refused::NumaNodes);
        }
        self.allocate(limits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::devices::testing::Case;

    fn hints(devices: &str, used: &str, requests: &Value) -> String {
        Case::new(devices).used(used).numa_hints(&json!({"requests": requests}))
    }

    #[test]
    fn numa_nodes_with_enough_devices_are_named_and_the_fewest_preferred() {
        const FOUR: &str = "gpu0@0/0 gpu1@0/0 gpu2@1/1 gpu3@1/1";
        let gpus = |count: i64| json!({"koordinator.sh/gpu": (100 * count).to_string()});
        assert_eq!(hints(FOUR, "", &gpus(1)), "01+500 10+ 11500");
        assert_eq!(hints(FOUR, "gpu0 gpu1", &gpus(1)), "10+500 11500");
        assert_eq!(hints(FOUR, "gpu0", &gpus(2)), "10+500 11500");
        assert_eq!(hints(FOUR, "", &gpus(3)), "11+500");
        assert_eq!(hints(FOUR, "gpu0 gpu2", &gpus(3)), "U Insufficient GPU Devices");
        assert_eq!(hints(FOUR, "", &gpus(5)), "UU Insufficient NUMA Scoped Devices");
        assert_eq!(hints("rdma0@0/0", "", &gpus(1)), "UU Insufficient gpu devices");
        assert_eq!(hints("gpu0@0/0 gpu1@0/0", "", &gpus(1)), "01+500", "only where there are devices");
        assert_eq!(
            [hints("gpu0 gpu1", "", &gpus(1)), hints("gpu0@-1/0", "", &gpus(1)), hints("", "", &gpus(1))],
            [""; 3]
        );
        let both = json!({"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "100"});
        assert_eq!(hints("gpu0@0/0 gpu1@1/1 rdma0@1/1", "", &both), "10+ 11500");
    }
}
