//! Options of `version`.

use clap::Args;

use super::shared::ClusterArgs;

/// Options of `version`.
#[derive(Clone, Debug, Args)]
pub struct VersionArgs {
    /// Only this program's version; ask no server
    #[arg(long)]
    pub client: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub cluster: ClusterArgs,
}
