//! What `profile` can do.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{AnswerArgs, namespace};

/// What `profile` can do.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Say which profiles match a pod, in which order, why the others do not, and what they change
    #[command(after_help = "\
Examples:
  koordctl profile test -f pod.yaml                                 # with the profiles of the cluster
  koordctl profile test -f deployment.yaml --profiles profiles/     # … of files: also namespaces, priority classes, quotas
  koordctl profile test -f pod.yaml -n shop -o json

Nothing is created. Exit code: 0 when the pod would be admitted, 1 when it would be refused, 2 when it cannot be determined.")]
    Test(ProfileTestArgs),
}

/// Options of `profile test`.
#[derive(Clone, Debug, Args)]
pub struct ProfileTestArgs {
    /// Files with pods, or with Deployments, Jobs and the like: YAML or JSON; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Files or folders with the profiles instead of a cluster, and with what they refer to: namespaces, priority classes
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// Namespace of the pods; without it that of the file, or default
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Feature gates of the koord-manager that would answer
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}
