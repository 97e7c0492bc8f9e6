//! What `deschedule` shows.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use koord_program::flags::time;

use super::shared::{AnswerArgs, name, namespace};

/// What `deschedule` shows.
#[derive(Debug, Subcommand)]
pub enum DescheduleCommand {
    /// Show which pods a pass would evict, why, and which nodes their successors would get
    #[command(after_help = "\
Examples:
  koordctl deschedule plan --config descheduler.yaml
  koordctl deschedule plan --config descheduler.yaml -f objects.yaml -o json

A cluster is only read, with one list per collection; nothing is written. Each eviction is followed through: the pod is taken away, its successor is
scheduled, and the next eviction sees the result. The pass is the first of a descheduler that starts now: what strategies remember of earlier passes,
such as how long a node has been hot, is not known. Exit code: 0 when every eviction is worth it, 1 when some are not, 2 when it cannot be determined.")]
    Plan(DeschedulePlanArgs),
    /// Show why a pass would evict a pod, or why each strategy leaves it
    #[command(after_help = "\
Example:  koordctl deschedule why web-0 -n shop --config descheduler.yaml

Exit code: 0 when the pod would stay, 1 when it would be evicted, 2 when it cannot be determined.")]
    Why(DescheduleWhyArgs),
}

/// Which descheduler, and of which cluster.
#[derive(Clone, Debug, Args)]
pub struct DeschedulerArgs {
    /// The configuration of the descheduler: a DeschedulerConfiguration, or a DeschedulerPolicy of kubernetes-sigs/descheduler
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, visible_alias = "snapshot", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Evaluate at this time, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `deschedule plan`.
#[derive(Clone, Debug, Args)]
pub struct DeschedulePlanArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub descheduler: DeschedulerArgs,
    /// The configuration of the scheduler, KubeSchedulerConfiguration; without it the one that Koordinator ships
    #[arg(long, value_name = "FILE")]
    pub scheduler_config: Option<PathBuf>,
    /// Feature gates of the scheduler
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
}

/// Options of `deschedule why`.
#[derive(Clone, Debug, Args)]
pub struct DescheduleWhyArgs {
    /// Name of the pod
    #[arg(value_parser = name)]
    pub pod: String,
    /// Namespace of the pod
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = namespace)]
    pub namespace: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub descheduler: DeschedulerArgs,
}
