//! Filter, score and NUMA hints by the pre-filter state of a pod.

use koord_scheduler_allocation::numa::{allocate::Stock, node::NumaNode, policy::Policy};
use koord_scheduler_framework::{
    AllocationSource, NodeFilter, NodeNumaAffinity, NodeScore, Refusal, SourceFilter, cluster::Cluster, columns::Row,
};
use koord_scheduling::NumaMask;

use super::{
    pre_filter_state::{NodeInCluster, PreFilterState},
    refused::Refused,
};
impl NodeNumaAffinity for PreFilterState {
    fn affinity(&self, cluster: &Cluster, row: Row) -> Option<NumaMask> {
        let place = NodeInCluster::of(cluster, row)?;
        let terms = self.terms(place.node).ok()?;
        // With BestEffort they are chosen when the node is.
        if matches!(terms.policy, Policy::None | Policy::BestEffort) {
            return None;
        }
        let numbered = self.numbered(place.state);
        let order = self.order(terms, &numbered, place.node).ok()?;
        let take = |stock: &Stock<'_>| self.affinity(place, stock, (terms.policy, &numbered), &AllocationSource::Any);
        self.first(place, &AllocationSource::Any, &order, take).ok()?
    }
}

impl SourceFilter for PreFilterState {
    fn filter_source(&self, cluster: &Cluster, row: Row, source: &AllocationSource) -> bool {
        self.check(cluster, row, source).is_ok()
    }
}

impl NodeFilter for PreFilterState {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        self.check(cluster, row, &AllocationSource::Any).map_err(
            |Refused { reasons, is_resolvable, is_of_reserve, .. }| Refusal {
                reason: if is_of_reserve { Refused::OF_RESERVE } else { Refused::OF_FILTER },
                resolvable: is_resolvable,
                operand: self.texts.number(reasons),
            },
        )
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        let takes_part = |node: &NumaNode| {
            let terms = self.terms(node);
            node.cpu_ratio > 1.0 || terms.is_ok_and(|terms| terms.policy != Policy::None || terms.cpus.is_some())
        };
        let is_apart = NodeInCluster::of(cluster, row).is_none_or(|place| !takes_part(place.node));
        is_apart.then(|| NodeFilter::filter(self, cluster, row))
    }
}

impl NodeScore for PreFilterState {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let Some(place) = NodeInCluster::of(cluster, row) else { return 0 };
        let Ok(terms) = self.terms(place.node) else { return 0 };
        if terms.policy == Policy::None {
            return self.score_of_node(place.node, terms.cpus.is_some(), cluster, row);
        }
        self.score_of_numa_nodes(place, terms).unwrap_or(0)
    }

    fn is_local(&self) -> bool {
        true
    }
}
