//! Options of `coexist`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use koord_program::flags::time;
use koord_scheduler_assembly::Configuration;
use koord_scheduler_coexist::Options;

use super::shared::AnswerArgs;

/// What is said of schedulers that run beside each other.
#[derive(Debug, Subcommand)]
pub enum CoexistCommand {
    /// Say which schedulers place pods on which nodes, what can go wrong between them, and how to avoid it
    #[command(after_help = "\
Examples:
  koordctl coexist check
  koordctl coexist check --config scheduler.yaml      # for a koord-scheduler with this configuration
  koordctl coexist check -f snapshot.yaml -o json

A cluster is only read, with one list per collection. Pods count for the scheduler of their spec.schedulerName; static pods count for none. A
node is shared when pods of koord-scheduler and of another scheduler are on it, those of DaemonSets apart. Exit code: 0 when nothing is wrong, 1
when there are warnings, 2 when something does not work or the cluster cannot be reached.")]
    Check(CoexistCheckArgs),
}

/// Options of `coexist check`.
#[derive(Clone, Debug, Args)]
pub struct CoexistCheckArgs {
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, visible_alias = "snapshot", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// The configuration of koord-scheduler, KubeSchedulerConfiguration: its profiles name the pods that it serves, and it names the Lease. Without
    /// it these are koord-scheduler, and koord-scheduler in koordinator-system
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The time by which leases and waiting pods are judged, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

impl CoexistCheckArgs {
    /// As the checks take them, with the configuration that `--config` names.
    pub fn options<'a>(&'a self, configuration: Option<&'a Configuration>) -> Options<'a> {
        Options {
            files: &self.filename,
            configuration,
            at: self.at,
            cluster: self.answer.cluster.flags(),
            output: self.answer.output,
        }
    }
}
