//! What is asked of every node: for a pod that may use reservations, and for a Reservation that looks for its node (3C.7, 3C.11).

use std::{collections::BTreeSet, sync::Arc};

use koord_scheduler_allocation::{
    AllocatePolicy, FitOptions, Matched, ReservationCache, ReservationInfo, ReservationSelector, ResourceAmounts,
    Unfit, fits,
};
use koord_scheduler_framework::{
    AllocationSource, NodeFilter, NodeScore, PreparedFilter, Reason, ReasonCode, Refusal, SourceFilter,
    cluster::Cluster, columns::Row, texts::Texts,
};

use super::{nominate, over_pods::OverPods, reservation_score, scores};

pub(super) const TERMINATING: &str = "target reservation is terminating";
pub(super) const NO_MATCH: &str = "node(s) no reservations match reservation affinity";
const OTHER_NODE: &str = "node(s) didn't match the nodeName specified by reservation";
const CONFLICT: &str = "node(s) reservation allocate policy conflict";

/// Resources that reservations do not keep.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored {
    pub(super) names: Vec<String>,
    pub(super) domains: Vec<String>,
}

/// A pod with the reservations that it matches.
pub(super) struct MatchedReservations {
    pub(super) selector: ReservationSelector,
    pub(super) requests: ResourceAmounts,
    pub(super) matched: Matched,
    pub(super) ignored: Arc<Ignored>,
    pub(super) trusts_node: bool,
    /// Plugins that may find too little in a reservation.
    pub(super) others: Vec<Box<dyn SourceFilter>>,
}

pub(super) struct OwnerFilter {
    pub(super) chosen: Arc<MatchedReservations>,
    /// Whether the pod keeps what it has, and cannot share a node with reservations of the default policy.
    pub(super) keeps: bool,
    pub(super) texts: Arc<Texts>,
}

/// How nodes are compared for a pod.
pub(super) struct OwnerScore(pub(super) Arc<MatchedReservations>);

/// How nodes are compared for a Reservation that takes over pods.
pub(super) struct TakeOverScore(pub(super) Arc<OverPods>);

/// A Reservation that looks for its node.
pub(super) struct ReservePodFilter {
    pub(super) node: Option<Arc<str>>,
    pub(super) is_default: bool,
    pub(super) over: Option<Arc<OverPods>>,
    pub(super) texts: Arc<Texts>,
}

impl Ignored {
    fn contains(&self, name: &str) -> bool {
        let domain = name.split_once('/').map(|(domain, _)| domain);
        let is_extended = domain.is_some_and(|domain| !domain.ends_with("kubernetes.io"));
        let is_of_group = domain.is_some_and(|domain| self.domains.iter().any(|group| group == domain));
        is_extended && (is_of_group || self.names.iter().any(|ignored| ignored == name))
    }
}

impl MatchedReservations {
    /// The only nodes that are filtered (3C.6); none named where the pod may do without a reservation.
    pub(super) fn only_on(&self, cluster: &Cluster) -> Option<BTreeSet<Box<str>>> {
        let name = |row: Row| cluster.node(row).map(|node| Box::from(&*node.name));
        self.selector.needs_one().then(|| self.matched.rows().filter_map(name).collect())
    }

    fn infos<'k>(&self, cache: &'k ReservationCache, row: Row) -> Vec<&'k ReservationInfo> {
        self.matched.on(row).filter_map(|uid| cache.info(uid)).collect()
    }

    /// The reservations with which a node takes the pod, which may have to be one at least.
    fn fitting<'k>(
        &self,
        cache: &'k ReservationCache,
        cluster: &Cluster,
        row: Row,
        needs_one: bool,
    ) -> Result<Vec<&'k ReservationInfo>, Unfit> {
        if self.selector.is_ignoring || cluster.node(row).is_none() {
            return Ok(Vec::new());
        }
        let infos = self.infos(cache, row);
        if infos.is_empty() {
            let reasons = ReasonCode::ReservationNotMatched.reason(NO_MATCH).into();
            return if needs_one { Err(Unfit { reasons }) } else { Ok(Vec::new()) };
        }
        let (has_affinity, names_reservation) = (self.selector.needs_one(), self.selector.name().is_some());
        let needs = FitOptions {
            requires_reservation: needs_one,
            has_affinity,
            names_reservation,
            trusts_node: self.trusts_node,
        };
        let mut unreserved = cache.unreserved(cluster, row, &self.requests);
        // Owners take the places of reserve pods.
        unreserved.pods = unreserved.pods.saturating_add(i64::try_from(infos.len()).unwrap_or(i64::MAX));
        fits(&self.requests, &unreserved, &infos, needs, |name| self.ignored.contains(name))
    }

    /// The reservation of a node that the pod uses there. One of which the pod requests nothing it uses only where it asks for one.
    pub(super) fn nominated<'k>(
        &self,
        cache: &'k ReservationCache,
        cluster: &Cluster,
        row: Row,
    ) -> Option<&'k ReservationInfo> {
        if self.matched.is_empty() {
            return None;
        }
        let source = |info: &&ReservationInfo| AllocationSource::Only(vec![info.uid.clone()]);
        let mut fitting = self.fitting(cache, cluster, row, true).unwrap_or_default();
        fitting.retain(|info| self.others.iter().all(|other| other.filter_source(cluster, row, &source(info))));
        let of_other = |other: &dyn SourceFilter| -> Option<Vec<i64>> {
            fitting.iter().map(|info| other.score_source(cluster, row, &source(info))).collect()
        };
        let of_others = || self.others.iter().filter_map(|other| of_other(&**other)).collect();
        nominate(&self.requests, &fitting, of_others)
    }
}

/// These nodes are filtered, if any are named, or else all of them.
pub(super) fn among(names: Option<BTreeSet<Box<str>>>, filter: Box<dyn NodeFilter>) -> PreparedFilter {
    match names {
        Some(names) => PreparedFilter::NodeNames(names, Some(filter)),
        None => PreparedFilter::Nodes(filter),
    }
}

/// A refusal with these reasons.
fn refusal(texts: &Texts, reasons: Vec<Reason>, resolvable: bool) -> Refusal {
    Refusal { reason: 0, resolvable, operand: texts.number(reasons) }
}

/// Whether a node has a reservation beside which one of this policy cannot be: the default policy is by itself.
fn has_other_policy(cache: &ReservationCache, node: &str, is_default: bool) -> bool {
    let mut others = cache.on_node(node).filter(|info| info.is_matchable());
    others.any(|info| (info.policy == AllocatePolicy::Default) != is_default)
}

impl NodeFilter for OwnerFilter {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(cache) = cluster.state::<ReservationCache>() else { return Ok(()) };
        if self.keeps && cluster.node(row).is_some_and(|node| has_other_policy(cache, &node.name, false)) {
            return Err(refusal(&self.texts, ReasonCode::ReservationConflict.reason(CONFLICT).into(), false));
        }
        let fitting = self.chosen.fitting(cache, cluster, row, self.chosen.selector.needs_one());
        fitting.map(|_| ()).map_err(|Unfit { reasons }| {
            let resolvable = reasons.iter().all(|reason| reason.code != ReasonCode::ReservationNotMatched);
            refusal(&self.texts, reasons, resolvable)
        })
    }

    fn follows_rows(&self) -> bool {
        false
    }

    fn inherits(&self) -> bool {
        true
    }
}

impl NodeFilter for ReservePodFilter {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let (Some(cache), Some(node)) = (cluster.state::<ReservationCache>(), cluster.node(row)) else { return Ok(()) };
        if self.node.as_ref().is_some_and(|required| *required != node.name) {
            return Err(refusal(&self.texts, ReasonCode::ReservationNodeMismatch.reason(OTHER_NODE).into(), false));
        }
        if has_other_policy(cache, &node.name, self.is_default) {
            return Err(refusal(&self.texts, ReasonCode::ReservationConflict.reason(CONFLICT).into(), false));
        }
        let taken = self.over.as_ref().map(|over| over.chosen(cache, cluster, row));
        taken.transpose().map(drop).map_err(|words| refusal(&self.texts, words, true))
    }

    fn is_local(&self) -> bool {
        false
    }
}

/// Below every score: a node with an order has it here, beside its score, until all nodes are compared.
const ORDERED: i64 = i64::MIN / 2;
/// More than any score.
const SCORES: i64 = 128;
/// Orders beyond are alike.
const ORDER_MAX: i64 = 1 << 48;

impl NodeScore for OwnerScore {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let Some(cache) = cluster.state::<ReservationCache>() else { return 0 };
        // What a pod keeps is used where the owner happens to go; it makes no node better (3C.10).
        let Self(chosen) = self;
        let nominated = chosen.nominated(cache, cluster, row).filter(|info| !info.is_pod);
        let score = nominated.map_or(0, |info| reservation_score(&chosen.requests, info));
        let order = chosen.infos(cache, row).iter().filter_map(|info| info.order).min();
        order.map_or(score, |order| ORDERED + order.clamp(-ORDER_MAX, ORDER_MAX) * SCORES + score)
    }

    fn rows(&self, _: &Cluster) -> Option<Vec<Row>> {
        Some(if self.0.selector.is_ignoring { Vec::new() } else { self.0.matched.rows().collect() })
    }

    fn inherits(&self) -> bool {
        true
    }

    fn normalize(&self, all: &mut [i64]) {
        let unpacked: Vec<(Option<i64>, Option<i64>)> = all
            .iter()
            .map(|score| match score - ORDERED {
                _ if *score >= 0 => (None, Some(*score)),
                packed => (Some(packed.div_euclid(SCORES)), Some(packed.rem_euclid(SCORES))),
            })
            .collect();
        all.iter_mut().zip(scores(&unpacked)).for_each(|(score, normalized)| *score = normalized);
    }

    fn is_local(&self) -> bool {
        false
    }
}

impl NodeScore for TakeOverScore {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.state::<ReservationCache>().map_or(0, |cache| self.0.rate(cache, cluster, row))
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_resources_are_ignored_by_name_or_by_its_first_part() {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let ignored = Ignored { names: text(&["x.io/a", "cpu", "kubernetes.io/batch-cpu"]), domains: text(&["y.io"]) };
        let names = ["x.io/a", "x.io/b", "y.io/a", "y.io/a/b", "cpu", "kubernetes.io/batch-cpu", "sub.y.io/a"];
        assert_eq!(names.map(|name| ignored.contains(name)), [true, false, true, true, false, false, false]);
    }
}
