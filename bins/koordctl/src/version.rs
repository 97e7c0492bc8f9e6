//! `koordctl version`

use anyhow::Result;

use crate::{Answer, cli::VersionArgs, connect};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// This program's version and, unless told not to ask, the server's. A server that does not answer is no failure.
pub async fn run(args: &VersionArgs) -> Answer {
    let own = format!("koordctl {VERSION}\n");
    if args.client {
        return Answer::success(own);
    }
    let server = server(args).await.unwrap_or_else(|error| format!("unknown: {error:#}"));
    Answer::success(format!("{own}server {server}\n"))
}

async fn server(args: &VersionArgs) -> Result<String> {
    let client = connect::client(&args.cluster).await?;
    Ok(client.apiserver_version().await?.git_version)
}
