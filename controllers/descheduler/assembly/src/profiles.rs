//! The profiles of a configuration.

use std::{collections::BTreeMap, time::Duration};

use koord_config::descheduler::{DeschedulerConfiguration, Profile as Configured};
use koord_descheduler_framework::{Descheduler, Limits, Profile, ProfileError, Registration};
use koord_scheduling::{Selector, SelectorError};
use serde_json::json;

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
    #[error("profile {profile}: {error}")]
    Profile { profile: String, error: ProfileError },
}

/// A descheduler of a configuration that was found right.
pub fn build(values: &DeschedulerConfiguration) -> Result<Descheduler, BuildError> {
    let interval = values.descheduling_interval.to_std().unwrap_or_default();
    let nodes = values.node_selector.as_ref().map(Selector::new).transpose().map_err(BuildError::Nodes)?;
    let profiles = values.profiles.iter().map(|configured| profile(configured, interval)).collect::<Result<_, _>>()?;
    let limits = Limits {
        per_node: values.max_no_of_pods_to_evict_per_node,
        per_namespace: values.max_no_of_pods_to_evict_per_namespace,
        total: values.max_no_of_pods_to_evict_total,
    };
    Ok(Descheduler { profiles, nodes, limits })
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
                None => {
                    let config = configured.plugin_config.iter().find(|config| config.name == *plugin_name);
                    let args = config.map(|config| &config.args).filter(|args| !args.is_null());
                    let args = args.cloned().unwrap_or_else(|| json!({}));
                    plugin(plugin_name, &args, interval).map_err(|error| BuildError::Plugin {
                        profile: name.clone(),
                        plugin: plugin_name.clone(),
                        error,
                    })?
                }
            };
            set.push(made.entry(plugin_name).or_insert(registration).clone());
        }
    }
    Profile::new(name.as_str(), nodes, sets).map_err(|error| BuildError::Profile { profile: name, error })
}
