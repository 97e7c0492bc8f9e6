//! `DeschedulerPolicy` of `descheduler/v1alpha2`, which kubernetes-sigs/descheduler reads from version 0.27 on: profiles with plugins.

use koord_configuration::Configuration;
use serde::{Deserialize, Serialize};

use crate::{PluginConfig, descheduler::MetricsProvider};

/// A policy of kubernetes-sigs/descheduler from version 0.27 on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(group = "descheduler", version = "v1alpha2", kind = "DeschedulerPolicy")]
pub struct PolicyV1alpha2 {
    /// The profiles.
    pub profiles: Vec<PolicyProfile>,
    /// The nodes whose pods are descheduled, as a text such as `pool=a,!spot`.
    pub node_selector: Option<String>,
    /// The most pods to evict from one node in a cycle.
    pub max_no_of_pods_to_evict_per_node: Option<u32>,
    /// The most pods to evict in one namespace in a cycle.
    pub max_no_of_pods_to_evict_per_namespace: Option<u32>,
    /// The most pods to evict in a cycle.
    pub max_no_of_pods_to_evict_total: Option<u32>,
    /// Whether evictions that fail are reported in events.
    pub eviction_failure_event_notification: Option<bool>,
    /// Whether usage is read from the metrics server; `metricsProviders` says the same.
    pub metrics_collector: Option<MetricsCollector>,
    /// Where usage is read.
    pub metrics_providers: Vec<MetricsProvider>,
    /// How long evicted pods have to end, in place of their own time.
    #[koord(minimum = 0)]
    pub grace_period_seconds: Option<i64>,
}

/// Plugins that work together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyProfile {
    /// The name.
    pub name: String,
    /// The arguments of plugins.
    pub plugin_config: Vec<PluginConfig>,
    /// The plugins by extension point.
    pub plugins: PolicyPlugins,
}

/// The plugins by extension point. DefaultEvictor filters and evicts without being named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyPlugins {
    /// Plugins that prepare sorting.
    pub presort: PolicyPluginSet,
    /// The same, as some documents write it.
    #[serde(rename = "preSort")]
    pub pre_sort: PolicyPluginSet,
    /// Plugins that sort pods.
    pub sort: PolicyPluginSet,
    /// Plugins that look at each pod.
    pub deschedule: PolicyPluginSet,
    /// Plugins that look at all nodes.
    pub balance: PolicyPluginSet,
    /// Plugins that keep pods.
    pub filter: PolicyPluginSet,
    /// Plugins that keep pods right before they are evicted.
    pub preevictionfilter: PolicyPluginSet,
    /// The same, as some documents write it.
    #[serde(rename = "preEvictionFilter")]
    pub pre_eviction_filter: PolicyPluginSet,
}

/// The plugins of one extension point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyPluginSet {
    /// The plugins, by name.
    pub enabled: Vec<String>,
    /// Has no effect in kubernetes-sigs/descheduler either.
    pub disabled: Vec<String>,
}

/// Whether usage is read from the metrics server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsCollector {
    /// Whether it is.
    pub enabled: bool,
}
