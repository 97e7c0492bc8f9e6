//! See `koordctl --help`.

use std::process::ExitCode;

use clap::Parser as _;
use koordctl::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match koordctl::run(Cli::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("koordctl: {error:#}");
            ExitCode::FAILURE
        }
    }
}
