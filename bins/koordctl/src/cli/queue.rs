//! What `queue` shows.

use clap::{Args, Subcommand};
use koord_program::output::OutputFormat;

use super::shared::{name, namespace};

/// What `queue` shows.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the pods that wait, in the order in which they would be tried
    #[command(after_help = "\
Examples:
  koordctl queue list
  koordctl queue list --scheduler https://127.0.0.1:10259 -o json")]
    List(QueueArgs),
    /// Show where a pod stands, who refused it, and after which events it is tried again
    #[command(after_help = "\
Example:  koordctl queue show web-0 -n shop

Exit code: 0 when the pod waits, 1 when it is not in the queue, 2 when the scheduler cannot be asked.")]
    Show(QueueShowArgs),
}

/// Which scheduler is asked, and how the answer is written.
#[derive(Clone, Debug, Args)]
pub struct QueueArgs {
    /// URL of a port of the scheduler, which must hold the Lease; in a cluster that of its secure port, after kubectl port-forward
    #[arg(long, default_value = "http://127.0.0.1:10251", value_name = "URL")]
    pub scheduler: String,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}

/// Options of `queue show`.
#[derive(Clone, Debug, Args)]
pub struct QueueShowArgs {
    /// Name of the pod
    #[arg(value_parser = name)]
    pub pod: String,
    /// Namespace of the pod
    #[arg(short, long, default_value = "default", value_name = "NAME", value_parser = namespace)]
    pub namespace: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub queue: QueueArgs,
}
