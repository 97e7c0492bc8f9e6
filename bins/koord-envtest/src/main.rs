//! The embedded Kubernetes API server as a program.

mod arguments;
mod run;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match run::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("koord-envtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}
