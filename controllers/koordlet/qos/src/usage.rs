//! The thresholds of evictions because of the node's usage, for CPU and memory alike.

use crate::{feature::Feature, outcome::Note};

/// Evictions begin at `threshold` and end at `lower`, in percent of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsageThreshold {
    pub threshold: i64,
    pub lower: i64,
    /// Pods above this priority are not evicted; `None` where the priority does not matter.
    pub priority: Option<i32>,
}

/// How pods are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VictimsBy {
    /// By their class: all BE pods.
    Class,
    /// Up to this priority.
    Priority(Option<i32>),
}

impl VictimsBy {
    fn priority(self) -> Option<i32> {
        match self {
            Self::Class => None,
            Self::Priority(priority) => priority,
        }
    }
}

/// How far below the threshold evictions end where it is not set, in percent.
const LOWER_BELOW: i64 = 2;

/// Checks the settings: the threshold is set, the lower one is below it, and where pods are chosen by their priority, its threshold is set.
pub(crate) fn usage_threshold(
    feature: Feature,
    threshold: Option<i64>,
    lower: Option<i64>,
    victims: VictimsBy,
    notes: &mut Vec<Note>,
) -> Option<UsageThreshold> {
    let mut refuse = |reason: String, remedy| {
        notes.push(Note::invalid(reason, remedy));
        None
    };
    let Some(threshold) = threshold.filter(|threshold| *threshold >= 0) else {
        return refuse(format!("{feature}: the threshold is not set"), "set it in resource-threshold-config");
    };
    let lower = lower.unwrap_or(threshold - LOWER_BELOW);
    if lower >= threshold {
        return refuse(
            format!("{feature}: the lower percentage {lower} is not below the threshold {threshold}"),
            "set the lower percentage below the threshold",
        );
    }
    if victims == VictimsBy::Priority(None) {
        return refuse(
            format!("{feature}: evictEnabledPriorityThreshold is not set"),
            "set it in resource-threshold-config",
        );
    }
    Some(UsageThreshold { threshold, lower, priority: victims.priority() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_percentage_is_below_the_threshold() {
        use VictimsBy::{Class, Priority};
        let check = |threshold, lower, victims| {
            let mut notes = Vec::new();
            let checked = usage_threshold(Feature::MemoryEvict, threshold, lower, victims, &mut notes);
            assert_eq!(checked.is_none(), notes.len() == 1);
            checked.map(|checked| (checked.threshold, checked.lower))
        };
        for (threshold, lower, victims, expected) in [
            (Some(70), None, Class, Some((70, 68))),
            (Some(70), Some(65), Priority(Some(5999)), Some((70, 65))),
            (Some(70), Some(70), Class, None),
            (Some(70), Some(80), Class, None),
            (Some(70), Some(65), Priority(None), None),
            (Some(-1), Some(-5), Class, None),
            (None, Some(5), Class, None),
        ] {
            assert_eq!(check(threshold, lower, victims), expected, "{threshold:?} {lower:?}");
        }
    }
}
