//! `cronjob manifests` prints what an installation consists of, `--plan` what would be written now; without either the
//! operator runs.

use std::process::ExitCode;

use cronjob::{
    manifests,
    operator::{self, BUILD},
};
use koord::program::{print_manifests, run_or_plan};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run_or_plan(BUILD, operator::add, operator::run)
}
