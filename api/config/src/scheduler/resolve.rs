//! Which plugins a profile runs at each extension point, in which order (`spec/scheduler.md` 4.2).

use std::collections::{BTreeMap, BTreeSet};

use koord_configuration::{Problems, Setting as _, typed};
use serde_json::{Value, json};

use super::{NodeResourcesFitArgs, Plugins, Profile, SchedulerConfiguration, point::Point};
use crate::{Args, Plugin, PluginSet, arguments};

/// The plugins of every profile, in their order, with the weights of those that score.
const DEFAULTS: [(&str, i32); 19] = [
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
];

/// The plugin that writes what other plugins have allocated.
const DEFAULT_PRE_BIND: &str = "DefaultPreBind";

/// The plugins of a profile at every extension point, in the order in which they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The scheduler name of the profile.
    pub scheduler_name: String,
    points: BTreeMap<Point, Vec<String>>,
    weights: BTreeMap<String, i64>,
    args: BTreeMap<String, Value>,
}

impl Resolved {
    /// The plugins at a point, in their order.
    pub fn at(&self, point: Point) -> &[String] {
        self.points.get(&point).map_or(&[], Vec::as_slice)
    }

    /// The weight of a plugin that scores.
    pub fn weight(&self, plugin: &str) -> i64 {
        self.weights.get(plugin).copied().unwrap_or(1)
    }

    /// All plugins that run at some point: in the order of the first point at which they run, those that only look at pods
    /// before they are queued last.
    pub fn plugins(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let points = Point::ALL.iter().skip(1).chain(&[Point::PreEnqueue]);
        let plugins = points.flat_map(|point| self.at(*point));
        plugins.map(String::as_str).filter(|plugin| seen.insert(*plugin)).collect()
    }

    /// The same, where NodeResourcesFit does not look at these resources, instead of those that its arguments name.
    #[must_use]
    pub fn ignoring(mut self, resources: &[String]) -> Self {
        if !resources.is_empty() {
            let args = self.args.entry(NodeResourcesFitArgs::PLUGIN.to_owned()).or_insert_with(|| json!({}));
            if args.is_null() {
                *args = json!({});
            }
            args["ignoredResources"] = json!(resources);
        }
        self
    }

    /// The arguments of a plugin, with all that is not set.
    pub fn args<T: Args>(&self) -> Result<T, serde_json::Error> {
        arguments(self.args.get(T::PLUGIN).filter(|args| !args.is_null()).unwrap_or(&json!({})))
    }
}

impl SchedulerConfiguration {
    /// The configuration without a document: the one profile of kube-scheduler.
    pub fn without_document() -> Self {
        let mut configuration = Self::default();
        configuration.set_defaults();
        configuration
    }

    /// A document that [`Kind::check`](crate::Kind::check) finds right, with all that is not set.
    pub fn of(document: &Value) -> Result<Self, serde_json::Error> {
        let mut configuration: Self = typed(document)?;
        configuration.set_defaults();
        Ok(configuration)
    }
}

impl Profile {
    /// The plugins that run, in their order.
    pub fn resolved(&self) -> Resolved {
        let own = self.plugins.clone().map(with_default_pre_bind).unwrap_or_default();
        let everywhere = merged(&own.multi_point);
        let points = Point::ALL.map(|point| (point, at_point(point, own.at(point), &everywhere)));
        let scores = everywhere.iter().chain(&own.score.enabled);
        let weights = scores.map(|plugin| (plugin.name.clone(), weight(plugin)));
        let args = self.plugin_config.iter().map(|config| (config.name.clone(), config.args.clone()));
        Resolved {
            scheduler_name: self.scheduler_name.clone(),
            points: points.into(),
            weights: weights.collect(),
            args: args.collect(),
        }
    }

    /// Whether the scores of a node, each at most 100, could overflow when kube-scheduler adds them: where weights are below 0.
    fn scores_overflow(&self) -> bool {
        const NODE_SCORE_MAX: i64 = 100;
        let (mut seen, mut total) = (BTreeSet::new(), 0_i64);
        let own = self.plugins.clone().unwrap_or_default();
        let everywhere = merged(&own.multi_point);
        let scores = own.score.enabled.iter().chain(&everywhere);
        let scores = scores.filter(|plugin| Point::of(&plugin.name).contains(&Point::Score));
        for plugin in scores.filter(|plugin| seen.insert(&plugin.name)) {
            // QUIRK: what is left wraps round where the sum is below 0, and then no weight fits
            // (`weights_below_0_are_refused_where_the_sum_is_below_0`).
            let weighted = weight(plugin) * NODE_SCORE_MAX;
            if weighted > i64::MAX.wrapping_sub(total) {
                return true;
            }
            total += weighted;
        }
        false
    }

    /// What is wrong with where plugins are enabled, and with their weights.
    pub(super) fn check_points(&self, at: &str, problems: &mut Problems) {
        let Some(plugins) = &self.plugins else { return };
        for point in Point::ALL {
            for (index, plugin) in plugins.at(point).enabled.iter().enumerate() {
                let points = Point::of(&plugin.name);
                let keys = ["profiles", at, "plugins", point.name(), "enabled", &index.to_string(), "name"];
                if !points.is_empty() && !points.contains(&point) {
                    let names: Vec<&str> = points.iter().map(|point| point.name()).collect();
                    let suggestion = format!("it has {}", names.join(", "));
                    problems.suggest(&keys, format!("{:?} has no such extension point", plugin.name), Some(suggestion));
                }
            }
        }
        let resolved = self.resolved();
        if resolved.at(Point::QueueSort).len() != 1 {
            problems.add(&["profiles", at, "plugins", "queueSort"], "there must be exactly one plugin");
        }
        if resolved.at(Point::Bind).is_empty() {
            problems.add(&["profiles", at, "plugins", "bind"], "there must be at least one plugin");
        }
        if self.scores_overflow() {
            let message = "the sum of the scores could overflow: weights must not be below 0";
            problems.add(&["profiles", at, "plugins", "score"], message);
        }
    }
}

/// Without the plugin nothing of what other plugins allocate is written, so a profile with plugins of its own has it, unless
/// it says something else.
fn with_default_pre_bind(mut plugins: Plugins) -> Plugins {
    let PluginSet { enabled, disabled } = &mut plugins.pre_bind;
    let is_named = |plugin: &Plugin| plugin.name == DEFAULT_PRE_BIND;
    if !enabled.iter().any(is_named) && !disabled.iter().any(|plugin| is_named(plugin) || plugin.name == "*") {
        enabled.push(Plugin { name: DEFAULT_PRE_BIND.to_owned(), weight: None });
    }
    plugins
}

/// The plugins that run wherever they can: those of every profile, each in its place, then those of this one.
fn merged(own: &PluginSet) -> Vec<Plugin> {
    let is_disabled = |name: &str| own.disabled.iter().any(|plugin| plugin.name == name || plugin.name == "*");
    let defaults = DEFAULTS.iter().filter(|(name, _)| !is_disabled(name));
    let mut plugins: Vec<Plugin> = defaults
        .map(|(name, weight)| {
            let replaced = own.enabled.iter().find(|plugin| plugin.name == *name).cloned();
            replaced.unwrap_or_else(|| Plugin { name: (*name).to_owned(), weight: Some(*weight) })
        })
        .collect();
    for plugin in &own.enabled {
        if plugins.iter().all(|known| known.name != plugin.name) {
            plugins.push(plugin.clone());
        }
    }
    plugins
}

/// First those of the point that run everywhere too, then the others that run everywhere, then the others of the point.
fn at_point(point: Point, own: &PluginSet, everywhere: &[Plugin]) -> Vec<String> {
    let is_disabled = |name: &str| own.disabled.iter().any(|plugin| plugin.name == name || plugin.name == "*");
    let names = everywhere.iter().map(|plugin| &*plugin.name);
    let everywhere: Vec<&str> = names.filter(|name| Point::of(name).contains(&point) && !is_disabled(name)).collect();
    let listed = own.enabled.iter().map(|plugin| &*plugin.name);
    let (first, last): (Vec<&str>, Vec<&str>) = listed.partition(|name| everywhere.contains(name));
    let others = everywhere.iter().copied().filter(|name| !first.contains(name));
    first.iter().copied().chain(others).chain(last).map(str::to_owned).collect()
}

fn weight(plugin: &Plugin) -> i64 {
    plugin.weight.filter(|weight| *weight != 0).map_or(1, i64::from)
}

/// Plugins that no profile may name at a point.
pub(super) fn check_stars(plugins: &[Plugin], keys: &[&str], problems: &mut Problems) {
    for (index, _) in plugins.iter().enumerate().filter(|(_, plugin)| plugin.name == "*") {
        let index = index.to_string();
        let keys: Vec<&str> = keys.iter().copied().chain([&*index, "name"]).collect();
        problems.add(&keys, "\"*\" stands for all plugins in disabled alone");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Kind, scheduler::NodeResourcesFitArgs};

    fn resolved(profile: &Value) -> Resolved {
        let document = json!({
            "apiVersion": Kind::Scheduler.api_version(), "kind": Kind::Scheduler.name(), "profiles": [profile],
        });
        assert_eq!(Kind::Scheduler.check(&document), []);
        SchedulerConfiguration::of(&document).unwrap().profiles[0].resolved()
    }

    fn enabled(names: &[&str]) -> Value {
        json!({"enabled": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
    }

    #[test]
    fn without_a_profile_the_plugins_of_kubernetes_run() {
        let configuration = SchedulerConfiguration::without_document();
        let resolved = configuration.profiles[0].resolved();
        assert_eq!(resolved.scheduler_name, "default-scheduler");
        assert_eq!(resolved.at(Point::PreEnqueue), ["SchedulingGates", "DynamicResources", "DefaultPreemption"]);
        let filters = "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit \
            VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity \
            DynamicResources";
        assert_eq!(resolved.at(Point::Filter).join(" "), filters);
        assert_eq!(resolved.at(Point::PostFilter), ["DynamicResources", "DefaultPreemption"]);
        assert_eq!(resolved.at(Point::PreBind), ["VolumeBinding", "DynamicResources"]);
        let weights = ["TaintToleration", "NodeAffinity", "ImageLocality", "VolumeBinding"];
        assert_eq!(weights.map(|plugin| resolved.weight(plugin)), [3, 2, 1, 1]);
    }

    #[test]
    fn listed_plugins_follow_those_that_run_everywhere_and_a_star_leaves_the_list_alone() {
        let resolved = resolved(&json!({"plugins": {
            "filter": enabled(&["LoadAwareScheduling", "Reservation"]),
            "postFilter": {
                "disabled": [{"name": "*"}], "enabled": [{"name": "Reservation"}, {"name": "DefaultPreemption"}],
            },
            "score": {
                "disabled": [{"name": "ImageLocality"}],
                "enabled": [{"name": "Reservation", "weight": 5000}, {"name": "NodeAffinity", "weight": 7}],
            },
        }}));
        let filters = resolved.at(Point::Filter);
        assert_eq!(filters[filters.len() - 3..], ["DynamicResources", "LoadAwareScheduling", "Reservation"]);
        assert_eq!(resolved.at(Point::PostFilter), ["Reservation", "DefaultPreemption"]);
        let scores = resolved.at(Point::Score);
        assert_eq!((&*scores[0], &*scores[1]), ("NodeAffinity", "TaintToleration"), "a listed one comes first");
        assert_eq!(scores.last().map(String::as_str), Some("Reservation"));
        assert!(!scores.contains(&"ImageLocality".to_owned()));
        assert_eq!((resolved.weight("Reservation"), resolved.weight("NodeAffinity")), (5000, 7));
        assert_eq!(resolved.at(Point::PreBind).last().map(String::as_str), Some(DEFAULT_PRE_BIND));
    }

    #[test]
    fn what_runs_everywhere_can_be_replaced_and_left_out() {
        let resolved = resolved(&json!({"plugins": {"multiPoint": {
            "disabled": [{"name": "InterPodAffinity"}],
            "enabled": [{"name": "NodeAffinity", "weight": 9}, {"name": "SchedulingHint"}],
        }}}));
        assert!(!resolved.plugins().contains(&"InterPodAffinity"));
        assert_eq!((resolved.weight("NodeAffinity"), resolved.at(Point::Filter)[3].as_str()), (9, "NodeAffinity"));
        assert_eq!(resolved.at(Point::PreFilter).last().map(String::as_str), Some("SchedulingHint"));
    }

    #[test]
    fn arguments_are_complete_whether_they_are_given_or_not() {
        let args = json!({"kind": "NodeResourcesFitArgs", "scoringStrategy": {"type": "MostAllocated", "resources": [
            {"name": "cpu", "weight": 0},
        ]}});
        let given = resolved(&json!({"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}));
        let given = given.args::<NodeResourcesFitArgs>().unwrap().scoring_strategy.resources;
        assert_eq!(given.iter().map(|one| (&*one.name, one.weight)).collect::<Vec<_>>(), [("cpu", 1)]);
        let absent = resolved(&json!({})).args::<NodeResourcesFitArgs>().unwrap().scoring_strategy.resources;
        assert_eq!(absent.len(), 2);
    }
}
