//! The configuration of the flags: read, checked and completed before anything is contacted.

use anyhow::{Context as _, Result};
use koord_config::Kind;
use koord_configuration::{LeaderElection, Source};
use koord_descheduler_assembly::Configuration;
use koord_program::files::read_configuration;
use koord_scheduler_assembly::Configuration as SchedulerConfiguration;
use serde_json::json;

use crate::options::Options;

/// The configuration of the flags: their file, or one profile with the default plugins.
pub fn configuration(options: &Options) -> Result<Configuration> {
    let Some(file) = &options.config else {
        let mut document = json!({"apiVersion": Kind::Descheduler.api_version(), "kind": Kind::Descheduler.name()});
        options.apply_to(&mut document, true);
        return Configuration::of_document(document, &Source::new("the flags", ""));
    };
    let text = read_configuration(file).with_context(|| format!("--config {} cannot be read", file.display()))?;
    let name = file.display().to_string();
    let source = Source::new(&name, &text);
    let mut document = LeaderElection::without_unset(&source.parse()?);
    options.apply_to(&mut document, false);
    Configuration::of_document(document, &source)
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
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let arguments = ["koord-descheduler".to_owned(), format!("--config={}", file.display())];
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

    #[test]
    fn a_file_that_is_missing_or_of_another_kind_is_refused() {
        let arguments = ["koord-descheduler", "--config=/nonexistent/file"].map(str::to_owned);
        let error = configuration(&Options::from_arguments(arguments).unwrap()).unwrap_err();
        assert!(format!("{error:#}").starts_with("--config /nonexistent/file cannot be read"), "{error:#}");
        let message = configured("apiVersion: v1\nkind: ConfigMap\n").unwrap_err();
        assert!(message.contains("DeschedulerConfiguration"), "{message}");
    }
}
