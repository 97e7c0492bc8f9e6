//! `KubeSchedulerConfiguration` with the arguments of Koordinator's plugins (`spec/scheduler.md` 1.1).

mod coscheduling;
mod device_share;
mod elastic_quota;
mod extender;
mod in_tree;
mod load_aware;
mod node_numa;
mod others;
mod point;
mod reservation;
mod resolve;
mod scoring;

use std::collections::BTreeSet;

use koord_configuration::{ClientConnection, Configuration, LeaderElection, Problem, Problems, Setting as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::resolve::check_stars;
pub use self::{
    coscheduling::{CoschedulingArgs, MatchPolicy},
    device_share::DeviceShareArgs,
    elastic_quota::{ElasticQuotaArgs, HookPlugin},
    extender::{Extender, ExtenderTls, ManagedResource},
    in_tree::{
        CapacityRatio, DefaultConstraint, DefaultPreemptionArgs, DefaultingType, DynamicResourcesArgs, FitStrategy,
        FitStrategyType, InclusionPolicy, InterPodAffinityArgs, NodeAffinityArgs, NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs, PodTopologySpreadArgs, ResourceSpec, ShapePoint, VolumeBindingArgs, WhenUnsatisfiable,
    },
    load_aware::{Aggregated, AggregationType, LoadAwareSchedulingArgs},
    node_numa::{CpuBindPolicy, NodeNumaResourceArgs},
    others::{NodeResourcesFitPlusArgs, ScarceResourceAvoidanceArgs, SchedulingHintArgs},
    point::Point,
    reservation::{PreAllocation, ReservationArgs},
    resolve::Resolved,
    scoring::{ResourceWeight, ScoringStrategy, ScoringType},
};
use crate::{
    PluginArgs, PluginConfig, PluginSet,
    catalogue::{Catalogue, check_once},
};

/// The arguments of plugins: those that Koordinator adds, and those of Kubernetes.
pub const PLUGINS: &[PluginArgs] = &[
    PluginArgs::of::<LoadAwareSchedulingArgs>(),
    PluginArgs::of::<NodeNumaResourceArgs>(),
    PluginArgs::of::<ReservationArgs>(),
    PluginArgs::of::<ElasticQuotaArgs>(),
    PluginArgs::of::<CoschedulingArgs>(),
    PluginArgs::of::<DeviceShareArgs>(),
    PluginArgs::of::<NodeResourcesFitPlusArgs>(),
    PluginArgs::of::<ScarceResourceAvoidanceArgs>(),
    PluginArgs::of::<SchedulingHintArgs>(),
    PluginArgs::of::<DefaultPreemptionArgs>(),
    PluginArgs::of::<DynamicResourcesArgs>(),
    PluginArgs::of::<InterPodAffinityArgs>(),
    PluginArgs::of::<NodeAffinityArgs>(),
    PluginArgs::of::<NodeResourcesBalancedAllocationArgs>(),
    PluginArgs::of::<NodeResourcesFitArgs>(),
    PluginArgs::of::<PodTopologySpreadArgs>(),
    PluginArgs::of::<VolumeBindingArgs>(),
];

/// Plugins without arguments.
const OTHER_PLUGINS: &[&str] = &[
    "DefaultBinder",
    "DefaultPreBind",
    "GangScheduling",
    "ImageLocality",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PrioritySort",
    "SchedulingGates",
    "TaintToleration",
    "VolumeRestrictions",
    "VolumeZone",
];

/// The configuration of the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(group = "kubescheduler.config.k8s.io", version = "v1", kind = "KubeSchedulerConfiguration")]
#[koord(item_keys("name", "schedulerName"), complete = Self::complete, check = Self::check)]
pub struct SchedulerConfiguration {
    /// How many nodes are looked at side by side.
    #[koord(default = 16, minimum = 1, no_effect = "one task decides, and looks at all nodes of a plugin in one pass")]
    pub parallelism: i32,
    /// Leader election between replicas.
    pub leader_election: LeaderElection,
    /// How the API server is reached.
    pub client_connection: ClientConnection,
    /// Whether profiles of the process are served.
    #[koord(default = true)]
    pub enable_profiling: bool,
    /// Whether they contain contention.
    #[koord(default = true, no_effect = "profiles are taken from outside of the process")]
    pub enable_contention_profiling: bool,
    /// How many of the nodes that take a pod are compared, in percent of all nodes; at least 100 nodes are. 0 compares all.
    #[koord(minimum = 0, maximum = 100)]
    pub percentage_of_nodes_to_score: i32,
    /// The first pause of a pod that could not be scheduled.
    #[koord(default = 1, minimum = 1)]
    pub pod_initial_backoff_seconds: i64,
    /// Its longest pause.
    #[koord(default = 10, minimum = 1)]
    pub pod_max_backoff_seconds: i64,
    /// Whether a replica that waits leaves its caches empty.
    #[koord(no_effect = "a replica that waits fills its caches, so that it decides at once when it leads")]
    pub delay_cache_until_active: bool,
    /// The profiles, by the names that pods give in schedulerName.
    pub profiles: Vec<Profile>,
    /// Webhooks that take part in scheduling.
    pub extenders: Vec<Extender>,
}

/// Which plugins schedule the pods of one scheduler name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Profile {
    /// The name; that of a sole profile may be left out and is default-scheduler.
    pub scheduler_name: String,
    /// The same for this profile, instead of what the configuration says.
    #[koord(minimum = 0, maximum = 100)]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// The plugins by extension point.
    pub plugins: Option<Plugins>,
    /// The arguments of plugins.
    pub plugin_config: Vec<PluginConfig>,
}

/// The plugins by extension point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the extension point of its name")]
pub struct Plugins {
    pub pre_enqueue: PluginSet,
    pub queue_sort: PluginSet,
    pub pre_filter: PluginSet,
    pub filter: PluginSet,
    pub post_filter: PluginSet,
    pub pre_score: PluginSet,
    pub score: PluginSet,
    pub reserve: PluginSet,
    pub permit: PluginSet,
    pub pre_bind: PluginSet,
    pub bind: PluginSet,
    pub post_bind: PluginSet,
    pub multi_point: PluginSet,
}

impl Plugins {
    fn sets(&self) -> [(&'static str, &PluginSet); 13] {
        [
            ("preEnqueue", &self.pre_enqueue),
            ("queueSort", &self.queue_sort),
            ("preFilter", &self.pre_filter),
            ("filter", &self.filter),
            ("postFilter", &self.post_filter),
            ("preScore", &self.pre_score),
            ("score", &self.score),
            ("reserve", &self.reserve),
            ("permit", &self.permit),
            ("preBind", &self.pre_bind),
            ("bind", &self.bind),
            ("postBind", &self.post_bind),
            ("multiPoint", &self.multi_point),
        ]
    }
}

const CATALOGUE: Catalogue = Catalogue {
    api_version: SchedulerConfiguration::API_VERSION,
    declared: PLUGINS,
    others: OTHER_PLUGINS,
    names_plugins: false,
};

impl SchedulerConfiguration {
    fn complete(&mut self) {
        self.leader_election.name_lock("kube-scheduler", "kube-system");
        if self.profiles.is_empty() {
            self.profiles.push(Profile::default());
        }
        if let [profile] = self.profiles.as_mut_slice()
            && profile.scheduler_name.is_empty()
        {
            "default-scheduler".clone_into(&mut profile.scheduler_name);
        }
    }

    fn check(&self, problems: &mut Problems) {
        if self.pod_max_backoff_seconds < self.pod_initial_backoff_seconds {
            problems.add(&["podMaxBackoffSeconds"], "must not be less than podInitialBackoffSeconds");
        }
        extender::check_together(&self.extenders, problems);
        let mut names = BTreeSet::new();
        for (index, profile) in self.profiles.iter().enumerate() {
            let at = index.to_string();
            if !names.insert(&profile.scheduler_name) {
                problems.add(&["profiles", &at, "schedulerName"], format!("{:?} stands twice", profile.scheduler_name));
            }
            profile.check(&at, problems);
        }
        for (index, profile) in self.profiles.iter().enumerate() {
            CATALOGUE.check_args(index, &profile.plugin_config, |_| true, problems);
        }
    }
}

impl Profile {
    fn check(&self, at: &str, problems: &mut Problems) {
        for (set, plugins) in self.plugins.iter().flat_map(Plugins::sets) {
            CATALOGUE.check_plugins(&plugins.enabled, &["profiles", at, "plugins", set, "enabled"], problems);
            check_stars(&plugins.enabled, &["profiles", at, "plugins", set, "enabled"], problems);
        }
        self.check_points(at, problems);
        let configured = self.plugin_config.iter().map(|config| &*config.name);
        check_once(configured, &["profiles", at, "pluginConfig"], problems);
    }

    /// What has no effect: names of plugins that do not exist, where nothing depends on them, and idle arguments.
    fn warn_of_plugins(&self, index: usize, problems: &mut Problems) {
        let at = &*index.to_string();
        for (set, plugins) in self.plugins.iter().flat_map(Plugins::sets) {
            let names = plugins.disabled.iter().map(|plugin| &*plugin.name);
            CATALOGUE.check_known(names, &["profiles", at, "plugins", set, "disabled"], problems);
        }
        let names = self.plugin_config.iter().map(|config| &*config.name);
        CATALOGUE.check_known(names, &["profiles", at, "pluginConfig"], problems);
        CATALOGUE.warn_of_args(index, &self.plugin_config, problems);
    }
}

/// What of a document has no effect.
pub(crate) fn warnings(document: &Value) -> Vec<Problem> {
    let mut found = Problems::default();
    if let Ok(configuration) = SchedulerConfiguration::of(document) {
        configuration.warn(&SchedulerConfiguration::without_document(), &mut found);
        for (index, profile) in configuration.profiles.iter().enumerate() {
            profile.warn_of_plugins(index, &mut found);
        }
    }
    found.into_vec()
}

/// A document with all that is not set. Arguments of enabled plugins are there even when the document has none.
pub(crate) fn complete(document: &Value) -> Result<Value, serde_json::Error> {
    let mut configuration = SchedulerConfiguration::of(document)?;
    for Profile { plugins, plugin_config, .. } in &mut configuration.profiles {
        let sets = plugins.iter().flat_map(Plugins::sets);
        CATALOGUE.complete(plugin_config, sets.flat_map(|(_, set)| &set.enabled))?;
    }
    koord_configuration::document(&configuration)
}
