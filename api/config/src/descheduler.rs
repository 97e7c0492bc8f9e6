//! `DeschedulerConfiguration` with the arguments of Koordinator's plugins (`spec/descheduler.md` 1, 4 and 5.1).

mod balance;
mod community;
mod default_evictor;
mod low_node_load;
mod metrics;
mod migration_controller;
mod shared;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{ClientConnection, Configuration, LeaderElection, Problem, Problems, Setting as _, typed};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::{
    balance::{
        BinPackStrategy, CustomPriorityArgs, EvictionLevel, EvictionMode, FragmentationAwareArgs, NamelessPodSelector,
        ScaleDownBinPackArgs,
    },
    community::{
        ConditionFilter, EvictionLimits, HighNodeEvictionMode, HighNodeUtilizationArgs, LowNodeUtilizationArgs,
        OwnerKinds, PodLifeTimeArgs, RemoveDuplicatesArgs, RemoveFailedPodsArgs, RemovePodsHavingTooManyRestartsArgs,
        RemovePodsViolatingInterPodAntiAffinityArgs, RemovePodsViolatingNodeAffinityArgs,
        RemovePodsViolatingNodeTaintsArgs, RemovePodsViolatingTopologySpreadConstraintArgs, SpreadConstraint,
    },
    default_evictor::{
        DefaultEvictorArgs, DefaultProtection, ExtraProtection, NoEvictionPolicy, PodProtections,
        ProtectedStorageClass, ProtectionSettings, PvcProtection,
    },
    low_node_load::{AnomalyCondition, LowNodeLoadArgs, NodePool},
    metrics::{
        AuthToken, MetricsProvider, MetricsSource, MetricsUtilization, Prometheus, PrometheusQuery, SecretReference,
    },
    migration_controller::{
        EvictionGate, EvictionPolicy, JobMode, MigrationControllerArgs, ObjectLimiter, PriorityThreshold,
    },
    shared::{Namespaces, PodSelector},
};
use self::{metrics::check_providers, shared::check_selector};
use crate::{Args as _, PluginArgs, PluginConfig, PluginSet, arguments, catalogue::Catalogue};

/// The arguments of each plugin. Those of plugins that come from kubernetes-sigs/descheduler are lenient.
pub const PLUGINS: &[PluginArgs] = &[
    PluginArgs::of::<MigrationControllerArgs>(),
    PluginArgs::of::<LowNodeLoadArgs>(),
    PluginArgs::of::<CustomPriorityArgs>(),
    PluginArgs::of::<FragmentationAwareArgs>(),
    PluginArgs::of::<ScaleDownBinPackArgs>(),
    PluginArgs::of::<DefaultEvictorArgs>(),
    PluginArgs::of::<HighNodeUtilizationArgs>(),
    PluginArgs::of::<LowNodeUtilizationArgs>(),
    PluginArgs::of::<PodLifeTimeArgs>(),
    PluginArgs::of::<RemoveDuplicatesArgs>(),
    PluginArgs::of::<RemoveFailedPodsArgs>(),
    PluginArgs::of::<RemovePodsHavingTooManyRestartsArgs>(),
    PluginArgs::of::<RemovePodsViolatingInterPodAntiAffinityArgs>(),
    PluginArgs::of::<RemovePodsViolatingNodeAffinityArgs>(),
    PluginArgs::of::<RemovePodsViolatingNodeTaintsArgs>(),
    PluginArgs::of::<RemovePodsViolatingTopologySpreadConstraintArgs>(),
];

/// The plugins that come from kubernetes-sigs/descheduler.
pub const COMMUNITY_PLUGINS: &[PluginArgs] = PLUGINS.split_at(5).1;

/// The plugin that evicts and filters by default.
const MIGRATION_CONTROLLER: &str = "MigrationController";

/// The configuration of the descheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(group = "descheduler", version = "v1alpha2", complete = Self::complete, check = Self::check)]
pub struct DeschedulerConfiguration {
    /// Leader election between replicas.
    pub leader_election: LeaderElection,
    /// How the API server is reached.
    pub client_connection: ClientConnection,
    /// Whether profiles of the process are served.
    #[koord(default = true)]
    pub enable_profiling: bool,
    /// Whether they contain contention; where it is not set, they do where profiles are served.
    pub enable_contention_profiling: Option<bool>,
    /// Where health is served; port 0 serves none.
    #[koord(default = "0.0.0.0:10251", check = check_address)]
    pub healthz_bind_address: String,
    /// Where metrics are served; port 0 serves none.
    #[koord(default = "0.0.0.0:10251", check = check_address)]
    pub metrics_bind_address: String,
    /// How often pods are descheduled; 0 does it once.
    pub descheduling_interval: Duration,
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// The profiles: one with the default plugins where there is none.
    pub profiles: Vec<Profile>,
    /// The nodes whose pods are descheduled; without it those of all nodes.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The most pods to evict from one node in a cycle. 0 evicts nothing.
    pub max_no_of_pods_to_evict_per_node: Option<u32>,
    /// The most pods to evict in one namespace in a cycle. 0 evicts nothing.
    pub max_no_of_pods_to_evict_per_namespace: Option<u32>,
    /// The most pods to evict in a cycle. 0 evicts nothing.
    pub max_no_of_pods_to_evict_total: Option<u32>,
    /// Where strategies get measured usage from, each source once.
    pub metrics_providers: Vec<MetricsProvider>,
}

/// Plugins that work together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Profile {
    /// The name; that of a sole profile may be left out and is koord-descheduler.
    pub name: String,
    /// The nodes whose pods are descheduled, of those of the configuration.
    #[koord(opaque)]
    pub node_selector: Option<LabelSelector>,
    /// The plugins by extension point.
    pub plugins: Plugins,
    /// The arguments of plugins.
    pub plugin_config: Vec<PluginConfig>,
    /// What becomes of evictions that are not worth it, because the pod would come back, stay pending, be evicted again or break a
    /// PodDisruptionBudget. The original has no such field.
    pub planning: Planning,
    /// How long pods stay that have replaced ones which were evicted for the same reason. It counts with `planning`.
    pub cool_down: CoolDown,
}

/// What becomes of evictions that are not worth it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "lowercase")]
pub enum Planning {
    /// It is not looked at.
    Off,
    /// They take place, and are reported by an event and a metric.
    #[default]
    Report,
    /// They do not take place.
    Enforce,
}

/// How long pods stay that have replaced evicted ones: twice as long after each further eviction for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct CoolDown {
    /// How long after the first eviction.
    #[koord(default = "10m")]
    pub initial: Duration,
    /// The longest time.
    #[koord(default = "6h")]
    pub maximum: Duration,
}

impl CoolDown {
    fn check(&self, problems: &mut Problems) {
        if self.maximum < self.initial {
            problems.add(&["maximum"], "must not be less than initial");
        }
    }
}

/// The plugins by extension point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete)]
pub struct Plugins {
    /// Plugins that look at each pod.
    pub deschedule: PluginSet,
    /// Plugins that look at all nodes.
    pub balance: PluginSet,
    /// The plugin that evicts: MigrationController, unless it is disabled.
    pub evict: PluginSet,
    /// Plugins that keep pods: MigrationController first, unless it is disabled.
    pub filter: PluginSet,
}

impl Plugins {
    fn sets(&self) -> [(&'static str, &PluginSet); 4] {
        [("deschedule", &self.deschedule), ("balance", &self.balance), ("evict", &self.evict), ("filter", &self.filter)]
    }

    /// Merges every set with the default plugins.
    fn complete(&mut self) {
        for set in [&mut self.deschedule, &mut self.balance] {
            set.disabled.clear();
        }
        for set in [&mut self.evict, &mut self.filter] {
            let off = set.disabled.iter().any(|plugin| matches!(plugin.name.as_str(), "*" | MIGRATION_CONTROLLER));
            let written = set.enabled.iter().position(|plugin| plugin.name == MIGRATION_CONTROLLER);
            if !off {
                let first = written.map(|at| set.enabled.remove(at)).unwrap_or_default();
                set.enabled.insert(0, crate::Plugin { name: MIGRATION_CONTROLLER.to_owned(), ..first });
            }
            set.disabled.clear();
        }
    }
}

const CATALOGUE: Catalogue = Catalogue {
    api_version: DeschedulerConfiguration::API_VERSION,
    declared: PLUGINS,
    others: &[],
    names_plugins: true,
};

impl DeschedulerConfiguration {
    /// A document that [`Kind::check`](crate::Kind::check) finds right, with all that is not set.
    pub fn of(document: &Value) -> Result<Self, serde_json::Error> {
        let mut configuration: Self = typed(document)?;
        // In lenient arguments null is not the same as nothing.
        for (index, profile) in configuration.profiles.iter_mut().enumerate() {
            let written = &document["profiles"][index]["pluginConfig"];
            for (index, config) in profile.plugin_config.iter_mut().enumerate() {
                config.args.clone_from(&written[index]["args"]);
            }
        }
        configuration.set_defaults();
        Ok(configuration)
    }

    fn complete(&mut self) {
        if self.enable_profiling {
            self.enable_contention_profiling.get_or_insert(true);
        }
        for address in [&mut self.healthz_bind_address, &mut self.metrics_bind_address] {
            if address.parse::<std::net::IpAddr>().is_ok() {
                address.push_str(":10251");
            } else if address.starts_with(':') {
                address.insert_str(0, "0.0.0.0");
            }
        }
        self.leader_election.name_lock("koord-descheduler", "koordinator-system");
        if self.profiles.is_empty() {
            let mut profile = Profile::default();
            profile.set_defaults();
            self.profiles.push(profile);
        }
        if let [profile] = self.profiles.as_mut_slice()
            && profile.name.is_empty()
        {
            "koord-descheduler".clone_into(&mut profile.name);
        }
    }

    fn check(&self, problems: &mut Problems) {
        check_selector(self.node_selector.as_ref(), &["nodeSelector"], problems);
        let mut names = BTreeSet::new();
        for (index, profile) in self.profiles.iter().enumerate() {
            let at = index.to_string();
            if profile.name.is_empty() {
                problems.add(&["profiles", &at, "name"], "must be set where there are several profiles");
            } else if !names.insert(&profile.name) {
                problems.add(&["profiles", &at, "name"], format!("{:?} stands twice", profile.name));
            }
            profile.check(&at, problems);
        }
        check_providers(&self.metrics_providers, problems);
        self.check_is_measured(problems);
        for (index, profile) in self.profiles.iter().enumerate() {
            CATALOGUE.check_args(index, &profile.plugin_config, |plugin| profile.checks(plugin), problems);
        }
    }
}

impl DeschedulerConfiguration {
    /// Where Prometheus is, if it is configured.
    pub fn prometheus(&self) -> Option<&Prometheus> {
        self.metrics_providers.iter().find_map(|provider| provider.prometheus.as_ref())
    }

    /// A strategy that asks Prometheus has to know where it is.
    fn check_is_measured(&self, problems: &mut Problems) {
        if self.prometheus().is_some() {
            return;
        }
        for (index, profile) in self.profiles.iter().enumerate() {
            for (at, config) in profile.plugin_config.iter().enumerate() {
                if config.name != LowNodeUtilizationArgs::PLUGIN || !profile.checks(&config.name) {
                    continue;
                }
                let args = arguments::<LowNodeUtilizationArgs>(&config.args).ok();
                if args.and_then(|args| args.metrics_utilization).is_some_and(|metrics| metrics.is_prometheus()) {
                    let (index, at) = (index.to_string(), at.to_string());
                    let keys = ["profiles", &index, "pluginConfig", &at, "args", "metricsUtilization", "source"];
                    let remedy = "add {source: Prometheus, prometheus: {url: …}} to metricsProviders".to_owned();
                    let message = format!("{}: it is not known where Prometheus is", config.name);
                    problems.suggest(&keys, message, Some(remedy));
                }
            }
        }
    }
}

fn check_address(address: &str, problems: &mut Problems) {
    let port = match address.rsplit_once(':') {
        Some((host, port)) if host.is_empty() || !host.contains(':') || host.starts_with('[') => port,
        _ => {
            return problems.add(&[], format!("{address:?} is no address such as 0.0.0.0:10251"));
        }
    };
    if port.parse::<u16>().is_err() {
        problems.add(&[], format!("{port:?} is no port"));
    }
}

/// The sets of plugins, each with the plugins that can be in it.
const SETS: [(&str, &[&str]); 4] = [
    (
        "deschedule",
        &[
            "PodLifeTime",
            "RemoveFailedPods",
            "RemovePodsHavingTooManyRestarts",
            "RemovePodsViolatingInterPodAntiAffinity",
            "RemovePodsViolatingNodeAffinity",
            "RemovePodsViolatingNodeTaints",
        ],
    ),
    (
        "balance",
        &[
            "CustomPriority",
            "FragmentationAware",
            "HighNodeUtilization",
            "LowNodeLoad",
            "LowNodeUtilization",
            "RemoveDuplicates",
            "RemovePodsViolatingTopologySpreadConstraint",
            "ScaleDownBinPack",
        ],
    ),
    ("evict", &["DefaultEvictor", MIGRATION_CONTROLLER]),
    ("filter", &["DefaultEvictor", MIGRATION_CONTROLLER]),
];

impl Profile {
    fn check(&self, at: &str, problems: &mut Problems) {
        check_selector(self.node_selector.as_ref(), &["profiles", at, "nodeSelector"], problems);
        for (set, plugins) in self.plugins.sets() {
            let keys = ["profiles", at, "plugins", set, "enabled"];
            CATALOGUE.check_plugins(&plugins.enabled, &keys, problems);
            check_set(set, &plugins.enabled, &keys, problems);
            CATALOGUE.check_unconfigured(&plugins.enabled, &self.plugin_config, &keys, problems);
            match plugins.enabled.len() {
                0 if set == "evict" => problems.add(&keys, "must have the plugin that evicts"),
                2.. if set == "evict" => {
                    let off = "disable * or MigrationController, which evicts by default".to_owned();
                    problems.suggest(&keys, "only one plugin can evict", Some(off));
                }
                _ => {}
            }
        }
        CATALOGUE.check_configured(&self.plugin_config, &["profiles", at, "pluginConfig"], problems);
    }

    /// Whether rules hold for the arguments of a plugin: those of one that is not enabled have only to be of the right form. Those of
    /// MigrationController are always checked.
    fn checks(&self, plugin: &str) -> bool {
        let is_enabled = |set: &PluginSet| set.enabled.iter().any(|enabled| enabled.name == plugin);
        plugin == MIGRATION_CONTROLLER || self.plugins.sets().iter().any(|(_, set)| is_enabled(set))
    }
}

/// The set that a plugin belongs to.
pub(crate) fn set_of(plugin: &str) -> Option<&'static str> {
    SETS.iter().find(|(_, plugins)| plugins.contains(&plugin)).map(|(set, _)| *set)
}

/// A plugin in a set to which it does not belong would fail in every cycle.
fn check_set(set: &str, enabled: &[crate::Plugin], keys: &[&str], problems: &mut Problems) {
    for (index, crate::Plugin { name, .. }) in enabled.iter().enumerate() {
        let is_in = SETS.iter().any(|(other, plugins)| *other == set && plugins.contains(&name.as_str()));
        if let Some(other) = set_of(name).filter(|_| !is_in) {
            let index = index.to_string();
            let at = [keys, &[index.as_str(), "name"]].concat();
            let message = format!("{name} is no plugin of this set");
            problems.suggest(&at, message, Some(format!("enable it in {other}")));
        }
    }
}

/// What of a document has no effect.
pub(crate) fn warnings(document: &Value) -> Vec<Problem> {
    let mut found = Problems::default();
    if let Ok(configuration) = DeschedulerConfiguration::of(document) {
        if let Ok(unset) = DeschedulerConfiguration::of(&json!({})) {
            configuration.warn(&unset, &mut found);
        }
        for (index, profile) in configuration.profiles.iter().enumerate() {
            CATALOGUE.warn_of_args(index, &profile.plugin_config, &mut found);
        }
    }
    found.into_vec()
}

/// A document with all that is not set.
pub(crate) fn complete(document: &Value) -> Result<Value, serde_json::Error> {
    let mut configuration = DeschedulerConfiguration::of(document)?;
    for Profile { plugins, plugin_config, .. } in &mut configuration.profiles {
        CATALOGUE.complete(plugin_config, plugins.sets().into_iter().flat_map(|(_, set)| &set.enabled))?;
    }
    koord_configuration::document(&configuration)
}
