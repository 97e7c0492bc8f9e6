//! From the command line to a running server.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use envtest::cluster::{Cluster, Controllers, Options};
use envtest::serve::{Kubeconfig, Owner};
use envtest::yaml;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;

/// Serves until `stop`.
pub(crate) async fn run(arguments: Arguments, stop: CancellationToken) -> Result<()> {
    let owner = Owner { name: "koord-envtest".to_owned(), port: arguments.port, data_dir: arguments.data_dir.clone() };
    let may_replace = Kubeconfig::check(&arguments.kubeconfig, arguments.force, &owner)?;
    let cluster = Cluster::bind(Options {
        address: SocketAddr::new(arguments.bind_address, arguments.port),
        tls_names: arguments.tls_names.clone(),
        token_file: arguments.token_file.clone(),
        service_aliases: arguments.service_aliases.clone(),
        controllers: arguments.controllers.then(Controllers::default),
        service_account_admission: arguments.service_account_admission,
        data_dir: arguments.data_dir.clone(),
        ..Options::default()
    })
    .await?;
    if let Some(folder) = &arguments.crds {
        seed(&cluster, folder).await?;
    }
    let (url, kubeconfig) = (cluster.url(), cluster.kubeconfig(owner));
    let (end, ended) = watch::channel(false);
    let running = tokio::spawn(cluster.run(ended));
    // Whoever reads the file can use it at once.
    kubeconfig.write_when_ready(&arguments.kubeconfig, may_replace).await?;
    if !arguments.quiet {
        println!("Serving at {url}");
        println!("Try: kubectl --kubeconfig {} get namespaces", arguments.kubeconfig.display());
    }
    stop.cancelled().await;
    end.send_replace(true);
    running.await.context("the server panicked while it stopped")
}

/// Creates every object of a folder: definitions first, so that their objects can follow.
async fn seed(cluster: &Cluster, folder: &Path) -> Result<()> {
    let mut objects = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    for path in paths {
        let is_manifest = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|e| matches!(e, "yaml" | "yml" | "json"));
        if !is_manifest {
            continue;
        }
        let text = fs::File::open(&path).and_then(yaml::read_text);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let documents = yaml::documents(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        objects.extend(documents.into_iter().map(|object| (path.clone(), object)));
    }
    let is_definition = |object: &Value| object["kind"] == "CustomResourceDefinition";
    objects.sort_by_key(|(_, object)| !is_definition(object));
    for (path, object) in objects {
        cluster.create(&object).await.with_context(|| path.display().to_string())?;
    }
    Ok(())
}
