//! `koordctl version`

use anyhow::Result;

use crate::{cli::VersionArgs, connect};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints this program's version and, unless told not to, the server's. A server that does not answer is no failure.
pub async fn run(args: &VersionArgs) -> Result<()> {
    println!("koordctl {VERSION}");
    if args.client {
        return Ok(());
    }
    match server(args).await {
        Ok(version) => println!("server {version}"),
        Err(error) => println!("server unknown: {error:#}"),
    }
    Ok(())
}

async fn server(args: &VersionArgs) -> Result<String> {
    let client = connect::client(&args.cluster).await?;
    Ok(client.apiserver_version().await?.git_version)
}
