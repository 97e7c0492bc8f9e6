//! `postgres-operator manifests` prints what an installation consists of, `--plan` what would be written now; without
//! either the operator runs.

use std::process::ExitCode;

use koord::{
    program::{Dependencies, print_manifests, run_configured},
    webhook::{Defaults, Environment},
};
use postgres_operator::{
    configuration::OperatorConfiguration,
    operator::{self, BUILD},
};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, operator::manifests) {
        return code;
    }
    run_configured(
        BUILD,
        |setup, configuration: OperatorConfiguration| operator::add_controllers(setup, configuration.backups()?),
        async |settings, configuration: OperatorConfiguration, stop| {
            let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
            let environment = Environment::read(Defaults::of(BUILD.program, BUILD.namespace))?;
            operator::run(settings, dependencies, environment, configuration.backups()?, stop).await
        },
    )
}
