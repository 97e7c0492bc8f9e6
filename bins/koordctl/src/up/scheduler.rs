//! koord-scheduler in the process of `up`. It serves the default scheduler name too, because there is no other scheduler.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result};
use koord_program::Dependencies;
use koord_runtime::{clock::SharedClock, manager::ListenAddress, random::Random};
use koord_scheduler::{Settings, run_with};
use koord_scheduler_assembly::Configuration;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::cli::up::DEFAULT_PORT;

/// Where `koordctl queue` and `koordctl why --history` ask when they are told no other address.
pub const ASKED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10251);

/// Where the scheduler answers: where the user wants it; else, beside the API server's default port, which one cluster of a machine has, where
/// it is asked, or on a free port where another program answers there; else nowhere.
pub fn address(wanted: Option<SocketAddr>, api_port: u16) -> Result<Option<SocketAddr>> {
    if wanted.is_some() || api_port != DEFAULT_PORT {
        return Ok(wanted);
    }
    let found = TcpListener::bind(ASKED).or_else(|_| TcpListener::bind((ASKED.ip(), 0)));
    let listener = found.context("no port of 127.0.0.1 is free for koord-scheduler")?;
    Ok(Some(listener.local_addr()?))
}

/// Schedules pods until it is dropped, and answers at an address.
pub async fn run(client: Client, clock: SharedClock, seed: u64, address: Option<SocketAddr>) -> Result<()> {
    let dependencies = Dependencies { client, api_host: "in-process".to_owned(), clock, random: Random::seeded(seed) };
    let listen = address.map(|address| ListenAddress { address, set_by: "--scheduler-addr" });
    let settings = Settings { listen, ..Settings::within(Configuration::shipped_for_all_pods()?) };
    run_with(settings, dependencies, CancellationToken::new()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_cluster_answers_where_it_is_asked_and_others_where_they_are_told_to() {
        // Whoever has the port: this test, or another program.
        let _taken = TcpListener::bind(ASKED);
        let beside = address(None, DEFAULT_PORT).unwrap().unwrap();
        assert!(beside.ip().is_loopback() && beside.port() != 0 && beside != ASKED, "{beside}");
        assert_eq!(address(None, 0).unwrap(), None);
        let wanted = Some(SocketAddr::from(([127, 0, 0, 1], 1)));
        assert_eq!(address(wanted, DEFAULT_PORT).unwrap(), wanted);
    }
}
