//! Reservation as a plugin.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_config::scheduler::{PreAllocation, ReservationArgs};
use koord_core::{uid::Uid, write::Write};
use koord_resource::controller::ResourceKind;
use koord_scheduler_allocation::{
    AllocatePolicy, Allocated, Assumed, Matched, ReservationCache, ReservationQuery, ReservationSelector, ReservePod,
    ResourceAmounts, TakenOver, has_reservation_mode, is_over, object_of,
};
use koord_scheduler_framework::{
    AllocationRestore, BeforePreFilter, Bind, EnqueueExtensions, Explanation, FailureHandler, Figure, Filter, Found,
    MetricSource, NodeScore, Orders, Patch, Plugin, PluginState, PostFilter, PostFilterResult, PreBind, PreFilter,
    PreparedFilter, Query, Reason, ReasonCode, Refusal, Registration, Rejection, Request, ReservationRestore, Reserve,
    ReservePodSource, ReservePodState, SchedulingSignature, Score, ServiceEndpoint, ServiceError, SignatureFields,
    StatusUpdates, StatusWriter,
    cluster::{Cluster, ExcludedPods, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    hold::Holds,
    object::Object,
    pod::Pod,
    preemption::{Attempted, Evaluator, Width},
    texts::Texts,
};
use koord_types::{
    protocol::{ProtocolError, Text},
    reservation::{Reservation as ReservationObject, ReservationPhase},
    reservation_protocol::{RESERVATION_AFFINITY, RESERVATION_ALLOCATED, RESERVATION_IGNORED, ReservationAllocated},
};
use serde_json::Value;

use super::{
    attempt::ReservationsFound,
    conditions::Conditions,
    figures::figures,
    filters::{
        Ignored, MatchedReservations, NO_MATCH, OwnerFilter, OwnerScore, ReservePodFilter, TERMINATING, TakeOverScore,
        among,
    },
    lifecycle::{self, Garbage},
    message,
    over_pods::{OverPods, writes},
    preemption::preempt,
    shown, status_updates, unmatched,
};

/// Lets pods use what is reserved for them, and keeps others from it.
#[derive(Debug, Default)]
pub struct Reservation {
    ignored: Arc<Ignored>,
    /// When Reservations that are over are deleted; none where they are kept for ever.
    garbage: Option<Garbage>,
    pre_allocation: PreAllocation,
    /// How it preempts; none where that is left to others.
    preemption: Option<Evaluator>,
    /// What feature gates change.
    changes: Changes,
    texts: Arc<Texts>,
}

/// What feature gates change.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Affinities see the labels of reservations alone, not those of their nodes.
    omits_node_labels: bool,
    /// The capacity of a node with one reservation that a pod matches is not checked again.
    trusts_node: bool,
    /// The owners of Reservations that are gone are written so.
    cleans_owners: bool,
    /// Further conditions of Reservations are written.
    conditions: Conditions,
}

impl Reservation {
    /// The plugin with these arguments, under these feature gates.
    pub fn new(args: &ReservationArgs, gates: impl Fn(&str) -> bool) -> Self {
        let (names, domains) = (args.ignored_resources.clone(), args.ignored_resource_groups.clone());
        let seconds = |seconds: i64| u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default();
        let garbage = Garbage {
            retention: seconds(args.gc_duration_seconds),
            without_node_for: seconds(args.gc_interval_seconds),
        };
        let preemption = args.enable_preemption.then(|| {
            let percent = u32::try_from(args.min_candidate_nodes_percentage.0).unwrap_or_default();
            let at_least = usize::try_from(args.min_candidate_nodes_absolute).unwrap_or_default();
            Evaluator { width: Width { percent, at_least } }
        });
        Self {
            ignored: Arc::new(Ignored { names, domains }),
            garbage: (!args.disable_garbage_collection).then_some(garbage),
            pre_allocation: args.pre_allocation_config.clone(),
            preemption,
            changes: Changes {
                omits_node_labels: gates("OmitNodeLabelsForReservation"),
                trusts_node: gates("SkipReservationFitsNode"),
                cleans_owners: gates("CleanExpiredReservationAllocated"),
                conditions: Conditions(gates("ReservationConditions")),
            },
            texts: Arc::default(),
        }
    }

    /// What a pod requests, and the reservations that it matches; none where there are none.
    fn choose(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Arc<MatchedReservations>> {
        let find = || {
            let selector = selector(request.pod).ok()?;
            let cache =
                cluster.state::<ReservationCache>().filter(|cache| !cache.is_empty() || selector.needs_one())?;
            let matched = cache.matched(&self.query(request, &selector, cluster));
            let (mut requests, mut others) = (ResourceAmounts::default(), Vec::new());
            if !matched.is_empty() {
                requests = ResourceAmounts::from(&request.template().requests);
                let plugins = request.each(|plugin| &plugin.reservation_filter);
                others.extend(plugins.filter_map(|plugin| plugin.prepare_reservation_filter(request)));
            }
            let (ignored, trusts_node) = (Arc::clone(&self.ignored), self.changes.trusts_node);
            Some(Arc::new(MatchedReservations { selector, requests, matched, ignored, trusts_node, others }))
        };
        ReservationsFound::of(request.state, cluster).chosen.get_or_init(find).clone()
    }

    fn query<'a>(
        &self,
        request: &'a Request<'a>,
        selector: &'a ReservationSelector,
        cluster: &'a Cluster,
    ) -> ReservationQuery<'a> {
        ReservationQuery { request, selector, cluster, has_node_labels: !self.changes.omits_node_labels }
    }

    /// Whether reservations matter to a pod: those that it matches or waits for, and those that have owners and take more.
    fn concern(&self, request: &Request<'_>, chosen: &MatchedReservations, cluster: &Cluster) -> bool {
        let is_shared = |cache: &ReservationCache| cache.is_shared(&self.query(request, &chosen.selector, cluster));
        !chosen.matched.is_empty()
            || chosen.selector.needs_one()
            || cluster.state::<ReservationCache>().is_some_and(is_shared)
    }

    /// The running pods that a Reservation may take over; none where it takes over nothing.
    fn over_pods(&self, request: &Request<'_>, cluster: &Cluster) -> Result<Option<Arc<OverPods>>, Rejection> {
        let find = || OverPods::of(request.pod, cluster, &self.pre_allocation).map(|over| over.map(Arc::new));
        ReservationsFound::of(request.state, cluster).over.get_or_init(find).clone()
    }

    /// The running pods that a Reservation takes over on its node.
    fn taken_over(&self, request: &Request<'_>, cluster: &Cluster, row: Row) -> Result<TakenOver, Rejection> {
        let (Some(over), Some(cache)) = (self.over_pods(request, cluster)?, cluster.state::<ReservationCache>()) else {
            return Ok(TakenOver(Vec::new()));
        };
        let chosen = over.chosen(cache, cluster, row).map_err(Rejection::unschedulable)?;
        let placed = |uid: &Uid| cluster.excluded_pod(uid, row);
        let taken = chosen.iter().filter_map(placed).map(|placed| (placed.pod.uid.clone(), placed.pod.key.clone()));
        Ok(TakenOver(taken.collect()))
    }

    /// What the nodes of matched reservations lack, by what is said about it.
    fn node_reasons(request: &Request<'_>, attempted: &Attempted<'_>, matched: &Matched) -> Vec<String> {
        let (cluster, profile) = (&*attempted.cluster, attempted.profile);
        if matched.is_empty() {
            return Vec::new();
        }
        // A plugin that rejects the pod as a whole says the same of every node.
        let of_all = match attempted.found {
            Found::Never(_, rejection) => Some(&rejection.reasons),
            Found::Node { .. } | Found::Nothing(_) => None,
        };
        let prepared = of_all.is_none().then(|| profile.prepare(request, cluster));
        let mut counts = BTreeMap::<String, usize>::new();
        for reservations in matched.by_row() {
            let row = reservations.first().map(|(row, _)| *row);
            let verdict = prepared.as_ref().zip(row).and_then(|(prepared, row)| prepared.filter(cluster, row).err());
            let of_node = verdict.map(|verdict| profile.reasons(&verdict, cluster));
            let reasons = of_node.or_else(|| of_all.cloned()).unwrap_or_default();
            let texts = reasons.into_iter().map(|reason| reason.text);
            let (by_reservation, by_node): (Vec<_>, Vec<_>) =
                texts.partition(|text| text.starts_with("Reservation(s) "));
            // Those that lack something themselves are not kept from the pod by their node.
            let left_out = reservations.len().saturating_sub(by_reservation.len());
            for reason in by_node.into_iter().filter(|_| left_out > 0) {
                *counts.entry(reason).or_default() += left_out;
            }
        }
        let counts = counts.into_iter();
        counts.map(|(reason, count)| format!("{count} Reservation(s) for node reason that {reason}")).collect()
    }
}

impl Plugin for Reservation {
    fn name(&self) -> &'static str {
        "Reservation"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<ReservationObject>()] })
            .enqueue_extensions(&self)
            .reservation_restore(&self)
            .before_pre_filter(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .post_filter(&self)
            .failure_handler(&self)
            .reserve(&self)
            .pre_bind(&self)
            .bind(&self)
            .allocation_restore(&self)
            .reserve_pod(&self)
            .state(&self)
            .status_writer(&self)
            .service_endpoint(&self)
            .metrics(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for Reservation {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED
            | Events::NODE_ALLOCATABLE
            | Events::NODE_LABELS
            | Events::POD_REMOVED
            | Events::POD_CHANGED
            | Events::POD_ASSIGNED
            | Events::OBJECTS
    }

    fn is_helped_by(&self, _: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            Event::Object(change) => change.of::<ReservationObject>().is_some(),
            Event::PodAssigned(pod) => has_reservation_mode(pod),
            _ => true,
        }
    }
}

impl ReservationRestore for Reservation {
    fn restore(&self, request: &Request<'_>, cluster: &Cluster) -> Option<ExcludedPods> {
        if request.pod.is_reservation() {
            let over = self.over_pods(request, cluster).ok().flatten()?;
            return Some(ExcludedPods { at_once: over.pods().cloned().collect(), ..ExcludedPods::default() });
        }
        let (chosen, cache) = self.choose(request, cluster).zip(cluster.state::<ReservationCache>())?;
        (!chosen.matched.is_empty()).then(|| cache.hidden(&chosen.matched))
    }
}

impl BeforePreFilter for Reservation {
    fn before_pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        if request.pod.is_reservation() {
            return OverPods::check(request.pod, cluster, &self.pre_allocation);
        }
        selector(request.pod).map(drop).map_err(invalid)
    }
}

impl PreFilter for Reservation {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        if request.pod.is_reservation() {
            if let Some(missing) = object_of(request.pod, cluster).and_then(lifecycle::missing) {
                let words = format!("running PreFilter plugin {:?}: {missing}", self.name());
                return Err(Rejection::error(ReasonCode::ReservationInvalid.reason(words)));
            }
            return self.over_pods(request, cluster).map(drop);
        }
        let selector = selector(request.pod).map_err(invalid)?;
        if !selector.needs_one() {
            return Ok(());
        }
        let chosen = self.choose(request, cluster);
        if chosen.is_some_and(|chosen| chosen.matched.is_empty()) {
            Err(Rejection::unresolvable(unmatched::reason(request.pod, &selector, cluster)))
        } else {
            Ok(())
        }
    }
}

impl Filter for Reservation {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        let texts = Arc::clone(&self.texts);
        if request.pod.is_reservation() {
            let node = ReservePod::required_node(request.pod).map(Arc::from);
            let object = object_of(request.pod, cluster);
            let is_default = object.is_none_or(|object| AllocatePolicy::of(object) == AllocatePolicy::Default);
            let over = self.over_pods(request, cluster).ok().flatten();
            let only = over.as_ref().and_then(|over| over.only_on());
            return among(only, Box::new(ReservePodFilter { node, is_default, over, texts }));
        }
        let keeps = has_reservation_mode(request.pod);
        let chosen = self.choose(request, cluster);
        // QUIRK: unused reservations do not matter to a pod that matches none
        // (`an_operating_pod_is_not_beside_used_reservations_of_the_default_policy`).
        let chosen = chosen.filter(|chosen| !keeps || self.concern(request, chosen, cluster));
        chosen.map_or(PreparedFilter::Skip, |chosen| {
            let only = chosen.only_on(cluster);
            among(only, Box::new(OwnerFilter { chosen, keeps, texts }))
        })
    }

    fn names_nodes(&self) -> bool {
        true
    }

    fn unnamed_node_code(&self) -> ReasonCode {
        ReasonCode::ReservationNotMatched
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        self.texts.get(refusal.operand, "node(s) no reservation(s) to meet the requirements")
    }
}

impl Score for Reservation {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        if request.pod.is_reservation() {
            let over = self.over_pods(request, cluster).ok().flatten().filter(|over| over.is_rated());
            return over.map(|over| -> Box<dyn NodeScore> { Box::new(TakeOverScore(over)) });
        }
        self.choose(request, cluster).map(|chosen| -> Box<dyn NodeScore> { Box::new(OwnerScore(chosen)) })
    }
}

impl PostFilter for Reservation {
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        let (mut reasons, mut has_no_candidate) = (Vec::new(), false);
        match self.preemption.as_ref().map(|evaluator| preempt(evaluator, request, attempted, self.name())) {
            None => {}
            Some(PostFilterResult::Nothing(words)) => reasons.push(words),
            Some(PostFilterResult::NoCandidate(words)) => (has_no_candidate, reasons) = (true, vec![words]),
            Some(done) => return done,
        }
        let cluster = &*attempted.cluster;
        let chosen = (!request.pod.is_reservation()).then(|| self.choose(request, cluster)).flatten();
        reasons.extend(chosen.into_iter().flat_map(|chosen| {
            let of_nodes = Self::node_reasons(request, attempted, &chosen.matched);
            let query = self.query(request, &chosen.selector, cluster);
            let summary = cluster.state::<ReservationCache>().map(|cache| cache.summary(&query)).unwrap_or_default();
            summary.lines(&chosen.selector, &of_nodes)
        }));
        let words = reasons.join(", ");
        if has_no_candidate { PostFilterResult::NoCandidate(words) } else { PostFilterResult::Nothing(words) }
    }
}

impl FailureHandler for Reservation {
    fn attempt_failed(&self, request: &Request<'_>, found: &Found, cluster: &mut Cluster, _: &mut Orders) {
        if self.changes.conditions == Conditions::default() || request.pod.is_reservation() {
            return;
        }
        let Ok(selector) = selector(request.pod) else { return };
        let known = &*cluster;
        let unused = known
            .state::<ReservationCache>()
            .map(|cache| cache.unused(&self.query(request, &selector, known), found))
            .unwrap_or_default();
        if let Some(cache) = cluster.state_mut::<ReservationCache>() {
            cache.note_unused(unused);
        }
    }
}

impl Reserve for Reservation {
    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        if request.pod.is_reservation() {
            let over = self.taken_over(request, cluster, row)?;
            holds.set(Assumed);
            if !over.0.is_empty() {
                holds.set(over);
            }
            return Ok(());
        }
        let Some((chosen, cache)) = self.choose(request, cluster).zip(cluster.state::<ReservationCache>()) else {
            return Ok(());
        };
        if chosen.selector.is_ignoring {
            return Ok(());
        }
        match chosen.nominated(cache, cluster, row) {
            Some(info) if info.is_terminating => {
                Err(Rejection::error(ReasonCode::ReservationInvalid.reason(TERMINATING)))
            }
            Some(info) => {
                holds.set(Allocated { name: Arc::clone(&info.name), uid: info.uid.clone() });
                Ok(())
            }
            None if chosen.selector.needs_one() => {
                Err(Rejection::unschedulable(ReasonCode::ReservationNotMatched.reason(NO_MATCH)))
            }
            None => Ok(()),
        }
    }
}

impl PreBind for Reservation {
    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, _: &Cluster, patch: &mut Patch) {
        if let Some(Allocated { name, uid }) = placed.holds.get() {
            let allocated = ReservationAllocated { name: name.to_string(), uid: uid.to_string() };
            patch.annotate(RESERVATION_ALLOCATED.name(), allocated.write());
        } else if placed.pod.given.get(RESERVATION_ALLOCATED.name()).is_some() && !placed.pod.is_reservation() {
            // It is left of a binding that has failed.
            patch.annotations.insert(RESERVATION_ALLOCATED.name().to_owned(), None);
        }
        if let Some(over) = placed.holds.get::<TakenOver>() {
            patch.writes.extend(writes(over, &placed.pod).map(|write| ("Reservation", write)));
        }
    }
}

impl Bind for Reservation {
    fn bind(&self, _: &Request<'_>, placed: &Placed, cluster: &Cluster) -> Option<Write> {
        status_updates::bound(placed, cluster, self.changes.conditions)
    }
}

impl AllocationRestore for Reservation {
    fn restore_allocation(&self, pod: &Pod, holds: &mut Holds) {
        if let Some(allocated) = allocated(pod) {
            holds.set(allocated);
        }
    }

    /// A pod does not use the reservation any more that its annotation said, where that is gone or cannot be read.
    fn update_allocation(&self, was: &Placed, pod: &Pod, holds: &mut Holds) {
        if allocated(&was.pod).is_some() && allocated(pod).is_none() {
            holds.remove::<Allocated>();
        }
    }
}

impl ReservePodSource for Reservation {
    fn reserve_pod(&self, object: &Object) -> ReservePodState {
        let Some(reservation) = object.get::<ReservationObject>() else { return ReservePodState::None };
        let status = &reservation.status;
        // One with a node is on it while it is available, and is not looked for otherwise.
        let is_nowhere = !status.node_name.is_empty() && status.phase != Some(ReservationPhase::Available);
        if is_over(status) || is_nowhere {
            return ReservePodState::Gone;
        }
        ReservePod::new(reservation)
            .map_or(ReservePodState::Gone, |ReservePod { pod, .. }| ReservePodState::Pod(Arc::new(pod)))
    }
}

impl PluginState for Reservation {
    fn state(&self) -> Box<dyn State> {
        Box::new(ReservationCache::default())
    }
}

impl StatusWriter for Reservation {
    fn report_unschedulable(&self, pod: &Pod, message: &str, cluster: &Cluster) -> Explanation {
        let has_affinity = pod.template.annotations.get(RESERVATION_AFFINITY.name()).is_some() && !pod.is_reservation();
        let reservation_message = has_affinity.then(|| message::of_reservations(message)).flatten();
        Explanation {
            write: status_updates::unschedulable(pod, message, cluster, self.changes.conditions),
            events: reservation_message.map(|text| ("FailedScheduling-Reservation", text)).into_iter().collect(),
        }
    }

    fn status_writes(&self, cluster: &Cluster) -> StatusUpdates {
        cluster
            .state::<ReservationCache>()
            .map(|cache| {
                let mut status_updates = status_updates::all(cache, cluster, self.garbage, self.changes.conditions);
                if self.changes.cleans_owners {
                    status_updates.writes.extend(status_updates::orphans(cache, cluster));
                }
                status_updates
            })
            .unwrap_or_default()
    }

    fn urgent_writes(&self, cluster: &mut Cluster) -> Vec<Write> {
        let uids = cluster.state_mut::<ReservationCache>().map(ReservationCache::take_used_anew).unwrap_or_default();
        let cache = cluster.state::<ReservationCache>().filter(|_| !uids.is_empty());
        cache.map(|cache| status_updates::of_owners(&uids, cache, cluster, self.changes.conditions)).unwrap_or_default()
    }
}

impl ServiceEndpoint for Reservation {
    fn paths(&self) -> &'static [&'static str] {
        &["nodeReservations/:nodeName", "reservationSelectorIndex"]
    }

    fn serve(&self, path: &[&str], query: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        let cache = cluster.state::<ReservationCache>().ok_or(ServiceError::UnknownPath)?;
        match *path {
            ["nodeReservations", node] => Ok(shown::on_node(cache, cluster, node)),
            ["reservationSelectorIndex"] => Ok(cache.index(query.is_set("detail"))),
            _ => Err(ServiceError::UnknownPath),
        }
    }
}

impl MetricSource for Reservation {
    fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        figures(cluster)
    }
}

impl SchedulingSignature for Reservation {
    fn signature(&self) -> SignatureFields {
        const { SignatureFields::WhereRestored(&[RESERVATION_IGNORED.name()]) }
    }

    fn is_individual(&self, pod: &Pod, cluster: &Cluster) -> bool {
        let names = |cache: &ReservationCache| cache.names(pod);
        pod.is_reservation() || has_reservation_mode(pod) || cluster.state::<ReservationCache>().is_some_and(names)
    }

    fn epoch(&self, cluster: &Cluster) -> u64 {
        cluster.state::<ReservationCache>().map_or(0, |cache| u64::from(!cache.is_empty()))
    }
}

/// The reservation that a pod uses, as its annotation says.
fn allocated(pod: &Pod) -> Option<Allocated> {
    let text = pod.given.get(RESERVATION_ALLOCATED.name())?;
    let ReservationAllocated { name, uid } = RESERVATION_ALLOCATED.read(text).ok()?;
    Some(Allocated { name: name.into(), uid: Uid::from(&*uid) })
}

fn selector(pod: &Pod) -> Result<ReservationSelector, ProtocolError> {
    ReservationSelector::new(&pod.template.labels, &pod.template.annotations)
}

fn invalid(error: ProtocolError) -> Rejection {
    Rejection::error(ReasonCode::ReservationInvalid.reason(error.reason).with("annotation", error.key))
}

#[cfg(test)]
mod tests;
