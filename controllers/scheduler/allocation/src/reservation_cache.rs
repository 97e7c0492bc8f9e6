//! The reservations of a cluster and who uses them: what the plugin keeps.

mod audit;
mod index;
mod matching;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::uid::Uid;
use koord_resource::ResourceList;
use koord_scheduler_framework::{
    cluster::{Cluster, ExcludedPods, Mismatch, Placed, state::State},
    columns::Row,
    hold::Resized,
    node::Node,
    object::ObjectChange,
    pod::Pod,
};
use koord_scheduling::{ResourceId, ResourceVector};
use koord_types::{
    reservation::Reservation,
    reservation_protocol::{OPERATING_MODE, PodOperatingMode},
};

use self::matching::{Changes, Matching};
pub use self::matching::{Matched, ReservationQuery, Unused};
use super::{
    Owners, ReservationInfo, ReservationMatch, ReservationSelector, ReservePod, ResourceAmounts, Summary,
    UnreservedResources, is_over, owners::marks,
};

/// What a pod was given: a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub name: Arc<str>,
    pub uid: Uid,
}

/// What the reserve pod of a Reservation was given: its node, before that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed;

/// The reservations that have a node, or are assumed to have it, and the pods that use them.
#[derive(Clone, Debug, Default)]
pub struct ReservationCache {
    infos: BTreeMap<Uid, Known>,
    by_node: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// What counts twice in what pods request of a node, by row: owners count for themselves, and are a part of what is kept for them.
    twice: BTreeMap<Row, ResourceVector>,
    by_mark: BTreeMap<Arc<str>, BTreeMap<Arc<str>, BTreeSet<Uid>>>,
    /// Those whose owners have nothing in common by which they are found.
    unmarked: BTreeSet<Uid>,
    /// Those that take further owners and have some.
    shared: BTreeSet<Uid>,
    /// How many have owners that are named.
    named: usize,
    /// How many are pods.
    pods: usize,
    /// Changes with every reservation and every owner.
    generation: u64,
    /// By reservation, whether it is known or not.
    consumers: BTreeMap<Uid, BTreeMap<Uid, ResourceAmounts>>,
    /// Those whose owners on nodes have changed since they were taken out of here.
    used_anew: BTreeSet<Uid>,
    /// Why the last pod that was refused does not use a Reservation, where that is kept.
    unused: BTreeMap<Uid, Unused>,
    /// The reservations that may be matched by other pods than before.
    changes: Changes,
    matching: Matching,
}

#[derive(Clone, Debug)]
struct Known {
    info: ReservationInfo,
    /// What it keeps, exactly.
    allocatable: ResourceList,
    /// The row on which its node was seen last.
    seen: Option<Row>,
    /// The row on which its pod is, unless it is hidden.
    placed: Option<Row>,
}

impl Known {
    /// Its node, with the row.
    fn node<'c>(&self, cluster: &'c Cluster) -> Option<(Row, &'c Arc<Node>)> {
        let on = |row: Row| Some((row, cluster.node(row)?));
        let seen = self.seen.and_then(on).filter(|(_, node)| node.name == self.info.node);
        seen.or_else(|| on(cluster.row(&self.info.node)?))
    }
}

impl ReservationCache {
    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    pub fn info(&self, uid: &Uid) -> Option<&ReservationInfo> {
        self.infos.get(uid).map(|known| &known.info)
    }

    /// The pods that use a reservation.
    pub fn consumers(&self, uid: &Uid) -> impl Iterator<Item = &Uid> {
        self.consumers.get(uid).into_iter().flat_map(BTreeMap::keys)
    }

    /// The pods that use what is no reservation any more, by what they say; for a Reservation that is unknown, not one without
    /// a node.
    pub fn orphans<'k>(&'k self, is_known: impl Fn(&Uid) -> bool + 'k) -> impl Iterator<Item = &'k Uid> {
        let gone = self.consumers.iter().filter(move |(uid, _)| self.info(uid).is_none() && !is_known(uid));
        gone.flat_map(|(_, pods)| pods.keys())
    }

    /// The reservations whose owners on nodes have changed since this was asked.
    pub fn take_used_anew(&mut self) -> BTreeSet<Uid> {
        std::mem::take(&mut self.used_anew)
    }

    /// An owner comes or goes; one without a node is not in any status.
    fn note_use(&mut self, of: &Uid, owner: &Pod) {
        if owner.node.is_some() && self.infos.contains_key(of) {
            self.used_anew.insert(of.clone());
        }
    }

    /// The reservations of a node.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &ReservationInfo> {
        self.by_node.get(node).into_iter().flatten().filter_map(|uid| self.info(uid))
    }

    /// The reservations of a node, each with what it keeps, exactly.
    pub fn exact_on(&self, node: &str) -> impl Iterator<Item = (&ReservationInfo, &ResourceList)> {
        let known = self.by_node.get(node).into_iter().flatten().filter_map(|uid| self.infos.get(uid));
        known.map(|known| (&known.info, &known.allocatable))
    }

    /// Changes with every reservation and every owner.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a pod is an owner of any reservation as one of its kind is not.
    pub fn names(&self, pod: &Pod) -> bool {
        let owners = |uid: &Uid| self.info(uid).and_then(|info| info.owners.as_ref());
        let is_named = |owners: &Owners| owners.name_pods() && owners.match_pod(pod);
        self.named > 0 && self.candidates(pod).into_iter().filter_map(owners).any(is_named)
    }

    /// The reservations of which a pod may be an owner, by their uids.
    fn candidates(&self, pod: &Pod) -> Vec<&Uid> {
        let marked = marks(pod).filter_map(|(key, value)| self.by_mark.get(key)?.get(&*value));
        let mut uids: Vec<&Uid> = marked.chain([&self.unmarked]).flatten().collect();
        uids.sort();
        uids.dedup();
        uids
    }

    /// A reservation, or who uses it.
    fn has_changed(&mut self, uid: &Uid) {
        self.generation += 1;
        self.changes.note(uid);
    }

    /// What is not there for a pod that matches these.
    pub fn hidden(&self, matched: &Matched) -> ExcludedPods {
        if self.pods == 0 {
            return ExcludedPods { by_row: Arc::clone(matched.all()), at_once: Vec::new() };
        }
        let is_pod = |(_, uid): &&(Row, Uid)| self.info(uid).is_some_and(|info| info.is_pod);
        let (pods, objects): (Vec<_>, Vec<_>) = matched.all().iter().partition(is_pod);
        let by_row = objects.into_iter().cloned().collect();
        ExcludedPods { by_row, at_once: pods.into_iter().map(|(_, uid)| uid.clone()).collect() }
    }

    fn count_twice(&mut self, cluster: &Cluster, row: Row) {
        let twice = self.twice_on(cluster, row);
        if twice.iter().next().is_none() {
            self.twice.remove(&row);
        } else {
            self.twice.insert(row, twice);
        }
    }

    fn twice_on(&self, cluster: &Cluster, row: Row) -> ResourceVector {
        let mut twice = ResourceVector::default();
        let uids = cluster.node(row).and_then(|node| self.by_node.get(&node.name));
        let known = uids.into_iter().flatten().filter_map(|uid| self.infos.get(uid));
        for Known { info, .. } in known.filter(|known| known.placed == Some(row)) {
            for (name, allocated) in info.allocated().iter() {
                if let Some(id) = cluster.resources().get(name) {
                    twice.set(id, twice.get(id).saturating_add(allocated.min(info.allocatable.get(name))));
                }
            }
        }
        twice
    }

    /// What a node has left of these resources beside all that is kept on it, whether it is hidden now or not.
    pub fn unreserved(&self, cluster: &Cluster, row: Row, of: &ResourceAmounts) -> UnreservedResources {
        let twice = CountedTwice::on(cluster, row);
        let (mut hidden, mut hidden_pods) = (ResourceAmounts::default(), 0);
        for placed in cluster.excluded_on(row) {
            match self.info(&placed.pod.uid) {
                Some(info) => hidden.add(&info.held()),
                None => hidden.add(&ResourceAmounts::from(&placed.pod.template.requests)),
            }
            hidden_pods += 1;
        }
        let left = |id: ResourceId| cluster.allocatable(id, row).saturating_sub(cluster.requested(id, row));
        let free = of.iter().filter_map(|(name, _)| {
            let id = cluster.resources().get(name)?;
            let free = left(id).saturating_add(twice.of(id)).saturating_sub(hidden.get(name));
            Some((Arc::clone(name), free))
        });
        UnreservedResources { free: free.collect(), pods: left(ResourceId::PODS).saturating_sub(hidden_pods) }
    }

    fn forget(&mut self, cluster: &Cluster, uid: &Uid) -> Option<Arc<str>> {
        let Known { info, placed, .. } = self.infos.remove(uid)?;
        self.has_changed(uid);
        self.shared.remove(uid);
        self.pods -= usize::from(info.is_pod);
        if let Some(owners) = &info.owners {
            self.named -= usize::from(owners.name_pods());
            self.unmarked.remove(uid);
            for (key, value) in owners.marks().into_iter().flatten() {
                if let Some(of_key) = self.by_mark.get_mut(key)
                    && let Some(uids) = of_key.get_mut(value)
                {
                    uids.remove(uid);
                    if uids.is_empty() {
                        of_key.remove(value);
                    }
                    if of_key.is_empty() {
                        self.by_mark.remove(key);
                    }
                }
            }
        }
        if let Some(uids) = self.by_node.get_mut(&info.node) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_node.remove(&info.node);
            }
        }
        if let Some(row) = placed {
            self.count_twice(cluster, row);
        }
        Some(info.node)
    }

    /// The pod of a reservation is on this row from now on, or is not seen any more.
    fn stand(&mut self, cluster: &Cluster, placed: &Placed, row: Option<Row>) {
        if let Some(known) = self.infos.get_mut(&placed.pod.uid) {
            known.placed = row;
            self.count_twice(cluster, placed.row);
        }
    }

    /// A Reservation has its node, or is assumed to have it.
    fn know(&mut self, cluster: &Cluster, object: &Reservation, assumed: Option<AssumedOn<'_>>) -> Option<Arc<str>> {
        let mut requests = ReservePod::new(object).ok()?.requests;
        if let Some(resized) = assumed.and_then(|(_, resized)| resized) {
            requests = resized.over(&requests);
        }
        let info = ReservationInfo::new(object, &requests)
            .or_else(|| assumed.map(|(node, _)| ReservationInfo::assumed(object, &requests, node)))?;
        let is_resized = !object.status.allocatable.is_empty();
        Some(self.insert(cluster, info, if is_resized { object.status.allocatable.clone() } else { requests }))
    }

    /// A pod that keeps what it has is on a node.
    fn know_pod(&mut self, cluster: &Cluster, pod: &Pod, node: &Arc<str>) {
        self.insert(cluster, ReservationInfo::of_pod(pod, node), pod.template.requests.clone());
    }

    fn insert(&mut self, cluster: &Cluster, mut info: ReservationInfo, allocatable: ResourceList) -> Arc<str> {
        for (pod, amounts) in self.consumers.get(&info.uid).into_iter().flatten() {
            info.assign(pod, amounts);
        }
        let (uid, node) = (info.uid.clone(), Arc::clone(&info.node));
        self.forget(cluster, &uid);
        let seen = cluster.row(&node);
        let placed = cluster.pod(&uid).map(|placed| placed.row);
        self.has_changed(&uid);
        self.pods += usize::from(info.is_pod);
        if let Some(owners) = &info.owners {
            self.named += usize::from(owners.name_pods());
            match owners.marks() {
                None => _ = self.unmarked.insert(uid.clone()),
                Some(marks) => marks.into_iter().cloned().for_each(|(key, value)| {
                    self.by_mark.entry(key).or_default().entry(value).or_default().insert(uid.clone());
                }),
            }
        }
        self.by_node.entry(Arc::clone(&node)).or_default().insert(uid.clone());
        self.infos.insert(uid.clone(), Known { info, allocatable, seen, placed });
        self.note_shared(&uid);
        if let Some(row) = placed {
            self.count_twice(cluster, row);
        }
        node
    }
}

/// Whether nothing is reserved, so that nothing counts twice on any node.
pub fn is_counted_once(cluster: &Cluster) -> bool {
    cluster.state::<ReservationCache>().is_none_or(ReservationCache::is_empty)
}

/// What counts twice in what pods request of a node: owners count for themselves, and are a part of what is kept for them.
pub struct CountedTwice<'c>(Option<&'c ResourceVector>);

impl<'c> CountedTwice<'c> {
    /// On this node.
    pub fn on(cluster: &'c Cluster, row: Row) -> Self {
        Self(cluster.state::<ReservationCache>().and_then(|cache| cache.twice.get(&row)))
    }

    pub fn of(&self, resource: ResourceId) -> i64 {
        self.0.map_or(0, |twice| twice.get(resource))
    }
}

/// The node of the Reservation with this name; none before it has one.
fn node_of<'c>(name: &str, cluster: &'c Cluster) -> Option<&'c str> {
    let object = cluster.objects().get::<Reservation>(name)?;
    Some(object.status.node_name.as_str()).filter(|node| !node.is_empty())
}

/// The Reservation for which a pod stands.
pub fn object_of<'c>(pod: &Pod, cluster: &'c Cluster) -> Option<&'c Reservation> {
    let key = &pod.reservation.as_ref()?.key;
    cluster.objects().entry::<Reservation>(key.as_str()).filter(|entry| entry.uid == pod.uid)?.get()
}

/// Whether a pod keeps what it has for others, as a reservation does.
pub fn has_reservation_mode(pod: &Pod) -> bool {
    pod.template.labels.get(OPERATING_MODE.name()) == Some(PodOperatingMode::Reservation.as_str())
}

/// Whether it does so itself, and is no reserve pod.
fn is_reservation_mode(pod: &Pod) -> bool {
    has_reservation_mode(pod) && !pod.is_reservation()
}

/// A node, and what a Reservation keeps there of what it was given.
type AssumedOn<'c> = (&'c Arc<str>, Option<&'c Resized>);

/// The node that the Reservation of a reserve pod is assumed to have.
fn assumed_on<'c>(placed: &'c Placed, cluster: &'c Cluster) -> Option<AssumedOn<'c>> {
    placed.holds.get::<Assumed>()?;
    Some((cluster.name(placed.row)?, placed.holds.get()))
}

impl State for ReservationCache {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, cluster: &Cluster, placed: &Placed) {
        if let Some(node) = cluster.name(placed.row).filter(|_| is_reservation_mode(&placed.pod)) {
            self.know_pod(cluster, &placed.pod, node);
        }
        if let Some(assumed) = assumed_on(placed, cluster)
            && self.info(&placed.pod.uid).is_none()
            && let Some(object) = object_of(&placed.pod, cluster)
        {
            self.know(cluster, object, Some(assumed));
        }
        self.stand(cluster, placed, Some(placed.row));
        if let Some(Allocated { uid, .. }) = placed.holds.get() {
            self.has_changed(uid);
            let requests = ResourceAmounts::from(&placed.pod.template.requests);
            if let Some(Known { info, placed: row, .. }) = self.infos.get_mut(uid) {
                info.assign(&placed.pod.uid, &requests);
                if let Some(row) = *row {
                    self.count_twice(cluster, row);
                }
            }
            self.consumers.entry(uid.clone()).or_default().insert(placed.pod.uid.clone(), requests);
            self.note_shared(uid);
            self.note_use(uid, &placed.pod);
            if !cluster.is_trial() {
                self.unused.remove(uid);
            }
        }
    }

    fn removed(&mut self, cluster: &Cluster, placed: &Placed) {
        let uid = &placed.pod.uid;
        if self.info(uid).is_some_and(|info| info.is_assumed || info.is_pod)
            && cluster.excluded_pod(uid, placed.row).is_none()
        {
            self.forget(cluster, uid);
        }
        self.stand(cluster, placed, None);
        if let Some(Allocated { uid, .. }) = placed.holds.get() {
            self.has_changed(uid);
            if let Some(Known { info, placed: row, .. }) = self.infos.get_mut(uid) {
                info.unassign(&placed.pod.uid);
                if let Some(row) = *row {
                    self.count_twice(cluster, row);
                }
            }
            if let Some(consumers) = self.consumers.get_mut(uid) {
                consumers.remove(&placed.pod.uid);
                if consumers.is_empty() {
                    self.consumers.remove(uid);
                }
            }
            self.note_shared(uid);
            self.note_use(uid, &placed.pod);
        }
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        let Self { infos, by_node, changes, .. } = self;
        if let Some(name) = cluster.name(row) {
            for uid in by_node.get(name).into_iter().flatten() {
                infos.get_mut(uid).into_iter().for_each(|known| known.seen = Some(row));
                changes.note(uid);
            }
        }
        self.count_twice(cluster, row);
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        self.audit_twice(cluster, row).map(|details| ("reserved_twice", details)).into_iter().collect()
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit_reservations(cluster)
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        let Some((old, new)) = change.of::<Reservation>() else { return Vec::new() };
        let uid = |object: &Reservation| Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
        let before = old.and_then(|old| self.forget(cluster, &uid(old)));
        if let (Some(old), None) = (old, new) {
            self.used_anew.remove(&uid(old));
            self.unused.remove(&uid(old));
        }
        let assumed = new.and_then(|new| assumed_on(cluster.pod(&uid(new))?, cluster));
        let after = new.filter(|new| !is_over(&new.status)).and_then(|new| self.know(cluster, new, assumed));
        before.into_iter().chain(after).filter_map(|node| cluster.row(&node)).collect()
    }
}
