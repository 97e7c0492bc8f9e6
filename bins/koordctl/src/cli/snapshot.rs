//! What `snapshot` can do.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use koord_program::{flags::time, output::OutputFormat};

use super::shared::{ClusterArgs, SchedulerArgs};

/// What `snapshot` can do.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Save all objects that koord-scheduler reads as one file, which koordctl why -f reads
    #[command(after_help = "\
Examples:
  koordctl snapshot save cluster.yaml
  koordctl snapshot save --redact cluster.json            # with pseudonyms instead of names, to be given away
  koordctl snapshot save --redact -f mine.yaml cluster.yaml

A cluster is only read, with one list per collection. With --redact names, namespaces, labels, images and annotations are replaced
consistently, numbers and structure stay, and what the scheduler does not read of containers and volumes is left out: koordctl why says
the same of it, up to names.")]
    Save(SnapshotSaveArgs),
    /// Schedule the pods that waited in a snapshot, offline, and compare configurations
    #[command(after_help = "\
Examples:
  koordctl snapshot replay cluster.yaml                                   # what the pods that wait would get
  koordctl snapshot replay cluster.yaml --config now.yaml --config new.yaml
  koordctl snapshot replay cluster.yaml --check                           # would the pods that run be placed there again?

The pods that wait are tried in the order of the queue, by the scheduler's own engine in virtual time. With --check every pod of the scheduler that
has a node is decided anew, in the order of creation, beside the pods that were created before it. Nothing is written, no cluster is asked. Exit
code: 0 when every pod gets a node and the configurations agree, or with --check when every pod would be placed where it is; 1 when not; 2 when it
cannot be determined.")]
    Replay(SnapshotReplayArgs),
}

/// Options of `snapshot replay`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotReplayArgs {
    /// The snapshot, or other files with objects: YAML or JSON, also lists and folders; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub filename: Vec<PathBuf>,
    /// A configuration of the scheduler, KubeSchedulerConfiguration; several are compared on the same pods. Without it the one that Koordinator
    /// ships
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Feature gates of the scheduler
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    /// Decide the pods that have a node anew, and show which would be placed elsewhere now
    #[arg(long)]
    pub check: bool,
    /// Seed of the choice among nodes that are equally good
    #[arg(long, default_value_t = 1, value_name = "NUMBER", conflicts_with = "check")]
    pub seed: u64,
    /// The time for which it is decided, such as 2026-01-02T03:04:05Z; without it the latest that stands in the snapshot
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}

/// Options of `snapshot save`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotSaveArgs {
    /// The file to be written; its name ends in .yaml or .json
    #[arg(value_name = "FILE")]
    pub output: PathBuf,
    /// Replace names by pseudonyms
    #[arg(long)]
    pub redact: bool,
    /// Overwrite the file
    #[arg(long)]
    pub force: bool,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scheduler: SchedulerArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}
