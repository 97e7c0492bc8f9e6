//! A client for the cluster that the flags name.

use std::path::Path;

use anyhow::{Context as _, Result};
use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::cli::ClusterArgs;

/// Reads the kubeconfig and makes a client. Nothing is asked of the server yet.
pub async fn client(cluster: &ClusterArgs) -> Result<Client> {
    let options = KubeConfigOptions { context: cluster.context.clone(), ..KubeConfigOptions::default() };
    let config = match &cluster.kubeconfig {
        Some(file) => from_file(file, &options).await?,
        None if cluster.context.is_some() => Config::from_kubeconfig(&options)
            .await
            .context("the kubeconfig cannot be used; name another with --kubeconfig")?,
        None => Config::infer()
            .await
            .context("no cluster is known; name a kubeconfig with --kubeconfig, or run `koordctl up`")?,
    };
    Client::try_from(config).context("the cluster's address or credentials cannot be used")
}

/// The configuration that a kubeconfig file describes.
pub async fn from_file(file: &Path, options: &KubeConfigOptions) -> Result<Config> {
    let named = || format!("the kubeconfig {}", file.display());
    let kubeconfig = Kubeconfig::read_from(file).with_context(|| format!("{} cannot be read", named()))?;
    Config::from_custom_kubeconfig(kubeconfig, options).await.with_context(|| format!("{} cannot be used", named()))
}

/// What time it is in the cluster, to the second: the machine of whoever asks may go wrong, and a cluster of `up --speed` has a time of its own.
/// None where the server does not say.
pub async fn server_time(client: &Client) -> Result<Option<Timestamp>> {
    let response = client.send(http::Request::get("/version").body(Body::empty())?).await?;
    Ok(date(response.headers()))
}

/// The time that an answer tells.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}
