//! `postgres-operator manifests` prints what an installation consists of, `--plan` what would be written now; without
//! either the operator runs.

use std::process::ExitCode;

use koord::program::{Dependencies, print_manifests, run_or_plan};
use postgres_operator::{
    manifests,
    operator::{self, BUILD},
};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run_or_plan(
        BUILD,
        |setup| operator::add_controllers(setup, operator::backups()?),
        async |settings, stop| {
            let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
            operator::run(settings, dependencies, operator::environment()?, operator::backups()?, stop).await
        },
    )
}
