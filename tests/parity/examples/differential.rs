//! Sends mutated requests to the embedded API server and to a real one, and lists where the answers differ:
//!
//! ```sh
//! tests/kube-assets/build
//! KUBEBUILDER_ASSETS=$PWD/target/kube-assets cargo run -p parity --example differential -- --seed 7 --requests 2000
//! ```
//!
//! One request again: `--seed 7 --first 41 --requests 1`, some of them: `--only 41,97`. One group: `--group pods`.

use std::{io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use clap::Parser;
use envtest::cluster::{Cluster, Options};
use parity::{
    ADMIN_TOKEN, DEV_TOKEN, RealServer, Tokens,
    differential::{Seeds, compare},
    relay,
};

#[derive(Parser)]
struct Arguments {
    /// What the requests are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many requests.
    #[arg(long, default_value_t = 1000)]
    requests: u64,
    /// The number of the first one.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The numbers of the requests, instead of a range.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["first", "requests"])]
    only: Vec<u64>,
    /// Only this group: a file of tests/data/differential, or `reads`.
    #[arg(long)]
    group: Option<String>,
    /// Only counts.
    #[arg(long)]
    quiet: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let assets =
        RealServer::assets().context("KUBEBUILDER_ASSETS names no folder; tests/kube-assets/build makes one")?;
    let real_server = RealServer::start(&assets).await?;
    let real = relay(&real_server.url, &real_server.ca)?;
    let mut users = tempfile::NamedTempFile::new()?;
    writeln!(users, "{ADMIN_TOKEN},admin,uid,system:masters\n{DEV_TOKEN},dev,,devs")?;
    let options = Options { token_file: Some(users.path().to_owned()), ..Options::default() };
    let ours = Cluster::bind(options).await?.router();
    let tokens = Tokens { admin: ADMIN_TOKEN.to_owned(), dev: DEV_TOKEN.to_owned() };
    let seeds = Seeds::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/differential"))?;
    for (name, server) in [("the real server", &real), ("ours", &ours)] {
        seeds.plant(server, &tokens).await.with_context(|| format!("planting on {name}"))?;
    }
    let mut numbers = arguments.only.clone();
    if numbers.is_empty() {
        numbers.extend(arguments.first..arguments.first + arguments.requests);
    }
    let group = arguments.group.as_deref();
    let found = compare(&seeds, &ours, &real, &tokens, arguments.seed, numbers, group).await?;
    for (number, difference) in found.differences.iter().filter(|_| !arguments.quiet) {
        println!("=== seed {} request {number}: {difference}", arguments.seed);
    }
    println!("{}", found.table());
    Ok(())
}
