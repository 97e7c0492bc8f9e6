//! The configuration of the flags: read, checked and completed before anything is contacted.

use std::path::Path;

use anyhow::{Context as _, Result};
use koord_config::Kind;
use koord_configuration::Source;
use koord_descheduler_assembly::Configuration;
use koord_program::files::read_configuration;
use koord_scheduler_assembly::Configuration as SchedulerConfiguration;
use serde_json::json;

use crate::options::Options;

/// The configuration of the flags: their file, or one profile with the default plugins.
pub fn configuration(options: &Options) -> Result<Configuration> {
    configuration_with_text(options).map(|(configuration, _)| configuration)
}

/// The same with the text of the file, if there is one.
pub fn configuration_with_text(options: &Options) -> Result<(Configuration, Option<String>)> {
    let Some(file) = &options.config else {
        let document = json!({"apiVersion": Kind::Descheduler.api_version(), "kind": Kind::Descheduler.name()});
        let source = Source::new("the flags", "");
        let configuration = Configuration::with_flags(&document, &source, |document| options.apply_to(document, true))?;
        return Ok((configuration, None));
    };
    let text = read(file)?;
    Ok((of_text(options, file, &text)?, Some(text)))
}

/// The text of a configuration file.
pub(crate) fn read(file: &Path) -> Result<String> {
    read_configuration(file).with_context(|| format!("--config {} cannot be read", file.display()))
}

/// The configuration that a file has, with the flags laid over it.
pub(crate) fn of_text(options: &Options, file: &Path, text: &str) -> Result<Configuration> {
    let name = file.display().to_string();
    let source = Source::new(&name, text);
    Configuration::with_flags(&source.parse()?, &source, |document| options.apply_to(document, false))
}

/// The scheduler's configuration of the flags: their file, or the one that is shipped.
pub(crate) fn scheduler_configuration(options: &Options) -> Result<SchedulerConfiguration> {
    let Some(file) = &options.scheduler_config else { return SchedulerConfiguration::shipped_for_all_pods() };
    let name = file.display().to_string();
    let text = read_configuration(file).with_context(|| format!("--scheduler-config {name} cannot be read"))?;
    SchedulerConfiguration::of_source(&Source::new(&name, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(text: &str) -> Result<Configuration, String> {
        configured_with(text, "--config", &[])
    }

    fn configured_with(text: &str, flag: &str, further: &[&str]) -> Result<Configuration, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let arguments = ["koord-descheduler".to_owned(), format!("{flag}={}", file.display())];
        let arguments = arguments.into_iter().chain(further.iter().map(|flag| (*flag).to_owned()));
        let configuration = configuration(&Options::from_arguments(arguments).unwrap());
        let folder = format!("{}/", folder.path().display());
        configuration.map_err(|error| format!("{error:#}").replace(&folder, ""))
    }

    const HEAD: &str = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n";

    #[test]
    fn every_mistake_has_its_file_line_field_and_remedy() {
        let text = format!("{HEAD}dryRun: true\nmaxNoOfPodsToEvictPerNodes: 3\n");
        let message = configured(&text).unwrap_err();
        assert!(message.starts_with("config.yaml:4: maxNoOfPodsToEvictPerNodes"), "{message}");
        assert!(message.ends_with("did you mean maxNoOfPodsToEvictPerNode?"), "{message}");
        assert_eq!(configured(HEAD).unwrap().values.profiles[0].name, "koord-descheduler");
    }

    const POLICY: &str = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool=a
profiles:
- name: p
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
";

    #[test]
    fn a_policy_of_kubernetes_sigs_descheduler_runs_with_its_own_flags() {
        let flags = ["--descheduling-interval=5m", "--dry-run", "--leader-elect=false", "--client-connection-qps=7"];
        let configured = configured_with(POLICY, "--policy-config-file", &flags).unwrap();
        let values = &configured.values;
        assert_eq!(values.descheduling_interval, koord_resource::Duration::from_secs(300));
        assert!(values.dry_run && !values.leader_election.leader_elect);
        assert!((values.client_connection.qps - 7.0).abs() < f64::EPSILON);
        assert_eq!(values.profiles[0].plugins.evict.enabled[0].name, "DefaultEvictor");
        assert_eq!(configured.notes(), []);
        assert!(!configured.ends_after_a_pass());
        let once = configured_with(POLICY, "--config", &[]).unwrap();
        assert!(once.ends_after_a_pass(), "as that of kubernetes-sigs/descheduler does without an interval");
        assert_eq!(once.notes().len(), 1, "leader election is on");
    }

    #[test]
    fn a_mistake_in_a_policy_has_its_line_there_and_one_in_a_flag_has_none() {
        let message = self::configured(&POLICY.replace("NodeTaints", "NodeTaint")).unwrap_err();
        assert!(message.starts_with("config.yaml:8: profiles[0].plugins.deschedule.enabled[0]: "), "{message}");
        assert!(message.ends_with("did you mean RemovePodsViolatingNodeTaints?"), "{message}");
        let message = configured_with(POLICY, "--config", &["--leader-elect-lease-duration=1s"]).unwrap_err();
        assert!(message.starts_with("the flags:1: leaderElection.leaseDuration: "), "{message}");
        let message = self::configured(&POLICY.replace("v1alpha2", "v1beta1")).unwrap_err();
        assert!(message.contains("are read in descheduler/v1alpha1 and descheduler/v1alpha2"), "{message}");
    }

    #[test]
    fn the_flags_of_kubernetes_sigs_descheduler_count_for_a_configuration_too() {
        let text = format!("{HEAD}deschedulingInterval: 1m\n");
        let configured = configured_with(&text, "--config", &["--dry-run", "--descheduling-interval=2m"]).unwrap();
        assert!(configured.values.dry_run && !configured.ends_after_a_pass());
        assert_eq!(configured.values.descheduling_interval, koord_resource::Duration::from_secs(120));
        assert!(!self::configured(HEAD).unwrap().ends_after_a_pass(), "as in the original");
    }

    #[test]
    fn a_file_that_is_missing_or_of_another_kind_is_refused() {
        let arguments = ["koord-descheduler", "--config=/nonexistent/file"].map(str::to_owned);
        let error = configuration(&Options::from_arguments(arguments).unwrap()).unwrap_err();
        assert!(format!("{error:#}").starts_with("--config /nonexistent/file cannot be read"), "{error:#}");
        let message = configured("apiVersion: v1\nkind: ConfigMap\n").unwrap_err();
        assert!(message.contains("DeschedulerConfiguration"), "{message}");
    }
}
