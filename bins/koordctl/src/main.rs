//! See `koordctl --help`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::FromArgMatches as _;
use koordctl::{Cli, cli::OutputFormat, error_text::in_words};
use serde_json::json;

#[tokio::main]
async fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let matches = koordctl::command(&program.to_string_lossy()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let for_programs = cli.command.output().filter(|format| *format != OutputFormat::Table);
    match koordctl::run(cli).await {
        Ok(answer) => print(&answer.text, answer.code),
        Err(error) => {
            let why = in_words(&error);
            let _ = writeln!(io::stderr(), "koordctl: {why}");
            let text =
                for_programs.and_then(|format| format.document(&json!({ "error": why })).ok()).unwrap_or_default();
            print(&text, koordctl::FAILED)
        }
    }
}

fn print(text: &str, code: u8) -> ExitCode {
    let mut output = io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "koordctl: the answer cannot be written: {error}");
            ExitCode::from(koordctl::FAILED)
        }
        _ => ExitCode::from(code),
    }
}
