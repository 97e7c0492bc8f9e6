//! What becomes of a Reservation: bound, used, expired, deleted (3C.12, 3C.14).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::{Quantity, ResourceList, Time};
use koord_scheduler_allocation::is_over;
use koord_types::reservation::{
    Reservation, ReservationCondition, ReservationConditionType, ReservationPhase, ReservationReason, ReservationStatus,
};

/// How long a Reservation lasts that does not say.
const TTL: Duration = Duration::from_hours(24);

/// When Reservations that are over are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// So long after their end.
    pub retention: Duration,
    /// So long after it where their node is gone.
    pub without_node_for: Duration,
}

/// A pod that uses a Reservation, as its annotation says.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    /// Its namespace and name.
    pub key: ObjectKey,
    pub uid: Uid,
    pub requests: ResourceList,
}

/// The status of a Reservation that was placed on a node.
pub fn bound(old: &ReservationStatus, node: &str, requests: &ResourceList, now: Timestamp) -> ReservationStatus {
    let mut status = ReservationStatus {
        phase: Some(ReservationPhase::Available),
        node_name: node.to_owned(),
        allocatable: requests.clone(),
        ..old.clone()
    };
    set_condition(&mut status, ReservationConditionType::Scheduled, true, ReservationReason::Scheduled, "", now);
    set_condition(&mut status, ReservationConditionType::Ready, true, ReservationReason::Available, "", now);
    status
}

/// The status of a Reservation for which there is no node.
pub fn unschedulable(old: &ReservationStatus, message: &str, now: Timestamp) -> ReservationStatus {
    let mut status = old.clone();
    let (type_, reason) = (ReservationConditionType::Scheduled, ReservationReason::Unschedulable);
    // One that was scheduled once stays so.
    if old.conditions.iter().any(|known| known.type_.as_ref() == Some(&type_) && known.status == "True") {
        return status;
    }
    set_condition(&mut status, type_, false, reason, message, now);
    status
}

/// The status of a Reservation with these consumers. One without a node stays as it is, even if its time is over.
pub fn synced(object: &Reservation, consumers: &[Consumer], node_exists: bool, now: Timestamp) -> ReservationStatus {
    let mut status = object.status.clone();
    // QUIRK: what has no node does not expire (`a_reservation_without_a_node_does_not_expire`).
    if status.node_name.is_empty() || is_over(&status) {
        return status;
    }
    if !node_exists || expires_at(object).is_some_and(|at| now > at) {
        status.phase = Some(ReservationPhase::Failed);
        set_condition(&mut status, ReservationConditionType::Ready, false, ReservationReason::Expired, "", now);
        return status;
    }
    let mut consumers: Vec<&Consumer> = consumers.iter().collect();
    consumers.sort_by_key(|consumer| &consumer.uid);
    let amount = |name: &str| -> Quantity {
        consumers
            .iter()
            .filter_map(|consumer| consumer.requests.get(name))
            .fold(Quantity::default(), |sum, one| sum + one)
    };
    let names = status.allocatable.names().filter(|name| consumers.iter().any(|one| one.requests.get(name).is_some()));
    let allocated: ResourceList = names.map(|name| (name, amount(name))).collect();
    let owners: Vec<ObjectReference> = consumers.iter().map(|consumer| reference(consumer)).collect();
    let mut known = status.current_owners.clone();
    known.sort_by_cached_key(|owner| owner.uid.clone());
    if known == owners && status.allocated == allocated {
        return status;
    }
    (status.allocated, status.current_owners) = (allocated, owners);
    // QUIRK: the change of owners counts, not that there are any (`an_owner_that_is_written_already_is_not_the_end_of_it`).
    if object.spec.is_allocate_once() {
        status.phase = Some(ReservationPhase::Succeeded);
        set_condition(&mut status, ReservationConditionType::Ready, false, ReservationReason::Succeeded, "", now);
    }
    status
}

/// When a Reservation expires or is to be deleted by time alone; none if never.
pub fn changes_at(object: &Reservation, node_exists: bool, garbage: Option<Garbage>) -> Option<Timestamp> {
    if is_over(&object.status) {
        let Garbage { retention, without_node_for } = garbage?;
        let retention = if is_lost(&object.status, node_exists) { without_node_for } else { retention };
        return over_since(&object.status)?.checked_add(retention).ok();
    }
    expires_at(object).filter(|_| !object.status.node_name.is_empty())
}

/// Whether a Reservation that is over is to be deleted.
pub fn is_garbage(object: &Reservation, node_exists: bool, garbage: Garbage, now: Timestamp) -> bool {
    let status = &object.status;
    if !is_over(status) {
        return false;
    }
    // What failed in another way than by time stays.
    let Some(since) = over_since(status) else { return false };
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    age > garbage.retention || is_lost(status, node_exists) && age > garbage.without_node_for
}

/// Whether the node is gone that it had.
fn is_lost(status: &ReservationStatus, node_exists: bool) -> bool {
    !node_exists && !status.node_name.is_empty()
}

/// What a Reservation lacks without which it cannot be placed.
pub fn missing(object: &Reservation) -> Option<&'static str> {
    let is_owned = !object.spec.owners.is_empty() || object.spec.pre_allocation;
    (!is_owned).then_some("the reservation misses the owner spec")
}

/// Since when a Reservation is over that has been used or has expired: for ever, where it does not say.
fn over_since(status: &ReservationStatus) -> Option<Timestamp> {
    let ready = status.conditions.iter().find(|one| one.type_ == Some(ReservationConditionType::Ready))?;
    let since = match ready.reason.as_ref()? {
        ReservationReason::Expired => ready.last_transition_time.as_ref(),
        ReservationReason::Succeeded => ready.last_probe_time.as_ref(),
        _ => return None,
    };
    Some(since.map_or(Timestamp::MIN, |since| since.at()))
}

/// When a Reservation expires; none if never.
///
/// `ttl: 0s` is never, whatever `expires` says; otherwise the earlier of both counts.
pub fn expires_at(object: &Reservation) -> Option<Timestamp> {
    let declared = object.spec.ttl.as_ref().and_then(|text| text.parse::<koord_resource::Duration>().ok());
    if declared.is_some_and(|ttl| ttl == koord_resource::Duration::default()) {
        return None;
    }
    // One that is less than nothing is over as soon as it begins.
    let ttl = declared.map_or(TTL, |ttl| ttl.to_std().unwrap_or_default());
    let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let by_ttl = created.and_then(|created| created.checked_add(ttl).ok());
    by_ttl.into_iter().chain(object.spec.expires.map(Time::at)).min()
}

fn reference(consumer: &Consumer) -> ObjectReference {
    ObjectReference {
        namespace: Some(consumer.key.namespace().to_owned()),
        name: Some(consumer.key.name().to_owned()),
        uid: Some(consumer.uid.to_string()),
        ..ObjectReference::default()
    }
}

/// Sets a condition, in its place or as the last one.
pub(super) fn set_condition(
    status: &mut ReservationStatus,
    type_: ReservationConditionType,
    is_true: bool,
    reason: ReservationReason,
    message: &str,
    now: Timestamp,
) {
    let text = if is_true { "True" } else { "False" };
    let known = status.conditions.iter().position(|known| known.type_.as_ref() == Some(&type_));
    let old = known.map(|at| status.conditions.remove(at)).unwrap_or_default();
    // QUIRK: success is no transition (`success_and_another_end_of_what_is_not_ready_are_no_transitions`).
    let is_same = old.status == text || reason == ReservationReason::Succeeded;
    let since = if is_same { old.last_transition_time } else { None };
    status.conditions.insert(
        known.unwrap_or(status.conditions.len()),
        ReservationCondition {
            type_: Some(type_),
            status: text.to_owned(),
            reason: Some(reason),
            message: message.to_owned(),
            last_probe_time: Some(now.into()),
            last_transition_time: since.or(Some(now.into())),
        },
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// An available Reservation that was created at 0.
    fn available(spec: &Value) -> Reservation {
        let mut object: Reservation = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": spec,
        }))
        .unwrap();
        object.status = bound(&object.status, "n1", &list("4", "8Gi"), at(1));
        object
    }

    fn spec(members: &Value) -> Value {
        let mut spec = json!({"template": {}, "owners": [{}]});
        spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        spec
    }

    fn list(cpu: &str, memory: &str) -> ResourceList {
        [("cpu", cpu.parse().unwrap()), ("memory", memory.parse().unwrap())].into_iter().collect()
    }

    fn consumer(name: &str, cpu: &str) -> Consumer {
        let mut requests = list(cpu, "4Gi");
        requests.insert("x/y", "1".parse().unwrap());
        Consumer { key: ObjectKey::new("ns", name), uid: Uid::from(name), requests }
    }

    fn shown(status: &ReservationStatus) -> String {
        let conditions = status.conditions.iter().map(|condition| {
            format!("{}={}:{}", word(condition.type_.as_ref()), condition.status, word(condition.reason.as_ref()))
        });
        format!("{} {}", word(status.phase.as_ref()), conditions.collect::<Vec<_>>().join(" "))
    }

    fn word<W: koord_types::word::Word>(word: Option<&W>) -> String {
        word.map(|word| word.as_str().to_owned()).unwrap_or_default()
    }

    #[test]
    fn a_reservation_that_is_placed_is_available() {
        let object = available(&spec(&json!({})));
        assert_eq!(shown(&object.status), "Available Scheduled=True:Scheduled Ready=True:Available");
        assert_eq!((object.status.node_name.as_str(), &object.status.allocatable), ("n1", &list("4", "8Gi")));
    }

    #[test]
    fn one_owner_is_the_end_of_it_unless_there_may_be_more() {
        // default-overflow-to-node, restricted-other-resource: what is not reserved is not counted.
        let once = synced(&available(&spec(&json!({}))), &[consumer("p", "6")], true, at(2));
        assert_eq!(shown(&once), "Succeeded Scheduled=True:Scheduled Ready=False:Succeeded");
        assert_eq!(once.allocated, list("6", "4Gi"));
        // owner-allocate-many
        let object = available(&spec(&json!({"allocateOnce": false})));
        let many = synced(&object, &[consumer("q", "2"), consumer("p", "2")], true, at(2));
        assert_eq!((shown(&many), &many.allocated), (shown(&object.status), &list("4", "8Gi")));
        let owners: Vec<&str> = many.current_owners.iter().map(|owner| owner.name.as_deref().unwrap()).collect();
        assert_eq!(owners, ["p", "q"]);
        assert_eq!(synced(&Reservation { status: many, ..object.clone() }, &[], true, at(3)), object.status);
    }

    #[test]
    fn an_owner_that_is_written_already_is_not_the_end_of_it() {
        let shared = available(&spec(&json!({"allocateOnce": false})));
        let status = synced(&shared, &[consumer("p", "2"), consumer("q", "1")], true, at(2));
        let mut object = Reservation { status, ..available(&spec(&json!({}))) };
        let owners = [consumer("q", "1"), consumer("p", "2")];
        assert_eq!(synced(&object, &owners, true, at(3)), object.status);
        object.status.current_owners.reverse();
        assert_eq!(synced(&object, &owners, true, at(3)), object.status, "in whatever order");
        let succeeded = "Succeeded Scheduled=True:Scheduled Ready=False:Succeeded";
        let resized = synced(&object, &[consumer("q", "1"), consumer("p", "3")], true, at(3));
        assert_eq!((shown(&resized), resized.current_owners.len()), (succeeded.to_owned(), 2));
        let left = synced(&object, &[], true, at(3));
        assert_eq!((shown(&left), left.current_owners.len()), (succeeded.to_owned(), 0));
        assert_eq!(left.allocated, ResourceList::default());
    }

    #[test]
    fn a_reservation_may_expire_at_the_last_time_that_can_be_written_or_after_the_longest_ttl() {
        let never = "9999-12-31T23:59:59Z";
        let mut object = available(&spec(&json!({"expires": never, "ttl": "2562047h47m16s"})));
        let longest = at(2_562_047 * 3600 + 47 * 60 + 16);
        assert_eq!(expires_at(&object), Some(longest), "the earlier one counts");
        object.metadata.creation_timestamp = None;
        assert_eq!(expires_at(&object), Some(Timestamp::MAX));
        assert_eq!(synced(&object, &[], true, at(5)), object.status, "nothing is due");
        object.status.phase = Some(ReservationPhase::Failed);
        set_condition(
            &mut object.status,
            ReservationConditionType::Ready,
            false,
            ReservationReason::Expired,
            "",
            at(1),
        );
        object.status.conditions[1].last_transition_time = Some(never.parse().unwrap());
        let garbage = Garbage { retention: TTL, without_node_for: TTL };
        assert_eq!(changes_at(&object, true, Some(garbage)), None, "there is no later time");
        assert!(!is_garbage(&object, true, garbage, at(5)));
    }

    #[test]
    fn success_and_another_end_of_what_is_not_ready_are_no_transitions() {
        let times = |status: &ReservationStatus| {
            let ready = &status.conditions[1];
            [ready.last_transition_time, ready.last_probe_time].map(|time| time.map(Time::at))
        };
        let mut object = available(&spec(&json!({"ttl": "4s"})));
        let succeeded = synced(&object, &[consumer("p", "1")], true, at(2));
        assert_eq!(times(&succeeded), [Some(at(1)), Some(at(2))]);
        assert_eq!(times(&synced(&object, &[], true, at(5))), [Some(at(5)), Some(at(5))], "it was ready");
        "False".clone_into(&mut object.status.conditions[1].status);
        assert_eq!(times(&synced(&object, &[], true, at(5))), [Some(at(1)), Some(at(5))]);
    }

    #[test]
    fn what_was_scheduled_once_is_not_said_to_have_no_node() {
        let mut object = available(&spec(&json!({})));
        object.status.node_name.clear();
        assert_eq!(unschedulable(&object.status, "0/1 nodes are available", at(5)), object.status);
    }

    #[test]
    fn a_reservation_expires_by_its_time_or_with_its_node() {
        let failed = "Failed Scheduled=True:Scheduled Ready=False:Expired";
        let phase = |members: Value, second: i64| shown(&synced(&available(&spec(&members)), &[], true, at(second)));
        assert_eq!(phase(json!({"ttl": "4s"}), 5), failed, "expire-ttl");
        assert!(phase(json!({"ttl": "4s"}), 4).starts_with("Available"));
        assert_eq!(phase(json!({"ttl": "24h", "expires": "1970-01-01T00:00:04Z"}), 5), failed, "expire-expires");
        assert_eq!(phase(json!({}), 24 * 3600 + 1), failed);
        assert_eq!(phase(json!({"ttl": "-1s"}), 1), failed, "less than nothing is over at once");
        assert!(phase(json!({"ttl": "0s", "expires": "1970-01-01T00:00:04Z"}), 5).starts_with("Available"));
        assert_eq!(shown(&synced(&available(&spec(&json!({}))), &[], false, at(2))), failed, "node-deleted");
    }

    #[test]
    fn a_reservation_without_a_node_does_not_expire() {
        let mut object = available(&spec(&json!({"ttl": "3s"})));
        object.status = unschedulable(&ReservationStatus::default(), "0/1 nodes are available", at(1));
        assert_eq!(synced(&object, &[], true, at(8)), object.status, "expire-pending-stays");
        assert_eq!(shown(&object.status), " Scheduled=False:Unschedulable");
        let again = unschedulable(&object.status, "other words", at(5));
        assert_eq!(again.conditions[0].last_transition_time, Some(at(1).into()), "it is the same condition");
    }

    #[test]
    fn time_alone_matters_when_it_expires_and_when_it_is_deleted() {
        let garbage = Garbage { retention: Duration::from_hours(1), without_node_for: Duration::from_mins(1) };
        let changes_at = |object: &Reservation, node| changes_at(object, node, Some(garbage));
        let object = available(&spec(&json!({"ttl": "10s"})));
        assert_eq!(changes_at(&object, true), Some(at(10)));
        assert_eq!(changes_at(&available(&spec(&json!({"ttl": "0s"}))), true), None);
        let expired = Reservation { status: synced(&object, &[], true, at(11)), ..object.clone() };
        assert_eq!([true, false].map(|node| changes_at(&expired, node)), [Some(at(11 + 3600)), Some(at(11 + 60))]);
        let pending = Reservation { status: ReservationStatus::default(), ..object };
        assert_eq!(changes_at(&pending, true), None);
    }

    #[test]
    fn what_is_over_is_deleted_after_a_while_or_with_its_node() {
        let day = Garbage { retention: Duration::from_hours(24), without_node_for: Duration::from_mins(1) };
        let (second, late) = (at(5), at(5 + 24 * 3600 + 1));
        let object = available(&spec(&json!({"ttl": "4s"})));
        assert!(!is_garbage(&object, false, day, late), "it is not over");
        let expired = Reservation { status: synced(&object, &[], true, second), ..object.clone() };
        assert!(!is_garbage(&expired, true, day, at(24 * 3600)) && is_garbage(&expired, true, day, late));
        assert!(!is_garbage(&expired, false, day, second) && is_garbage(&expired, false, day, at(66)));
        let object = available(&spec(&json!({})));
        let succeeded = Reservation { status: synced(&object, &[consumer("p", "1")], true, second), ..object };
        assert!(!is_garbage(&succeeded, true, day, at(24 * 3600)) && is_garbage(&succeeded, true, day, late));
        let placed_nowhere = |mut object: Reservation| {
            object.status.node_name.clear();
            object
        };
        assert!(!is_garbage(&placed_nowhere(expired.clone()), false, day, at(66)), "no node of it is gone");
        let without = |change: fn(&mut ReservationCondition)| {
            let mut object = expired.clone();
            object.status.conditions.iter_mut().for_each(change);
            is_garbage(&object, true, day, second)
        };
        assert!(without(|condition| condition.last_transition_time = None), "since when is not said");
        assert!(!without(|condition| condition.reason = None), "it has failed in another way");
    }
}
