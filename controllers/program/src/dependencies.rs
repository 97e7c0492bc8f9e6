//! What a program that runs controllers takes from outside: the API server, time and randomness.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use koord_runtime::{
    clock::{SharedClock, SystemClock},
    connect::{Protocol, connect},
    random::Random,
};
use kube::{Client, Config};

use crate::kubeconfig::{Selection, config};

/// The dependencies of a program.
#[derive(Clone)]
pub struct Dependencies {
    /// The client of the API server.
    pub client: Client,
    /// Host and port in the API server's URL, for the metrics.
    pub api_host: String,
    /// The clock of the controllers; leases and timeouts run in real time whatever it shows.
    pub clock: SharedClock,
    /// The source of randomness.
    pub random: Random,
}

impl Dependencies {
    /// Those of a process: the API server of the kubeconfig or of the pod, the system's clock.
    pub async fn of_process(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        Self::selected_by(&Selection { file: kubeconfig, context: None }).await
    }

    /// Those of a process that talks to the API server of this selection.
    pub async fn selected_by(selection: &Selection<'_>) -> anyhow::Result<Self> {
        let config = config(selection).await.map_err(|error| anyhow!("{error}; {}", error.remedy()))?;
        Self::connected_by(config)
    }

    /// Those of a process that talks to the API server of this configuration.
    pub fn connected_by(mut config: Config) -> anyhow::Result<Self> {
        // What fails is tried again by whoever wanted it, with limits of his own: one that sleeps in the client does not see that the
        // server is well again.
        config.default_retry = false;
        let api_host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let client = connect(config, Protocol::of_environment())
            .context("the address or the credentials of the API server cannot be used")?;
        Ok(Self { client, api_host, clock: SystemClock::shared(), random: Random::from_os() })
    }
}
