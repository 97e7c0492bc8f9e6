//! What a reservation keeps, and what of it is used (3C.3).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Taint;
use koord_core::uid::Uid;
use koord_resource::{ResourceList, quantity::Format};
use koord_scheduler_framework::{labels::Labels, pod::Pod};
use koord_scheduling::quantity;
use koord_types::{
    node_annotations::NODE_RESERVATION,
    reservation::{Reservation, ReservationAllocatePolicy, ReservationPhase},
    reservation_protocol::{
        CurrentOwner, RESERVATION_CURRENT_OWNER, RESERVATION_ORDER, RESERVATION_OWNERS, RESERVATION_RESTRICTED_OPTIONS,
        ReservationRestrictedOptions,
    },
};

use super::{Owners, ResourceAmounts};

/// How owners take resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocatePolicy {
    /// As Aligned. It does not share a node with the others.
    #[default]
    Default,
    /// From the reservation first, and then from the node.
    Aligned,
    /// From the reservation alone, of what it reserves.
    Restricted,
}

impl AllocatePolicy {
    /// The policy of a Reservation; an unknown word is none.
    pub fn of(object: &Reservation) -> Self {
        match object.spec.allocate_policy {
            Some(ReservationAllocatePolicy::Aligned) => Self::Aligned,
            Some(ReservationAllocatePolicy::Restricted) => Self::Restricted,
            Some(ReservationAllocatePolicy::Other(_)) | None => Self::Default,
        }
    }
}

/// A reservation that has a node.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationInfo {
    pub name: Arc<str>,
    pub uid: Uid,
    pub node: Arc<str>,
    pub labels: Labels,
    /// How owners take resources.
    pub policy: AllocatePolicy,
    /// Whether one owner is all that it takes.
    pub allocate_once: bool,
    /// Whether it takes no further owners but those that tolerate that; so while it is being deleted.
    pub unschedulable: bool,
    /// Whether it is being deleted: a pod that tolerates that gets nothing of it all the same.
    pub is_terminating: bool,
    /// What owners must tolerate.
    pub taints: Vec<Taint>,
    /// Who may use it; none where that makes no sense.
    pub owners: Option<Owners>,
    /// Smaller ones are used first; none leaves it to the score.
    pub order: Option<i64>,
    /// Whether owners may use it now.
    pub is_available: bool,
    /// Whether its node is not written yet.
    pub is_assumed: bool,
    /// Whether it is a pod that keeps what it has.
    pub is_pod: bool,
    pub allocatable: ResourceAmounts,
    /// What of this owners may not use.
    pub withheld: ResourceAmounts,
    /// The names that count.
    names: BTreeSet<Arc<str>>,
    assigned: BTreeMap<Uid, ResourceAmounts>,
    allocated: ResourceAmounts,
    /// The owner that a pod that keeps what it has names itself.
    named_owner: Option<Uid>,
}

impl ReservationInfo {
    /// A Reservation with its node; none before it has one. `requests` is what its template requests.
    pub fn new(object: &Reservation, requests: &ResourceList) -> Option<Self> {
        (!object.status.node_name.is_empty()).then(|| Self::of(object, requests))
    }

    /// A Reservation that has found its node, before its status says so.
    pub fn assumed(object: &Reservation, requests: &ResourceList, node: &Arc<str>) -> Self {
        Self { node: Arc::clone(node), is_available: true, is_assumed: true, ..Self::of(object, requests) }
    }

    /// What a pod keeps that has a node and says so: it is `Aligned`, and for one owner. It is available while it is ready.
    pub fn of_pod(pod: &Pod, node: &Arc<str>) -> Self {
        let template = &pod.template;
        let owners = template.annotations.get(RESERVATION_OWNERS.name()).map(|text| RESERVATION_OWNERS.read(text));
        let owners = owners.transpose().ok().map(Option::unwrap_or_default);
        let allocatable = ResourceAmounts::from(&template.requests);
        let order = template.labels.get(RESERVATION_ORDER.name()).and_then(|text| RESERVATION_ORDER.read(text).ok());
        let options = template.annotations.get(RESERVATION_RESTRICTED_OPTIONS.name()).filter(|text| !text.is_empty());
        let options = options.map(|text| RESERVATION_RESTRICTED_OPTIONS.read(text)).transpose();
        let is_misread = options.is_err();
        let options = options.ok().flatten().unwrap_or_default();
        let names = names_that_count(&allocatable, &options);
        let mut info = Self {
            name: pod.key.name().into(),
            uid: pod.uid.clone(),
            node: Arc::clone(node),
            labels: template.labels.clone(),
            policy: AllocatePolicy::Aligned,
            allocate_once: true,
            unschedulable: pod.deleting,
            is_terminating: pod.deleting,
            taints: Vec::new(),
            owners: owners.and_then(|owners| Owners::new(&owners.0).ok()).filter(|_| !is_misread),
            order: order.filter(|order| *order != 0),
            is_available: pod.is_running && pod.is_ready,
            is_assumed: false,
            is_pod: true,
            withheld: withheld(template.annotations.get(NODE_RESERVATION.name())).masked(|name| names.contains(name)),
            names,
            allocatable,
            assigned: BTreeMap::new(),
            allocated: ResourceAmounts::default(),
            named_owner: None,
        };
        let owner = pod.given.get(RESERVATION_CURRENT_OWNER.name());
        if let Some(CurrentOwner(owner)) = owner.and_then(|text| RESERVATION_CURRENT_OWNER.read(text).ok()) {
            let owner = Uid::from(&*owner.uid.or(owner.name).unwrap_or_default());
            info.assign(&owner, &ResourceAmounts::default());
            info.named_owner = Some(owner);
        }
        info
    }

    /// The same of a Reservation that need not have a node.
    pub fn of(object: &Reservation, requests: &ResourceList) -> Self {
        let (spec, status, metadata) = (&object.spec, &object.status, &object.metadata);
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let labels = metadata.labels.clone().unwrap_or_default();
        let allocatable =
            ResourceAmounts::from(if status.allocatable.is_empty() { requests } else { &status.allocatable });
        let withheld = withheld(annotations.get(NODE_RESERVATION.name()).map(String::as_str));
        let policy = AllocatePolicy::of(object);
        let is_restricted = policy == AllocatePolicy::Restricted;
        let options = annotations.get(RESERVATION_RESTRICTED_OPTIONS.name()).filter(|text| !text.is_empty());
        let options = options.map(|text| RESERVATION_RESTRICTED_OPTIONS.read(text)).transpose();
        let is_misread = is_restricted && options.is_err();
        let options = options.ok().flatten().filter(|_| is_restricted).unwrap_or_default();
        let is_terminating = metadata.deletion_timestamp.is_some();
        let names = names_that_count(&allocatable, &options);
        Self {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            uid: Uid::from(metadata.uid.as_deref().unwrap_or_default()),
            node: (&*status.node_name).into(),
            labels: labels.iter().map(|(key, value)| (&**key, &**value)).collect(),
            policy,
            allocate_once: spec.is_allocate_once(),
            unschedulable: spec.unschedulable || is_terminating,
            is_terminating,
            taints: spec.taints.clone(),
            // Nobody uses one that restricts its owners in words that cannot be read.
            owners: Owners::new(&spec.owners).ok().filter(|_| !is_misread),
            order: RESERVATION_ORDER.get(&labels).ok().flatten().filter(|order| *order != 0),
            is_available: status.phase == Some(ReservationPhase::Available),
            is_assumed: false,
            is_pod: false,
            withheld: withheld.masked(|name| names.contains(name)),
            names,
            allocatable,
            assigned: BTreeMap::new(),
            allocated: ResourceAmounts::default(),
            named_owner: None,
        }
    }

    /// A pod uses it from now on.
    pub fn assign(&mut self, pod: &Uid, requests: &ResourceAmounts) {
        self.assigned.insert(pod.clone(), requests.masked(|name| self.names.contains(name)));
        self.sum_up();
    }

    /// A pod does not use it any more. One that it names itself remains as its owner until it names it no more.
    pub fn unassign(&mut self, pod: &Uid) {
        self.assigned.remove(pod);
        if self.named_owner.as_ref() == Some(pod) {
            self.assigned.insert(pod.clone(), ResourceAmounts::default());
        }
        self.sum_up();
    }

    /// The pods that use it.
    pub fn assigned(&self) -> impl Iterator<Item = &Uid> {
        self.assigned.keys()
    }

    /// How many pods use it.
    pub fn assigned_count(&self) -> usize {
        self.assigned.len()
    }

    /// What they use of it.
    pub fn allocated(&self) -> &ResourceAmounts {
        &self.allocated
    }

    /// What further owners may use of it.
    pub fn available(&self) -> ResourceAmounts {
        self.allocatable.without(&self.allocated).without(&self.withheld)
    }

    /// What it keeps of the node beside its owners, who count for themselves.
    pub fn held(&self) -> ResourceAmounts {
        self.allocatable.without(&self.allocated)
    }

    /// Whether a resource counts.
    pub fn counts(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether it takes a further owner.
    pub fn is_matchable(&self) -> bool {
        self.is_available && self.owners.is_some() && (!self.allocate_once || self.assigned.is_empty())
    }

    fn sum_up(&mut self) {
        let mut allocated = ResourceAmounts::default();
        self.assigned.values().for_each(|requests| allocated.add(requests));
        self.allocated = allocated;
    }
}

/// What owners may not use: amounts, of which CPUs that are named by their numbers count instead of an amount of CPU. Nothing where that
/// makes no sense.
fn withheld(annotation: Option<&str>) -> ResourceAmounts {
    let Some(reserved) = annotation.and_then(|text| NODE_RESERVATION.read(text).ok()) else {
        return ResourceAmounts::default();
    };
    let Ok(cpus) = reserved.cpus() else { return ResourceAmounts::default() };
    let mut resources = reserved.resources;
    if !reserved.reserved_cpus.is_empty() {
        resources
            .insert("cpu", quantity("cpu", 1000 * i64::try_from(cpus.len()).unwrap_or_default(), Format::DecimalSI));
    }
    ResourceAmounts::from(&resources)
}

/// The names of what is kept that count: those of the options, or all where that is none.
fn names_that_count(allocatable: &ResourceAmounts, options: &ReservationRestrictedOptions) -> BTreeSet<Arc<str>> {
    let is_chosen = |name: &Arc<str>| options.resources.iter().any(|option| **option == **name);
    let all: BTreeSet<Arc<str>> = allocatable.iter().map(|(name, _)| Arc::clone(name)).collect();
    let chosen: BTreeSet<Arc<str>> = all.iter().filter(|name| is_chosen(name)).cloned().collect();
    if chosen.is_empty() { all } else { chosen }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::{super::amounts::amounts, *};

    /// What a Reservation of [`koord_scheduler_testing`] reserves.
    pub(crate) fn reservation(members: Value) -> ReservationInfo {
        let object = koord_scheduler_testing::reservations::reservation(members);
        ReservationInfo::new(&object, &ResourceList::default()).unwrap()
    }

    #[test]
    fn what_is_used_is_summed_up_over_the_names_that_count() {
        let mut info = reservation(json!({"spec": {"allocateOnce": false}}));
        info.assign(&Uid::from("p"), &amounts(&[("cpu", 1000), ("memory", 2), ("x/y", 1)]));
        info.assign(&Uid::from("q"), &amounts(&[("cpu", 4000)]));
        info.assign(&Uid::from("q"), &amounts(&[("cpu", 3500)]));
        assert_eq!(*info.allocated(), amounts(&[("cpu", 4500), ("memory", 2)]));
        assert_eq!(info.available(), amounts(&[("cpu", 0), ("memory", 6)]));
        info.unassign(&Uid::from("p"));
        assert_eq!((info.available(), info.assigned_count()), (amounts(&[("cpu", 500), ("memory", 8)]), 1));
        let mut resized = reservation(json!({"status": {"allocatable": {"cpu": "8"}}}));
        resized.assign(&Uid::from("q"), &amounts(&[("cpu", 3500)]));
        assert_eq!(resized.available(), amounts(&[("cpu", 4500), ("memory", 8)]));
    }

    #[test]
    fn withheld_amounts_are_reserved_but_not_available() {
        let annotation = json!({"node.koordinator.sh/reservation": r#"{"resources":{"cpu":"2"}}"#});
        let info = reservation(json!({"metadata": {"annotations": annotation}}));
        assert_eq!(info.available(), amounts(&[("cpu", 2000), ("memory", 8)]));
        assert_eq!(info.held(), amounts(&[("cpu", 4000), ("memory", 8)]));
    }

    #[test]
    fn cpus_withheld_by_their_numbers_count_instead_of_an_amount() {
        let withheld = |annotation: &str| {
            let annotation = json!({"node.koordinator.sh/reservation": annotation});
            reservation(json!({"metadata": {"annotations": annotation}})).available()
        };
        let left = |cpu: i64| amounts(&[("cpu", cpu), ("memory", 8)]);
        assert_eq!(withheld(r#"{"reservedCPUs":"0-1"}"#), left(2000));
        assert_eq!(withheld(r#"{"resources":{"cpu":"3"},"reservedCPUs":"0-1"}"#), left(2000));
        assert_eq!(
            withheld(r#"{"resources":{"cpu":"3"},"reservedCPUs":"x"}"#),
            left(4000),
            "nothing, where it makes no sense"
        );
    }

    #[test]
    fn restricted_options_narrow_the_names_that_count() {
        let with = |policy: &str, resources: &str| {
            let options = json!({"scheduling.koordinator.sh/reservation-restricted-options": format!(r#"{{"resources":{resources}}}"#)});
            let info = reservation(json!({"metadata": {"annotations": options}, "spec": {"allocatePolicy": policy}}));
            (info.counts("cpu"), info.counts("memory"))
        };
        assert_eq!(with("Restricted", r#"["cpu"]"#), (true, false));
        assert_eq!(with("Restricted", r#"["x/y"]"#), (true, true), "an empty intersection is all");
        assert_eq!(with("Aligned", r#"["cpu"]"#), (true, true));
        let empty = json!({"scheduling.koordinator.sh/reservation-restricted-options": ""});
        let info = reservation(json!({"metadata": {"annotations": empty}, "spec": {"allocatePolicy": "Restricted"}}));
        assert!(info.is_matchable() && info.counts("cpu"), "nothing is said");
    }

    #[test]
    fn a_reservation_takes_owners_while_it_is_available_and_once_unless_it_says_otherwise() {
        let is_matchable = |members| reservation(members).is_matchable();
        assert!(is_matchable(json!({})));
        assert!(!is_matchable(json!({"status": {"phase": "Succeeded"}})));
        let deleted = reservation(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        assert!(deleted.is_matchable() && deleted.unschedulable && deleted.is_terminating);
        let selector = json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]});
        assert!(!is_matchable(json!({"spec": {"owners": [{"labelSelector": selector}]}})));
        for (once, expected) in [(true, false), (false, true)] {
            let mut info = reservation(json!({"spec": {"allocateOnce": once}}));
            info.assign(&Uid::from("p"), &ResourceAmounts::default());
            assert_eq!(info.is_matchable(), expected);
        }
        let pending: Reservation =
            serde_json::from_value(json!({"metadata": {}, "spec": {"template": {}, "owners": []}})).unwrap();
        assert_eq!(ReservationInfo::new(&pending, &ResourceList::default()), None);
    }

    #[test]
    fn an_order_of_zero_or_no_number_is_none() {
        let order = |text: &str| {
            reservation(json!({"metadata": {"labels": {"scheduling.koordinator.sh/reservation-order": text}}})).order
        };
        assert_eq!(["5", "-1", "0", "x"].map(order), [Some(5), Some(-1), None, None]);
    }
}
