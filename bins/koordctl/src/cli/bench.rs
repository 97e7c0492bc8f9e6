//! Options of `bench`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use koord_program::output::OutputFormat;

use super::shared::{ClusterArgs, SchedulerArgs};

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// A scenario that is built in, or list
    #[arg(default_value = "basic", value_name = "SCENARIO", conflicts_with = "filename")]
    pub scenario: String,
    /// A file with the scenario, in YAML or JSON
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// The file of the result [default: bench-NAME-RUN.json]
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Overwrite the result
    #[arg(long, requires = "result")]
    pub force: bool,
    /// An earlier result, with which this one is compared by the thresholds of the scenario
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How many requests a second create objects; 0 means no limit [default: clientQPS of the scenario]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub qps: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scheduler: SchedulerArgs,
    /// Where koord-scheduler answers over HTTP while it is measured, such as 127.0.0.1:10251; without it nowhere
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["kubeconfig", "context"])]
    pub scheduler_addr: Option<SocketAddr>,
    /// Measure in a cluster that has other nodes too: the benchmark's pods are kept off them by a nodeSelector
    #[arg(long)]
    pub beside_other_nodes: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}
