//! The status of a job, in the words of the original.

use jiff::Timestamp;
use koord_core::key::ObjectKey;
use koord_resource::Time;
use koord_types::pod_migration_job::{
    PodMigrationJobCondition as Condition, PodMigrationJobConditionType as Type, PodMigrationJobPhase as Phase,
    PodMigrationJobReason as Reason, PodMigrationJobStatus,
};

/// `status.status` of a job that has succeeded, and the reason of its event.
pub(super) const COMPLETE: &str = "Complete";
/// `status.reason` of a job that names no pod.
pub(super) const INVALID_POD_REF: &str = "InvalidPodRef";

pub(super) const TIMEOUT: &str = "Abort job caused by timeout";
pub(super) const INVALID_POD: &str = "Abort job caused by invalid PodRef";
pub(super) const BOUND_BY_OTHER: &str = "Reservation is already bound by another Pod";
pub(super) const EXPIRED: &str = "Reservation expired";

pub(super) fn missing_pod(pod: &ObjectKey) -> String {
    format!("Abort job caused by missing Pod \"{pod}\"")
}

pub(super) fn other_pod(pod: &ObjectKey) -> String {
    format!("{}: the pod that has its name now has another uid", missing_pod(pod))
}

pub(super) fn missing_reservation(name: &str) -> String {
    format!("Abort job caused by missing Reservation \"{name}\"")
}

pub(super) fn same_node(reservation: &str) -> String {
    format!("Scheduler assignes the Reservation \"{reservation}\" on the same node as the Pod")
}

pub(super) fn evicting(pod: &ObjectKey, node: &str, reason: &str) -> String {
    format!("Pod \"{pod}\" evicted from node \"{node}\" by the reason \"{reason}\"")
}

pub(super) fn evicted(pod: &ObjectKey) -> String {
    format!("Pod \"{pod}\" has been evicted")
}

pub(super) fn assigned(pod: &ObjectKey, node: &str) -> String {
    format!("Assign Pod \"{pod}\" to node \"{node}\"")
}

pub(super) fn bound(pod: &ObjectKey, reservation: &str) -> String {
    format!("Bind Pod \"{pod}\" in Reservation \"{reservation}\"")
}

/// The reason of the event about a failure.
pub(super) fn event_of(reason: &Reason) -> &'static str {
    match reason {
        Reason::Timeout => "Timeout",
        Reason::FailedCreateReservation => "FailedCreateReservation",
        Reason::ReservationExpired => "ReservationExpired",
        Reason::Unschedulable => "Unschedulable",
        Reason::ForbiddenMigratePod => "ForbiddenMigratePod",
        Reason::MissingPod => "MissingPod",
        Reason::MissingReservation => "MissingReservation",
        Reason::FailedEvict => "FailedEvict",
        Reason::Other(text) if text == INVALID_POD_REF => INVALID_POD_REF,
        _ => "Failed",
    }
}

/// A condition of a job.
pub fn find<'a>(status: &'a PodMigrationJobStatus, type_: &Type) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == *type_)
}

pub(super) fn is_true(status: &PodMigrationJobStatus, type_: &Type) -> bool {
    find(status, type_).is_some_and(|condition| condition.status == "True")
}

/// What a condition says, but for its type and times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Says {
    pub(super) status: &'static str,
    pub(super) reason: Option<Reason>,
    pub(super) message: String,
}

impl Says {
    pub(super) fn yes() -> Self {
        Self { status: "True", reason: None, message: String::new() }
    }

    pub(super) fn no(reason: Reason) -> Self {
        Self { status: "False", reason: Some(reason), message: String::new() }
    }

    pub(super) fn because(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }
}

/// Sets a condition. Its times move only when it says something else.
pub(super) fn set_condition(status: &mut PodMigrationJobStatus, type_: &Type, says: Says, now: Timestamp) {
    // The API writes whole seconds.
    let now = Some(Time::from(Timestamp::from_second(now.as_second()).unwrap_or(now)));
    let Says { status: value, reason, message } = says;
    let new = |last_transition_time| Condition {
        type_: type_.clone(),
        status: value.to_owned(),
        last_probe_time: now,
        last_transition_time,
        reason: reason.clone(),
        message: message.clone(),
    };
    match status.conditions.iter_mut().find(|known| known.type_ == *type_) {
        None => status.conditions.push(new(now)),
        Some(known) if (&*known.status, &known.reason, &known.message) == (value, &reason, &message) => {}
        Some(known) => {
            let transition = if known.status == value { known.last_transition_time } else { now };
            *known = new(transition);
        }
    }
}

/// Sets a condition that is what the job does now.
pub(super) fn set(status: &mut PodMigrationJobStatus, type_: &Type, says: Says, now: Timestamp) {
    type_.as_str().clone_into(&mut status.status);
    status.reason = says.reason.as_ref().map_or_else(String::new, |reason| reason.as_str().to_owned());
    status.message.clone_from(&says.message);
    set_condition(status, type_, says, now);
}

/// The job has succeeded.
pub(super) fn succeed(status: &mut PodMigrationJobStatus, message: String) {
    status.phase = Some(Phase::Succeeded);
    COMPLETE.clone_into(&mut status.status);
    status.reason.clear();
    status.message = message;
}
