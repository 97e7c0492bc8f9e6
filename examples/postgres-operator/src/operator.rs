//! The running operator: one controller, both webhooks and the conversion, on one set of caches.

use std::{error::Error, sync::Arc};

use koord::{
    kube::Client,
    runtime::{
        Core,
        clock::SystemClock,
        lease::LeaderElectionConfig,
        manager::{Manager, Settings},
        metrics::Metrics,
        random::Random,
        recorder::Recorder,
    },
    tokio,
    tokio_util::sync::CancellationToken,
    webhook::{self, Server, ServiceBuilder},
};

use crate::{CERTIFICATES, CONVERSIONS, HANDLERS, NAME, NAMESPACE, controller::Databases};

/// The webhook server's settings: the process's environment, and the names in [`manifests`](crate::manifests).
pub fn environment() -> Result<webhook::Environment, webhook::EnvironmentError> {
    webhook::Environment::from(|variable| {
        std::env::var(variable).ok().filter(|value| !value.is_empty()).or_else(|| own(variable).map(ToOwned::to_owned))
    })
}

/// What the server is told where the environment says nothing.
fn own(variable: &str) -> Option<&'static str> {
    match variable {
        "POD_NAMESPACE" => Some(NAMESPACE),
        "SERVICE_NAME" | "MUTATING_WEBHOOK_NAME" | "VALIDATING_WEBHOOK_NAME" => Some(NAME),
        "SECRET_NAME" => Some(CERTIFICATES),
        "WEBHOOK_PORT" => Some("9443"),
        _ => None,
    }
}

/// Runs until it is told to stop.
pub async fn run(
    client: Client,
    environment: webhook::Environment,
    stop: CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let clock = SystemClock::shared();
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let metrics = Metrics::new()?;
    let counters = webhook::Metrics::register(&metrics)?;
    let mut core = Core::new(Arc::clone(&clock), Random::from_os(), metrics, Arc::new(recorder));
    core.add(Databases::SPEC, NAME, Databases::wire)?;

    let mut service = ServiceBuilder::new(counters, Arc::clone(&clock)).conversions(CONVERSIONS);
    for handler in HANDLERS {
        service = service.handler(handler, || &());
    }
    let server = Server::open(environment, service.build(), clock)?;
    server.watch(&mut core);

    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| NAME.to_owned());
    let settings = Settings {
        field_manager: NAME,
        requests_per_second: 20.0,
        requests_burst: 30,
        leader_election: Some(LeaderElectionConfig::new(NAMESPACE, NAME, &host)),
        metrics: None,
        health: None,
        host,
    };
    let manager = Manager::new(core, client, events, settings);
    manager.health().ready("webhooks", server.readiness());
    let api = manager.api().clone();
    // Whichever ends first ends the other.
    let both = stop.child_token();
    let webhooks = async {
        let ended = server.run(api, both.clone()).await;
        both.cancel();
        ended.map_err(Box::<dyn Error + Send + Sync>::from)
    };
    let controllers = async {
        let ended = manager.run(both.clone()).await;
        both.cancel();
        ended.map_err(Box::<dyn Error + Send + Sync>::from)
    };
    tokio::try_join!(webhooks, controllers)?;
    Ok(())
}
