//! The plugin that evicts for a translated policy: DefaultEvictor, as in kubernetes-sigs/descheduler, or MigrationController with what it has of the same
//! arguments.

use koord_configuration::{Problem, Step};
use serde_json::{Value, json};

use super::{
    Consequence,
    arguments::Arguments,
    builder::{Builder, below, path},
};
use crate::{Args as _, descheduler::MigrationControllerArgs};

/// The plugin that evicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evictor {
    /// Evicts by the eviction API, as kubernetes-sigs/descheduler does.
    #[default]
    DefaultEvictor,
    /// Evicts by PodMigrationJobs.
    MigrationController,
}

/// Arguments of DefaultEvictor that MigrationController has under the same name.
const SHARED: [&str; 8] = [
    "evictFailedBarePods",
    "evictLocalStoragePods",
    "evictSystemCriticalPods",
    "ignorePvcPods",
    "labelSelector",
    "nodeFit",
    "nodeSelector",
    "priorityThreshold",
];

/// Arguments of DefaultEvictor that say by single switches what `podProtections` says by lists.
const SWITCHES: [&str; 6] = [
    "evictDaemonSetPods",
    "evictFailedBarePods",
    "evictLocalStoragePods",
    "evictSystemCriticalPods",
    "ignorePodsWithoutPDB",
    "ignorePvcPods",
];

impl Evictor {
    /// The name of the plugin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DefaultEvictor => "DefaultEvictor",
            Self::MigrationController => MigrationControllerArgs::PLUGIN,
        }
    }

    /// Its arguments, from those of DefaultEvictor.
    pub(super) fn args(self, args: Arguments, builder: &mut Builder) -> Arguments {
        check(&args, builder);
        match self {
            Self::DefaultEvictor => args,
            Self::MigrationController => migration(&args, builder),
        }
    }
}

/// What kubernetes-sigs/descheduler refuses of DefaultEvictor, and the configuration would accept.
fn check(args: &Arguments, builder: &mut Builder) {
    let value = &args.value;
    let is_listed = |list: &str| value["podProtections"][list].as_array().is_some_and(|list| !list.is_empty());
    if is_listed("defaultDisabled") || is_listed("extraEnabled") {
        for switch in SWITCHES.iter().filter(|switch| value[**switch] == true) {
            let says = protection(switch);
            let message = format!("cannot stand beside podProtections, which says the same by {says}");
            builder.problem(args.source_of(switch), message, Some(format!("take {switch} out, and add {says}")));
        }
    }
    let threshold = &value["priorityThreshold"];
    if threshold["value"].is_number() && threshold["name"].as_str().is_some_and(|name| !name.is_empty()) {
        let message = "value and name cannot be set together";
        builder.problem(args.source_of("priorityThreshold"), message, Some("keep one of them".to_owned()));
    }
}

/// The entry of `podProtections` that says the same as a switch.
fn protection(switch: &str) -> &'static str {
    match switch {
        "evictDaemonSetPods" => "DaemonSetPods in defaultDisabled",
        "evictFailedBarePods" => "FailedBarePods in defaultDisabled",
        "evictLocalStoragePods" => "PodsWithLocalStorage in defaultDisabled",
        "evictSystemCriticalPods" => "SystemCriticalPods in defaultDisabled",
        "ignorePodsWithoutPDB" => "PodsWithoutPDB in extraEnabled",
        _ => "PodsWithPVC in extraEnabled",
    }
}

/// The arguments of MigrationController. What it does not have is a note.
fn migration(args: &Arguments, builder: &mut Builder) -> Arguments {
    const REMEDY: &str = "evict by DefaultEvictor, if it matters";
    let mut migration = Arguments::none();
    for (name, value) in args.value.as_object().into_iter().flatten() {
        let source = args.source_of(name);
        if name == "podProtections" {
            protections(value, &source, &mut migration, builder);
        } else if SHARED.contains(&name.as_str()) {
            migration.set(&[name], value.clone(), source, true);
        } else if !is_unset(value) {
            builder.note(Consequence::Lost, source, "MigrationController has no such argument", Some(REMEDY));
        }
    }
    migration
}

fn protections(protections: &Value, source: &[Step], migration: &mut Arguments, builder: &mut Builder) {
    let names = |list: &str| {
        let names = protections[list].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        names.enumerate().collect::<Vec<_>>()
    };
    for (index, name) in names("defaultDisabled") {
        let at = below(source, &["defaultDisabled", &index.to_string()]);
        let switch = match name.as_str() {
            "PodsWithLocalStorage" => "evictLocalStoragePods",
            "SystemCriticalPods" => "evictSystemCriticalPods",
            "FailedBarePods" => "evictFailedBarePods",
            _ => {
                let message = "MigrationController never evicts pods of DaemonSets";
                builder.note(Consequence::Lost, at, message, Some("evict by DefaultEvictor, if it matters"));
                continue;
            }
        };
        migration.set(&[switch], json!(true), at, false);
    }
    let classes = protections["config"]["PodsWithPVC"]["protectedStorageClasses"].as_array();
    for (index, name) in names("extraEnabled") {
        let at = below(source, &["extraEnabled", &index.to_string()]);
        match name.as_str() {
            "PodsWithPVC" => {
                if classes.is_some_and(|classes| !classes.is_empty()) {
                    let message =
                        "MigrationController protects all pods with a PersistentVolumeClaim, whatever its StorageClass";
                    builder.note(
                        Consequence::Changed,
                        at.clone(),
                        message,
                        Some("evict by DefaultEvictor, if it matters"),
                    );
                }
                migration.set(&["ignorePvcPods"], json!(true), at, false);
            }
            _ => builder.note(
                Consequence::Lost,
                at,
                format!("MigrationController does not protect {name}"),
                Some("evict by DefaultEvictor, if it matters"),
            ),
        }
    }
}

/// Whether an argument is what it is anyway.
pub(super) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_unset),
    }
}

/// Profiles that would migrate pods in different ways: the jobs of a cluster have one controller.
pub(super) fn check_migration(configuration: &Value) -> Vec<Problem> {
    let mut known: Option<(&str, Value)> = None;
    let mut problems = Vec::new();
    for (index, profile) in configuration["profiles"].as_array().into_iter().flatten().enumerate() {
        let enabled = profile["plugins"]["evict"]["enabled"].as_array().into_iter().flatten();
        if !enabled.clone().any(|plugin| plugin["name"] == MigrationControllerArgs::PLUGIN) {
            continue;
        }
        let (name, index) = (profile["name"].as_str().unwrap_or_default(), index.to_string());
        let configs = profile["pluginConfig"].as_array().into_iter().flatten();
        let found = configs.enumerate().find(|(_, config)| config["name"] == MigrationControllerArgs::PLUGIN);
        let args = found.map_or_else(|| json!({}), |(_, config)| config["args"].clone());
        match &known {
            Some((other, first)) if *first != args => {
                let at = match found {
                    Some((config, _)) => path(&["profiles", &index, "pluginConfig", &config.to_string()]),
                    None => path(&["profiles", &index]),
                };
                let message = format!(
                    "evicts in another way than {other}, and the jobs of a cluster have one MigrationController"
                );
                let remedy = "give both the same arguments of DefaultEvictor, or evict by DefaultEvictor".to_owned();
                problems.push(Problem { path: at, message, suggestion: Some(remedy) });
            }
            Some(_) => {}
            None => known = Some((name, args)),
        }
    }
    problems
}
