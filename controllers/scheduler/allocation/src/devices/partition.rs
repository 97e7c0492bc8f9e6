//! GPUs that are well connected and therefore given out together (`spec/scheduler.md` 3F.4 b).

use std::{collections::BTreeMap, sync::LazyLock};

use koord_resource::Quantity;
use koord_types::device_protocol::{GpuPartition, GpuPartitionTable};

use super::{
    allocate::NodeLabels,
    allocation::Share,
    node::NodeDevices,
    refusal::Refused,
    request::{GpuRequest, PartitionRequest},
    view::Seen,
};

/// The partitions of a node's GPUs, by their number of GPUs; of one number, first those of the lowest score.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partitions(BTreeMap<usize, Vec<Bucket>>);

/// Partitions of the same score.
#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    score: i64,
    partitions: Vec<Partition>,
}

#[derive(Clone, Debug, PartialEq)]
struct Partition {
    minors: Vec<i32>,
    bandwidth: Option<Quantity>,
}

/// How much a partition that stays whole counts, by its number of GPUs.
const WEIGHTS: [(usize, i64); 3] = [(8, 10_000), (4, 100), (2, 1)];

/// Models whose eight GPUs are connected as [`EIGHT`] says.
const MODELS_OF_EIGHT: [&str; 3] = ["H100", "H800", "H20"];

/// Pairs, pairs of pairs, and all eight.
static EIGHT: LazyLock<Partitions> = LazyLock::new(|| {
    let all: Vec<i32> = (0..8).collect();
    let of_size = |size: usize| {
        let partitions = all.chunks(size).map(|minors| Partition { minors: minors.to_vec(), bandwidth: None });
        (size, vec![Bucket { score: 1, partitions: partitions.collect() }])
    };
    Partitions([1, 2, 4, 8].map(of_size).into())
});

impl Partitions {
    /// The partitions of a table.
    pub fn of(table: &GpuPartitionTable) -> Self {
        let of_size = |partitions: &Vec<GpuPartition>| {
            let mut by_score: BTreeMap<i64, Vec<Partition>> = BTreeMap::new();
            for GpuPartition { minors, ring_bus_bandwidth, allocation_score, .. } in partitions {
                let partition = Partition { minors: minors.clone(), bandwidth: ring_bus_bandwidth.clone() };
                by_score.entry(allocation_score.unwrap_or(0)).or_default().push(partition);
            }
            by_score.into_iter().map(|(score, partitions)| Bucket { score, partitions }).collect()
        };
        let sizes = table
            .0
            .iter()
            .map(|(size, partitions)| (usize::try_from(*size).unwrap_or(usize::MAX), of_size(partitions)));
        Self(sizes.collect())
    }

    fn find(&self, request: &GpuRequest, gpus: &[Seen<'_>], used: &[i32]) -> Result<Vec<Share>, Refused> {
        let buckets = self.0.get(&request.count).filter(|buckets| !buckets.is_empty()).ok_or(Refused::PartitionSize)?;
        let partition_request = request.partition.clone().unwrap_or_default();
        // QUIRK: the score of a partition says that higher is earlier, but the lowest is visited first
        // (`partitions_of_a_lower_score_are_taken_first`).
        let visited = buckets.iter().take(if partition_request.is_restricted { 1 } else { usize::MAX });
        let feasible = visited.map(|bucket| {
            let feasible = bucket
                .partitions
                .iter()
                .filter_map(|partition| Some((partition, partition.shares(request, &partition_request, gpus, used)?)));
            feasible.collect::<Vec<_>>()
        });
        let feasible = feasible.into_iter().find(|feasible| !feasible.is_empty()).ok_or(Refused::Partitions)?;
        let scored = feasible
            .into_iter()
            .map(|(partition, shares)| (self.left_whole(request.count, &partition.minors, used), shares));
        let best = scored.reduce(|best, other| if best.0 < other.0 { other } else { best });
        best.map(|(_, shares)| shares).ok_or(Refused::Partitions)
    }

    /// How many partitions stay whole when these GPUs are taken; the larger count far more.
    fn left_whole(&self, count: usize, taken: &[i32], used: &[i32]) -> i64 {
        let is_whole = |partition: &&Partition| {
            !partition.minors.iter().any(|minor| taken.contains(minor) || used.contains(minor))
        };
        let of_size = |(size, weight): (usize, i64)| {
            let first = self.0.get(&size).and_then(|buckets| buckets.first());
            first.map_or(0, |bucket| {
                let whole = bucket.partitions.iter().filter(is_whole).count();
                weight.saturating_mul(bucket.score).saturating_mul(i64::try_from(whole).unwrap_or(i64::MAX))
            })
        };
        WEIGHTS.into_iter().filter(|(size, _)| *size >= count).map(of_size).fold(0, i64::saturating_add)
    }
}

impl Partition {
    /// Its GPUs, where none of them is in use and they are connected well enough.
    fn shares(
        &self,
        request: &GpuRequest,
        partition_request: &PartitionRequest,
        gpus: &[Seen<'_>],
        used: &[i32],
    ) -> Option<Vec<Share>> {
        let is_fast = partition_request
            .bandwidth
            .as_ref()
            .is_none_or(|least| self.bandwidth.as_ref().is_some_and(|bandwidth| bandwidth >= least));
        if !is_fast || self.minors.iter().any(|minor| used.contains(minor)) {
            return None;
        }
        let share = |minor: &i32| {
            let seen = gpus.iter().find(|seen| seen.minor == *minor)?;
            Some(Share::new(*minor, seen.share(&request.each)?))
        };
        self.minors.iter().map(share).collect()
    }
}

/// GPUs that are a partition. None where others will do: the request is for a share, or partitions are only preferred
/// and there is none.
pub fn allocate(
    node: &NodeDevices,
    labels: &NodeLabels<'_>,
    request: &GpuRequest,
    gpus: &[Seen<'_>],
    used: &[i32],
) -> Result<Option<Vec<Share>>, Refused> {
    if request.is_shared {
        return Ok(None);
    }
    // The policy is that of the object which has the table: the node's report, or the node by its model.
    let (partitions, honors) = match &node.partitions {
        Some(partitions) => (Some(partitions), node.honors_partitions),
        None => (is_of_eight(labels).then_some(&*EIGHT), labels.honors_partitions),
    };
    let found = partitions.ok_or(Refused::NoPartitions).and_then(|partitions| partitions.find(request, gpus, used));
    match found {
        Err(refused) if honors || request.partition.is_some() => Err(refused),
        found => Ok(found.ok()),
    }
}

fn is_of_eight(labels: &NodeLabels<'_>) -> bool {
    matches!(labels.vendor, "" | "nvidia") && MODELS_OF_EIGHT.contains(&labels.model)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::devices::testing::Case;

    const FOUR: &str = "gpu0@0/0 gpu1@0/0 gpu2@1/1 gpu3@1/1";
    const EIGHT: &str = "gpu0@0/0 gpu1@0/0 gpu2@0/1 gpu3@0/1 gpu4@1/2 gpu5@1/2 gpu6@1/3 gpu7@1/3";

    fn gpus(count: usize) -> Value {
        json!({"requests": {"koordinator.sh/gpu": (100 * count).to_string()}})
    }

    fn restricted(count: usize) -> Value {
        json!({"requests": gpus(count)["requests"], "partition": {"allocatePolicy": "Restricted"}})
    }

    fn partition(minors: &[i32], score: i64) -> Value {
        json!({"minors": minors, "gpuLinkType": "NVLink", "allocationScore": score})
    }

    /// Single GPUs, the pairs 0 2 and 1 3, and all four.
    fn crossed() -> Case {
        let single = (0..4).map(|minor| partition(&[minor], 1)).collect::<Vec<_>>();
        let pairs = [partition(&[0, 2], 1), partition(&[1, 3], 1)];
        Case::new(FOUR).partitions(&json!({"1": single, "2": pairs, "4": [partition(&[0, 1, 2, 3], 1)]}))
    }

    #[test]
    fn gpus_are_taken_so_that_large_partitions_stay_whole() {
        let honoring = || crossed().labelled("node.koordinator.sh/gpu-partition-policy", "Honor");
        assert_eq!(honoring().allocate(&gpus(1)), "gpu0");
        assert_eq!(honoring().used("gpu0").allocate(&gpus(1)), "gpu2");
        assert_eq!(honoring().used("gpu0").allocate(&gpus(2)), "gpu1 gpu3");
        assert_eq!(honoring().used("gpu0 gpu1").allocate(&gpus(2)), "U Insufficient Partitioned GPU Devices");
        assert_eq!(honoring().allocate(&gpus(3)), "UU node(s) Unsupported number of GPU requests");
        assert_eq!(honoring().used("gpu0").allocate(&json!({"requests": {"koordinator.sh/gpu": "50"}})), "gpu1:50");
    }

    #[test]
    fn without_honor_a_table_is_a_preference() {
        assert_eq!(crossed().used("gpu0").allocate(&gpus(2)), "gpu1 gpu3");
        assert_eq!(crossed().used("gpu0 gpu3").allocate(&gpus(2)), "gpu1 gpu2");
        assert_eq!(crossed().allocate(&gpus(3)), "gpu0 gpu1 gpu2");
        assert_eq!(crossed().used("gpu0 gpu3").allocate(&restricted(2)), "U Insufficient Partitioned GPU Devices");
    }

    #[test]
    fn partitions_of_a_lower_score_are_taken_first() {
        let case = || Case::new(FOUR).partitions(&json!({"2": [partition(&[2, 3], 5), partition(&[0, 1], 1)]}));
        assert_eq!(case().allocate(&gpus(2)), "gpu0 gpu1");
        assert_eq!(case().used("gpu0 gpu1").allocate(&gpus(2)), "gpu2 gpu3");
        assert_eq!(case().allocate(&restricted(2)), "gpu0 gpu1");
        assert_eq!(case().used("gpu0 gpu1").allocate(&restricted(2)), "U Insufficient Partitioned GPU Devices");
    }

    #[test]
    fn partitions_must_be_fast_enough_and_healthy() {
        let mut fast = partition(&[2, 3], 1);
        fast["ringBusBandwidth"] = json!("200Gi");
        let case = |devices: &str| Case::new(devices).partitions(&json!({"2": [partition(&[0, 1], 1), fast]}));
        let pod =
            |bandwidth: &str| json!({"requests": gpus(2)["requests"], "partition": {"ringBusBandwidth": bandwidth}});
        assert_eq!(case(FOUR).allocate(&pod("100Gi")), "gpu2 gpu3");
        assert_eq!(case(FOUR).allocate(&pod("300Gi")), "U Insufficient Partitioned GPU Devices");
        assert_eq!(
            case("gpu0@0/0 gpu1@0/0 gpu2@1/1 gpu3!@1/1").allocate(&pod("100Gi")),
            "U Insufficient Partitioned GPU Devices"
        );
        assert_eq!(case(FOUR).used("gpu3:10").allocate(&pod("100Gi")), "U Insufficient Partitioned GPU Devices");
    }

    #[test]
    fn models_that_are_known_need_no_table() {
        let h100 = |policy: &str| Case::new(EIGHT).on_node("nvidia", "H100", policy);
        assert_eq!(h100("Honor").used("gpu0").allocate(&gpus(1)), "gpu1");
        assert_eq!(
            h100("Honor").used("gpu1 gpu3 gpu5 gpu7").allocate(&gpus(2)),
            "U Insufficient Partitioned GPU Devices"
        );
        assert_eq!(h100("Prefer").used("gpu1 gpu3 gpu5 gpu7").allocate(&gpus(2)), "gpu0 gpu2");
        assert_eq!(h100("Honor").allocate(&gpus(3)), "UU node(s) Unsupported number of GPU requests");
        assert_eq!(h100("Honor").used("gpu4").allocate(&gpus(4)), "gpu0 gpu1 gpu2 gpu3");
        assert_eq!(
            Case::new(EIGHT).on_node("huawei", "H100", "Honor").allocate(&gpus(2)),
            "UU node(s) missing GPU Partition Table"
        );
    }

    #[test]
    fn without_a_table_the_policy_of_the_report_counts_for_nothing() {
        let case = || Case::new(FOUR).labelled("node.koordinator.sh/gpu-partition-policy", "Honor");
        assert_eq!(case().allocate(&gpus(2)), "gpu0 gpu1");
        assert_eq!(case().allocate(&restricted(2)), "UU node(s) missing GPU Partition Table");
        assert_eq!(case().on_node("", "", "Honor").allocate(&gpus(2)), "UU node(s) missing GPU Partition Table");
    }
}
