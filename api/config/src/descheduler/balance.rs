//! Arguments of CustomPriority, FragmentationAware and ScaleDownBinPack.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

use super::shared::{Namespaces, PodSelector, Thresholds, check_selector};
use crate::Args;

/// Arguments of CustomPriority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct CustomPriorityArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The nodes that are looked at.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The pods that may be evicted.
    pub pod_selectors: Vec<PodSelector>,
    /// Whether a pod is only evicted when it fits another node.
    #[koord(default = true)]
    pub node_fit: bool,
    /// Kinds of nodes, the ones to be emptied first.
    pub eviction_order: Vec<EvictionLevel>,
    /// How a node is emptied.
    pub mode: EvictionMode,
    /// Whether nodes that are emptied are cordoned.
    pub auto_cordon: bool,
}

/// A kind of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EvictionLevel {
    /// The name.
    pub name: String,
    /// The nodes.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The shares in percent, by resource, up to which a node of the level stays as it is.
    #[koord(no_effect = "nodes are emptied whatever they use")]
    pub keep_threshold: Option<Thresholds>,
    /// The shares in percent, by resource, above which a node of the level takes no pods.
    #[koord(no_effect = "nodes take what fits")]
    pub reject_threshold: Option<Thresholds>,
}

/// How a node is emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum EvictionMode {
    /// Pod by pod, as far as they fit elsewhere.
    #[default]
    BestEffort,
    /// As a whole or not at all.
    DrainNode,
}

impl Args for CustomPriorityArgs {
    const PLUGIN: &'static str = "CustomPriority";
}

impl CustomPriorityArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.node_selector.as_ref(), &["nodeSelector"], problems);
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
            check_selector(level.node_selector.as_ref(), &["evictionOrder", &at, "nodeSelector"], problems);
            for (key, thresholds) in
                [("keepThreshold", &level.keep_threshold), ("rejectThreshold", &level.reject_threshold)]
            {
                let percents = thresholds.iter().flatten();
                for (name, _) in percents.filter(|(_, percent)| !(0.0..=100.0).contains(*percent)) {
                    problems.add(&["evictionOrder", &at, key, name], "must be from 0 to 100");
                }
            }
        }
    }
}

/// Arguments of FragmentationAware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct FragmentationAwareArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// The nodes that are looked at.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The pods that may be evicted. QUIRK: they have no names, unlike those of other plugins.
    pub pod_selectors: Vec<NamelessPodSelector>,
    /// Whether a pod is only evicted when it fits another node.
    #[koord(default = true)]
    pub node_fit: bool,
    /// The resources that are compared.
    #[koord(default = ["cpu", "memory"])]
    pub resources: Vec<String>,
    /// Above this deviation a node is fragmented.
    #[koord(default = 0.15, minimum = 0)]
    pub imbalance_threshold: f64,
    /// What an eviction must gain.
    #[koord(default = 0.02, minimum = 0)]
    pub min_improvement_threshold: f64,
}

/// Pods by their labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct NamelessPodSelector {
    /// The labels.
    #[koord(opaque)]
    pub selector: Option<LabelSelector>,
}

impl NamelessPodSelector {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.selector.as_ref(), &["selector"], problems);
    }
}

impl Args for FragmentationAwareArgs {
    const PLUGIN: &'static str = "FragmentationAware";
}

impl FragmentationAwareArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.node_selector.as_ref(), &["nodeSelector"], problems);
        let resources = &self.resources;
        if resources.is_empty() {
            problems.add(&["resources"], "must not be empty");
        }
        for (index, name) in resources.iter().enumerate().filter(|(index, name)| resources[..*index].contains(name)) {
            problems.add(&["resources", &index.to_string()], format!("{name:?} stands twice"));
        }
    }
}

/// Arguments of ScaleDownBinPack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct ScaleDownBinPackArgs {
    /// Whether the plugin does nothing.
    pub paused: bool,
    /// Whether pods are evicted, or only ordered for those who scale down.
    pub strategy: BinPackStrategy,
    /// The most pods to evict in a cycle.
    #[koord(minimum = 0)]
    pub max_pods_to_evict: i64,
    /// The nodes that are looked at.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The pods that may be evicted.
    pub pod_selectors: Vec<PodSelector>,
    /// Namespaces whose pods may be evicted.
    pub evictable_namespaces: Option<Namespaces>,
    /// The resources that count.
    #[koord(default = ["cpu", "memory"])]
    pub resources: Vec<String>,
    /// Their weights: 1 for those that are not named.
    pub resource_weights: BTreeMap<String, f64>,
}

/// What is done with the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum BinPackStrategy {
    /// It is written to the pods, for those who scale down.
    #[default]
    CalculateOnly,
    /// Pods are evicted.
    EvictDirectly,
}

impl Args for ScaleDownBinPackArgs {
    const PLUGIN: &'static str = "ScaleDownBinPack";
}

impl ScaleDownBinPackArgs {
    fn complete(&mut self) {
        for name in &self.resources {
            self.resource_weights.entry(name.clone()).or_insert(1.0);
        }
    }

    fn check(&self, problems: &mut Problems) {
        check_selector(self.node_selector.as_ref(), &["nodeSelector"], problems);
        if self.strategy == BinPackStrategy::EvictDirectly && self.max_pods_to_evict <= 0 {
            problems.add(&["maxPodsToEvict"], "must be greater than 0 for EvictDirectly");
        }
        for (name, weight) in &self.resource_weights {
            if *weight <= 0.0 || !weight.is_finite() {
                problems.add(&["resourceWeights", name], "must be greater than 0");
            }
        }
    }
}
