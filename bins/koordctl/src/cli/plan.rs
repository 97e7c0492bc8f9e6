//! Options of `plan`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use koord_program::flags::time;

use super::shared::AnswerArgs;

/// Options of `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Another program whose writes are planned: one that is made with the library and knows --plan
    #[arg(long, value_name = "PROGRAM", conflicts_with = "controllers")]
    pub program: Option<PathBuf>,
    /// Which controllers plan, as --controllers of koord-manager takes them; without it those of the manager's default
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub controllers: Option<String>,
    /// The time for which it is planned, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
    /// Further flags of the program whose writes are planned, such as --feature-gates and --config-namespace of koord-manager
    #[arg(last = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}
