//! Plugins by name.

use std::{sync::Arc, time::Duration};

use koord_config::{Args, arguments, descheduler::PLUGINS};
use koord_descheduler_framework::{Plugin, Registration};
use koord_descheduler_migration::MigrationController;
use koord_descheduler_strategies_koordinator::{CustomPriority, FragmentationAware, LowNodeLoad, ScaleDownBinPack};
use koord_descheduler_strategies_kubernetes::{
    DefaultEvictor, HighNodeUtilization, LowNodeUtilization, PodLifeTime, RemoveDuplicates, RemoveFailedPods,
    RemovePodsHavingTooManyRestarts, RemovePodsViolatingInterPodAntiAffinity, RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints, RemovePodsViolatingTopologySpreadConstraint,
};
use koord_resource::controller::ResourceKind;
use serde_json::{Value, json};

/// Why a plugin cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("there is no plugin {0:?}")]
    Unknown(String),
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    #[error(transparent)]
    Koordinator(#[from] koord_descheduler_strategies_koordinator::ArgsError),
    #[error(transparent)]
    Migration(#[from] koord_descheduler_migration::ArgsError),
    #[error(transparent)]
    Kubernetes(#[from] koord_descheduler_strategies_kubernetes::ArgsError),
}

/// The plugin of a name, with its arguments as the configuration has them.
pub(crate) fn plugin(name: &str, args: &Value, interval: Duration) -> Result<Registration, PluginError> {
    match name {
        "DefaultEvictor" => made(args, |args| Ok(DefaultEvictor::new(&args)?)),
        "CustomPriority" => made(args, |args| Ok(CustomPriority::new(args)?)),
        "FragmentationAware" => made(args, |args| Ok(FragmentationAware::new(args)?)),
        "HighNodeUtilization" => made(args, |args| Ok(HighNodeUtilization::new(args)?)),
        "LowNodeLoad" => made(args, |args| Ok(LowNodeLoad::new(args, interval)?)),
        "LowNodeUtilization" => made(args, |args| Ok(LowNodeUtilization::new(args)?)),
        "MigrationController" => made(args, |args| Ok(MigrationController::new(&args)?)),
        "PodLifeTime" => made(args, |args| Ok(PodLifeTime::new(args)?)),
        "RemoveDuplicates" => made(args, |args| Ok(RemoveDuplicates::new(args)?)),
        "RemoveFailedPods" => made(args, |args| Ok(RemoveFailedPods::new(args)?)),
        "RemovePodsHavingTooManyRestarts" => made(args, |args| Ok(RemovePodsHavingTooManyRestarts::new(args)?)),
        "RemovePodsViolatingInterPodAntiAffinity" => {
            made(args, |args| Ok(RemovePodsViolatingInterPodAntiAffinity::new(&args)?))
        }
        "RemovePodsViolatingNodeAffinity" => made(args, |args| Ok(RemovePodsViolatingNodeAffinity::new(&args)?)),
        "RemovePodsViolatingNodeTaints" => made(args, |args| Ok(RemovePodsViolatingNodeTaints::new(args)?)),
        "RemovePodsViolatingTopologySpreadConstraint" => {
            made(args, |args| Ok(RemovePodsViolatingTopologySpreadConstraint::new(args)?))
        }
        "ScaleDownBinPack" => made(args, |args| Ok(ScaleDownBinPack::new(args)?)),
        _ => Err(PluginError::Unknown(name.to_owned())),
    }
}

/// The kinds beside nodes and pods that any plugin reads.
pub fn reads() -> Vec<ResourceKind> {
    let registered = PLUGINS.iter().filter_map(|args| plugin(args.plugin, &json!({}), Duration::ZERO).ok());
    let mut kinds: Vec<ResourceKind> = registered.flat_map(|plugin| plugin.reads).copied().collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn made<A: Args, P: Plugin>(
    args: &Value,
    make: impl FnOnce(A) -> Result<P, PluginError>,
) -> Result<Registration, PluginError> {
    Ok(Arc::new(make(arguments::<A>(args)?)?).register())
}
