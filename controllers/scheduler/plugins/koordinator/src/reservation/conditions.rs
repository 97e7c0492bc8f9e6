//! Conditions of Reservations that a feature gate adds: whether they make sense, and whether pods use them.

use std::time::Duration;

use jiff::Timestamp;
use koord_scheduler_allocation::{Owners, ReservationInfo, ReservePod, Unused};
use koord_types::reservation::{
    Reservation, ReservationCondition, ReservationConditionType, ReservationReason, ReservationStatus,
};

use super::lifecycle::{Consumer, missing, set_condition};

/// How long a reason why no pod uses a Reservation stays before another one is written.
const PERIOD: Duration = Duration::from_mins(1);

/// Whether the conditions `Accepted` and `Matched` are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions(pub(super) bool);

impl Conditions {
    /// `Accepted`: whether the Reservation makes sense. `info` is what is known of it once it has a node.
    pub(super) fn accept(
        self,
        status: &mut ReservationStatus,
        object: &Reservation,
        info: Option<&ReservationInfo>,
        now: Timestamp,
    ) {
        if !self.0 {
            return;
        }
        // What was read once is not read again with every change.
        let is_read = info.is_some_and(|info| info.owners.is_some());
        let wrong = missing(object).map(str::to_owned).or_else(|| if is_read { None } else { unreadable(object) });
        let (is_true, reason) = match &wrong {
            None => (true, ReservationReason::Accepted),
            Some(_) => (false, ReservationReason::Invalid),
        };
        set(status, ReservationConditionType::Accepted, is_true, reason, &wrong.unwrap_or_default(), now);
    }

    /// `Matched`: whether pods use the Reservation, or why the last one that was refused does not. Gives when another reason is to
    /// be written that has to wait.
    pub(super) fn matched(
        self,
        status: &mut ReservationStatus,
        consumers: &[Consumer],
        unused: Option<&Unused>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if !self.0 {
            return None;
        }
        let type_ = ReservationConditionType::Matched;
        if let Some(first) = consumers.iter().map(|consumer| &consumer.key).min() {
            let message = match consumers.len() {
                1 => format!("{first} uses it"),
                pods => format!("{first} and {} more use it", pods - 1),
            };
            set(status, type_, true, ReservationReason::Used, &message, now);
            return None;
        }
        let known = condition(status, &type_).filter(|known| known.status == "False");
        match (unused, known) {
            // The last reason stays, though who wrote it may have been another leader.
            (None, Some(_)) => {}
            (None, None) => set(status, type_, false, ReservationReason::Unused, "no pod uses it", now),
            (Some(Unused { reason, message }), known) => {
                let written =
                    known.filter(|known| known.message != *message).and_then(|known| known.last_probe_time.as_ref());
                let next = written.and_then(|written| written.at().checked_add(PERIOD).ok()).filter(|next| *next > now);
                if next.is_some() {
                    return next;
                }
                set(status, type_, false, reason.clone(), message, now);
            }
        }
        None
    }
}

/// What of a Reservation cannot be read.
fn unreadable(object: &Reservation) -> Option<String> {
    let template = ReservePod::new(object).err().map(|error| error.to_string());
    template.or_else(|| Owners::new(&object.spec.owners).err().map(|error| format!("spec.owners: {error}")))
}

fn condition<'s>(status: &'s ReservationStatus, type_: &ReservationConditionType) -> Option<&'s ReservationCondition> {
    status.conditions.iter().find(|known| known.type_.as_ref() == Some(type_))
}

/// Sets a condition that says something else than before.
fn set(
    status: &mut ReservationStatus,
    type_: ReservationConditionType,
    is_true: bool,
    reason: ReservationReason,
    message: &str,
    now: Timestamp,
) {
    let is_said = condition(status, &type_).is_some_and(|known| {
        (known.status == "True") == is_true && known.reason.as_ref() == Some(&reason) && known.message == message
    });
    if !is_said {
        set_condition(status, type_, is_true, reason, message, now);
    }
}
