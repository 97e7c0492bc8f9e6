//! Arguments of CustomPriority, FragmentationAware and ScaleDownBinPack.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shared::{Namespaces, PodSelector};
use crate::Args;

/// Arguments of CustomPriority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CustomPriorityArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The nodes that are looked at.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub node_selector: Option<LabelSelector>,
    /// The pods that may be evicted.
    pub pod_selectors: Vec<PodSelector>,
    /// Whether a pod is only evicted when it fits another node. Default true.
    pub node_fit: Option<bool>,
    /// Kinds of nodes, the ones to be emptied first.
    pub eviction_order: Vec<EvictionLevel>,
    /// How a node is emptied. Default BestEffort.
    pub mode: Option<EvictionMode>,
    /// Whether nodes that are emptied are cordoned. Default false.
    pub auto_cordon: bool,
}

/// A kind of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EvictionLevel {
    /// The name.
    pub name: String,
    /// The nodes.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub node_selector: Option<LabelSelector>,
    /// Accepted without an effect.
    #[schemars(range(min = 0, max = 100))]
    pub keep_threshold: Option<f64>,
    /// Accepted without an effect.
    #[schemars(range(min = 0, max = 100))]
    pub reject_threshold: Option<f64>,
}

/// How a node is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EvictionMode {
    /// Pod by pod, as far as they fit elsewhere.
    BestEffort,
    /// As a whole or not at all.
    DrainNode,
}

impl Args for CustomPriorityArgs {
    const PLUGIN: &'static str = "CustomPriority";

    fn complete(&mut self) {
        self.node_fit.get_or_insert(true);
        self.mode.get_or_insert(EvictionMode::BestEffort);
    }

    fn check(&self, problems: &mut Problems) {
        Namespaces::check(self.evictable_namespaces.as_ref(), "evictableNamespaces", problems);
        if self.eviction_order.len() < 2 {
            problems.add(&["evictionOrder"], "must have at least two levels");
        }
        for (index, level) in self.eviction_order.iter().enumerate() {
            let at = index.to_string();
            if level.name.is_empty() {
                problems.add(&["evictionOrder", &at, "name"], "must be set");
            } else if self.eviction_order[..index].iter().any(|other| other.name == level.name) {
                problems.add(&["evictionOrder", &at, "name"], format!("{:?} stands twice", level.name));
            }
            if level.node_selector.is_none() {
                problems.add(&["evictionOrder", &at, "nodeSelector"], "must be set");
            }
        }
    }
}

/// Arguments of FragmentationAware.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FragmentationAwareArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// The nodes that are looked at.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub node_selector: Option<LabelSelector>,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The pods that may be evicted. QUIRK: they have no names, unlike those of other plugins.
    pub pod_selectors: Vec<NamelessPodSelector>,
    /// Whether a pod is only evicted when it fits another node. Default true.
    pub node_fit: Option<bool>,
    /// The resources that are compared. Default cpu and memory.
    pub resources: Option<Vec<String>>,
    /// Above this deviation a node is fragmented. Default 0.15.
    #[schemars(range(min = 0))]
    pub imbalance_threshold: Option<f64>,
    /// What an eviction must gain. Default 0.02.
    #[schemars(range(min = 0))]
    pub min_improvement_threshold: Option<f64>,
}

/// Pods by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NamelessPodSelector {
    /// The labels.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub selector: Option<LabelSelector>,
}

impl Args for FragmentationAwareArgs {
    const PLUGIN: &'static str = "FragmentationAware";

    fn complete(&mut self) {
        self.node_fit.get_or_insert(true);
        self.resources.get_or_insert_with(|| ["cpu", "memory"].map(str::to_owned).into());
        self.imbalance_threshold.get_or_insert(0.15);
        self.min_improvement_threshold.get_or_insert(0.02);
    }

    fn check(&self, problems: &mut Problems) {
        Namespaces::check(self.evictable_namespaces.as_ref(), "evictableNamespaces", problems);
        let resources = self.resources.as_deref().unwrap_or_default();
        if resources.is_empty() {
            problems.add(&["resources"], "must not be empty");
        }
        for (index, name) in resources.iter().enumerate().filter(|(index, name)| resources[..*index].contains(name)) {
            problems.add(&["resources", &index.to_string()], format!("{name:?} stands twice"));
        }
    }
}

/// Arguments of ScaleDownBinPack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScaleDownBinPackArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether pods are evicted, or only ordered for those who scale down. Default CalculateOnly.
    pub strategy: Option<BinPackStrategy>,
    /// The most pods to evict in a cycle.
    #[schemars(range(min = 0))]
    pub max_pods_to_evict: i64,
    /// The nodes that are looked at.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub node_selector: Option<LabelSelector>,
    /// The pods that may be evicted.
    pub pod_selectors: Vec<PodSelector>,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The resources that count. Default cpu and memory.
    pub resources: Option<Vec<String>>,
    /// Their weights. Default 1.
    pub resource_weights: BTreeMap<String, f64>,
}

/// What is done with the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BinPackStrategy {
    /// It is written to the pods, for those who scale down.
    CalculateOnly,
    /// Pods are evicted.
    EvictDirectly,
}

impl Args for ScaleDownBinPackArgs {
    const PLUGIN: &'static str = "ScaleDownBinPack";

    fn complete(&mut self) {
        self.strategy.get_or_insert(BinPackStrategy::CalculateOnly);
        let resources = self.resources.get_or_insert_with(|| ["cpu", "memory"].map(str::to_owned).into());
        for name in resources.iter() {
            self.resource_weights.entry(name.clone()).or_insert(1.0);
        }
    }

    fn check(&self, problems: &mut Problems) {
        Namespaces::check(self.evictable_namespaces.as_ref(), "evictableNamespaces", problems);
        if self.strategy == Some(BinPackStrategy::EvictDirectly) && self.max_pods_to_evict <= 0 {
            problems.add(&["maxPodsToEvict"], "must be greater than 0 for EvictDirectly");
        }
        for (name, weight) in &self.resource_weights {
            if *weight <= 0.0 || !weight.is_finite() {
                problems.add(&["resourceWeights", name], "must be greater than 0");
            }
        }
    }
}
