//! Options of `why`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use koord_program::flags::time;

use super::shared::{AnswerArgs, SchedulerArgs, name, namespace};

/// Options of `why`.
#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// Name of the pod, or NAMESPACE/NAME; or gang NAMESPACE/NAME; or reservation NAME
    #[arg(value_name = "[KIND] NAME", num_args = 0..=2, value_parser = name_or_key)]
    pub what: Vec<String>,
    /// Namespace of the pod or gang, unless the name contains one [default: default]
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// File with a pod that does not exist yet, as if it had just been created: YAML or JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show the last attempts of the pod, or of the members of the gang, that the running scheduler has recorded, newest first
    #[arg(long, conflicts_with_all = ["file", "node", "filename", "at"])]
    pub history: bool,
    /// URL of the running scheduler, for --history; in a cluster that of its secure port, after kubectl port-forward
    #[arg(long = "scheduler", default_value = "http://127.0.0.1:10251", value_name = "URL", requires = "history")]
    pub running: String,
    /// Evaluate this node alone, and show the message of every plugin
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub node: Option<String>,
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, visible_alias = "snapshot", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scheduler: SchedulerArgs,
    /// Evaluate at this time, such as 2026-01-02T03:04:05Z; without it now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

impl WhyArgs {
    /// Namespace of the pod or gang.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// A name, or a namespace and a name.
fn name_or_key(text: &str) -> Result<String, String> {
    let (of, own) = text.split_once('/').map_or((None, text), |(of, own)| (Some(of), own));
    of.map(namespace).transpose()?;
    name(own).map(|_| text.to_owned())
}
