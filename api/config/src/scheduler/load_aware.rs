//! Arguments of LoadAwareScheduling.

use std::collections::BTreeMap;

use koord_configuration::{Configuration, Percent, Problems, Weight};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of LoadAwareScheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct LoadAwareSchedulingArgs {
    /// Whether nodes are passed over whose NodeMetric is too old.
    #[koord(default = true)]
    pub filter_expired_node_metrics: bool,
    /// When a NodeMetric is too old.
    #[koord(default = 180, minimum = 1)]
    pub node_metric_expiration_seconds: i64,
    /// Whether pods are scheduled to such nodes all the same.
    pub enable_schedule_when_node_metrics_expired: bool,
    /// Weights of resources in the score, each with an entry in estimatedScalingFactors: 1 for cpu and memory where none is set and the dominant resource has
    /// no weight.
    pub resource_weights: BTreeMap<String, Weight>,
    /// The weight of the resource that is used most.
    pub dominant_resource_weight: Percent,
    /// Nodes that use more of a resource are passed over, in percent of what they offer; 0 is no bound.
    #[koord(default = {"cpu": 65, "memory": 95}, zero_is_unset)]
    pub usage_thresholds: BTreeMap<String, Percent>,
    /// The same of what production pods use, for production pods.
    pub prod_usage_thresholds: BTreeMap<String, i64>,
    /// Whether what the system uses counts as used by production pods.
    pub prod_usage_include_sys: bool,
    /// Whether production pods are scored by what production pods use.
    pub score_according_prod_usage: bool,
    /// The estimator of what new pods use.
    #[koord(
        default = "defaultEstimator",
        zero_is_unset,
        no_effect = "there is one estimator, defaultEstimator, which counts for every name"
    )]
    pub estimator: String,
    /// What a new pod is estimated to use, in percent of its limit or request; cpu and memory always have a factor.
    #[koord(default = {"cpu": 85, "memory": 70})]
    pub estimated_scaling_factors: BTreeMap<String, Weight>,
    /// For how long after it was scheduled a pod's usage is estimated.
    pub estimated_seconds_after_pod_scheduled: i64,
    /// For how long after it was initialized a pod's usage is estimated.
    pub estimated_seconds_after_initialized: i64,
    /// Whether annotations of pods may change the estimation.
    pub allow_customize_estimation: bool,
    /// Percentiles instead of averages.
    pub aggregated: Aggregated,
    /// Further resources that count.
    pub supported_resources: Vec<String>,
}

/// Percentiles instead of averages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Aggregated {
    /// Nodes that use more of a resource are passed over, in percent of what they offer.
    pub usage_thresholds: BTreeMap<String, Percent>,
    /// Which value of the usage counts for that.
    pub usage_aggregation_type: Option<AggregationType>,
    /// Over how long.
    pub usage_aggregated_duration: Duration,
    /// Which value counts for the score.
    pub score_aggregation_type: Option<AggregationType>,
    /// Over how long.
    pub score_aggregated_duration: Duration,
}

/// A value of the usage over some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the average and the percentiles of their names")]
pub enum AggregationType {
    Avg,
    P50,
    P90,
    P95,
    P99,
}

impl Args for LoadAwareSchedulingArgs {
    const PLUGIN: &'static str = "LoadAwareScheduling";
}

impl LoadAwareSchedulingArgs {
    fn complete(&mut self) {
        if self.resource_weights.is_empty() && self.dominant_resource_weight.0 == 0 {
            self.resource_weights =
                [("cpu", 1), ("memory", 1)].map(|(name, weight)| (name.to_owned(), Weight(weight))).into();
        }
        for (name, factor) in Self::default().estimated_scaling_factors {
            self.estimated_scaling_factors.entry(name).or_insert(factor);
        }
    }

    fn check(&self, problems: &mut Problems) {
        for name in self.resource_weights.keys().filter(|name| !self.estimated_scaling_factors.contains_key(*name)) {
            problems.add(&["resourceWeights", name], "has no entry in estimatedScalingFactors");
        }
    }
}
