//! The operator of the README: `greeter manifests | kubectl apply -f -`, then `greeter`.
extern crate koord as koord_resource;

mod greeting;

use std::{error::Error, sync::Arc};

use greeting::{Greeting, Greetings};
use koord::{
    declare::Profile,
    document::{Declared, custom_resource_definition, roles, yaml},
    kube::Client,
    runtime::{
        Core,
        clock::SystemClock,
        manager::{Manager, Settings},
        metrics::Metrics,
        random::Random,
        recorder::Recorder,
    },
    tokio,
    tokio_util::sync::CancellationToken,
};

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        let mut manifests = vec![custom_resource_definition(&[Declared::of::<Greeting>()], Profile::Compatible)];
        manifests.extend(roles("greeter", &Greetings::SPEC.rbac_rules(), "default"));
        print!("{}", yaml::stream(&manifests)?);
        return Ok(());
    }
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let clock = SystemClock::shared();
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let mut core = Core::new(clock, Random::from_os(), Metrics::new()?, Arc::new(recorder));
    core.add(Greetings::SPEC, "greeter", Greetings::wire)?;
    let settings = Settings {
        field_manager: "greeter",
        requests_per_second: 20.0,
        requests_burst: 30,
        leader_election: None,
        metrics: None,
        health: None,
        host: "greeter".to_owned(),
    };
    Manager::new(core, Client::try_default().await?, events, settings).run(CancellationToken::new()).await?;
    Ok(())
}
