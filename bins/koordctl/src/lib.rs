//! koordctl, as a library: the command line, and what the commands write.
//!
//! It decides nothing itself. Commands that other programs could ask for too are crates: [`koord_doctor`], [`koord_explain`], [`koord_lint`],
//! [`koord_scheduler_coexist`], [`koord_scheduler_bench`]. The others are modules, and what they plan and refuse comes from the functions of
//! koord-manager and koord-scheduler. Read first:
//! [`cli`] (the commands and their options), [`run`] (which carries one out), [`up::Cluster`] (the cluster of `up`, which the
//! integration suite starts too).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod bench;
pub mod cli;
pub mod coexist;
pub mod config;
pub mod convert;
pub mod crd;
pub mod deschedule;
pub mod explain;
mod html;
pub mod new;
pub mod node;
pub mod plan;
pub mod profile;
pub mod queue;
pub mod reference;
mod running;
pub mod simulate;
pub mod snapshot;
pub mod up;
pub mod version;
pub mod why;

use anyhow::Result;
use clap::CommandFactory as _;
pub use cli::Cli;
pub use koord_manager_assembly::reviewer;
use koord_program::target;
pub use koord_program::{
    connect, error_text, files, listing, names,
    output::{Answer, FAILED},
    permission, screen, table, units,
};
use screen::Screen;

/// The command line of a program of this name: as a plugin of kubectl it speaks of `kubectl koord`.
pub fn command(program: &str) -> clap::Command {
    let name = std::path::Path::new(program).file_stem().and_then(std::ffi::OsStr::to_str);
    let is_plugin = name.is_some_and(|name| matches!(name, "kubectl-koord" | "kubectl_koord"));
    Cli::command().bin_name(if is_plugin { "kubectl koord" } else { "koordctl" })
}

/// Does what the command line asks for; the answer fits into the terminal.
pub async fn run(cli: Cli) -> Result<Answer> {
    run_on(cli, Screen::of_stdout()).await
}

/// Does what the command line asks for, with an answer for this screen.
pub async fn run_on(cli: Cli, screen: Screen) -> Result<Answer> {
    match cli.command {
        cli::Command::Crd { command } => crd::run(&command).await,
        cli::Command::Doctor(args) => koord_doctor::run(&args.options(), screen).await,
        cli::Command::Coexist { command } => coexist::run(&command, screen).await,
        cli::Command::Explain { command } => explain::run(&command, screen).await,
        cli::Command::Profile { command } => profile::run(&command, screen).await,
        cli::Command::Plan(args) => plan::run(&args, screen).await,
        cli::Command::Deschedule { command } => deschedule::run(&command, screen).await,
        cli::Command::Why(args) => why::run(&args, screen).await,
        cli::Command::Snapshot { command } => snapshot::run(&command, screen).await,
        cli::Command::Bench(args) => bench::run(&args, screen).await,
        cli::Command::Simulate(args) => simulate::run(&args, screen).await,
        cli::Command::Queue { command } => queue::run(&command, screen).await,
        cli::Command::Config { command } => config::run(&command, screen).await,
        cli::Command::Convert(args) => convert::run(&args, screen).await,
        cli::Command::Lint(args) => koord_lint::run(&args.options()),
        cli::Command::Node { command } => node::run(&command, screen).await,
        cli::Command::New { command } => new::run(&command),
        cli::Command::Version(args) => Ok(version::run(&args).await),
        cli::Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "koordctl", &mut script);
            Ok(Answer::success(String::from_utf8(script)?))
        }
        cli::Command::Up(args) => up::run(&args, screen).await,
    }
}
