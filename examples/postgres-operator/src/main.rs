//! `postgres-operator manifests` prints what a cluster must be told; without arguments the operator runs.

use std::error::Error;

use koord::{document::yaml, kube::Client, tokio, tokio_util::sync::CancellationToken};
use postgres_operator::{manifests, operator};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        print!("{}", yaml::stream(&manifests())?);
        return Ok(());
    }
    tokio::runtime::Runtime::new()?.block_on(async {
        let stop = CancellationToken::new();
        let on_signal = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                on_signal.cancel();
            }
        });
        operator::run(Client::try_default().await?, operator::environment()?, stop).await
    })
}
