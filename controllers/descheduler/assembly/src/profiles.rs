//! The profiles of a configuration.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_config::{
    Args as _, arguments,
    descheduler::{DeschedulerConfiguration, MigrationControllerArgs, Profile as Configured},
};
use koord_descheduler_framework::{CoolDown, Descheduler, Limits, Planning, Profile, ProfileError, Registration};
use koord_descheduler_migration::MigrationController;
use koord_scheduling::{Selector, SelectorError};
use serde_json::{Value, json};

use crate::plugins::{PluginError, plugin};

/// Why a configuration makes no descheduler.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("nodeSelector: {0}")]
    Nodes(#[source] SelectorError),
    #[error("profile {profile}: nodeSelector: {error}")]
    ProfileNodes { profile: String, error: SelectorError },
    #[error("profile {profile}: plugin {plugin}: {error}")]
    Plugin { profile: String, plugin: String, error: PluginError },
    #[error("the profiles {} and {} have different arguments of MigrationController; the jobs of a cluster have one controller, so give them the same", .profiles[0], .profiles[1])]
    TwoMigrations { profiles: [String; 2] },
    #[error("profile {profile}: {error}")]
    Profile { profile: String, error: ProfileError },
}

/// What a configuration comes to.
#[derive(Debug)]
pub struct Built {
    pub descheduler: Descheduler,
    /// The plugin that migrates pods, with its arguments; `None` where no profile has it.
    pub migration: Option<(Arc<MigrationController>, MigrationControllerArgs)>,
}

/// A descheduler of a configuration that was found right.
///
/// # Errors
///
/// A plugin cannot be made of its arguments, or the plugins of a profile do not go together.
pub fn build(values: &DeschedulerConfiguration) -> Result<Built, BuildError> {
    let interval = values.descheduling_interval.to_std().unwrap_or_default();
    let nodes = values.node_selector.as_ref().map(Selector::new).transpose().map_err(BuildError::Nodes)?;
    let profiles = values.profiles.iter().map(|configured| profile(configured, interval)).collect::<Result<_, _>>()?;
    let limits = Limits {
        per_node: values.max_no_of_pods_to_evict_per_node,
        per_namespace: values.max_no_of_pods_to_evict_per_namespace,
        total: values.max_no_of_pods_to_evict_total,
    };
    Ok(Built { descheduler: Descheduler { profiles, nodes, limits }, migration: migration(values)? })
}

/// The plugin that migrates pods. The jobs of a cluster have one controller, so all profiles that migrate pods do it alike.
fn migration(
    values: &DeschedulerConfiguration,
) -> Result<Option<(Arc<MigrationController>, MigrationControllerArgs)>, BuildError> {
    let mut found: Option<(&str, MigrationControllerArgs)> = None;
    for configured in &values.profiles {
        let sets = [&configured.plugins.evict, &configured.plugins.filter];
        let is_enabled = |set: &&koord_config::PluginSet| {
            set.enabled.iter().any(|plugin| plugin.name == MigrationControllerArgs::PLUGIN)
        };
        if !sets.iter().any(is_enabled) {
            continue;
        }
        let fault = |error| BuildError::Plugin {
            profile: configured.name.clone(),
            plugin: MigrationControllerArgs::PLUGIN.to_owned(),
            error,
        };
        let args: MigrationControllerArgs =
            arguments(&args_of(configured, MigrationControllerArgs::PLUGIN)).map_err(|error| fault(error.into()))?;
        match &found {
            Some((profile, known)) if *known != args => {
                let profiles = [(*profile).to_owned(), configured.name.clone()];
                return Err(BuildError::TwoMigrations { profiles });
            }
            Some(_) => {}
            None => found = Some((&configured.name, args)),
        }
    }
    let Some((profile, args)) = found else { return Ok(None) };
    let plugin = MigrationController::new(&args).map_err(|error| BuildError::Plugin {
        profile: profile.to_owned(),
        plugin: MigrationControllerArgs::PLUGIN.to_owned(),
        error: error.into(),
    })?;
    Ok(Some((Arc::new(plugin), args)))
}

/// The arguments of a plugin as they are written; none are an empty object.
fn args_of(configured: &Configured, plugin: &str) -> Value {
    let config = configured.plugin_config.iter().find(|config| config.name == plugin);
    let args = config.map(|config| &config.args).filter(|args| !args.is_null());
    args.cloned().unwrap_or_else(|| json!({}))
}

fn profile(configured: &Configured, interval: Duration) -> Result<Profile, BuildError> {
    let name = configured.name.clone();
    let nodes = configured.node_selector.as_ref().map(Selector::new).transpose();
    let nodes = nodes.map_err(|error| BuildError::ProfileNodes { profile: name.clone(), error })?;
    // A plugin is one instance, in however many sets it is.
    let mut made = BTreeMap::<&str, Registration>::new();
    let plugins = &configured.plugins;
    let mut sets = [const { Vec::new() }; 4];
    for (set, enabled) in sets.iter_mut().zip([&plugins.deschedule, &plugins.balance, &plugins.filter, &plugins.evict])
    {
        for koord_config::Plugin { name: plugin_name, .. } in &enabled.enabled {
            let registration = match made.get(plugin_name.as_str()) {
                Some(known) => known.clone(),
                None => plugin(plugin_name, &args_of(configured, plugin_name), interval).map_err(|error| {
                    BuildError::Plugin { profile: name.clone(), plugin: plugin_name.clone(), error }
                })?,
            };
            set.push(made.entry(plugin_name).or_insert(registration).clone());
        }
    }
    let mut made =
        Profile::new(name.as_str(), nodes, sets).map_err(|error| BuildError::Profile { profile: name, error })?;
    made.planning = match configured.planning {
        koord_config::descheduler::Planning::Off => Planning::Off,
        koord_config::descheduler::Planning::Report => Planning::Report,
        koord_config::descheduler::Planning::Enforce => Planning::Enforce,
    };
    let span = |duration: koord_resource::Duration| duration.to_std().unwrap_or_default();
    made.cool_down =
        CoolDown { initial: span(configured.cool_down.initial), maximum: span(configured.cool_down.maximum) };
    Ok(made)
}
