//! The embedded Kubernetes API server as a program.

mod arguments;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    koord_program::run("koord-envtest", arguments::Arguments::try_parse_from, run::run)
}
