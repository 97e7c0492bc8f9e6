//! Reservation as a plugin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use koord_api::{
    pod_annotations::DISABLE_PREEMPTIBLE,
    protocol::Text,
    reservation::Reservation as ReservationObject,
    reservation_protocol::{RESERVATION_AFFINITY, RESERVATION_ALLOCATED, ReservationAllocated},
};
use koord_config::scheduler::{PreAllocation, ReservationArgs};
use koord_core::{uid::Uid, write::Write};
use koord_engine::{
    cluster::{Cluster, Placed},
    columns::Row,
    event::{Event, Events},
    hold::Holds,
    object::Object,
    plugin::{
        Code, Explanation, Figure, Filter, Patch, Plugin, PostFilter, PreFilter, Refusal, Rejection, Request, Score,
        StandIn, Upkeep,
    },
    pod::Pod,
    preemption::{Attempted, Rules, Width},
    state::State,
};
use koord_resource::controller::ResourceKind;
use parking_lot::Mutex;

use super::{
    Amounts, ReservationInfo, ReservePod, Unfit, Wish,
    figures::figures,
    fits,
    info::AllocatePolicy,
    kept::{Allocated, Kept, Matched, identity_of},
    lifecycle::{Garbage, is_over},
    message, nominate,
    over_pods::{OverPods, TakenOver},
    reservation_score, scores, upkeep,
};
use crate::default_preemption::{DefaultPreemption, LowerPriority, waits_for_victims};

const NO_MATCH: &str = "node(s) no reservations match reservation affinity";
const OTHER_NODE: &str = "node(s) didn't match the nodeName specified by reservation";
const CONFLICT: &str = "node(s) reservation allocate policy conflict";

/// Lets pods use what is reserved for them, and keeps others from it.
#[derive(Debug, Default)]
pub struct Reservation {
    ignored: Arc<Ignored>,
    /// When Reservations that are over are deleted; none where they are kept for ever.
    garbage: Option<Garbage>,
    pre_allocation: PreAllocation,
    /// How room is made for pods and Reservations; none where that is left to others.
    preemption: Option<DefaultPreemption>,
    /// The reasons of the last search, which refusals refer to by their place.
    reasons: Arc<Mutex<Vec<Vec<String>>>>,
}

/// Resources that reservations do not keep.
#[derive(Clone, Debug, Default)]
struct Ignored {
    names: Vec<String>,
    domains: Vec<String>,
}

/// A pod with the reservations that it matches.
struct Chosen {
    wish: Wish,
    requests: Amounts,
    matched: Matched,
    ignored: Arc<Ignored>,
}

struct Asked {
    chosen: Chosen,
    reasons: Arc<Mutex<Vec<Vec<String>>>>,
}

/// A Reservation that looks for its node.
struct Wanted {
    node: Option<Arc<str>>,
    is_default: bool,
    over: Option<OverPods>,
    reasons: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Reservation {
    /// The plugin with these arguments.
    pub fn new(args: &ReservationArgs) -> Self {
        let (names, domains) = (args.ignored_resources.clone(), args.ignored_resource_groups.clone());
        let seconds = |seconds: i64| u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default();
        let garbage = Garbage {
            kept_for: seconds(args.gc_duration_seconds),
            without_node_for: seconds(args.gc_interval_seconds),
        };
        let preemption = args.enable_preemption.then(|| {
            let percent =
                args.min_candidate_nodes_percentage.as_ref().and_then(|percent| u32::try_from(percent.0).ok());
            let percent = percent.unwrap_or(10);
            let at_least = args.min_candidate_nodes_absolute.and_then(|nodes| usize::try_from(nodes).ok());
            DefaultPreemption { width: Width { percent, at_least: at_least.unwrap_or(100) } }
        });
        Self {
            ignored: Arc::new(Ignored { names, domains }),
            garbage: (!args.disable_garbage_collection).then_some(garbage),
            pre_allocation: args.pre_allocation_config.clone().unwrap_or_default(),
            preemption,
            reasons: Arc::default(),
        }
    }

    /// What a pod wants, and the reservations that it matches.
    fn choose(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Chosen> {
        let wish = wish(request.pod).ok()?;
        let kept = cluster.state::<Kept>()?;
        let (matched, _) = kept.matched(request, &wish, cluster);
        let requests = Amounts::from(&request.template().requests);
        Some(Chosen { wish, requests, matched, ignored: Arc::clone(&self.ignored) })
    }

    /// The running pods that a Reservation may take over, if it does that.
    fn over_pods(&self, pod: &Pod, cluster: &Cluster) -> Option<OverPods> {
        OverPods::of(pod, cluster, &self.pre_allocation).ok().flatten()
    }

    /// The running pods that a Reservation takes over on its node.
    fn taken_over(&self, pod: &Pod, cluster: &Cluster, row: Row) -> Result<TakenOver, Rejection> {
        let (Some(over), Some(kept)) = (self.over_pods(pod, cluster), cluster.state::<Kept>()) else {
            return Ok(TakenOver(Vec::new()));
        };
        let chosen = over.chosen(kept, cluster, row).map_err(|words| Rejection::unschedulable(words.join(", ")))?;
        let placed = |uid: &Uid| cluster.hidden_on(row).find(|placed| placed.pod.uid == *uid);
        let taken = chosen.iter().filter_map(placed).map(|placed| (placed.pod.uid.clone(), placed.pod.key.clone()));
        Ok(TakenOver(taken.collect()))
    }

    /// What the nodes of matched reservations lack, by what is said about it.
    fn node_reasons(request: &Request<'_>, attempted: &Attempted<'_>, matched: &Matched) -> Vec<String> {
        let (cluster, profile) = (&*attempted.cluster, attempted.profile);
        if matched.is_empty() {
            return Vec::new();
        }
        let prepared = profile.prepare(request, cluster);
        let mut counts = BTreeMap::<String, usize>::new();
        for (node, reservations) in matched {
            let verdict = cluster.row(node).and_then(|row| prepared.filter(cluster, row).err());
            let reasons = verdict.map(|verdict| profile.reasons(&verdict, cluster)).unwrap_or_default();
            for reason in reasons.into_iter().filter(|reason| !reason.starts_with("Reservation(s) ")) {
                *counts.entry(reason).or_default() += reservations.len();
            }
        }
        let counts = counts.into_iter();
        counts.map(|(reason, count)| format!("{count} Reservation(s) for node reason that {reason}")).collect()
    }
}

impl Ignored {
    fn contains(&self, name: &str) -> bool {
        let domain = name.split_once('/').map(|(domain, _)| domain);
        let is_extended = domain.is_some_and(|domain| !domain.ends_with("kubernetes.io"));
        let is_of_group = domain.is_some_and(|domain| self.domains.iter().any(|group| group == domain));
        is_extended && (is_of_group || self.names.iter().any(|ignored| ignored == name))
    }
}

impl Chosen {
    fn infos<'k>(&self, kept: &'k Kept, node: &str) -> Vec<&'k ReservationInfo> {
        self.matched.get(node).into_iter().flatten().filter_map(|uid| kept.info(uid)).collect()
    }

    /// The reservations with which a node takes the pod.
    fn fitting<'k>(&self, kept: &'k Kept, cluster: &Cluster, row: Row) -> Result<Vec<&'k ReservationInfo>, Unfit> {
        let Some(node) = cluster.node(row) else { return Ok(Vec::new()) };
        if self.wish.is_ignoring {
            return Ok(Vec::new());
        }
        let infos = self.infos(kept, &node.name);
        if infos.is_empty() {
            let reasons = vec![NO_MATCH.to_owned()];
            return if self.wish.needs_one() { Err(Unfit { reasons }) } else { Ok(Vec::new()) };
        }
        let needs = (self.wish.needs_one(), self.wish.name().is_some());
        fits(&self.requests, &kept.room(cluster, row), &infos, needs, |name| self.ignored.contains(name))
    }
}

impl Plugin for Reservation {
    fn name(&self) -> &'static str {
        "Reservation"
    }

    fn reads(&self) -> &'static [ResourceKind] {
        const { &[ResourceKind::typed::<ReservationObject>()] }
    }

    fn state(&self) -> Option<Box<dyn State>> {
        Some(Box::new(Kept::default()))
    }

    fn admit(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        if request.pod.is_reservation() {
            return OverPods::of(request.pod, cluster, &self.pre_allocation).map(drop);
        }
        let wish = wish(request.pod).map_err(|message| Rejection { code: Code::Error, message })?;
        let Some(kept) = cluster.state::<Kept>().filter(|_| wish.needs_one()) else { return Ok(()) };
        if kept.matched(request, &wish, cluster).0.is_empty() { Err(Rejection::unresolvable(NO_MATCH)) } else { Ok(()) }
    }

    fn is_individual(&self, pod: &Pod, cluster: &Cluster) -> bool {
        let Some(kept) = cluster.state::<Kept>() else { return false };
        if pod.is_reservation() {
            return true;
        }
        let wants = wish(pod).is_ok_and(|wish| wish.needs_one() || wish.is_ignoring);
        wants || !kept.is_empty() && kept.has_owner(&identity_of(pod))
    }

    fn hides(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Uid> {
        if request.pod.is_reservation() {
            return self.over_pods(request.pod, cluster).map(|over| over.pods().cloned().collect()).unwrap_or_default();
        }
        let chosen = self.is_individual(request.pod, cluster).then(|| self.choose(request, cluster)).flatten();
        chosen.map(|chosen| chosen.matched.into_values().flatten().collect()).unwrap_or_default()
    }

    fn filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreFilter {
        let reasons = Arc::clone(&self.reasons);
        reasons.lock().clear();
        if request.pod.is_reservation() {
            let node = ReservePod::wanted_node(request.pod).map(Arc::from);
            let object = cluster.objects().of::<ReservationObject>();
            let policy = object
                .map(|(_, object)| object)
                .find(|object| object.metadata.uid.as_deref().is_some_and(|uid| Uid::from(uid) == request.pod.uid));
            let is_default = policy.is_none_or(|object| object.spec.allocate_policy.is_none());
            let over = self.over_pods(request.pod, cluster);
            return PreFilter::Nodes(Box::new(Wanted { node, is_default, over, reasons }));
        }
        match self.choose(request, cluster) {
            Some(chosen) if chosen.wish.needs_one() || !chosen.matched.is_empty() => {
                PreFilter::Nodes(Box::new(Asked { chosen, reasons }))
            }
            _ => PreFilter::Skip,
        }
    }

    fn score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn Score>> {
        if request.pod.is_reservation() {
            return self.over_pods(request.pod, cluster).map(|over| -> Box<dyn Score> { Box::new(over) });
        }
        let chosen = self.choose(request, cluster)?;
        let is_used = !chosen.wish.is_ignoring && !chosen.matched.is_empty();
        is_used.then(|| -> Box<dyn Score> { Box::new(chosen) })
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<String> {
        let known = self.reasons.lock();
        let at = usize::try_from(refusal.operand).unwrap_or(usize::MAX);
        known.get(at).cloned().unwrap_or_default()
    }

    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilter {
        if let Some(preemption) = &self.preemption {
            let rules = Preemptible(LowerPriority { priority: request.template().priority });
            let may_preempt = request.template().preempts && !waits_for_victims(request, attempted, &rules);
            let nominated = may_preempt.then(|| preemption.preempt(request, attempted, &rules));
            if let Some(Ok(nominated)) = nominated {
                return nominated;
            }
        }
        let cluster = &*attempted.cluster;
        let lines = (|| {
            let (wish, kept) = (wish(request.pod).ok()?, cluster.state::<Kept>()?);
            let (matched, summary) = kept.matched(request, &wish, cluster);
            let of_nodes = Self::node_reasons(request, attempted, &matched);
            (!request.pod.is_reservation()).then(|| summary.lines(&wish, &of_nodes).join(", "))
        })();
        PostFilter::Nothing(lines.unwrap_or_default())
    }

    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        if request.pod.is_reservation() {
            let over = self.taken_over(request.pod, cluster, row)?;
            if !over.0.is_empty() {
                holds.set(over);
            }
            return Ok(());
        }
        let Some((chosen, kept)) = self.choose(request, cluster).zip(cluster.state::<Kept>()) else { return Ok(()) };
        let fitting = chosen.fitting(kept, cluster, row).unwrap_or_default();
        match nominate(&chosen.requests, &fitting) {
            Some(info) => {
                holds.set(Allocated { name: Arc::clone(&info.name), uid: info.uid.clone() });
                Ok(())
            }
            None if chosen.wish.needs_one() => Err(Rejection::unschedulable(NO_MATCH)),
            None => Ok(()),
        }
    }

    fn stand_in(&self, object: &Object) -> StandIn {
        let Some(reservation) = object.get::<ReservationObject>() else { return StandIn::None };
        if is_over(&reservation.status) {
            return StandIn::Gone;
        }
        ReservePod::new(reservation).map_or(StandIn::Gone, |ReservePod { pod, .. }| StandIn::Pod(Arc::new(pod)))
    }

    fn bind(&self, _: &Request<'_>, placed: &Placed, cluster: &Cluster) -> Option<Write> {
        upkeep::bound(placed, cluster)
    }

    fn explain(&self, pod: &Pod, message: &str, cluster: &Cluster) -> Explanation {
        let asks = pod.template.annotations.get(RESERVATION_AFFINITY.name()).is_some() && !pod.is_reservation();
        let said = asks.then(|| message::of_reservations(message)).flatten();
        Explanation {
            write: upkeep::unschedulable(pod, message, cluster),
            events: said.map(|said| ("FailedScheduling-Reservation", said)).into_iter().collect(),
        }
    }

    fn upkeep(&self, cluster: &Cluster) -> Upkeep {
        cluster.state::<Kept>().map(|kept| upkeep::all(kept, cluster, self.garbage)).unwrap_or_default()
    }

    fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        figures(cluster)
    }

    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, _: &Cluster, patch: &mut Patch) {
        if let Some(Allocated { name, uid }) = placed.holds.get() {
            let allocated = ReservationAllocated { name: name.to_string(), uid: uid.to_string() };
            patch.annotate(RESERVATION_ALLOCATED.name(), allocated.write());
        }
        if let Some(over) = placed.holds.get::<TakenOver>() {
            patch.writes.extend(over.writes(&placed.pod).map(|write| ("Reservation", write)));
        }
    }

    fn given(&self, pod: &Pod, holds: &mut Holds) {
        let text = pod.given.get(RESERVATION_ALLOCATED.name());
        if let Some(ReservationAllocated { name, uid }) = text.and_then(|text| RESERVATION_ALLOCATED.read(text).ok()) {
            holds.set(Allocated { name: name.into(), uid: Uid::from(&*uid) });
        }
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED
            | Events::NODE_ALLOCATABLE
            | Events::NODE_LABELS
            | Events::POD_REMOVED
            | Events::POD_CHANGED
            | Events::OBJECTS
    }

    fn may_help(&self, _: &Pod, event: &Event, _: &Cluster) -> bool {
        !matches!(event, Event::Object(change) if change.of::<ReservationObject>().is_none())
    }
}

/// Pods of a lower priority may go that do not say otherwise.
struct Preemptible(LowerPriority);

impl Rules for Preemptible {
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool {
        let is_protected = placed.pod.template.labels.get(DISABLE_PREEMPTIBLE.name()) == Some("true");
        !is_protected && self.0.may_evict(placed, cluster)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        self.0.protected(pods, cluster)
    }

    fn no_victims(&self, node: &str) -> String {
        self.0.no_victims(node)
    }
}

fn wish(pod: &Pod) -> Result<Wish, String> {
    Wish::new(&pod.template.labels, &pod.template.annotations).map_err(|error| error.reason)
}

/// A refusal with these reasons.
fn refusal(reasons: &Mutex<Vec<Vec<String>>>, words: Vec<String>, resolvable: bool) -> Refusal {
    let mut known = reasons.lock();
    let at = known.iter().position(|other| *other == words).unwrap_or_else(|| {
        known.push(words);
        known.len() - 1
    });
    Refusal { reason: 0, resolvable, operand: at as u64 }
}

impl Filter for Asked {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(kept) = cluster.state::<Kept>() else { return Ok(()) };
        let fitting = self.chosen.fitting(kept, cluster, row);
        fitting.map(|_| ()).map_err(|Unfit { reasons }| {
            let resolvable = reasons.iter().all(|reason| reason != NO_MATCH);
            refusal(&self.reasons, reasons, resolvable)
        })
    }

    fn is_local(&self) -> bool {
        false
    }
}

impl Filter for Wanted {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let (Some(kept), Some(node)) = (cluster.state::<Kept>(), cluster.node(row)) else { return Ok(()) };
        if self.node.as_ref().is_some_and(|wanted| *wanted != node.name) {
            return Err(refusal(&self.reasons, vec![OTHER_NODE.to_owned()], false));
        }
        let mut others = kept.on_node(&node.name).filter(|info| info.is_matchable());
        if others.any(|info| (info.policy == AllocatePolicy::Default) != self.is_default) {
            return Err(refusal(&self.reasons, vec![CONFLICT.to_owned()], false));
        }
        let taken = self.over.as_ref().map(|over| over.chosen(kept, cluster, row));
        taken.transpose().map(drop).map_err(|words| refusal(&self.reasons, words, true))
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

impl Score for Chosen {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let (Some(kept), Some(node)) = (cluster.state::<Kept>(), cluster.node(row)) else { return 0 };
        let fitting = self.fitting(kept, cluster, row).unwrap_or_default();
        let score = nominate(&self.requests, &fitting).map_or(0, |info| reservation_score(&self.requests, info));
        let order = self.infos(kept, &node.name).iter().filter_map(|info| info.order).min();
        order.map_or(score, |order| ORDERED + order.clamp(-ORDER_MAX, ORDER_MAX) * SCORES + score)
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

impl Score for OverPods {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.state::<Kept>().map_or(0, |kept| self.rate(kept, cluster, row))
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
