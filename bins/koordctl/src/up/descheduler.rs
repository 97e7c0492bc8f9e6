//! koord-descheduler in the process of `up`.

use std::path::Path;

use anyhow::{Context as _, Result};
use koord_configuration::Source;
use koord_descheduler::{Settings, run_with};
use koord_descheduler_assembly::Configuration;
use koord_program::{Dependencies, files::read_configuration};
use koord_runtime::{clock::SharedClock, random::Random};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::deschedule::CONFIG_MAP;

/// The configuration where the user names none.
const CONFIGURATION: &str = include_str!("../../up/descheduler.yaml");

/// The configuration of a file, or the one of `up`: its name, and its text.
fn text(file: Option<&Path>) -> Result<(String, String)> {
    let Some(file) = file else { return Ok(("the configuration of up".to_owned(), CONFIGURATION.to_owned())) };
    let name = file.display().to_string();
    let text = read_configuration(file).with_context(|| format!("--descheduler-config {name} cannot be read"))?;
    Ok((name, text))
}

/// The configuration of a file, or the one of `up`. There is one replica.
pub fn configuration(file: Option<&Path>) -> Result<Configuration> {
    let (name, text) = text(file)?;
    let source = Source::new(&name, &text);
    Configuration::with_flags(&source.parse()?, &source, |document| {
        document["leaderElection"] = json!({"leaderElect": false});
    })
}

/// The ConfigMap with the configuration, where `koordctl deschedule` looks for it.
pub fn config_map(file: Option<&Path>) -> Result<Value> {
    let metadata = json!({"name": CONFIG_MAP, "namespace": super::install::NAMESPACE});
    Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG_MAP: text(file)?.1}}))
}

/// Deschedules pods until it is dropped.
pub async fn run(client: Client, clock: SharedClock, seed: u64, configuration: Configuration) -> Result<()> {
    let dependencies = Dependencies { client, api_host: "in-process".to_owned(), clock, random: Random::seeded(seed) };
    run_with(Settings::within(configuration)?, dependencies, None, CancellationToken::new()).await
}

#[cfg(test)]
mod tests {
    use koord_config::descheduler::Planning;

    use super::*;

    #[test]
    fn what_it_does_is_worth_it() {
        let values = configuration(None).unwrap().values;
        assert_eq!(values.profiles[0].planning, Planning::Enforce);
        assert!(!values.leader_election.leader_elect);
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let error = configuration(Some(Path::new("/nonexistent"))).unwrap_err();
        assert!(format!("{error:#}").starts_with("--descheduler-config /nonexistent cannot be read"), "{error:#}");
    }
}
