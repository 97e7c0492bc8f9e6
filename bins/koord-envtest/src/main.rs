//! The embedded Kubernetes API server as a program.
//!
//! Flags and wiring: what the server does is in [`envtest`]. Read first: `arguments` (the flags), `run` (what is wired).

mod arguments;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    koord_program::run("koord-envtest", arguments::Arguments::try_parse_from, run::run)
}
