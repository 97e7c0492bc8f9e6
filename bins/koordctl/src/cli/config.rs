//! What `config` shows.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{AnswerArgs, ConfigurationArgs, name};

/// What `config` shows.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the complete configuration that is in force: its values, the defaults of what is left out, and what sets each value
    ///
    /// Without -f: slo-controller-config of the cluster, which koord-manager reads. With -f: a ConfigMap of that name, or the configuration of a component
    /// (KubeSchedulerConfiguration, DeschedulerConfiguration). Of a DeschedulerPolicy of kubernetes-sigs/descheduler it is the configuration that
    /// koord-descheduler makes of it.
    #[command(after_help = "\
Examples:
  koordctl config effective                                    # slo-controller-config: each value with the strategy that sets it
  koordctl config effective --node node-1                      # … as it is merged for this node, with its labels and annotations
  koordctl config effective -f slo-controller-config.yaml      # … of a file
  koordctl config effective -f koord-scheduler.yaml            # each value with the line that sets it, or default
  koordctl config effective -f koord-descheduler.yaml -o yaml  # the configuration itself

Exit code: 0 when it is printed, 1 when it has mistakes, which are listed as by lint, 2 when it cannot be read.")]
    Effective(EffectiveArgs),
}

/// Options of `config effective`.
#[derive(Clone, Debug, Args)]
pub struct EffectiveArgs {
    /// File with the configuration instead of a cluster, in YAML or JSON; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show the values that are in force on this node; with -f the file holds the Node too
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub node: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub configuration: ConfigurationArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}
