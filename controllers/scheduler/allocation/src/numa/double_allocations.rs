//! CPUs that several pods have for themselves.

use std::collections::BTreeMap;

use crate::{
    numa::state::{NumaHold, NumaState},
    users,
};
use koord_scheduler_framework::{
    DoubleAllocation,
    cluster::{Cluster, Placed},
    columns::Row,
};
use koord_scheduling::CpuSet;

/// The CPUs of a node that more pods have than may.
pub fn double_allocations(cluster: &Cluster, row: Row) -> Vec<DoubleAllocation> {
    let Some(node) = cluster.state::<NumaState>().and_then(|state| state.node(row)) else { return Vec::new() };
    let crowded = node.ledger.exhausted(node.refs_max.saturating_add(1));
    if crowded.is_empty() {
        return Vec::new();
    }
    let pods = users(cluster, row);
    let holds: Vec<(&Placed, &CpuSet)> =
        pods.filter_map(|placed| Some((placed, &placed.holds.get::<NumaHold>()?.cpus))).collect();
    let mut by_pods: BTreeMap<Vec<usize>, CpuSet> = BTreeMap::new();
    for cpu in crowded.iter() {
        let has = (0..holds.len()).filter(|index| holds[*index].1.contains(cpu));
        by_pods.entry(has.collect()).or_default().insert(cpu);
    }
    let refs_max = usize::try_from(node.refs_max).unwrap_or(usize::MAX);
    by_pods.retain(|pods, _| pods.len() > refs_max);
    let given = by_pods.into_iter().map(|(pods, cpus)| {
        let names: Vec<&str> = pods.iter().map(|index| holds[*index].0.pod.key.as_str()).collect();
        DoubleAllocation {
            what: "cpu",
            details: format!("CPUs {cpus} are given to {}", names.join(", ")),
            pods: pods.iter().map(|index| holds[*index].0.pod.uid.clone()).collect(),
            subject: None,
        }
    });
    given.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::key::ObjectKey;
    use koord_resource::controller::ResourceKind;
    use koord_scheduler_framework::{
        hold::Holds,
        pod::{Pod, Reference},
    };
    use koord_types::reservation_protocol::OPERATING_MODE;
    use serde_json::json;

    use super::*;

    /// What is given twice on a node where these pods have these CPUs. A pod `r…` is a reserve pod, and a pod `k…` keeps its CPUs
    /// for others.
    fn given(pods: &[(&str, &str)]) -> Vec<String> {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::<NumaState>::default());
        cluster.set_node(koord_scheduler_testing::node("n", &json!({})));
        for (name, cpus) in pods {
            let labels = [(OPERATING_MODE.name(), "Reservation")];
            let labels = if name.starts_with('k') { labels.as_slice() } else { &[] };
            let pod = koord_scheduler_testing::labelled("ns", name, labels, &json!({}));
            let reference = Reference { kind: ResourceKind::POD, key: ObjectKey::cluster("r") };
            let reservation = name.starts_with('r').then(|| Arc::new(reference));
            let mut holds = Holds::default();
            holds.set(NumaHold { cpus: cpus.parse().unwrap(), ..NumaHold::default() });
            cluster.place(Arc::new(Pod { reservation, ..Pod::clone(&pod) }), &"n".into(), holds);
        }
        let found = double_allocations(&cluster, cluster.row("n").unwrap());
        assert!(found.iter().all(|one| one.what == "cpu" && one.pods.len() > 1));
        found.into_iter().map(|one| one.details).collect()
    }

    #[test]
    fn cpus_that_several_pods_have_are_found_with_these_pods() {
        assert_eq!(given(&[("a", "0-3"), ("b", "4-7")]), [""; 0]);
        assert_eq!(
            given(&[("a", "0-3"), ("b", "2-5"), ("c", "5")]),
            ["CPUs 2-3 are given to ns/a, ns/b", "CPUs 5 are given to ns/b, ns/c"]
        );
    }

    #[test]
    fn owners_share_cpus_with_their_reservation_and_not_with_each_other() {
        for holder in ["r", "k"] {
            assert_eq!(given(&[(holder, "0-7"), ("a", "0-3"), ("b", "4-7")]), [""; 0]);
            assert_eq!(given(&[(holder, "0-7"), ("a", "0-3"), ("b", "3-7")]), ["CPUs 3 are given to ns/a, ns/b"]);
        }
    }
}
