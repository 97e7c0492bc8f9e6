//! The operator on kube-rs: `cronjob-kube-rs manifests | kubectl apply --server-side -f -`, then `cronjob-kube-rs`.

mod api;
mod controller;
mod jobs;
mod schedule;
mod webhooks;

use std::{env, path::Path};

use api::CronJob;
use kube::{Client, CustomResourceExt as _};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if env::args().nth(1).is_some_and(|argument| argument == "manifests") {
        println!("{}", serde_json::to_string(&CronJob::crd())?);
        return Ok(());
    }
    tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    if env::var("ENABLE_WEBHOOKS").is_ok_and(|enabled| enabled == "false") {
        controller::run(client).await;
        return Ok(());
    }
    let certificates = env::var("WEBHOOK_CERT_DIR").unwrap_or_else(|_| "/run/cronjob-certs".to_owned());
    tokio::select! {
        result = webhooks::serve(([0, 0, 0, 0], 9443).into(), Path::new(&certificates)) => result,
        () = controller::run(client) => Ok(()),
    }
}
