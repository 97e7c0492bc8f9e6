//! `cronjob manifests` prints what an installation consists of, `--plan` what would be written now; without either the
//! operator runs.

use std::process::ExitCode;

use cronjob::{
    manifests,
    operator::{self, BUILD},
};
use koord::program::{print_manifests, run_controllers};

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run_controllers(BUILD, operator::add)
}
