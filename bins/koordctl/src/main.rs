//! See `koordctl --help`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::FromArgMatches as _;
use koord_runtime::error::in_one_line;
use koordctl::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let matches = koordctl::command(&program.to_string_lossy()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match koordctl::run(cli).await {
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
