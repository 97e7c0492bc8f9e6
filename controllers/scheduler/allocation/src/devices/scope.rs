//! GPUs that are near each other: on one PCIe switch, on one NUMA node (`spec/scheduler.md` 3F.4 c).

use std::collections::BTreeMap;

use super::{
    allocation::Share, amounts::DeviceAmounts, node::Device, refusal::Refused, request::GpuRequest,
    score::DeviceScorer, view::Seen,
};

/// A part of a node with the GPUs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// From 1, the node, to 3, a PCIe switch.
    level: u8,
    /// The numbers of its GPUs, in order.
    minors: Vec<i32>,
    /// Its parts, by the numbers of NUMA nodes and the ids of PCIe switches.
    children: Vec<Scope>,
}

/// What was found in a scope.
struct Found {
    shares: Vec<Share>,
    /// How deep the scope is.
    depth: usize,
    /// How many of the scopes around it, itself among them, have GPUs in use.
    used_scopes: usize,
    /// What a share of the GPU is worth beside that of others.
    worth: i64,
    score: i64,
}

/// What is looked for, and among which GPUs.
struct Search<'a> {
    request: &'a GpuRequest,
    scorer: &'a DeviceScorer,
    seen: BTreeMap<i32, &'a Seen<'a>>,
    /// The GPUs of which others have a part, also those that the pod may not have.
    used: &'a [i32],
}

impl Scope {
    /// The scopes of a node's GPUs; none where there are no GPUs, or one of them does not say where it is.
    pub fn of<'a>(gpus: impl Iterator<Item = (i32, &'a Device)>) -> Option<Self> {
        let mut by_place: BTreeMap<i32, BTreeMap<&str, Vec<i32>>> = BTreeMap::new();
        for (minor, gpu) in gpus {
            let place = gpu.place.as_ref()?;
            by_place.entry(place.numa_node).or_default().entry(&place.pcie).or_default().push(minor);
        }
        let numa_nodes = by_place.into_values().map(|switches| {
            let switches = switches.into_values().map(|minors| Self { level: 3, minors, children: Vec::new() });
            Self::around(2, switches.collect())
        });
        let numa_nodes: Vec<Self> = numa_nodes.collect();
        (!numa_nodes.is_empty()).then(|| Self::around(1, numa_nodes))
    }

    fn around(level: u8, children: Vec<Self>) -> Self {
        let mut minors: Vec<i32> = children.iter().flat_map(|child| child.minors.iter().copied()).collect();
        minors.sort_unstable();
        Self { level, minors, children }
    }
}

/// GPUs in the deepest scope that has enough of them; of equally deep ones, in the one whose surroundings are most in
/// use.
pub fn allocate(
    scopes: Option<&Scope>,
    request: &GpuRequest,
    gpus: &[Seen<'_>],
    used: &[i32],
    scorer: &DeviceScorer,
) -> Result<Vec<Share>, Refused> {
    let scopes = scopes.ok_or(Refused::NoTopology)?;
    if request.is_shared && request.count > 1 {
        return Err(Refused::MultiShared);
    }
    let search = Search { request, scorer, seen: gpus.iter().map(|seen| (seen.minor, seen)).collect(), used };
    let found = search.find(scopes, 0, 0).map(|found| found.shares);
    found.ok_or(if request.scope_level.is_some() { Refused::Scope } else { Refused::Gpus })
}

impl Search<'_> {
    fn find(&self, scope: &Scope, depth: usize, used_scopes: usize) -> Option<Found> {
        if scope.minors.len() < self.request.count {
            return None;
        }
        let is_used = scope.minors.iter().any(|minor| self.used.contains(minor));
        let (depth, used_scopes) = (depth + 1, used_scopes + usize::from(is_used));
        let children = scope.children.iter().filter_map(|child| self.find(child, depth, used_scopes));
        let deeper = children.reduce(|best, other| if self.rank(&best) < self.rank(&other) { other } else { best });
        let is_narrow_enough = self.request.scope_level.is_none_or(|level| level <= scope.level);
        deeper.or_else(|| if is_narrow_enough { self.take(scope, depth, used_scopes) } else { None })
    }

    fn rank(&self, found: &Found) -> (usize, i64, usize, i64) {
        (found.depth, found.worth, found.used_scopes, if self.request.is_shared { found.score } else { 0 })
    }

    /// GPUs of this scope: the first ones, or the best one to share, which is the first of those that are alike. By its score the scope is
    /// compared with others that are as deep and as much in use.
    fn take(&self, scope: &Scope, depth: usize, used_scopes: usize) -> Option<Found> {
        let seen = scope.minors.iter().filter_map(|minor| self.seen.get(minor));
        let fitting = seen.filter_map(|seen| Some((seen, Share::new(seen.minor, seen.share(&self.request.each)?))));
        let (mut shares, mut best) = (Vec::new(), (0, 0));
        if self.request.is_shared {
            let scored = fitting.map(|(seen, share)| ((self.scorer.worth(seen.minor), self.score(seen)), share));
            let (score, share) = scored.reduce(|best, other| if best.0 < other.0 { other } else { best })?;
            (shares, best) = (vec![share], score);
        } else {
            shares.extend(fitting.map(|(_, share)| share).take(self.request.count));
        }
        (shares.len() == self.request.count).then_some(Found {
            shares,
            depth,
            used_scopes,
            worth: best.0,
            score: best.1,
        })
    }

    /// QUIRK: total and free amounts are exchanged, as in the original. A GPU of which a part is used has the lowest
    /// score where the emptiest is best and the highest where the fullest is, whatever is left of it
    /// (`shares_of_used_gpus_are_all_alike`).
    fn score(&self, seen: &Seen<'_>) -> i64 {
        let (total, free): (&DeviceAmounts, &DeviceAmounts) = (&seen.free, &seen.device.total);
        self.scorer.score(&self.request.each, total, free)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::devices::testing::Case;

    use koord_scheduler_testing::devices::list;

    const FOUR: &str = "gpu0@0/0 gpu1@0/0 gpu2@1/1 gpu3@1/1";

    fn gpus(percent: i64) -> serde_json::Value {
        json!({"koordinator.sh/gpu": percent.to_string()})
    }

    #[test]
    fn gpus_of_one_switch_go_together_and_used_ones_are_filled() {
        let case = |used: &str, percent| Case::new(FOUR).used(used).allocate(&json!({"requests": gpus(percent)}));
        for (used, percent, expected) in [
            ("", 100, "gpu0"),
            ("gpu0", 100, "gpu1"),
            ("gpu2", 100, "gpu3"),
            ("gpu0", 200, "gpu2 gpu3"),
            ("", 300, "gpu0 gpu1 gpu2"),
            ("gpu0 gpu2", 200, "gpu1 gpu3"),
            ("gpu0 gpu1 gpu2", 200, "U Insufficient GPU Devices"),
        ] {
            assert_eq!(case(used, percent), expected, "{percent} beside {used}");
        }
    }

    #[test]
    fn deeper_scopes_win_over_used_ones() {
        // Both NUMA nodes have two GPUs, but only the second one has them on one switch.
        let case = Case::new("gpu0@0/a gpu1@0/b gpu2@1/c gpu3@1/c gpu4@0/d").used("gpu4:50");
        assert_eq!(case.allocate(&json!({"requests": gpus(200)})), "gpu2 gpu3");
    }

    #[test]
    fn a_required_scope_is_not_left() {
        let within = |scope: &str, used: &str, percent| {
            let pod = json!({"requests": gpus(percent), "hints": {"gpu": {"requiredTopologyScope": scope}}});
            Case::new("gpu0@0/0 gpu1@0/1 gpu2@1/2 gpu3@1/2").used(used).allocate(&pod)
        };
        assert_eq!(within("NUMANode", "gpu2", 200), "gpu0 gpu1");
        assert_eq!(within("PCIe", "", 200), "gpu2 gpu3");
        assert_eq!(within("PCIe", "gpu2", 200), "U Insufficient Topology Scoped GPU Devices");
        assert_eq!(within("NUMANode", "", 300), "U Insufficient Topology Scoped GPU Devices");
        assert_eq!(within("Node", "", 300), "gpu0 gpu1 gpu2");
        assert_eq!(within("Device", "", 100), "U Insufficient Topology Scoped GPU Devices", "no scope is one device");
        let pod = json!({"requests": gpus(200), "hints": {"gpu": {"requiredTopologyScope": "PCIe"}}});
        assert_eq!(Case::new("gpu0 gpu1@0/0").allocate(&pod), "UU node(s) missing GPU Device Topology Tree");
        assert_eq!(Case::new("gpu0 gpu1@0/0").allocate(&json!({"requests": gpus(200)})), "gpu0 gpu1");
    }

    #[test]
    fn shares_of_several_gpus_are_of_different_ones_and_need_no_scope() {
        let shared = list("gpu.shared=2 gpu-core=100 gpu-memory-ratio=100");
        assert_eq!(Case::new(FOUR).allocate(&json!({"requests": shared})), "gpu0:50 gpu1:50");
        let pod = json!({"requests": shared, "hints": {"gpu": {"requiredTopologyScope": "PCIe"}}});
        assert_eq!(Case::new(FOUR).allocate(&pod), "UU node(s) Unsupported Multi-Shared GPU");
        assert_eq!(Case::new("gpu0").allocate(&json!({"requests": shared})), "U Insufficient gpu devices");
    }

    #[test]
    fn shares_of_used_gpus_are_all_alike() {
        let share = |percent: i64| {
            let percent = percent.to_string();
            json!({"requests": {"koordinator.sh/gpu-core": percent, "koordinator.sh/gpu-memory-ratio": percent}})
        };
        let two = |used: &str| Case::new("gpu0@0/0 gpu1@1/1").used(used);
        assert_eq!(
            Case::new(FOUR).used("gpu0:50").allocate(&share(50)),
            "gpu1:50",
            "the emptier one of the used switch"
        );
        assert_eq!(two("gpu0:60").allocate(&share(50)), "gpu1:50");
        assert_eq!(two("gpu0:60 gpu1:50").allocate(&share(40)), "gpu0:40", "the first of two that are used");
        assert_eq!(two("gpu0:60 gpu1:60").allocate(&share(50)), "U Insufficient GPU Devices");
        assert_eq!(Case::new(FOUR).used("gpu2:50").packing().allocate(&share(30)), "gpu2:30");
    }

    /// Scores by hand, of the memory in percent: for a share of 30, an unused GPU has 70 where the emptiest is best, and 30 where the
    /// fullest is; one that is used has 0 and 100.
    #[test]
    fn a_share_goes_to_the_best_gpu_of_the_best_switch_and_to_the_first_of_alike_ones() {
        let pod = json!({"requests": list("gpu-core=30 gpu-memory-ratio=30")});
        for (gpus, used, emptiest, fullest) in [
            // Of one switch: 0 70 0 70 and 100 30 100 30, then 70 0 0 70 and 30 100 100 30.
            ("gpu0@0/0 gpu1@0/0 gpu2@0/0 gpu3@0/0", "gpu0:60 gpu2:50", "gpu1:30", "gpu0:30"),
            ("gpu0@0/0 gpu1@0/0 gpu2@0/0 gpu3@0/0", "gpu1:60 gpu2:50", "gpu0:30", "gpu1:30"),
            // One that has too little left is none of them: 70 - 0 70 and 30 - 100 30.
            ("gpu0@0/0 gpu1@0/0 gpu2@0/0 gpu3@0/0", "gpu1:71 gpu2:50", "gpu0:30", "gpu2:30"),
            // Of two switches: - 0 beside 70 0, and - 100 beside 30 100.
            (FOUR, "gpu0 gpu1:50 gpu3:50", "gpu2:30", "gpu1:30"),
            // - 70 beside 0 -, and - 30 beside 100 -.
            (FOUR, "gpu0 gpu2:50 gpu3", "gpu1:30", "gpu2:30"),
            // 0 70 beside 0 70, and 100 30 beside 100 30.
            (FOUR, "gpu0:50 gpu2:50", "gpu1:30", "gpu0:30"),
        ] {
            let allocated = [Case::new(gpus), Case::new(gpus).packing()].map(|case| case.used(used).allocate(&pod));
            assert_eq!(allocated, [emptiest, fullest], "{gpus} with {used}");
        }
    }

    #[test]
    fn unhealthy_gpus_count_for_scopes_and_are_not_taken() {
        let case = Case::new("gpu0!@0/0 gpu1@0/0 gpu2@1/1 gpu3@1/1");
        assert_eq!(case.allocate(&json!({"requests": gpus(200)})), "gpu2 gpu3");
        assert_eq!(case.allocate(&json!({"requests": gpus(100)})), "gpu1");
    }
}
