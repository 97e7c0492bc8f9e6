//! Which reservation of a node a pod uses, and which node is best for it (3C.10, 3C.11).

use std::cmp::Reverse;

use koord_scheduler_allocation::{ReservationInfo, ResourceAmounts};
use koord_scheduler_framework::{highest_is_best, normalize, share};

/// The score of the node that has the reservation to be used first.
const PREFERRED: i64 = 1000;

/// How well a pod fills a reservation, from 0 to 100: what it and the owners before it take of each resource.
///
/// QUIRK: what owners take of a resource counts, although the pod requests nothing of it
/// (`a_reservation_is_scored_by_how_full_it_becomes`).
pub fn reservation_score(requests: &ResourceAmounts, info: &ReservationInfo) -> i64 {
    let parts: Vec<i64> = info
        .allocatable
        .positive()
        .map(|(name, capacity)| {
            let filled = requests.get(name).saturating_add(info.allocated().get(name));
            if filled <= capacity { share(filled, capacity) } else { 0 }
        })
        .collect();
    let weight = i64::try_from(parts.len()).unwrap_or(i64::MAX);
    if weight == 0 { 0 } else { parts.iter().sum::<i64>() / weight }
}

/// The reservation that a pod uses, of those with which its node and all plugins take it: the smallest order, then the highest
/// score, then the name. Scores of other plugins, a list for each, are in the order of the reservations and are stretched to 100; its own
/// score counts as it is.
pub fn nominate<'r>(
    requests: &ResourceAmounts,
    fitting: &[&'r ReservationInfo],
    of_others: impl FnOnce() -> Vec<Vec<i64>>,
) -> Option<&'r ReservationInfo> {
    if let [] | [_] = fitting {
        return fitting.first().copied();
    }
    let ordered = fitting.iter().filter(|info| info.order.is_some()).min_by_key(|info| (info.order, &info.name));
    let best = || {
        let mut sums: Vec<i64> = fitting.iter().map(|info| reservation_score(requests, info)).collect();
        for mut scores in of_others() {
            normalize(&mut scores, highest_is_best);
            sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum = sum.saturating_add(score));
        }
        fitting.iter().zip(sums).min_by_key(|(info, sum)| (Reverse(*sum), &info.name)).map(|(info, _)| info)
    };
    ordered.or_else(best).copied()
}

/// The normalised score of each node: of the smallest order among the reservations there that the pod matches, and of the
/// score of the one that it would use.
pub fn scores(nodes: &[(Option<i64>, Option<i64>)]) -> Vec<i64> {
    let first = nodes.iter().filter_map(|(order, _)| *order).min();
    let preferred = first.and_then(|first| nodes.iter().position(|(order, _)| *order == Some(first)));
    let mut scores: Vec<i64> = nodes.iter().map(|(_, score)| score.unwrap_or(0)).collect();
    if let Some(score) = preferred.and_then(|at| scores.get_mut(at)) {
        *score = PREFERRED;
    }
    normalize(&mut scores, highest_is_best);
    scores
}

#[cfg(test)]
mod tests {
    use super::super::testing::{amounts, reservation};
    use koord_core::uid::Uid;
    use serde_json::json;

    use super::*;

    fn sized(name: &str, cpu: &str, memory: &str) -> ReservationInfo {
        reservation(json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}))
    }

    #[test]
    fn a_reservation_is_scored_by_how_full_it_becomes() {
        let pod = amounts(&[("cpu", 3000), ("memory", 6)]);
        // score-tightest
        assert_eq!(reservation_score(&pod, &sized("r", "6", "12")), 50);
        assert_eq!(reservation_score(&pod, &sized("r", "3", "6")), 100);
        assert_eq!(reservation_score(&pod, &sized("r", "2", "6")), 50, "what is more than full counts nothing");
        assert_eq!(reservation_score(&pod, &sized("r", "0", "12")), 50, "what is not reserved does not count");
        let mut used = sized("r", "4", "8");
        used.assign(&Uid::from("p"), &amounts(&[("memory", 8)]));
        assert_eq!(reservation_score(&amounts(&[("cpu", 2000)]), &used), 75);
        assert_eq!(reservation_score(&pod, &sized("r", "0", "0")), 0);
    }

    #[test]
    fn the_smallest_order_is_used_and_without_one_the_fullest() {
        let pod = amounts(&[("cpu", 3000), ("memory", 6)]);
        let (big, tight) = (sized("a", "6", "8"), sized("b", "3", "6"));
        let name = |infos: &[&ReservationInfo]| nominate(&pod, infos, Vec::new).map(|info| info.name.to_string());
        assert_eq!(name(&[&big, &tight]).as_deref(), Some("b"), "score-same-node-tightest");
        assert_eq!(name(&[&tight, &big]).as_deref(), Some("b"));
        let ordered = |order: &str, name: &str| {
            let labels = json!({"scheduling.koordinator.sh/reservation-order": order});
            reservation(json!({"metadata": {"name": name, "labels": labels}}))
        };
        let (late, early) = (ordered("100", "c"), ordered("5", "d"));
        assert_eq!(name(&[&tight, &late, &early]).as_deref(), Some("d"), "order-same-node");
        assert_eq!(name(&[&ordered("0", "e"), &tight]).as_deref(), Some("b"), "order-zero-ignored");
        assert_eq!(name(&[]), None);
        let with = |scores: [i64; 2]| nominate(&pod, &[&tight, &big], || vec![scores.to_vec()]).map(|info| &*info.name);
        assert_eq!([with([0, 70]), with([60, 70])], [Some("a"), Some("b")], "scores of other plugins count alike");
        let half = sized("c", "6", "12");
        let (quarter, devices) = (sized("d", "12", "24"), || vec![vec![50, 75]]);
        let best = nominate(&pod, &[&half, &quarter], devices).map(|info| &*info.name);
        assert_eq!(best, Some("d"), "50 + 66 against 25 + 100: its own score counts as it is");
    }

    #[test]
    fn the_node_of_the_smallest_order_overshadows_all_others() {
        assert_eq!(scores(&[(Some(100), Some(80)), (Some(5), Some(50)), (None, None)]), [8, 100, 0]);
        assert_eq!(scores(&[(Some(5), Some(10)), (Some(5), Some(50))]), [100, 5], "the first of equals");
        assert_eq!(scores(&[(None, Some(50)), (None, Some(100)), (None, None)]), [50, 100, 0]);
        assert_eq!(scores(&[(None, None)]), [0]);
    }
}
