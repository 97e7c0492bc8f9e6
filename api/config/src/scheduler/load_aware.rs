//! Arguments of LoadAwareScheduling.

use std::collections::BTreeMap;

use koord_configuration::{DurationText, Percent, Problems, Weight};
use koord_resource::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of LoadAwareScheduling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoadAwareSchedulingArgs {
    /// Whether nodes are passed over whose NodeMetric is too old. Default true.
    pub filter_expired_node_metrics: Option<bool>,
    /// When a NodeMetric is too old. Default 180.
    #[schemars(range(min = 1))]
    pub node_metric_expiration_seconds: Option<i64>,
    /// Whether pods are scheduled to such nodes all the same. Default false.
    pub enable_schedule_when_node_metrics_expired: Option<bool>,
    /// Weights of resources in the score, each with an entry in estimatedScalingFactors. Default 1 for cpu and memory, unless the dominant resource has a
    /// weight.
    pub resource_weights: BTreeMap<String, Weight>,
    /// The weight of the resource that is used most. Default 0.
    pub dominant_resource_weight: Percent,
    /// Nodes that use more of a resource are passed over, in percent of what they offer; 0 is no bound. Default cpu 65, memory 95.
    pub usage_thresholds: BTreeMap<String, Percent>,
    /// The same of what production pods use, for production pods.
    pub prod_usage_thresholds: BTreeMap<String, i64>,
    /// Whether what the system uses counts as used by production pods. Default false.
    pub prod_usage_include_sys: bool,
    /// Whether production pods are scored by what production pods use. Default false.
    pub score_according_prod_usage: bool,
    /// Accepted without an effect: there is one estimator, which takes the place of one that is not known in the original too. Default
    /// defaultEstimator.
    pub estimator: String,
    /// What a new pod is estimated to use, in percent of its limit or request. Default cpu 85, memory 70.
    pub estimated_scaling_factors: BTreeMap<String, Weight>,
    /// For how long after it was scheduled a pod's usage is estimated.
    pub estimated_seconds_after_pod_scheduled: Option<i64>,
    /// For how long after it was initialized a pod's usage is estimated.
    pub estimated_seconds_after_initialized: Option<i64>,
    /// Whether annotations of pods may change the estimation. Default false.
    pub allow_customize_estimation: bool,
    /// Percentiles instead of averages.
    pub aggregated: Option<Aggregated>,
    /// Further resources that count.
    pub supported_resources: Vec<String>,
}

/// Percentiles instead of averages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Aggregated {
    /// Nodes that use more of a resource are passed over, in percent of what they offer.
    pub usage_thresholds: BTreeMap<String, Percent>,
    /// Which value of the usage counts for that.
    pub usage_aggregation_type: Option<AggregationType>,
    /// Over how long.
    #[schemars(with = "Option<DurationText>")]
    pub usage_aggregated_duration: Option<Duration>,
    /// Which value counts for the score.
    pub score_aggregation_type: Option<AggregationType>,
    /// Over how long.
    #[schemars(with = "Option<DurationText>")]
    pub score_aggregated_duration: Option<Duration>,
}

/// A value of the usage over some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    const IDLE: &'static [(&'static str, &'static str)] =
        &[("estimator", "there is one estimator, defaultEstimator, which counts for every name")];

    fn complete(&mut self) {
        self.filter_expired_node_metrics.get_or_insert(true);
        self.node_metric_expiration_seconds.get_or_insert(180);
        self.enable_schedule_when_node_metrics_expired.get_or_insert(false);
        if self.resource_weights.is_empty() && self.dominant_resource_weight.0 == 0 {
            self.resource_weights =
                [("cpu", 1), ("memory", 1)].map(|(name, weight)| (name.to_owned(), Weight(weight))).into();
        }
        if self.usage_thresholds.is_empty() {
            self.usage_thresholds =
                [("cpu", 65), ("memory", 95)].map(|(name, percent)| (name.to_owned(), Percent(percent))).into();
        }
        if self.estimator.is_empty() {
            "defaultEstimator".clone_into(&mut self.estimator);
        }
        for (name, factor) in [("cpu", 85), ("memory", 70)] {
            self.estimated_scaling_factors.entry(name.to_owned()).or_insert(Weight(factor));
        }
    }

    fn check(&self, problems: &mut Problems) {
        for name in self.resource_weights.keys().filter(|name| !self.estimated_scaling_factors.contains_key(*name)) {
            problems.add(&["resourceWeights", name], "has no entry in estimatedScalingFactors");
        }
    }
}
