//! `postgres-operator manifests` prints what a cluster must be told; without arguments the operator runs.

use std::{error::Error, sync::Arc};

use koord::{
    document::yaml,
    kube::Client,
    runtime::{
        Core,
        clock::SystemClock,
        lease::Candidacy,
        manager::{Manager, Settings},
        metrics::Metrics,
        random::Random,
        recorder::Recorder,
    },
    tokio,
    tokio_util::sync::CancellationToken,
};
use postgres_operator::{controller::Databases, manifests};

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        print!("{}", yaml::stream(&manifests())?);
        return Ok(());
    }
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let clock = SystemClock::shared();
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let mut core = Core::new(clock, Random::from_os(), Metrics::new()?, Arc::new(recorder));
    core.add(Databases::SPEC, "postgres-operator", Databases::wire)?;
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "postgres-operator".to_owned());
    let settings = Settings {
        field_manager: "postgres-operator",
        requests_per_second: 20.0,
        requests_burst: 30,
        candidacy: Some(Candidacy::new("postgres", "postgres-operator", &host)),
        metrics: None,
        health: None,
        host,
    };
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_signal.cancel();
        }
    });
    Manager::new(core, Client::try_default().await?, events, settings).run(stop).await?;
    Ok(())
}
