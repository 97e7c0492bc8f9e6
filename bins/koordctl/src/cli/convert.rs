//! Options of `convert`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use koord_program::flags::{span, time};

use super::shared::AnswerArgs;

/// Options of `convert`.
#[derive(Clone, Debug, Args)]
pub struct ConvertArgs {
    /// The policy, in YAML or JSON, or a ConfigMap that holds it; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub file: PathBuf,
    /// The plugin that evicts
    #[arg(long, value_enum, default_value_t = Evictor::DefaultEvictor, value_name = "PLUGIN")]
    pub evictor: Evictor,
    /// The time between passes, which kubernetes-sigs/descheduler takes from this flag
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub descheduling_interval: Option<Duration>,
    /// Make a configuration that evicts nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Compare the pods that a pass would evict with the policy and with the configuration, instead of printing the configuration
    #[arg(long)]
    pub check: bool,
    /// With --check: a DeschedulerConfiguration to compare with, such as one that was changed after it was made
    #[arg(long, value_name = "FILE", requires = "check")]
    pub config: Option<PathBuf>,
    /// With --check: files with the objects instead of a cluster: YAML or JSON, also lists and folders
    #[arg(long, value_name = "FILE", requires = "check")]
    pub snapshot: Vec<PathBuf>,
    /// With --check: evaluate at this time, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time, requires = "check")]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// The plugin that evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Evictor {
    /// By the eviction API, as kubernetes-sigs/descheduler does
    #[value(name = "DefaultEvictor")]
    DefaultEvictor,
    /// By PodMigrationJobs; what it does not have of the evictor's arguments is reported
    #[value(name = "MigrationController")]
    MigrationController,
}
