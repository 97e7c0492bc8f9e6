//! The profiles, the timings and the engine of a configuration.

use std::time::Duration;

use anyhow::{Context as _, Result};
use koord_config::scheduler::SchedulerConfiguration;
use koord_program::gates::Gates;
use koord_runtime::random::Random;
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_framework::Profile;
use koord_scheduler_plugins_koordinator::elastic_quota::HookFactories;

use crate::{BuiltProfile, Configuration, Dependencies, build_with, extenders, gates};

/// The timings of the queue. A pod that was refused waits for so long for an event that may help.
pub fn timings(values: &SchedulerConfiguration, parked_max: Duration) -> Timings {
    let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Timings {
        backoff: seconds(values.pod_initial_backoff_seconds),
        backoff_max: seconds(values.pod_max_backoff_seconds),
        parked_max,
    }
}

/// The engine of this configuration under these feature gates, without objects. It asks no extenders.
pub fn engine(configuration: &Configuration, gates: &Gates, random: Random) -> Result<Engine> {
    let profiles = profiles(configuration, gates, &HookFactories::new())?;
    let profiles: Vec<Profile> = profiles.into_iter().map(|built| built.profile).collect();
    let timings = timings(&configuration.values, Timings::default().parked_max);
    Ok(Engine::new(profiles, timings, random).with_policy(gates::policy(gates, None)))
}

/// The profiles of a configuration, with the extenders.
pub fn extended_profiles(
    configuration: &Configuration,
    gates: &Gates,
    hooks: &HookFactories,
) -> Result<Vec<BuiltProfile>> {
    let extenders = extenders::extenders(configuration);
    Ok(profiles(configuration, gates, hooks)?.into_iter().map(|built| built.extended_by(&extenders)).collect())
}

/// The profiles of a configuration, which ask no extenders.
pub fn profiles(configuration: &Configuration, gates: &Gates, hooks: &HookFactories) -> Result<Vec<BuiltProfile>> {
    let ignored = extenders::ignored_resources(configuration);
    let of_all = configuration.values.percentage_of_nodes_to_score;
    let of = |profile: &koord_config::scheduler::Profile| -> Result<BuiltProfile> {
        let with = Dependencies { gates: &|gate| gates.enabled(gate), hooks };
        let built = build_with(&profile.resolved().ignoring(&ignored), with)
            .with_context(|| format!("profile {}", profile.scheduler_name))?;
        Ok(built.sampling(profile.percentage_of_nodes_to_score.unwrap_or(of_all)))
    };
    configuration.profiles().iter().map(of).collect()
}
