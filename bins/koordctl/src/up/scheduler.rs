//! koord-scheduler in the process of `up`. It serves the default scheduler name too, because there is no other scheduler.

use std::net::SocketAddr;

use anyhow::Result;
use koord_program::Dependencies;
use koord_runtime::{clock::SharedClock, manager::ListenAddress, random::Random};
use koord_scheduler::{Configuration, Settings, run_with};
use kube::Client;
use tokio_util::sync::CancellationToken;

/// Schedules pods until it is dropped, and answers at an address.
pub async fn run(client: Client, clock: SharedClock, seed: u64, address: Option<SocketAddr>) -> Result<()> {
    let dependencies = Dependencies { client, api_host: "in-process".to_owned(), clock, random: Random::seeded(seed) };
    let listen = address.map(|address| ListenAddress { address, set_by: "--scheduler-addr" });
    let settings = Settings { listen, ..Settings::within(Configuration::shipped_for_all_pods()?) };
    run_with(settings, dependencies, CancellationToken::new()).await
}
