//! The configuration file is read again while the program runs: what may change does, from the next pass on.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use koord_config::descheduler::{DeschedulerConfiguration, MigrationControllerArgs};
use koord_descheduler_assembly::{Built, Configuration, build};
use koord_descheduler_runtime::{Behaviour, ConfigurationChange, Reconfiguration};
use koord_program::component::configz_text;
use koord_runtime::clock::SharedClock;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::{
    configuration::{of_text, read},
    options::Options,
};

/// How often the file is read. A ConfigMap takes longer to reach it.
const EVERY: Duration = Duration::from_secs(5);

/// The file of the configuration, and what of it is in effect.
#[derive(Clone, Debug)]
pub struct ConfigurationFile {
    options: Options,
    file: PathBuf,
    in_effect: DeschedulerConfiguration,
    migration: Option<MigrationControllerArgs>,
    /// What was read last: the text, or why there was none.
    last: Result<String, String>,
}

impl ConfigurationFile {
    /// The file that the options name, with the text of which the configuration in effect was read; `None` where they name none.
    pub fn of(options: &Options, text: Option<String>, in_effect: &Configuration, built: &Built) -> Option<Self> {
        let file = options.config.clone()?;
        let migration = built.migration.as_ref().map(|(_, args)| args.clone());
        Some(Self { options: options.clone(), file, in_effect: in_effect.values.clone(), migration, last: Ok(text?) })
    }

    /// Reads the file; a change is taken, or refused.
    fn look(&mut self) -> Option<ConfigurationChange> {
        let now = read(&self.file).map_err(|error| format!("{error:#}"));
        if now == self.last {
            return None;
        }
        let change = match &now {
            Ok(text) => self.change(text).unwrap_or_else(|error| ConfigurationChange::Refused(format!("{error:#}"))),
            Err(reason) => ConfigurationChange::Refused(reason.clone()),
        };
        self.last = now;
        Some(change)
    }

    fn change(&mut self, text: &str) -> Result<ConfigurationChange> {
        let configuration = of_text(&self.options, &self.file, text)?;
        let Built { descheduler, migration } = build(&configuration.values)?;
        let effective = configuration.effective()?;
        let values = configuration.values;
        let args = migration.as_ref().map(|(_, args)| args.clone());
        let fixed =
            [fixed_fields(&self.in_effect, &values), fixed_args(self.migration.as_ref(), args.as_ref())].concat();
        if !fixed.is_empty() {
            return Ok(ConfigurationChange::NeedsRestart(fixed));
        }
        let keeps_memory = values.profiles == self.in_effect.profiles;
        let changed = changed_fields(&self.in_effect, &values)?;
        let taken = Reconfiguration {
            descheduler,
            interval: values.descheduling_interval.to_std().unwrap_or_default(),
            behaviour: behaviour(&values),
            migration: migration.map(|(plugin, args)| (plugin, arbitration_interval(&args))),
            keeps_memory,
            changed,
            shown: configz_text(&effective),
        };
        (self.in_effect, self.migration) = (values, args);
        Ok(ConfigurationChange::Taken(Box::new(taken)))
    }
}

/// What a configuration says beside profiles.
pub(crate) fn behaviour(values: &DeschedulerConfiguration) -> Behaviour {
    Behaviour { is_dry_run: values.dry_run, prometheus: values.prometheus().cloned() }
}

/// How often PodMigrationJobs are arbitrated.
pub(crate) fn arbitration_interval(args: &MigrationControllerArgs) -> Duration {
    args.arbitration_args.interval.to_std().unwrap_or_default()
}

/// Looks for changes of the file until `end`.
pub(crate) async fn follow(
    mut file: ConfigurationFile,
    clock: SharedClock,
    changes: Sender<ConfigurationChange>,
    end: CancellationToken,
) {
    let looking = async {
        loop {
            clock.sleep(EVERY).await;
            if let Some(change) = file.look()
                && changes.send(change).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! { biased; () = end.cancelled() => {}, () = looking => {} }
}

/// The fields that are different and only count when the program starts.
fn fixed_fields(before: &DeschedulerConfiguration, after: &DeschedulerConfiguration) -> Vec<String> {
    let plans = |values: &DeschedulerConfiguration| {
        values.profiles.iter().any(|profile| profile.planning != koord_config::descheduler::Planning::Off)
    };
    let differs = [
        ("planning, from `off` in all profiles or to that", plans(before) != plans(after)),
        ("leaderElection", before.leader_election != after.leader_election),
        ("clientConnection", before.client_connection != after.client_connection),
        ("healthzBindAddress", before.healthz_bind_address != after.healthz_bind_address),
        ("metricsBindAddress", before.metrics_bind_address != after.metrics_bind_address),
        ("enableProfiling", before.enable_profiling != after.enable_profiling),
        ("enableContentionProfiling", before.enable_contention_profiling != after.enable_contention_profiling),
    ];
    differs.iter().filter(|(_, differs)| *differs).map(|(field, _)| (*field).to_owned()).collect()
}

/// The same of MigrationController: the controller of PodMigrationJobs runs from the start on, or not at all.
fn fixed_args(before: Option<&MigrationControllerArgs>, after: Option<&MigrationControllerArgs>) -> Vec<String> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return Vec::new(),
        _ => return vec!["whether MigrationController is enabled".to_owned()],
    };
    let differs = [
        ("defaultJobMode", before.default_job_mode != after.default_job_mode),
        ("evictionPolicy", before.eviction_policy != after.eviction_policy),
        ("evictQPS", before.evict_qps != after.evict_qps),
        ("evictBurst", before.evict_burst != after.evict_burst),
    ];
    let differs = differs.iter().filter(|(_, differs)| *differs);
    differs.map(|(field, _)| format!("{field} of MigrationController")).collect()
}

/// The fields of a configuration that are different.
fn changed_fields(before: &DeschedulerConfiguration, after: &DeschedulerConfiguration) -> Result<Vec<String>> {
    let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
    let fields = after.as_object().into_iter().flatten();
    let changed = fields.filter(|(field, value)| before.get(*field).unwrap_or(&Value::Null) != *value);
    let changed: Vec<String> = changed.map(|(field, _)| field.clone()).collect();
    Ok(if changed.is_empty() { vec!["nothing but its text".to_owned()] } else { changed })
}

/// A cell for what `/configz` shows.
pub(crate) fn shown(effective: &Value) -> Arc<RwLock<Arc<str>>> {
    Arc::new(RwLock::new(configz_text(effective)))
}

#[cfg(test)]
mod tests {
    use koord_descheduler_assembly::Configuration;

    use super::*;

    const HEAD: &str = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n";

    struct Stage {
        folder: tempfile::TempDir,
        file: ConfigurationFile,
    }

    impl Stage {
        fn new(text: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config.yaml");
            std::fs::write(&path, format!("{HEAD}{text}")).unwrap();
            let arguments = ["koord-descheduler".to_owned(), format!("--config={}", path.display())];
            let options = Options::from_arguments(arguments).unwrap();
            let (configuration, text): (Configuration, _) = crate::configuration_with_text(&options).unwrap();
            let built = build(&configuration.values).unwrap();
            Self { file: ConfigurationFile::of(&options, text, &configuration, &built).unwrap(), folder }
        }

        /// What becomes of a change, without the folder: `taken`, `refused` or `needs_restart`, and what is said about it.
        fn change(&mut self, text: &str) -> Option<(&'static str, String)> {
            std::fs::write(self.folder.path().join("config.yaml"), format!("{HEAD}{text}")).unwrap();
            self.look()
        }

        fn look(&mut self) -> Option<(&'static str, String)> {
            let folder = format!("{}/", self.folder.path().display());
            Some(match self.file.look()? {
                ConfigurationChange::Taken(taken) => ("taken", taken.changed.join(", ")),
                ConfigurationChange::Refused(reason) => ("refused", reason.replace(&folder, "")),
                ConfigurationChange::NeedsRestart(fields) => ("needs_restart", fields.join(", ")),
            })
        }
    }

    fn said(result: &'static str, text: &str) -> (&'static str, String) {
        (result, text.to_owned())
    }

    #[test]
    fn what_passes_do_can_change_while_the_program_runs() {
        let mut stage = Stage::new("deschedulingInterval: 10s\n");
        assert_eq!(stage.look(), None);
        for (text, changed) in [
            ("deschedulingInterval: 20s\n", "deschedulingInterval"),
            ("deschedulingInterval: 20s\ndryRun: true\n", "dryRun"),
            ("deschedulingInterval: 20s\nmaxNoOfPodsToEvictTotal: 3\n", "dryRun, maxNoOfPodsToEvictTotal"),
            ("nodeSelector: {matchLabels: {a: b}}\n", "deschedulingInterval, maxNoOfPodsToEvictTotal, nodeSelector"),
            ("nodeSelector: {matchLabels: {a: b}}\nprofiles: [{name: p}]\n", "profiles"),
            ("# the same\nnodeSelector: {matchLabels: {a: b}}\nprofiles: [{name: p}]\n", "nothing but its text"),
        ] {
            assert_eq!(stage.change(text), Some(said("taken", changed)), "{text}");
            assert_eq!(stage.look(), None, "once");
        }
    }

    #[test]
    fn what_counts_from_the_start_on_needs_a_restart_and_nothing_of_the_file_is_taken() {
        let migration = |args: &str| {
            format!("profiles: [{{name: p, pluginConfig: [{{name: MigrationController, args: {args}}}]}}]\n")
        };
        let without = "profiles: [{name: p, plugins: {evict: {disabled: [{name: '*'}], enabled: [{name: DefaultEvictor}]}, filter: {disabled: [{name: '*'}]}}}]\n";
        let mut stage = Stage::new(&migration("{maxMigratingPerNode: 1}"));
        for (text, fields) in [
            ("dryRun: true\nleaderElection: {leaseDuration: 30s}\n".to_owned(), "leaderElection"),
            (
                "healthzBindAddress: 0.0.0.0:1\nmetricsBindAddress: 0.0.0.0:1\n".to_owned(),
                "healthzBindAddress, metricsBindAddress",
            ),
            (
                "clientConnection: {qps: 1}\nenableProfiling: false\n".to_owned(),
                "clientConnection, enableProfiling, enableContentionProfiling",
            ),
            (
                migration("{evictionPolicy: Delete, defaultJobMode: EvictDirectly}"),
                "defaultJobMode of MigrationController, evictionPolicy of MigrationController",
            ),
            (
                migration("{evictQPS: 1, evictBurst: 2}"),
                "evictQPS of MigrationController, evictBurst of MigrationController",
            ),
            (without.to_owned(), "whether MigrationController is enabled"),
        ] {
            assert_eq!(stage.change(&text), Some(said("needs_restart", fields)), "{text}");
            assert_eq!(stage.look(), None, "once");
        }
        assert_eq!(
            stage.change(&migration("{maxMigratingPerNode: 2}")),
            Some(said("taken", "profiles")),
            "limits of migrations can change"
        );
    }

    #[test]
    fn a_file_that_is_wrong_or_gone_is_refused_once_and_taken_when_it_is_right_again() {
        let mut stage = Stage::new("dryRun: true\n");
        let wrong = "config.yaml:3: dryRuns: unknown field; did you mean dryRun?";
        assert_eq!(stage.change("dryRuns: true\n"), Some(said("refused", wrong)));
        assert_eq!(stage.look(), None, "once");
        std::fs::remove_file(stage.folder.path().join("config.yaml")).unwrap();
        let (result, reason) = stage.look().unwrap();
        assert!(result == "refused" && reason.starts_with("--config config.yaml cannot be read: "), "{reason}");
        let unbuildable =
            "profiles: [{name: p, pluginConfig: [{name: MigrationController, args: {nodeSelector: 'a in b'}}]}]\n";
        assert_eq!(stage.change(unbuildable).unwrap().0, "refused");
        assert_eq!(stage.change("dryRun: true\n"), Some(said("taken", "nothing but its text")));
    }
}
