//! Conditions of a status: apimachinery's own type, and how one is set.

use jiff::Timestamp;
use koord_resource::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition of an object at this generation of its spec; a status of none is `Unknown`. `reason` is one word in
/// CamelCase, `message` is for a person.
pub fn condition(type_: &str, status: Option<bool>, reason: &str, message: &str, generation: i64) -> Condition {
    let status = match status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Sets a condition in a list. The time of transition moves only when the status changes; the order of the list
/// stays, so that an unchanged list writes nothing.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: Timestamp) {
    // The API writes whole seconds.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == new.type_) else {
        conditions.push(Condition { last_transition_time: now, ..new });
        return;
    };
    let last_transition_time = if known.status == new.status { known.last_transition_time.clone() } else { now };
    *known = Condition { last_transition_time, ..new };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_transition_moves_only_with_the_status() {
        let at = |second: i64| Timestamp::from_millisecond(second * 1000 + 7).unwrap();
        let ready = |status, reason| condition("Ready", status, reason, "", 1);
        let mut conditions = Vec::new();
        set(&mut conditions, ready(Some(false), "Starting"), at(0));
        set(&mut conditions, ready(Some(false), "Waiting"), at(5));
        let shown = serde_json::to_value(&conditions).unwrap();
        assert_eq!(
            shown,
            serde_json::json!([{
                "type": "Ready", "status": "False", "reason": "Waiting", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }])
        );
        set(&mut conditions, ready(Some(true), "Done"), at(9));
        assert_eq!((conditions.len(), &conditions[0].last_transition_time.0), (1, &Timestamp::from_second(9).unwrap()));
        set(&mut conditions, ready(None, "Lost"), at(10));
        assert_eq!(conditions[0].status, "Unknown");
    }
}
