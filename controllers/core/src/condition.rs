//! Conditions of a status.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One condition, as metav1.Condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type in CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the spec that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[serde(default)]
    pub last_transition_time: String,
    /// Why, one word in CamelCase.
    #[serde(default)]
    pub reason: String,
    /// Why, for a person.
    #[serde(default)]
    pub message: String,
}

/// Sets a condition in a list. The time of transition moves only when the status changes; the order of the list
/// stays, so that an unchanged list writes nothing.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: Timestamp) {
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == new.type_) else {
        conditions.push(Condition { last_transition_time: time, ..new });
        return;
    };
    let last_transition_time =
        if known.status == new.status { std::mem::take(&mut known.last_transition_time) } else { time };
    *known = Condition { last_transition_time, ..new };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_transition_moves_only_with_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ready = |status: &str, reason: &str| Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            observed_generation: Some(1),
            last_transition_time: String::new(),
            reason: reason.to_owned(),
            message: String::new(),
        };
        let mut conditions = Vec::new();
        set(&mut conditions, ready("False", "Starting"), at(0));
        set(&mut conditions, ready("False", "Waiting"), at(5));
        assert_eq!(
            (conditions[0].last_transition_time.as_str(), &*conditions[0].reason),
            ("1970-01-01T00:00:00Z", "Waiting")
        );
        set(&mut conditions, ready("True", "Done"), at(9));
        assert_eq!((conditions.len(), conditions[0].last_transition_time.as_str()), (1, "1970-01-01T00:00:09Z"));
    }
}
