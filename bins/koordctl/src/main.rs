//! See `koordctl --help`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use koord_runtime::error::in_one_line;
use koordctl::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match koordctl::run(Cli::parse()).await {
        Ok(answer) => {
            // Whoever closed the pipe has read enough.
            let _ = io::stdout().write_all(answer.text.as_bytes());
            ExitCode::from(answer.code)
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "koordctl: {}", in_one_line(error.as_ref()));
            ExitCode::from(koordctl::FAILED)
        }
    }
}
