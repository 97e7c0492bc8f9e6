//! What `explain` can explain.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use koord_explain::{AllocationOptions, NodeOptions, QuotaOptions};
use koord_program::flags::time;

use super::shared::{AnswerArgs, ConfigurationArgs, name, namespace};

/// What `explain` can explain.
#[derive(Debug, Subcommand)]
pub enum ExplainCommand {
    /// What batch pods may use of a node
    #[command(after_help = "Example:  koordctl explain batch node-1")]
    Batch(ExplainArgs),
    /// What mid pods may use of a node
    #[command(after_help = "Example:  koordctl explain mid node-1 -o json")]
    Mid(ExplainArgs),
    /// What batch pods may use of each NUMA zone of a node
    #[command(after_help = "Example:  koordctl explain zone node-1")]
    Zone(ExplainArgs),
    /// Where each value of a node's NodeSLO came from
    #[command(after_help = "Example:  koordctl explain slo node-1")]
    Slo(ExplainArgs),
    /// The devices, CPUs and NUMA nodes of a node: what is free, and which pods have the rest
    #[command(after_help = "\
Examples:
  koordctl explain node node-1
  koordctl explain node node-1 -f objects.yaml            # of Device, NodeResourceTopology and pods in a file")]
    Node(AllocationsArgs),
    /// What a quota may have, what it has, and which changes of it the webhook would refuse
    #[command(after_help = "\
Examples:
  koordctl explain quota team-a
  koordctl explain quota team-a --what-if team-a.yaml     # would this change be admitted, and what then?
  koordctl explain quota team-a -f quotas.yaml            # without a cluster

Exit code: 0 when every proposed change is admitted, 1 when one is refused, 2 when it cannot be determined.")]
    Quota(QuotaArgs),
}

/// Options of `explain node`.
#[derive(Clone, Debug, Args)]
pub struct AllocationsArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `explain quota`.
#[derive(Clone, Debug, Args)]
pub struct QuotaArgs {
    /// Name of the quota
    #[arg(value_parser = name)]
    pub name: String,
    /// Namespace of the quota; also of proposed quotas that name none
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Files with the quotas (and pods) instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Files with new or changed quotas, as they would be applied one after the other. Labels and annotations that a
    /// file leaves out stay as they are
    #[arg(long, value_name = "FILE")]
    pub what_if: Vec<PathBuf>,
    /// Feature gates of koord-manager, of which some decide what is refused
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of the explanations about a node.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// The time for which it is explained, such as 2026-01-02T03:04:05Z; without it the cluster's, or with files now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub configuration: ConfigurationArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

impl ExplainArgs {
    /// As explanations take them.
    pub fn options(&self) -> NodeOptions<'_> {
        NodeOptions {
            node: &self.node,
            files: &self.filename,
            at: self.at,
            config_namespace: &self.configuration.config_namespace,
            slo_config_name: &self.configuration.slo_config_name,
            cluster: self.answer.cluster.flags(),
            output: self.answer.output,
        }
    }
}

impl AllocationsArgs {
    /// As explanations take them.
    pub fn options(&self) -> AllocationOptions<'_> {
        AllocationOptions {
            node: &self.node,
            files: &self.filename,
            cluster: self.answer.cluster.flags(),
            output: self.answer.output,
        }
    }
}

impl QuotaArgs {
    /// As explanations take them.
    pub fn options(&self) -> QuotaOptions<'_> {
        QuotaOptions {
            name: &self.name,
            namespace: self.namespace.as_deref(),
            files: &self.filename,
            what_if: &self.what_if,
            feature_gates: &self.feature_gates,
            cluster: self.answer.cluster.flags(),
            output: self.answer.output,
        }
    }
}
