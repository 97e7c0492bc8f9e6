//! What `deschedule` shows.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use koord_program::{flags::time, output::OutputFormat};

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
    /// Show what has changed since a plan was made: which steps are gone, new, or lead elsewhere
    #[command(after_help = "\
Examples:
  koordctl deschedule plan --config descheduler.yaml -o json > plan.json
  koordctl deschedule diff plan.json --config descheduler.yaml
  koordctl deschedule diff old.json new.json

Exit code: 0 when the plans have the same steps, 1 when they differ, 2 when it cannot be determined.")]
    Diff(DescheduleDiffArgs),
    /// Carry out a plan that was shown, step by step
    #[command(after_help = "\
Example:
  koordctl deschedule plan --config descheduler.yaml -o json > plan.json
  koordctl deschedule apply plan.json --config descheduler.yaml

The plan is computed again, and nothing is done where it differs from the one that was shown. Pods are evicted, and PodMigrationJobs created, with your own
permissions. Exit code: 0 when all steps are done, 1 when the plan has changed or a step failed, 2 when it cannot be determined.")]
    Apply(DescheduleApplyArgs),
    /// Show which pods were evicted, from where to where, and why
    #[command(after_help = "\
Examples:
  koordctl deschedule history
  koordctl deschedule history -n shop --owner web-5d8f9c

koord-descheduler keeps the latest 500 evictions of profiles with `planning: report` or `enforce`. ROUND counts evictions for the same reason that followed each
other; TO in brackets is the node that the successor was expected to get.")]
    History(DescheduleHistoryArgs),
    /// Show why a pass would evict a pod, or why each strategy leaves it
    #[command(after_help = "\
Example:  koordctl deschedule why web-0 -n shop --config descheduler.yaml

Exit code: 0 when the pod would stay, 1 when it would be evicted, 2 when it cannot be determined.")]
    Why(DescheduleWhyArgs),
}

impl DescheduleCommand {
    /// How the answer is written.
    pub fn output(&self) -> Option<OutputFormat> {
        let answer = match self {
            Self::Plan(args) => &args.planned.descheduler.answer,
            Self::Diff(args) => &args.answer,
            Self::Apply(_) => return None,
            Self::Why(args) => &args.descheduler.answer,
            Self::History(args) => &args.answer,
        };
        Some(answer.output)
    }
}

/// Which descheduler, and of which cluster.
#[derive(Clone, Debug, Args)]
pub struct DeschedulerArgs {
    /// The configuration of the descheduler: a DeschedulerConfiguration
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

/// What it takes to compute a plan.
#[derive(Clone, Debug, Args)]
pub struct PlannedArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub descheduler: DeschedulerArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub foresight: ForesightArgs,
}

/// What it takes to follow evictions through the scheduler.
#[derive(Clone, Debug, Args)]
pub struct ForesightArgs {
    /// The configuration of the scheduler, KubeSchedulerConfiguration; without it the one that Koordinator ships
    #[arg(long, value_name = "FILE")]
    pub scheduler_config: Option<PathBuf>,
    /// Feature gates of the scheduler
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    /// Namespace of the Lease of koord-descheduler, in which it keeps the history of evictions
    #[arg(long, value_name = "NAME", default_value = "koordinator-system", value_parser = namespace)]
    pub system_namespace: String,
}

/// Options of `deschedule plan`.
#[derive(Clone, Debug, Args)]
pub struct DeschedulePlanArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub planned: PlannedArgs,
    /// Write a report to this file, too: one page for a browser, with the nodes before and after
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Options of `deschedule diff`.
#[derive(Clone, Debug, Args)]
pub struct DescheduleDiffArgs {
    /// A plan that was saved with `deschedule plan -o json`
    #[arg(value_name = "PLAN")]
    pub old: PathBuf,
    /// Another one; without it the plan of now, for which --config is needed
    #[arg(value_name = "NEWER", conflicts_with_all = ["config", "filename", "at"])]
    pub new: Option<PathBuf>,
    /// The configuration of the descheduler: a DeschedulerConfiguration
    #[arg(long, value_name = "FILE", required_unless_present = "new")]
    pub config: Option<PathBuf>,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, visible_alias = "snapshot", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Evaluate at this time, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub foresight: ForesightArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

impl DescheduleDiffArgs {
    /// What the plan of now takes; none where both plans are files.
    pub fn planned(&self) -> Option<PlannedArgs> {
        let Self { filename, at, foresight, answer, .. } = self.clone();
        let descheduler = DeschedulerArgs { config: self.config.clone()?, filename, at, answer };
        Some(PlannedArgs { descheduler, foresight })
    }
}

/// Options of `deschedule apply`.
#[derive(Clone, Debug, Args)]
pub struct DescheduleApplyArgs {
    /// The plan, as it was saved with `deschedule plan -o json`
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub planned: PlannedArgs,
}

/// Options of `deschedule history`.
#[derive(Clone, Debug, Args)]
pub struct DescheduleHistoryArgs {
    /// Only pods of this namespace
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Only pods of the controller of this name, such as that of a ReplicaSet
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub owner: Option<String>,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, visible_alias = "snapshot", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Namespace of the Lease of koord-descheduler, in which it keeps the history
    #[arg(long, value_name = "NAME", default_value = "koordinator-system", value_parser = namespace)]
    pub system_namespace: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
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
