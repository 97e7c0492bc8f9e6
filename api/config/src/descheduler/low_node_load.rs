//! Arguments of LowNodeLoad.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

use super::shared::{Namespaces, PodSelector, Thresholds, check_selector};
use crate::Args;

/// Arguments of LowNodeLoad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct LowNodeLoadArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// The least number of underused nodes for anything to be evicted.
    #[koord(minimum = 0)]
    pub number_of_nodes: i32,
    /// When a NodeMetric is too old.
    #[koord(default = 180, minimum = 1)]
    pub node_metric_expiration_seconds: i64,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The nodes that are balanced.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The pods that may be evicted.
    pub pod_selectors: Vec<PodSelector>,
    /// Whether a pod is only evicted when it fits another node.
    #[koord(default = true)]
    pub node_fit: bool,
    /// Whether thresholds are relative to the average.
    pub use_deviation_thresholds: bool,
    /// Above one of these a node is overused, in percent.
    pub high_thresholds: Thresholds,
    /// Below all of these a node is underused, in percent.
    pub low_thresholds: Thresholds,
    /// The same for what production pods use.
    pub prod_high_thresholds: Thresholds,
    /// The same for what production pods use.
    pub prod_low_thresholds: Thresholds,
    /// Weights of resources, by which pods are ordered: 1 for cpu, memory and all that have a threshold.
    pub resource_weights: BTreeMap<String, i64>,
    /// When a node counts as overused for long enough.
    pub anomaly_condition: AnomalyCondition,
    /// How long that is remembered.
    #[koord(default = "5m")]
    pub detector_cache_timeout: Duration,
    /// Nodes with thresholds of their own.
    pub node_pools: Vec<NodePool>,
}

/// When a node counts as overused for long enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AnomalyCondition {
    /// After this time counting begins anew.
    #[koord(default = "1m")]
    pub timeout: Duration,
    /// How often in a row it must be overused. 0 is the default.
    #[koord(default = 5, zero_is_unset)]
    pub consecutive_abnormalities: u32,
    /// How often in a row it must not be. 0 is the default.
    #[koord(default = 3, zero_is_unset)]
    pub consecutive_normalities: u32,
}

/// Nodes with thresholds of their own. What is not set is that of the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodePool {
    /// The name.
    pub name: String,
    /// The nodes.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// Whether thresholds are relative to the average.
    pub use_deviation_thresholds: bool,
    /// See the plugin.
    pub high_thresholds: Option<Thresholds>,
    /// See the plugin.
    pub low_thresholds: Option<Thresholds>,
    /// See the plugin.
    pub prod_high_thresholds: Option<Thresholds>,
    /// See the plugin.
    pub prod_low_thresholds: Option<Thresholds>,
    /// See the plugin.
    pub resource_weights: Option<BTreeMap<String, i64>>,
    /// See the plugin.
    pub anomaly_condition: Option<AnomalyCondition>,
}

impl Args for LowNodeLoadArgs {
    const PLUGIN: &'static str = "LowNodeLoad";
}

impl LowNodeLoadArgs {
    fn complete(&mut self) {
        let named = ["cpu", "memory"].map(str::to_owned).into_iter();
        let named = named.chain(self.high_thresholds.keys().chain(self.low_thresholds.keys()).cloned());
        for name in named.collect::<Vec<_>>() {
            let weight = self.resource_weights.entry(name).or_insert(1);
            *weight = if *weight <= 0 { 1 } else { *weight };
        }
    }

    fn check(&self, problems: &mut Problems) {
        let own = Pool {
            high: &self.high_thresholds,
            low: &self.low_thresholds,
            prod_high: &self.prod_high_thresholds,
            prod_low: &self.prod_low_thresholds,
        };
        own.check(&[], problems);
        check_selector(self.node_selector.as_ref(), &["nodeSelector"], problems);
        for (index, pool) in self.node_pools.iter().enumerate() {
            let selector = pool.node_selector.as_ref();
            check_selector(selector, &["nodePools", &index.to_string(), "nodeSelector"], problems);
            let or = |own: &'_ Option<Thresholds>, all| own.clone().unwrap_or_else(|| Thresholds::clone(all));
            let (high, low) = (or(&pool.high_thresholds, own.high), or(&pool.low_thresholds, own.low));
            let prod_high = or(&pool.prod_high_thresholds, own.prod_high);
            let prod_low = or(&pool.prod_low_thresholds, own.prod_low);
            let own_ones =
                [&pool.high_thresholds, &pool.low_thresholds, &pool.prod_high_thresholds, &pool.prod_low_thresholds];
            let has_own = own_ones.iter().any(|thresholds| thresholds.is_some());
            let pool = Pool { high: &high, low: &low, prod_high: &prod_high, prod_low: &prod_low };
            if has_own {
                pool.check(&["nodePools", &index.to_string()], problems);
            }
        }
    }
}

/// The thresholds that are in force for some nodes.
struct Pool<'a> {
    high: &'a Thresholds,
    low: &'a Thresholds,
    prod_high: &'a Thresholds,
    prod_low: &'a Thresholds,
}

impl Pool<'_> {
    fn check(&self, at: &[&str], problems: &mut Problems) {
        let all = [
            ("highThresholds", self.high),
            ("lowThresholds", self.low),
            ("prodHighThresholds", self.prod_high),
            ("prodLowThresholds", self.prod_low),
        ];
        let keys = |rest: [&'_ str; 2]| {
            at.iter().map(|key| (*key).to_owned()).chain(rest.map(str::to_owned)).collect::<Vec<_>>()
        };
        let mut add = |rest: [&str; 2], message: String| {
            let keys = keys(rest);
            problems.add(&keys.iter().map(String::as_str).collect::<Vec<_>>(), message);
        };
        for (key, thresholds) in all {
            for (name, percent) in thresholds {
                if *percent < 0.0 || !percent.is_finite() {
                    add([key, name], "must be 0 or greater".to_owned());
                }
            }
        }
        let ordered = [(1, 0), (3, 2), (2, 0)];
        for (less, more) in ordered {
            let ((lower, lows), (upper, highs)) = (all[less], all[more]);
            for (name, low) in lows {
                if highs.get(name).is_some_and(|high| low > high) {
                    add([lower, name], format!("must not exceed {upper}"));
                }
            }
        }
    }
}
