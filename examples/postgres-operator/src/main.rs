//! `postgres-operator manifests` prints what an installation consists of, `--plan` what would be written now; without
//! either the operator runs.

use std::process::ExitCode;

use koord::program::{print_manifests, run_configured};
use postgres_operator::{
    configuration::OperatorConfiguration,
    operator::{self, BUILD},
};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, operator::manifests) {
        return code;
    }
    run_configured(BUILD, |setup, configuration: OperatorConfiguration| operator::add(setup, configuration.backups()?))
}
