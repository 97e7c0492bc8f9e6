//! Which plugins of a profile are on, and their arguments.

use koord_configuration::Configuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The plugins of one extension point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PluginSet {
    /// Plugins to run after those that run by default.
    pub enabled: Vec<Plugin>,
    /// Default plugins not to run; `*` is all of them.
    pub disabled: Vec<Plugin>,
}

/// A plugin of an extension point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct Plugin {
    /// The plugin's name.
    pub name: String,
    /// Its weight, where nodes are scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// The arguments of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PluginConfig {
    /// The plugin's name.
    pub name: String,
    /// Its arguments; see the type `<name>Args`.
    pub args: Value,
}
