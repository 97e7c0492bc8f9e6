//! A Reservation that takes over what running pods have: which pods may be taken, and what becomes of them (3C.5, 3C.8).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_config::scheduler::PreAllocation as Settings;
use koord_core::{
    uid::Uid,
    write::{Action, Write},
};
use koord_resource::{ResourceList, controller::ResourceKind};
use koord_scheduler_allocation::{
    Allocated, Owners, ReservationCache, ReservationInfo, ReservationMatch, ReservationSelector, ReservePod,
    ResourceAmounts, TakenOver,
};
use koord_scheduler_framework::{
    Reason, ReasonCode, Rejection,
    cluster::{Cluster, Placed},
    columns::Row,
    pod::Pod,
};
use koord_types::{
    protocol::Text,
    reservation::{PreAllocationMode, Reservation, ReservationAllocatePolicy},
    reservation_protocol::{PRE_ALLOCATION_REQUIRED, RESERVATION_ALLOCATED, ReservationAllocated},
};
use serde_json::json;

use super::{Candidate, PreAllocation, pre_allocate, reservation_score};

const UNSUPPORTED: &str = "node(s) reservation pre allocation is unsupported with current attributes";
const DISABLED: &str = "reservation requires cluster mode pre-allocation which is disabled";
const NO_POD_MATCHES: &str = "node(s) no pod match reservation with pre allocation required";

/// The running pods that a Reservation may take over.
pub(super) struct OverPods {
    /// The Reservation as it would be on a node.
    info: ReservationInfo,
    how: PreAllocation,
    by_node: BTreeMap<Arc<str>, Vec<Uid>>,
}

/// A Reservation that takes over pods.
struct PreAllocating<'c> {
    object: &'c Reservation,
    owners: Owners,
    /// Whether marked pods are taken over, instead of those that its owners select.
    of_cluster: bool,
}

impl<'c> PreAllocating<'c> {
    /// That of a reserve pod; none where it takes over nothing.
    fn of(pod: &Pod, cluster: &'c Cluster, settings: &Settings) -> Result<Option<Self>, Rejection> {
        let key = pod.reservation.as_ref().map(|object| &object.key);
        let object = key.and_then(|key| cluster.objects().get::<Reservation>(key.as_str()));
        let Some(object) = object.filter(|object| object.spec.pre_allocation) else { return Ok(None) };
        if object.spec.allocate_policy != Some(ReservationAllocatePolicy::Restricted) {
            return Err(Rejection::unresolvable(ReasonCode::ReservationInvalid.reason(UNSUPPORTED)));
        }
        let policy = object.spec.pre_allocation_policy.as_ref();
        let of_cluster = policy.is_some_and(|policy| policy.mode == Some(PreAllocationMode::Cluster));
        if of_cluster && !settings.enable_cluster_mode {
            return Err(Rejection::unresolvable(ReasonCode::PreAllocationImpossible.reason(DISABLED)));
        }
        let owners = Owners::new(&object.spec.owners)
            .map_err(|error| Rejection::unresolvable(ReasonCode::ReservationInvalid.reason(error.to_string())))?;
        Ok(Some(Self { object, owners, of_cluster }))
    }
}

impl OverPods {
    /// Whether the Reservation of a reserve pod may take over pods, if it is to.
    pub(super) fn check(pod: &Pod, cluster: &Cluster, settings: &Settings) -> Result<(), Rejection> {
        PreAllocating::of(pod, cluster, settings).map(drop)
    }

    /// Of the Reservation of a reserve pod; none where it takes over nothing.
    pub(super) fn of(pod: &Pod, cluster: &Cluster, settings: &Settings) -> Result<Option<Self>, Rejection> {
        let is_required = pod.template.labels.get(PRE_ALLOCATION_REQUIRED.name()) == Some("true");
        let no_pod_matches =
            || Err(Rejection::unresolvable(ReasonCode::PreAllocationImpossible.reason(NO_POD_MATCHES)));
        let reservation = PreAllocating::of(pod, cluster, settings)?;
        let Some(PreAllocating { object, owners, of_cluster }) = reservation else {
            return if is_required { no_pod_matches() } else { Ok(None) };
        };
        let is_chosen = |placed: &&Placed| {
            let labels = &placed.pod.template.labels;
            let by_mode = if of_cluster {
                labels.get(&settings.cluster_label_key) == Some("true")
            } else {
                owners.select_pod(&placed.pod)
            };
            by_mode && !placed.pod.is_reservation() && placed.holds.get::<Allocated>().is_none()
        };
        let Ok(ReservePod { requests, .. }) = ReservePod::new(object) else { return Ok(None) };
        let mut info = ReservationInfo::of(object, &requests);
        info.is_available = true;
        // It takes over running pods all the same.
        info.unschedulable = false;
        let mut pods: Vec<&Placed> = cluster.pods().chain(cluster.excluded_pods()).filter(is_chosen).collect();
        let selected = &pod.template.affinity;
        let is_selected = |placed: &Placed| {
            let node = cluster.node(placed.row);
            node.is_some_and(|node| selected.selects(&node.name, |key| node.labels.get(key)))
        };
        pods.retain(|placed| is_selected(placed) && is_allowed(placed, &info, &requests, cluster));
        if of_cluster {
            let priority = |placed: &Placed| -> i64 {
                let text = placed.pod.template.annotations.get(&settings.cluster_priority_annotation_key);
                text.and_then(|text| text.parse().ok()).unwrap_or(0)
            };
            pods.sort_by_cached_key(|placed| (Reverse(priority(placed)), placed.pod.uid.clone()));
        }
        let mut by_node = BTreeMap::<Arc<str>, Vec<Uid>>::new();
        for placed in pods {
            if let Some(node) = cluster.node(placed.row) {
                by_node.entry(Arc::clone(&node.name)).or_default().push(placed.pod.uid.clone());
            }
        }
        let how = PreAllocation {
            is_required,
            many: object.spec.pre_allocation_policy.as_ref().and_then(|policy| policy.enable_multiple) == Some(true),
            is_ordered: of_cluster,
            prefers_none: settings.prefer_no_pre_allocated_pods,
        };
        if how.is_required && by_node.is_empty() {
            return no_pod_matches();
        }
        Ok(Some(Self { info, how, by_node }))
    }

    /// All of these pods, on all nodes.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Uid> {
        self.by_node.values().flatten()
    }

    /// The only nodes that are filtered (3C.6); none named where the Reservation may do without taking pods over.
    pub(super) fn only_on(&self) -> Option<BTreeSet<Box<str>>> {
        self.how.is_required.then(|| self.by_node.keys().map(|name| Box::from(&**name)).collect())
    }

    /// The pods that are taken over on a node; none where it has enough without. Otherwise the reasons.
    pub(super) fn chosen(
        &self,
        cache: &ReservationCache,
        cluster: &Cluster,
        row: Row,
    ) -> Result<Vec<Uid>, Vec<Reason>> {
        let Some(node) = cluster.node(row) else { return Ok(Vec::new()) };
        let uids = self.by_node.get(&node.name).map_or(&[][..], Vec::as_slice);
        let requests = |uid: &Uid| {
            let hidden = cluster.excluded_pod(uid, row);
            hidden.or_else(|| cluster.pod(uid)).map(|placed| ResourceAmounts::from(&placed.pod.template.requests))
        };
        let candidates: Vec<Candidate> =
            uids.iter().filter_map(|uid| Some(Candidate { uid: uid.clone(), requests: requests(uid)? })).collect();
        pre_allocate(&self.info, &cache.unreserved(cluster, row, &self.info.allocatable), &candidates, self.how)
    }

    /// Whether nodes are compared by the pods that are taken over. Of several pods nothing is said, as in the original.
    pub(super) fn is_rated(&self) -> bool {
        !self.how.many
    }

    /// How good a node is: the better the pod is used that is taken over.
    pub(super) fn rate(&self, cache: &ReservationCache, cluster: &Cluster, row: Row) -> i64 {
        let chosen = self.chosen(cache, cluster, row).unwrap_or_default();
        let placed = chosen.first().and_then(|uid| cluster.excluded_pod(uid, row));
        placed.map_or(0, |placed| reservation_score(&ResourceAmounts::from(&placed.pod.template.requests), &self.info))
    }
}

/// What is written into the pods that are taken over, before the Reservation has its node.
pub(super) fn writes<'a>(taken_over: &'a TakenOver, object: &Pod) -> impl Iterator<Item = Write> + use<'a> {
    let name = object.reservation.as_ref().map(|object| object.key.name().to_owned()).unwrap_or_default();
    let allocated = ReservationAllocated { name, uid: object.uid.to_string() }.write();
    taken_over.0.iter().map(move |(uid, key)| {
        let patch = json!({"metadata": {"uid": uid, "annotations": {RESERVATION_ALLOCATED.name(): allocated}}});
        let action = Action::Patch { subresource: "", patch };
        Write { kind: ResourceKind::POD, key: key.clone(), action }
    })
}

/// Whether a running pod, be it an owner or marked for all Reservations, says nothing against this one, which keeps what its
/// template requests.
fn is_allowed(placed: &Placed, info: &ReservationInfo, requests: &ResourceList, cluster: &Cluster) -> bool {
    let template = &placed.pod.template;
    let (Ok(selector), Some(node)) =
        (ReservationSelector::new(&template.labels, &template.annotations), cluster.node(placed.row))
    else {
        return false;
    };
    matches!(
        selector.accepts(&template.requests, info, requests, &node.labels),
        ReservationMatch::Matched | ReservationMatch::Ignored
    )
}
