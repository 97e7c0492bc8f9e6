//! `postgres-operator manifests` prints what an installation consists of; without arguments the operator runs.

use std::process::ExitCode;

use koord::{
    document::yaml,
    program::{Dependencies, read_flags, run},
};
use postgres_operator::{
    manifests,
    operator::{self, BUILD},
};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        return run(
            BUILD.program,
            |_| Ok(()),
            async |(), _| {
                print!("{}", yaml::stream(&manifests())?);
                Ok(())
            },
        );
    }
    run(
        BUILD.program,
        |arguments| read_flags(&BUILD, arguments),
        async |settings, stop| {
            let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
            operator::run(settings, dependencies, operator::environment()?, stop).await
        },
    )
}
