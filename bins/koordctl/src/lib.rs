//! koordctl, as a library: each command is a module.
//!
//! [`cli`] says what can be asked for, [`run`] does it. `up` is also what the integration suite starts its clusters with.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cli;
pub mod connect;
pub mod version;

use std::{io, process::ExitCode};

use anyhow::Result;
use clap::CommandFactory as _;
pub use cli::Cli;

/// Does what the command line asks for.
pub async fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        cli::Command::Version(args) => version::run(&args).await?,
        cli::Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "koordctl", &mut io::stdout());
        }
        cli::Command::Up(_) | cli::Command::Crd { .. } => anyhow::bail!("this build has no embedded server yet"),
    }
    Ok(ExitCode::SUCCESS)
}
