//! From `descheduler/v1alpha2`: profiles stay, with DefaultEvictor in the sets in which it is without being named.

use std::collections::BTreeSet;

use koord_configuration::{Problem, Step, nearest, unknown_fields};
use serde_json::{Value, json};

use super::{
    Consequence, Evictor,
    arguments::Arguments,
    builder::{Builder, below, path},
    v1alpha2::{PolicyPluginSet, PolicyProfile, PolicyV1alpha2},
};
use crate::{
    PluginArgs,
    descheduler::{COMMUNITY_PLUGINS, PLUGINS},
};

/// The plugin that filters and evicts in every profile.
const DEFAULT_EVICTOR: &str = "DefaultEvictor";

pub(super) fn translate(policy: &PolicyV1alpha2, builder: &mut Builder) {
    builder.node_selector(policy.node_selector.as_deref());
    builder.copy("maxNoOfPodsToEvictPerNode", policy.max_no_of_pods_to_evict_per_node);
    builder.copy("maxNoOfPodsToEvictPerNamespace", policy.max_no_of_pods_to_evict_per_namespace);
    builder.copy("maxNoOfPodsToEvictTotal", policy.max_no_of_pods_to_evict_total);
    builder.copy(
        "metricsProviders",
        Some(json!(policy.metrics_providers)).filter(|_| !policy.metrics_providers.is_empty()),
    );
    of_process(policy, builder);
    let mut names = BTreeSet::new();
    for (index, profile) in policy.profiles.iter().enumerate() {
        translate_profile(profile, index, policy.grace_period_seconds, &mut names, builder);
    }
    if !builder.has_profiles() {
        let remedy = "write profiles with the plugins that are to run".to_owned();
        builder.problem(
            path(&["profiles"]),
            "the DeschedulerPolicy has no profile: nothing would be done",
            Some(remedy),
        );
    }
}

/// What the policy says of the whole process, and the configuration has no field for. The metrics server, of which `metricsCollector` speaks, is asked
/// wherever a strategy goes by it.
fn of_process(policy: &PolicyV1alpha2, builder: &mut Builder) {
    if policy.eviction_failure_event_notification == Some(false) {
        let message = "evictions that fail are always reported in events";
        builder.note(Consequence::Changed, path(&["evictionFailureEventNotification"]), message, None);
    }
    if policy.grace_period_seconds.is_some() && builder.evictor == Evictor::DefaultEvictor {
        let message = "DefaultEvictor leaves pods their own grace period";
        let remedy = "evict by MigrationController, whose defaultDeleteOptions have gracePeriodSeconds";
        builder.note(Consequence::Lost, path(&["gracePeriodSeconds"]), message, Some(remedy));
    }
}

fn translate_profile(
    profile: &PolicyProfile,
    index: usize,
    grace_period_seconds: Option<i64>,
    names: &mut BTreeSet<String>,
    builder: &mut Builder,
) {
    let at = path(&["profiles", &index.to_string()]);
    let name = unique(&profile.name, index, names);
    if name != profile.name {
        let message =
            format!("the profile is called {name}: in a DeschedulerConfiguration every profile has a name of its own");
        builder.note(Consequence::Changed, below(&at, &["name"]), message, None);
    }
    let (evictor, plugins) = (builder.evictor, &profile.plugins);
    let mut translated = builder.profile(&name, at.clone());
    for (key, set) in [("presort", &plugins.presort), ("preSort", &plugins.pre_sort), ("sort", &plugins.sort)] {
        if !set.enabled.is_empty() {
            let message = "there are no plugins that sort";
            translated.builder().note(Consequence::Lost, below(&at, &["plugins", key, "enabled"]), message, None);
        }
    }
    let filters = ["filter", "preevictionfilter", "preEvictionFilter"].into_iter().zip([
        &plugins.filter,
        &plugins.preevictionfilter,
        &plugins.pre_eviction_filter,
    ]);
    let sets = [("deschedule", &plugins.deschedule), ("balance", &plugins.balance)];
    for (key, set) in sets.into_iter().chain(filters.clone()) {
        let at = below(&at, &["plugins", key]);
        check_set(set, &at, translated.builder());
    }
    for (key, PolicyPluginSet { enabled, .. }) in sets {
        for (index, plugin) in enabled.iter().enumerate() {
            translated.enable(key, plugin, below(&at, &["plugins", key, "enabled", &index.to_string()]));
        }
    }
    for (key, PolicyPluginSet { enabled, .. }) in filters {
        for (index, plugin) in enabled.iter().enumerate().filter(|(_, plugin)| *plugin != DEFAULT_EVICTOR) {
            translated.enable("filter", plugin, below(&at, &["plugins", key, "enabled", &index.to_string()]));
        }
    }
    let deletes = grace_period_seconds.filter(|_| evictor == Evictor::MigrationController);
    let delete_options = |args: &mut Arguments| {
        if let Some(seconds) = deletes {
            let options = ["defaultDeleteOptions", "gracePeriodSeconds"];
            args.set(&options, json!(seconds), path(&["gracePeriodSeconds"]), false);
        }
    };
    let mut is_evictor_configured = false;
    for (index, config) in profile.plugin_config.iter().enumerate() {
        let at = below(&at, &["pluginConfig", &index.to_string()]);
        let args = stated(&config.name, &config.args, &below(&at, &["args"]), translated.builder());
        check_known(&config.name, &below(&at, &["name"]), translated.builder());
        if config.name == DEFAULT_EVICTOR {
            let mut args = evictor.args(args, translated.builder());
            delete_options(&mut args);
            translated.configure(evictor.name(), args, at);
            is_evictor_configured = true;
        } else {
            translated.configure(&config.name, args, at);
        }
    }
    if deletes.is_some() && !is_evictor_configured {
        let mut args = Arguments::none();
        delete_options(&mut args);
        translated.configure(evictor.name(), args, at);
    }
    translated.end();
}

/// A name that no profile has so far.
fn unique(name: &str, index: usize, names: &mut BTreeSet<String>) -> String {
    let stem = if name.is_empty() { format!("profile-{index}") } else { name.to_owned() };
    let candidates = std::iter::once(stem.clone()).chain((2_usize..).map(|number| format!("{stem}-{number}")));
    let mut candidates = candidates.filter(|candidate| !names.contains(candidate));
    let unique = candidates.next().unwrap_or(stem);
    names.insert(unique.clone());
    unique
}

/// Reports what of a set has no effect, and plugins that kubernetes-sigs/descheduler does not have.
fn check_set(set: &PolicyPluginSet, at: &[Step], builder: &mut Builder) {
    if !set.disabled.is_empty() {
        let message = "disabled has no effect, in kubernetes-sigs/descheduler neither";
        builder.note(Consequence::Unused, below(at, &["disabled"]), message, Some("take it out"));
    }
    for (index, plugin) in set.enabled.iter().enumerate() {
        let at = below(at, &["enabled", &index.to_string()]);
        check_known(plugin, &at, builder);
        if set.enabled[..index].contains(plugin) {
            builder.note(Consequence::Unused, at, format!("{plugin} stands twice, and runs once"), Some("take it out"));
        }
    }
}

/// Refuses a plugin that kubernetes-sigs/descheduler does not have.
fn check_known(plugin: &str, at: &[Step], builder: &mut Builder) {
    if args_of(plugin).is_some() {
        return;
    }
    let suggestion = if PLUGINS.iter().any(|args| args.plugin == plugin) {
        Some(format!(
            "{plugin} is a plugin of Koordinator: take it out, let koordctl convert make a DeschedulerConfiguration, and enable it there"
        ))
    } else {
        nearest(plugin, COMMUNITY_PLUGINS.iter().map(|args| args.plugin))
    };
    builder.problem(at.to_vec(), format!("kubernetes-sigs/descheduler has no plugin {plugin:?}"), suggestion);
}

fn args_of(plugin: &str) -> Option<&'static PluginArgs> {
    COMMUNITY_PLUGINS.iter().find(|args| args.plugin == plugin)
}

/// The arguments of a plugin. They are read strictly, as by kubernetes-sigs/descheduler, and may state their version and kind.
fn stated(plugin: &str, written: &Value, at: &[Step], builder: &mut Builder) -> Arguments {
    let mut args = written.clone();
    let kind = format!("{plugin}Args");
    for (key, wanted) in [("apiVersion", "descheduler/v1alpha2"), ("kind", &kind)] {
        let found = args.as_object_mut().and_then(|args| args.remove(key));
        if found.is_some_and(|found| found != wanted) {
            builder.problem(below(at, &[key]), format!("must be {wanted:?}"), None);
        }
    }
    if let Some(known) = args_of(plugin) {
        let schema = known.schema();
        let unknown = unknown_fields(&schema, &schema, &args, at).into_iter();
        builder
            .problems(unknown.map(|problem| Problem { message: format!("{plugin}: {}", problem.message), ..problem }));
    }
    Arguments::whole(args, at.to_vec())
}
