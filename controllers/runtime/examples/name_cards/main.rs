//! A whole program with one controller, over the embedded API server in the same process:
//! `cargo run -p koord-runtime --example name_cards` creates a node and prints the card that the controller makes.
#![allow(clippy::print_stdout)]

mod controller;

use std::{error::Error, sync::Arc, time::Duration};

use controller::{COMPONENT, NameCards};
use envtest::{
    environment::SeededEnvironment,
    kinds,
    server::ApiServer,
    shell::{Parts, Server},
    store::HistoryLimits,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use koord_runtime::{
    Core,
    clock::SystemClock,
    manager::{Manager, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The server. In production `kube::Client::try_default` finds one.
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, Timestamp::now())), HistoryLimits::default());
    kinds::install(&mut core);
    let client = Client::new(Server::new(core, Parts::default()).router(), "default");

    // The program.
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let mut core =
        Core::new("name-cards", SystemClock::shared(), Random::from_os(), Metrics::new()?, Arc::new(recorder));
    core.add(NameCards::SPEC, COMPONENT, NameCards::wire)?;
    let settings = Settings {
        requests_per_second: 0.0,
        requests_burst: 0,
        leader_election: None,
        metrics: None,
        health: None,
        host: "example".to_owned(),
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(Manager::new(core, client.clone(), events, settings).run(stop.clone()));

    // A person.
    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    for name in ["default", controller::NAMESPACE] {
        let namespace = Namespace { metadata: named(name), ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    }
    Api::all(client.clone())
        .create(&PostParams::default(), &Node { metadata: named("alice"), ..Node::default() })
        .await?;
    let cards: Api<ConfigMap> = Api::namespaced(client, controller::NAMESPACE);
    let card = loop {
        match cards.get_opt("alice").await? {
            Some(card) => break card,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    println!("{}", serde_json::to_string_pretty(&card.data)?);
    stop.cancel();
    running.await??;
    Ok(())
}
