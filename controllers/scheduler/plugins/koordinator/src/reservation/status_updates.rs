//! What is written into Reservations: their node, why they have none, who uses them, and their end (3C.12, 3C.14).

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use koord_core::{
    key::ObjectKey,
    uid::Uid,
    write::{Action, Deletion, Write},
};
use koord_resource::{controller::ResourceKind, schema::patch::merge};
use koord_scheduler_allocation::{ReservationCache, ReservePod, is_over};
use koord_scheduler_framework::{
    StatusUpdates,
    cluster::{Cluster, Placed},
    hold::Resized,
    pod::Pod,
};
use koord_types::{
    reservation::{Reservation, ReservationStatus},
    reservation_protocol::{RESERVATION_ALLOCATED, RESERVATION_RESIZE_ALLOCATABLE},
};
use serde_json::{Value, json};

use super::{
    conditions::Conditions,
    lifecycle::{self, Consumer, Garbage},
};

const ALLOCATED: &str = RESERVATION_ALLOCATED.name();
const KIND: ResourceKind = ResourceKind::typed::<Reservation>();
/// A time that has come is over a moment later.
const MOMENT: Duration = Duration::from_millis(1);

/// That the Reservation of a pod has its node.
pub(super) fn bound(placed: &Placed, cluster: &Cluster, conditions: Conditions) -> Option<Write> {
    let (key, object) = object_of(&placed.pod, cluster)?;
    let (node, mut requests) = (cluster.node(placed.row)?, ReservePod::new(object).ok()?.requests);
    let annotations = object.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(RESERVATION_RESIZE_ALLOCATABLE.name()));
    let resize = text.and_then(|text| RESERVATION_RESIZE_ALLOCATABLE.read(text).ok()).unwrap_or_default();
    for resized in [Some(&Resized(resize.resources)), placed.holds.get()].into_iter().flatten() {
        requests = resized.over(&requests);
    }
    let now = cluster.time();
    let mut status = lifecycle::bound(&object.status, &node.name, &requests, now);
    conditions.accept(&mut status, object, None, now);
    conditions.matched(&mut status, &[], None, now);
    write(key, object, &status)
}

/// That there is no node for the Reservation of a pod.
pub(super) fn unschedulable(pod: &Pod, message: &str, cluster: &Cluster, conditions: Conditions) -> Option<Write> {
    let (key, object) = object_of(pod, cluster)?;
    refused(key, object, message, cluster.time(), conditions)
}

fn object_of<'c>(pod: &'c Pod, cluster: &'c Cluster) -> Option<(&'c ObjectKey, &'c Reservation)> {
    let key = &pod.reservation.as_ref()?.key;
    let entry = cluster.objects().entry::<Reservation>(key.as_str()).filter(|entry| entry.uid == pod.uid)?;
    Some((key, entry.get()?))
}

fn refused(
    key: &ObjectKey,
    object: &Reservation,
    message: &str,
    now: Timestamp,
    conditions: Conditions,
) -> Option<Write> {
    let is_said = object.status.conditions.iter().any(|condition| {
        condition.status == "False"
            && condition.message == message
            && condition.reason == Some(koord_types::reservation::ReservationReason::Unschedulable)
    });
    let mut status =
        if is_said { object.status.clone() } else { lifecycle::unschedulable(&object.status, message, now) };
    conditions.accept(&mut status, object, None, now);
    write(key, object, &status)
}

/// What is to be written into all Reservations now, and which of them are to be deleted.
pub(super) fn all(
    cache: &ReservationCache,
    cluster: &Cluster,
    garbage: Option<Garbage>,
    conditions: Conditions,
) -> StatusUpdates {
    let mut status_updates = StatusUpdates::default();
    let now = cluster.time();
    for (key, object) in cluster.objects().of::<Reservation>() {
        // One that is being deleted is not deleted again.
        let garbage = garbage.filter(|_| object.metadata.deletion_timestamp.is_none());
        let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
        let node_exists = has_node(object, cluster);
        if garbage.is_some_and(|garbage| lifecycle::is_garbage(object, node_exists, garbage, now)) {
            status_updates.writes.push(Write {
                kind: KIND,
                key: key.clone(),
                action: Action::Delete(Deletion::of(uid)),
            });
            continue;
        }
        if object.status.node_name.is_empty()
            && let Err(error) = ReservePod::new(object)
        {
            status_updates.writes.extend(refused(key, object, &error.to_string(), now, conditions));
            continue;
        }
        let (write, again) = synced(cache, key, object, cluster, conditions);
        status_updates.writes.extend(write);
        status_updates.not_after(again);
        status_updates
            .not_after(lifecycle::changes_at(object, node_exists, garbage).and_then(|at| at.checked_add(MOMENT).ok()));
    }
    status_updates
}

/// That the owners of these reservations have changed.
pub(super) fn of_owners(
    uids: &BTreeSet<Uid>,
    cache: &ReservationCache,
    cluster: &Cluster,
    conditions: Conditions,
) -> Vec<Write> {
    let objects = uids.iter().filter_map(|uid| {
        let name = &cache.info(uid)?.name;
        let entry = cluster.objects().entry::<Reservation>(name).filter(|entry| entry.uid == *uid)?;
        Some((ObjectKey::cluster(name), entry.get::<Reservation>()?))
    });
    objects.filter_map(|(key, object)| synced(cache, &key, object, cluster, conditions).0).collect()
}

/// What brings the status of a Reservation to where its node and its owners are, and when there is more to be written.
fn synced(
    cache: &ReservationCache,
    key: &ObjectKey,
    object: &Reservation,
    cluster: &Cluster,
    conditions: Conditions,
) -> (Option<Write>, Option<Timestamp>) {
    let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
    let consumers = consumers(cache, &uid, cluster);
    let now = cluster.time();
    let mut status = lifecycle::synced(object, &consumers, has_node(object, cluster), now);
    let mut again = None;
    // What has no node yet is written by its attempts.
    if !object.status.node_name.is_empty() && !is_over(&object.status) {
        conditions.accept(&mut status, object, cache.info(&uid), now);
        again = conditions.matched(&mut status, &consumers, cache.last_unused(&uid), now);
    }
    (write(key, object, &status), again)
}

/// Whether the node of a Reservation exists.
fn has_node(object: &Reservation, cluster: &Cluster) -> bool {
    cluster.row(&object.status.node_name).is_some_and(|row| cluster.node(row).is_some())
}

/// That pods use no reservation any more whose Reservation is gone.
pub(super) fn orphans(cache: &ReservationCache, cluster: &Cluster) -> Vec<Write> {
    let uids = cluster.objects().of::<Reservation>().filter_map(|(_, object)| object.metadata.uid.as_deref());
    let known: BTreeSet<Uid> = uids.map(Uid::from).collect();
    let orphans = cache.orphans(|uid| known.contains(uid)).filter_map(|uid| cluster.pod(uid));
    let says_so = |placed: &&Placed| placed.pod.node.is_some() && placed.pod.given.get(ALLOCATED).is_some();
    let write = |placed: &Placed| {
        let patch = json!({"metadata": {"uid": placed.pod.uid.to_string(), "annotations": {ALLOCATED: null}}});
        let action = Action::Patch { subresource: "", patch };
        Write { kind: ResourceKind::POD, key: placed.pod.key.clone(), action }
    };
    orphans.filter(says_so).map(write).collect()
}

/// The pods that use a reservation, as far as they are bound.
fn consumers(cache: &ReservationCache, uid: &Uid, cluster: &Cluster) -> Vec<Consumer> {
    let placed = cache.consumers(uid).filter_map(|uid| cluster.pod(uid)).filter(|placed| placed.pod.node.is_some());
    let consumer = |placed: &Placed| Consumer {
        key: placed.pod.key.clone(),
        uid: placed.pod.uid.clone(),
        requests: placed.pod.template.requests.clone(),
    };
    placed.map(consumer).collect()
}

/// What brings the status of a Reservation there; none where it is there.
fn write(key: &ObjectKey, object: &Reservation, status: &ReservationStatus) -> Option<Write> {
    if object.status == *status {
        return None;
    }
    let (old, new) = (serde_json::to_value(&object.status).ok()?, serde_json::to_value(status).ok()?);
    let mut patch: Value = merge::diff(&json!({ "status": old }), &json!({ "status": new }))?;
    patch["metadata"] = json!({ "uid": object.metadata.uid });
    Some(Write { kind: KIND, key: key.clone(), action: Action::Patch { subresource: "status", patch } })
}
