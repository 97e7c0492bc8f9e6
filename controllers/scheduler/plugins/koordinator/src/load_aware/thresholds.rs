//! Which usage of a node is too much (`spec/scheduler.md` 3A.4).

use koord_resource::Duration;
use koord_types::{node_annotations::UsageThresholds, node_metric::AggregationType};

use super::{Amounts, Dimensions};

/// Usage, in percent of the capacity, above which a node gets no further pods. 0 is no threshold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Of everyone.
    pub usage: Amounts,
    /// Of production pods, for production pods.
    pub prod: Amounts,
    /// Of everyone, by another value than the average.
    pub aggregated: Option<Aggregated>,
}

/// Thresholds of another value than the average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregated {
    pub usage: Amounts,
    pub type_: AggregationType,
    /// Over how long.
    pub length: Duration,
}

/// A kind of usage of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure<'a> {
    Average,
    /// The average of production pods.
    Prod,
    /// Another value, over a time of this length.
    Aggregated(&'a AggregationType, Duration),
}

impl Thresholds {
    /// With what an annotation of the node sets instead: each list as a whole.
    #[must_use]
    pub fn with(&self, custom: &UsageThresholds, dimensions: &Dimensions) -> Self {
        let mut thresholds = self.clone();
        if !custom.usage_thresholds.is_empty() {
            thresholds.usage = dimensions.each(|name| custom.usage_thresholds.get(name).copied().unwrap_or(0));
        }
        if !custom.prod_usage_thresholds.is_empty() {
            thresholds.prod = dimensions.each(|name| custom.prod_usage_thresholds.get(name).copied().unwrap_or(0));
        }
        if let Some(aggregated) = &custom.aggregated_usage
            && let Some(type_) = aggregated.usage_aggregation_type.clone().filter(|type_| !type_.as_str().is_empty())
            && !aggregated.usage_thresholds.is_empty()
        {
            thresholds.aggregated = Some(Aggregated {
                usage: dimensions.each(|name| aggregated.usage_thresholds.get(name).copied().unwrap_or(0)),
                type_,
                length: aggregated.usage_aggregated_duration.unwrap_or(Duration::ZERO),
            });
        }
        thresholds
    }

    /// The thresholds for a pod, and the usage that they bound; none where nothing is bounded.
    pub fn of_pod(&self, is_prod: bool) -> Option<(&Amounts, Measure<'_>)> {
        let bounds = |thresholds: &Amounts| thresholds.iter().any(|percent| *percent != 0);
        let chosen = match &self.aggregated {
            _ if is_prod && bounds(&self.prod) => (&self.prod, Measure::Prod),
            Some(Aggregated { usage, type_, length }) => (usage, Measure::Aggregated(type_, *length)),
            None => (&self.usage, Measure::Average),
        };
        bounds(chosen.0).then_some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use smallvec::smallvec;

    use super::*;

    fn thresholds() -> Thresholds {
        Thresholds { usage: smallvec![65, 95], prod: smallvec![0, 0], aggregated: None }
    }

    fn with(custom: Value) -> Thresholds {
        thresholds().with(&serde_json::from_value(custom).unwrap(), &Dimensions::of([]))
    }

    #[test]
    fn an_annotation_sets_whole_lists() {
        assert_eq!(with(json!({"usageThresholds": {"memory": 50}})).usage[..], [0, 50]);
        assert_eq!(with(json!({"prodUsageThresholds": {"cpu": 40}})).of_pod(true).unwrap().0[..], [40, 0]);
        assert_eq!(with(json!({"usageThresholds": {}})), thresholds());
        let off = with(json!({"usageThresholds": {"cpu": 0, "memory": 0}}));
        assert_eq!((off.of_pod(true), off.of_pod(false)), (None, None));
    }

    #[test]
    fn other_values_than_the_average_need_a_type_and_a_threshold() {
        for empty in [json!({}), json!({"usageThresholds": {"cpu": 50}}), json!({"usageAggregationType": "p95"})] {
            assert_eq!(with(json!({"aggregatedUsage": empty})).aggregated, None);
        }
        let full = json!({
            "usageThresholds": {"cpu": 50},
            "usageAggregationType": "p95",
            "usageAggregatedDuration": "5m",
        });
        let aggregated = with(json!({"aggregatedUsage": full, "prodUsageThresholds": {"cpu": 40}}));
        let five_minutes = Duration::from_secs(300);
        assert_eq!(
            aggregated.of_pod(false),
            Some((&smallvec![50, 0], Measure::Aggregated(&AggregationType::P95, five_minutes)))
        );
        assert_eq!(aggregated.of_pod(true).unwrap().1, Measure::Prod);
        assert_eq!(
            thresholds().of_pod(true).unwrap().1,
            Measure::Average,
            "production pods without thresholds of their own"
        );
    }
}
