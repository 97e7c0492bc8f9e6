//! `postgres-operator manifests` prints what an installation consists of; without arguments the operator runs.

use std::process::ExitCode;

use koord::program::{Dependencies, print_manifests, read_flags, run};
use postgres_operator::{
    manifests,
    operator::{self, BUILD},
};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run(
        BUILD.program,
        |arguments| read_flags(&BUILD, arguments),
        async |settings, stop| {
            let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
            operator::run(settings, dependencies, operator::environment()?, operator::backups()?, stop).await
        },
    )
}
