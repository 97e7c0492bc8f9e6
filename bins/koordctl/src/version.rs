//! `koordctl version`

use anyhow::Result;

use crate::{Answer, cli::VersionArgs, connect, error_text::in_words};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// This program's version and, unless `--client` is set, the server's. A server that does not answer is no failure.
pub async fn run(args: &VersionArgs) -> Answer {
    let own = format!("koordctl {VERSION}\n");
    if args.client {
        return Answer::success(own);
    }
    let server = server(args).await.unwrap_or_else(|error| format!("unknown: {}", in_words(&error)));
    Answer::success(format!("{own}server {server}\n"))
}

async fn server(args: &VersionArgs) -> Result<String> {
    let version = connect::reach(&args.cluster.flags()).await?.version;
    Ok(version["gitVersion"].as_str().unwrap_or("unknown: this user may not read it").to_owned())
}
