//! The command line of Koordinator; its commands are modules of the library beside it, and `koordctl --help` lists them.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::FromArgMatches as _;
use koord_program::output::print;
use koordctl::{Cli, FAILED, error_text::in_words};

#[tokio::main]
async fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let matches = koordctl::command(&program.to_string_lossy()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let output = cli.command.output().unwrap_or_default();
    match koordctl::run(cli).await {
        Ok(answer) => print("koordctl", &answer.text, answer.code),
        Err(error) => {
            let why = in_words(&error);
            let _ = writeln!(io::stderr(), "koordctl: {why}");
            print("koordctl", &output.error(&why), FAILED)
        }
    }
}
