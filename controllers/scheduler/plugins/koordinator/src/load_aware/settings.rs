//! The arguments of the plugin in the form in which it decides by them (`spec/scheduler.md` 1.1).

use std::collections::BTreeMap;

use koord_config::scheduler::{self, LoadAwareSchedulingArgs};
use koord_resource::Duration;
use koord_types::node_metric::AggregationType;

use super::{Amounts, Dimensions, Estimator, Measure, Thresholds, thresholds::Aggregated};

/// How nodes are compared by their load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadAwareSettings {
    /// The resources that are compared.
    pub dimensions: Dimensions,
    /// How the usage of a new pod is estimated.
    pub estimator: Estimator,
    /// After how many seconds a report is expired.
    pub expiration_seconds: i64,
    /// What becomes of nodes with an expired report.
    pub expired: Expired,
    /// Which usage is too much.
    pub thresholds: Thresholds,
    /// Whether what the system uses counts as used by production pods.
    pub prod_includes_system: bool,
    /// Whether production pods are scored by what production pods use.
    pub scores_prod: bool,
    /// By which value of the usage nodes are scored; the average where there is none.
    pub scored: Option<(AggregationType, Duration)>,
    /// How much each dimension counts.
    pub weights: Amounts,
    /// How much the dimension counts of which the least is left.
    pub dominant_weight: i64,
}

/// What becomes of nodes with an expired report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The report counts as it is.
    Trusted,
    /// They are refused.
    Refused,
    /// They are accepted whatever was reported.
    Accepted,
}

impl From<&LoadAwareSchedulingArgs> for LoadAwareSettings {
    /// Of complete arguments.
    fn from(args: &LoadAwareSchedulingArgs) -> Self {
        let aggregated = &args.aggregated;
        let percents = |map: &BTreeMap<String, koord_configuration::Percent>| -> BTreeMap<String, i64> {
            map.iter().map(|(name, percent)| (name.clone(), percent.0)).collect()
        };
        let weights = |map: &BTreeMap<String, koord_configuration::Weight>| -> BTreeMap<String, i64> {
            map.iter().map(|(name, weight)| (name.clone(), weight.0)).collect()
        };
        let lists = [
            weights(&args.resource_weights),
            weights(&args.estimated_scaling_factors),
            percents(&args.usage_thresholds),
            args.prod_usage_thresholds.clone(),
            percents(&aggregated.usage_thresholds),
        ];
        let names = lists.iter().flat_map(BTreeMap::keys).chain(&args.supported_resources);
        let dimensions = Dimensions::of(names.map(String::as_str));
        let [weights, factors, usage, prod, of_aggregated] = &lists;
        let amounts = |list: &BTreeMap<String, i64>| dimensions.each(|name| list.get(name).copied().unwrap_or(0));
        let counts = |_: &scheduler::AggregationType| !of_aggregated.is_empty();
        Self {
            estimator: Estimator {
                factors: factors.clone(),
                seconds_after_scheduled: args.estimated_seconds_after_pod_scheduled,
                seconds_after_initialized: args.estimated_seconds_after_initialized,
                is_customizable: args.allow_customize_estimation,
            },
            expiration_seconds: args.node_metric_expiration_seconds,
            expired: match (args.filter_expired_node_metrics, args.enable_schedule_when_node_metrics_expired) {
                (false, _) => Expired::Trusted,
                (_, true) => Expired::Accepted,
                _ => Expired::Refused,
            },
            thresholds: Thresholds {
                usage: amounts(usage),
                prod: amounts(prod),
                aggregated: aggregated.usage_aggregation_type.filter(counts).map(|type_| Aggregated {
                    usage: amounts(of_aggregated),
                    type_: type_of(type_),
                    length: aggregated.usage_aggregated_duration,
                }),
            },
            prod_includes_system: args.prod_usage_include_sys,
            scores_prod: args.score_according_prod_usage,
            scored: aggregated
                .score_aggregation_type
                .map(|type_| (type_of(type_), aggregated.score_aggregated_duration)),
            weights: amounts(weights),
            dominant_weight: args.dominant_resource_weight.0,
            dimensions,
        }
    }
}

impl LoadAwareSettings {
    /// By which usage nodes are scored for a pod.
    pub fn scored(&self, is_prod: bool) -> Measure<'_> {
        match &self.scored {
            _ if is_prod && self.scores_prod => Measure::Prod,
            Some((type_, length)) => Measure::Aggregated(type_, *length),
            None => Measure::Average,
        }
    }
}

fn type_of(type_: scheduler::AggregationType) -> AggregationType {
    match type_ {
        scheduler::AggregationType::Avg => AggregationType::Average,
        scheduler::AggregationType::P50 => AggregationType::P50,
        scheduler::AggregationType::P90 => AggregationType::P90,
        scheduler::AggregationType::P95 => AggregationType::P95,
        scheduler::AggregationType::P99 => AggregationType::P99,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(args: &Value) -> LoadAwareSettings {
        LoadAwareSettings::from(&koord_config::arguments::<LoadAwareSchedulingArgs>(args).unwrap())
    }

    #[test]
    fn defaults_are_those_of_the_original() {
        let settings = settings(&json!({}));
        assert_eq!((&settings.weights[..], &settings.thresholds.usage[..]), (&[1, 1][..], &[65, 95][..]));
        assert_eq!((settings.expired, settings.expiration_seconds), (Expired::Refused, 180));
        assert_eq!(
            (settings.scored(true), settings.thresholds.of_pod(true).unwrap().1),
            (Measure::Average, Measure::Average)
        );
        assert_eq!(settings.estimator.factors["memory"], 70);
    }

    #[test]
    fn every_resource_that_is_named_is_a_dimension() {
        let settings = settings(&json!({
            "estimatedScalingFactors": {"example.com/a": 50},
            "prodUsageThresholds": {"example.com/b": 50},
            "aggregated": {"usageThresholds": {"example.com/c": 50}},
            "supportedResources": ["example.com/d"],
        }));
        let names: Vec<&str> = settings.dimensions.names().collect();
        assert_eq!(names, ["cpu", "example.com/a", "example.com/b", "example.com/c", "example.com/d", "memory"]);
        assert_eq!((&settings.weights[..], settings.thresholds.aggregated), (&[1, 0, 0, 0, 0, 1][..], None));
    }

    #[test]
    fn production_pods_may_be_scored_by_production_usage_and_others_by_a_percentile() {
        let aggregated = json!({"scoreAggregationType": "p95", "scoreAggregatedDuration": "5m"});
        let settings = settings(&json!({"scoreAccordingProdUsage": true, "aggregated": aggregated}));
        let percentile = Measure::Aggregated(&AggregationType::P95, Duration::from_secs(300));
        assert_eq!((settings.scored(true), settings.scored(false)), (Measure::Prod, percentile));
    }
}
