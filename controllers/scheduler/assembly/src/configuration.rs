//! The configuration of a scheduler: checked, and completed with all that is not set.

use anyhow::Result;
use koord_config::{
    Args as _, Kind,
    scheduler::{ElasticQuotaArgs, Profile, SchedulerConfiguration},
};
use koord_configuration::{Problem, Problems, Source, read};
use koord_resource::yaml::parse;
use koord_scheduler_plugins_koordinator::elastic_quota::HookFactories;
use serde_json::{Value, json};

/// The configuration that Koordinator ships.
pub const SHIPPED: &str = include_str!("../../../../config/koord-scheduler.config.yaml");

/// A configuration that was found right, with all that is not set.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What is in force.
    pub values: SchedulerConfiguration,
    document: Value,
}

impl Configuration {
    /// The configuration that Koordinator ships, with a further profile for pods that name no scheduler.
    pub fn shipped_for_all_pods() -> Result<Self> {
        let mut document = parse(SHIPPED)?;
        document["leaderElection"] = json!({"leaderElect": false});
        if let Some(profiles) = document["profiles"].as_array_mut() {
            profiles.push(json!({"schedulerName": "default-scheduler"}));
        }
        Self::of_document(document, &Source::new("the shipped configuration", SHIPPED), &HookFactories::new())
    }

    /// The configuration of a source, for a program that has no hooks of quotas. Mistakes are named with their lines.
    pub fn of_source(source: &Source<'_>) -> Result<Self> {
        Self::of_document(source.parse()?, source, &HookFactories::new())
    }

    pub fn profiles(&self) -> &[Profile] {
        &self.values.profiles
    }

    /// What of it has no effect.
    pub fn warnings(&self) -> Vec<Problem> {
        Kind::Scheduler.warnings(&self.document)
    }

    /// All of it, with everything that is not set.
    pub fn effective(&self) -> Result<Value> {
        Ok(Kind::Scheduler.effective(&self.document)?.value)
    }

    /// The configuration of a document, for a program that has these hooks of quotas. Mistakes are named with their lines in the source.
    pub fn of_document(document: Value, source: &Source<'_>, hooks: &HookFactories) -> Result<Self> {
        let values: SchedulerConfiguration = read(&document).map_err(|problems| source.error(problems))?;
        let problems = unknown_hooks(&values, hooks);
        if !problems.is_empty() {
            return Err(source.error(problems).into());
        }
        Ok(Self { values, document })
    }
}

/// The hooks of quotas that the program does not have, or whose arguments it does not take.
fn unknown_hooks(values: &SchedulerConfiguration, hooks: &HookFactories) -> Vec<Problem> {
    let mut problems = Problems::default();
    for (index, profile) in values.profiles.iter().enumerate() {
        let place = profile.plugin_config.iter().position(|config| config.name == ElasticQuotaArgs::PLUGIN);
        let args = profile.resolved().args::<ElasticQuotaArgs>();
        let (Some(place), Ok(args)) = (place, args) else { continue };
        for (hook, configured) in args.hook_plugins.iter().enumerate() {
            let Err(error) = hooks.hook(configured) else { continue };
            let [index, place, hook] = [index, place, hook].map(|index| index.to_string());
            let keys: [&str; 8] =
                ["profiles", &index, "pluginConfig", &place, "args", "hookPlugins", &hook, error.field()];
            problems.add(&keys, error.to_string());
        }
    }
    problems.into_vec()
}
