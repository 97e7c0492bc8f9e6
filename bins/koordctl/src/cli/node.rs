//! What `node` shows.

use clap::{Args, Subcommand};

use super::shared::{AnswerArgs, name, namespace};

/// What `node` shows.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the features of koordlet on a node, with what degrades them, and the age of its inputs
    #[command(after_help = "\
Examples:
  koordctl node status n1
  koordctl node status n1 --address 127.0.0.1:9316      # after kubectl port-forward, or on the node

Exit code: 0 when no feature is degraded, 1 when one is, 2 when koordlet cannot be asked.")]
    Status(NodeArgs),
    /// Show each value that koordlet wants in the cgroups of a pod, its containers and the folders above, and why
    #[command(after_help = "\
Examples:
  koordctl node explain n1 shop/web-0
  koordctl node explain n1 shop/web-0 -o json

Exit code: 0 when the kernel shows what is wanted, 1 when it shows something else, 2 when koordlet cannot be asked.")]
    Explain(NodeExplainArgs),
    /// Compare all files that koordlet decides about with what the kernel shows
    #[command(after_help = "\
Examples:
  koordctl node audit n1
  koordctl node audit n1 -o json

Exit code: 0 when the kernel shows what is wanted, 1 when a file says something else, 2 when koordlet cannot be asked.")]
    Audit(NodeArgs),
}

/// Which koordlet is asked, and how the answer is written.
#[derive(Clone, Debug, Args)]
pub struct NodeAgentArgs {
    /// Address of koordlet, HOST:PORT, instead of the API server's proxy to its pod
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// Namespace of koordlet
    #[arg(short, long, default_value = koord_types::slo_config::CONFIG_MAP_NAMESPACE, value_name = "NAME", value_parser = namespace)]
    pub namespace: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// Options of `node status` and `node audit`.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub agent: NodeAgentArgs,
}

/// Options of `node explain`.
#[derive(Clone, Debug, Args)]
pub struct NodeExplainArgs {
    /// Name of the node
    #[arg(value_parser = name)]
    pub node: String,
    /// The pod as NAMESPACE/NAME
    #[arg(value_name = "NAMESPACE/NAME", value_parser = pod)]
    pub pod: (String, String),
    #[command(flatten)]
    #[allow(missing_docs)]
    pub agent: NodeAgentArgs,
}

impl NodeCommand {
    /// Which koordlet is asked.
    pub fn agent(&self) -> &NodeAgentArgs {
        match self {
            Self::Status(args) | Self::Audit(args) => &args.agent,
            Self::Explain(args) => &args.agent,
        }
    }
}

fn pod(text: &str) -> Result<(String, String), String> {
    let (of, own) = text.split_once('/').ok_or("a pod as NAMESPACE/NAME, such as default/web-0")?;
    Ok((namespace(of)?, name(own)?))
}
