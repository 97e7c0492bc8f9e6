//! The plugins that a component knows, and what its profiles may say of them.

use std::collections::BTreeSet;

use koord_configuration::{Problem, Problems, Step, nearest};
use serde_json::json;

use crate::{Plugin, PluginArgs, PluginConfig};

/// The plugins of one component.
pub(crate) struct Catalogue {
    /// Group and version of the component's configuration, which arguments may state.
    pub(crate) api_version: &'static str,
    /// Plugins whose arguments are declared.
    pub(crate) declared: &'static [PluginArgs],
    /// All others. Their arguments are not checked.
    pub(crate) others: &'static [&'static str],
    /// Whether messages about arguments begin with the name of their plugin, as those of the original do.
    pub(crate) names_plugins: bool,
}

impl Catalogue {
    /// Checks the names of a list of plugins at these keys: each is known and stands once.
    pub(crate) fn check_plugins(&self, plugins: &[Plugin], keys: &[&str], problems: &mut Problems) {
        let names = || plugins.iter().map(|plugin| plugin.name.as_str());
        self.check_known(names(), keys, problems);
        check_once(names(), keys, problems);
    }

    /// The same for the plugins that are configured.
    pub(crate) fn check_configured(&self, configs: &[PluginConfig], keys: &[&str], problems: &mut Problems) {
        let names = || configs.iter().map(|config| config.name.as_str());
        self.check_known(names(), keys, problems);
        check_once(names(), keys, problems);
    }

    /// Checks that names in a list at these keys are known.
    pub(crate) fn check_known<'n>(&self, names: impl Iterator<Item = &'n str>, keys: &[&str], problems: &mut Problems) {
        for (index, name) in names.enumerate() {
            if name != "*" && !self.names().any(|known| known == name) {
                let suggestion = nearest(name, self.names());
                problems.suggest(
                    &name_at(keys, &index.to_string()),
                    format!("there is no plugin {name:?}"),
                    suggestion,
                );
            }
        }
    }

    /// Checks the arguments in the profile of this index: their form, and their values where rules hold for the plugin.
    pub(crate) fn check_args(
        &self,
        profile: usize,
        configs: &[PluginConfig],
        holds: impl Fn(&str) -> bool,
        problems: &mut Problems,
    ) {
        for (args, config, at) in self.each_args(profile, configs) {
            let found = if holds(&config.name) {
                args.problems(&config.args, self.api_version, &at)
            } else {
                args.mistakes_of_form(&config.args, self.api_version, &at)
            };
            problems.extend(found.into_iter().map(|problem| {
                if self.names_plugins {
                    Problem { message: format!("{}: {}", config.name, problem.message), ..problem }
                } else {
                    problem
                }
            }));
        }
    }

    /// Checks that plugins in a list at these keys that nothing is configured of can do without arguments.
    pub(crate) fn check_unconfigured(
        &self,
        plugins: &[Plugin],
        configs: &[PluginConfig],
        keys: &[&str],
        problems: &mut Problems,
    ) {
        let is_configured = |plugin: &Plugin| configs.iter().any(|config| config.name == plugin.name);
        for (index, plugin) in plugins.iter().enumerate().filter(|(_, plugin)| !is_configured(plugin)) {
            let Some(args) = self.args_of(&plugin.name) else { continue };
            for problem in args.problems(&json!(null), self.api_version, &[]) {
                let message = format!("{} has no arguments, and needs some: {problem}", plugin.name);
                problems.suggest(&name_at(keys, &index.to_string()), message, problem.suggestion);
            }
        }
    }

    /// What of the arguments in the profile of this index has no effect.
    pub(crate) fn warn_of_args(&self, profile: usize, configs: &[PluginConfig], problems: &mut Problems) {
        for (args, config, at) in self.each_args(profile, configs) {
            problems.extend(args.warnings(&config.args, self.api_version, &at));
        }
    }

    /// The declared arguments in the profile of this index, each with its place.
    fn each_args<'c>(
        &self,
        profile: usize,
        configs: &'c [PluginConfig],
    ) -> impl Iterator<Item = (&'static PluginArgs, &'c PluginConfig, [Step; 5])> {
        let key = |key: &str| Step::Key(key.to_owned());
        configs.iter().enumerate().filter_map(move |(index, config)| {
            let at = [key("profiles"), Step::Index(profile), key("pluginConfig"), Step::Index(index), key("args")];
            Some((self.args_of(&config.name)?, config, at))
        })
    }

    /// Fills in all arguments. Those of enabled plugins are there even when the document has none.
    pub(crate) fn complete<'p>(
        &self,
        configs: &mut Vec<PluginConfig>,
        enabled: impl Iterator<Item = &'p Plugin>,
    ) -> Result<(), serde_json::Error> {
        let enabled: BTreeSet<&str> = enabled
            .filter_map(|plugin| self.args_of(&plugin.name))
            .filter(|args| args.are_shown_unset())
            .map(|args| args.plugin)
            .collect();
        for plugin in enabled {
            if configs.iter().all(|config| config.name != plugin) {
                configs.push(PluginConfig { name: plugin.to_owned(), args: json!({}) });
            }
        }
        for config in configs {
            if let Some(args) = self.args_of(&config.name) {
                config.args = args.shown(&config.args, self.api_version)?;
            }
        }
        Ok(())
    }

    fn args_of(&self, plugin: &str) -> Option<&'static PluginArgs> {
        self.declared.iter().find(|args| args.plugin == plugin)
    }

    /// Every plugin.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.declared.iter().map(|args| args.plugin).chain(self.others.iter().copied())
    }
}

/// Checks that each name in a list at these keys stands once.
pub(crate) fn check_once<'n>(names: impl Iterator<Item = &'n str>, keys: &[&str], problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            problems.add(&name_at(keys, &index.to_string()), format!("{name:?} stands twice"));
        }
    }
}

/// The keys of the name of an item of a list.
fn name_at<'k>(keys: &[&'k str], index: &'k str) -> Vec<&'k str> {
    keys.iter().copied().chain([index, "name"]).collect()
}
