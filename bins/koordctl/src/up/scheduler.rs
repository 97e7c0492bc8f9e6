//! koord-scheduler in the process of `up`. It serves the default scheduler name too, because there is no other scheduler.

use std::sync::Arc;

use anyhow::Result;
use koord_engine::{engine::Engine, queue::Timings};
use koord_runtime::{
    Core,
    clock::SharedClock,
    manager::{Manager, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
};
use koord_scheduler_plugins::default_profile;
use koord_scheduler_runtime::{Scheduler, feed::Feed, install};
use kube::Client;
use tokio_util::sync::CancellationToken;

/// The field manager of its writes.
const NAME: &str = "koord-scheduler";

/// Schedules pods until it is dropped.
pub async fn run(client: Client, clock: SharedClock, seed: u64) -> Result<()> {
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let (recorder, random) = (Arc::new(recorder), Random::seeded(seed));
    let mut core = Core::new(NAME, Arc::clone(&clock), random.clone(), Metrics::new()?, Arc::clone(&recorder) as _);
    let profiles = [NAME, "default-scheduler"].map(default_profile);
    let engine = Engine::new(profiles.into(), Timings::default(), random);
    let feed = Feed::of(&mut core, &engine.reads());
    let scheduler = Scheduler::new(engine, feed, recorder, Arc::clone(&clock));
    let settings = Settings {
        requests_per_second: 0.0,
        requests_burst: 0,
        leader_election: None,
        metrics: None,
        health: None,
        host: NAME.to_owned(),
    };
    let mut manager = Manager::timed_by(Arc::clone(&clock), core, client, events, settings);
    install(scheduler, clock, &mut manager);
    Ok(manager.run(CancellationToken::new()).await?)
}
