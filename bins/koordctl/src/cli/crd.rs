//! What `crd` can do.

use clap::{Args, Subcommand, ValueEnum};

use super::shared::ClusterArgs;

/// A flavour of the custom resource definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Exactly the structure of the original's
    Compatible,
    /// With rules, columns and short names that the original lacks; never rejects what compatible and the webhooks accept
    Hardened,
}

/// What `crd` can do.
#[derive(Debug, Subcommand)]
pub enum CrdCommand {
    /// Print how the cluster's definitions differ from this program's; exits with 1 when they do
    #[command(after_help = "Example:  koordctl crd diff --profile=hardened")]
    Diff(CrdArgs),
    /// Create or change the cluster's definitions so that they are this program's
    #[command(after_help = "Example:  koordctl crd apply --context=staging")]
    Apply(CrdArgs),
}

/// Options of the `crd` commands.
#[derive(Clone, Debug, Args)]
pub struct CrdArgs {
    /// Which custom resource definitions
    #[arg(long, value_enum, default_value_t = Profile::Compatible)]
    pub profile: Profile,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}
