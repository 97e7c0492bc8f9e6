//! Limits of one workload, as a number, a percentage or by its size.

use serde_json::Value;

/// How many pods of a workload are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadLimit {
    /// 10 % of more than ten replicas, two of four to ten, and else one.
    BySize,
    Number(i64),
    Percent(i64),
}

impl WorkloadLimit {
    /// The limit that an argument names; `None` where it is neither a whole number nor a percentage.
    pub(crate) fn of(value: Option<&Value>) -> Option<Self> {
        match value {
            None | Some(Value::Null) => Some(Self::BySize),
            Some(Value::String(text)) => Some(Self::Percent(text.strip_suffix('%')?.parse().ok()?)),
            Some(value) => value.as_i64().map(Self::Number),
        }
    }

    /// The number for a workload of so many replicas. It may be greater than they are. 0 counts as 1, and a part of a pod counts for nothing.
    pub(crate) fn uncapped(self, replicas: i32) -> i64 {
        let replicas = i64::from(replicas);
        let part = |percent: i64| percent.saturating_mul(replicas).div_euclid(100);
        let number = match self {
            Self::BySize if replicas > 10 => part(10),
            Self::BySize if replicas >= 4 => 2,
            Self::BySize => 1,
            Self::Number(number) => number,
            Self::Percent(percent) => part(percent),
        };
        if number == 0 { 1 } else { number }
    }

    /// The same, and at most all replicas.
    pub(crate) fn capped(self, replicas: i32) -> i64 {
        self.uncapped(replicas).min(replicas.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_is_a_number_a_percentage_rounded_down_or_by_size() {
        for (replicas, value, expected) in [
            (6, json!("80%"), 4),
            (6, json!("150%"), 6),
            (6, json!(5), 5),
            (6, json!(7), 6),
            (6, json!(null), 2),
            (6, json!(0), 1),
            (50, json!("0%"), 1),
            (30, json!("9%"), 2),
            (3, json!(null), 1),
            (4, json!(null), 2),
            (10, json!(null), 2),
            (11, json!(null), 1),
            (29, json!(null), 2),
            (0, json!(null), 0),
            (6, json!(-1), -1),
        ] {
            let limit = WorkloadLimit::of(Some(&value)).unwrap();
            assert_eq!(limit.capped(replicas), expected, "{value} of {replicas}");
        }
        assert_eq!(WorkloadLimit::of(None), Some(WorkloadLimit::BySize));
    }

    #[test]
    fn other_values_are_no_limits() {
        for value in [json!("5"), json!("x%"), json!(1.5), json!({}), json!(true)] {
            assert_eq!(WorkloadLimit::of(Some(&value)), None, "{value}");
        }
    }
}
