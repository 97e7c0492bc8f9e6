//! The operator on kube-rs: `kube-rs-operator manifests | kubectl apply -f -`, then `kube-rs-operator guide`, `tuned` or `stores`.

mod cache;
mod guide;
mod reconcile;
mod stores;
mod tuned;

use cache::CacheCluster;
use kube::{Client, CustomResourceExt as _};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let command = std::env::args().nth(1).unwrap_or_default();
    if command == "manifests" {
        println!("{}", serde_json::to_string(&CacheCluster::crd())?);
        return Ok(());
    }
    tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    match command.as_str() {
        "guide" => guide::run(client).await,
        "tuned" => tuned::run(client).await,
        "stores" => stores::run(client).await,
        other => anyhow::bail!("{other:?} is none of manifests, guide, tuned and stores"),
    }
    Ok(())
}
