//! What of a node's CPUs and devices is kept for whom, for the plugins that give them out (3B.9, 3F.5).
//!
//! While a pod is tried, what it may use is hidden from the cluster, and its owners are not. A plugin therefore sees what owners
//! have once, as far as it is offered, and twice where it is kept for others.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    AllocationSource,
    cluster::{Cluster, Placed},
    columns::Row,
    hold::Holds,
    pod::Template,
};

use super::{
    AllocatePolicy, Allocated, FitOptions, ReservationCache, ReservationInfo, ReservationSelector, ResourceAmounts,
    fits, fits_in, has_reservation_mode,
};

/// A part of a node that is kept: by a reservation with its owners, or by a running pod that a Reservation may take over.
pub struct ReservedResources<'c> {
    /// The pod that has it.
    pub holder: &'c Placed,
    /// The pods that use it there.
    pub owners: Vec<&'c Placed>,
    /// The reservation; none for a running pod.
    pub info: Option<&'c ReservationInfo>,
    /// Whether the pod that is tried may use it.
    pub is_restored: bool,
}

/// The running pods that a Reservation takes over on its node.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenOver(pub Vec<(Uid, ObjectKey)>);

/// What a pod requires of reservations.
#[derive(Clone, Debug, Default)]
pub struct ReservationRequirement {
    /// It uses one or waits.
    pub needs_one: bool,
    /// It uses what all of them keep.
    pub is_ignoring: bool,
    template: Arc<Template>,
    /// What it requests, once that matters: most nodes keep nothing.
    requests: OnceLock<ResourceAmounts>,
}

/// One way to take something from a node.
pub struct Choice<'l, 'c> {
    /// What is used; nothing leaves the node alone.
    pub reserved: Vec<&'l ReservedResources<'c>>,
    /// Whether nothing else is used.
    pub is_only: bool,
}

impl ReservedResources<'_> {
    fn is_running_pod(&self) -> bool {
        self.info.is_none()
    }

    /// Whether it may become the pod's: owners take nothing else where it says so.
    fn fits_in(&self, requirement: &ReservationRequirement) -> bool {
        self.info.is_none_or(|info| fits_in(requirement.requests(), info))
    }

    fn is_restricted(&self) -> bool {
        self.info.is_some_and(|info| info.policy == AllocatePolicy::Restricted)
    }

    /// Whether owners find a resource here alone.
    pub fn counts(&self, name: &str) -> bool {
        self.info.is_none_or(|info| info.counts(name))
    }
}

/// Whether no part of a node is kept.
pub fn is_unreserved(cluster: &Cluster, row: Row) -> bool {
    let Some(cache) = cluster.state::<ReservationCache>() else { return true };
    let is_reserved = |name: &str| cache.on_node(name).next().is_some();
    cluster.excluded_on(row).next().is_none()
        && (cache.is_empty() || !cluster.node(row).is_some_and(|node| is_reserved(&node.name)))
}

/// The parts of a node that are kept.
pub fn reserved(cluster: &Cluster, row: Row) -> Vec<ReservedResources<'_>> {
    let (Some(cache), Some(node)) = (cluster.state::<ReservationCache>(), cluster.node(row)) else { return Vec::new() };
    if is_unreserved(cluster, row) {
        return Vec::new();
    }
    let seen = |uid: &Uid| cluster.pod(uid).filter(|placed| placed.row == row);
    let reserved = cache.on_node(&node.name).filter_map(|info| {
        let hidden = cluster.excluded_pod(&info.uid, row);
        let holder = hidden.or_else(|| seen(&info.uid))?;
        let owners = info.assigned().filter_map(seen).collect();
        Some(ReservedResources { holder, owners, info: Some(info), is_restored: hidden.is_some() })
    });
    let running = cluster.excluded_on(row).filter(|placed| cache.info(&placed.pod.uid).is_none());
    let running = running.map(|holder| ReservedResources { holder, owners: Vec::new(), info: None, is_restored: true });
    reserved.chain(running).collect()
}

/// The pods of a node that use what they have. What keeps it for its owners has it beside them.
pub fn users(cluster: &Cluster, row: Row) -> impl Iterator<Item = &Placed> {
    cluster.pods_on(row).filter(|placed| !(placed.pod.is_reservation() || has_reservation_mode(&placed.pod)))
}

/// How many reservations of a node hold something of this type for the pod that is tried.
pub fn reservations_with<T: Any>(cluster: &Cluster, row: Row) -> usize {
    let reserved = reserved(cluster, row);
    reserved.iter().filter(|resources| resources.is_restored && resources.holder.holds.get::<T>().is_some()).count()
}

/// Whether some reservation that a pod may use fits it.
pub fn any_fits(cluster: &Cluster, row: Row, requirement: &ReservationRequirement) -> bool {
    reserved(cluster, row).iter().any(|resources| resources.is_restored && resources.fits_in(requirement))
}

/// Whether the reservations that a pod may use, and the node without them, have too little for it, so that the plugin Reservation
/// refuses the node and says what is lacking.
pub fn are_too_small(cluster: &Cluster, row: Row, requirement: &ReservationRequirement) -> bool {
    let (Some(cache), reserved) = (cluster.state::<ReservationCache>(), reserved(cluster, row)) else { return false };
    let offered: Vec<&ReservationInfo> =
        reserved.iter().filter(|resources| resources.is_restored).filter_map(|resources| resources.info).collect();
    if offered.is_empty() {
        return false;
    }
    let mut unreserved = cache.unreserved(cluster, row, requirement.requests());
    unreserved.pods = unreserved.pods.saturating_add(i64::try_from(offered.len()).unwrap_or(i64::MAX));
    fits(requirement.requests(), &unreserved, &offered, FitOptions::default(), |_| false).is_err()
}

/// The ways in which a pod may take something from a node with these parts, the first that has enough counts.
pub fn choices<'l, 'c>(
    reserved: &'l [ReservedResources<'c>],
    requirement: &ReservationRequirement,
    source: &AllocationSource,
) -> Vec<Choice<'l, 'c>> {
    let offered = || reserved.iter().filter(|resources| resources.is_restored);
    let node = || Choice { reserved: Vec::new(), is_only: false };
    // What is kept comes first; the rest of the node follows where that is allowed.
    let of = |used: Vec<&'l ReservedResources<'c>>| {
        let is_restricted = used.iter().any(|resources| resources.is_restricted());
        let is_running = used.iter().any(|resources| resources.is_running_pod());
        let only = (!is_running).then(|| Choice { reserved: used.clone(), is_only: true });
        only.into_iter().chain((!is_restricted).then_some(Choice { reserved: used, is_only: false }))
    };
    match source {
        AllocationSource::Unreserved => vec![node()],
        AllocationSource::Only(uids) => {
            of(offered().filter(|resources| uids.contains(&resources.holder.pod.uid)).collect()).collect()
        }
        AllocationSource::Any if requirement.is_ignoring => {
            vec![Choice { reserved: offered().collect(), is_only: false }]
        }
        AllocationSource::Any => {
            // One that is not chosen for the pod then would give it nothing. Of a pod that needs one, none of which fits it, the plugin
            // Reservation says so, unless they lack something else before.
            let none_fits = requirement.needs_one && !offered().any(|resources| resources.fits_in(requirement));
            let each = offered()
                .filter(|resources| none_fits || resources.fits_in(requirement))
                .flat_map(|resources| of(vec![resources]));
            let running: Vec<_> = offered().filter(|resources| resources.is_running_pod()).collect();
            let together = if running.len() > 1 { of(running).collect() } else { Vec::new() };
            each.chain(together).chain((!requirement.needs_one).then(node)).collect()
        }
    }
}

/// Where a pod with these holds takes what it is given: from the reservation that was chosen for it, or the pods that it takes
/// over.
pub fn source(holds: &Holds, requirement: &ReservationRequirement) -> AllocationSource {
    let owner = holds.get::<Allocated>().map(|allocated| vec![allocated.uid.clone()]);
    let over = || holds.get::<TakenOver>().map(|over| over.0.iter().map(|(uid, _)| uid.clone()).collect());
    match owner.or_else(over) {
        Some(uids) => AllocationSource::Only(uids),
        None if requirement.is_ignoring => AllocationSource::Any,
        None => AllocationSource::Unreserved,
    }
}

impl ReservationRequirement {
    /// What a pod with these labels and annotations wants; nothing where that cannot be read.
    pub fn of(template: &Arc<Template>) -> Self {
        let selector = ReservationSelector::new(&template.labels, &template.annotations).unwrap_or_default();
        let (needs_one, is_ignoring) = (selector.needs_one(), selector.is_ignoring);
        Self { needs_one, is_ignoring, template: Arc::clone(template), requests: OnceLock::new() }
    }

    /// Whether the pod may take something of a node of which nothing is kept, as [`choices`] would say.
    pub fn take_of_node(&self, source: &AllocationSource) -> bool {
        *source != AllocationSource::Any || self.is_ignoring || !self.needs_one
    }

    fn requests(&self) -> &ResourceAmounts {
        self.requests.get_or_init(|| ResourceAmounts::from(&self.template.requests))
    }
}
