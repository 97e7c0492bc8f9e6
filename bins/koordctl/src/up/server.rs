//! The embedded API server of `up`: on a TLS port of 127.0.0.1 for everyone, and without a socket for the nodes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::Result;
use envtest::{
    cluster::{Cluster, Controllers, Options},
    environment::TimedEnvironment,
    serve::{Kubeconfig, Owner},
};
use koord_runtime::clock::SharedClock;
use kube::Client;
use tokio::{sync::watch, task::JoinHandle};

/// The name of cluster and context in the kubeconfig.
const CLUSTER: &str = "koord";

/// Where the server stands.
pub struct Place {
    /// Port of its socket; 0 takes any free one.
    pub port: u16,
    /// Where objects are kept over restarts.
    pub data_dir: Option<PathBuf>,
    /// Whether new pods get a ServiceAccount and its token.
    pub service_account_admission: bool,
}

impl Place {
    /// Who writes the kubeconfig that leads there.
    pub fn owner(&self) -> Owner {
        Owner { name: CLUSTER.to_owned(), port: self.port, data_dir: self.data_dir.clone() }
    }
}

/// A server that answers.
pub struct Embedded {
    /// The way to it without a socket.
    pub client: Client,
    /// The way to it for everyone else.
    pub kubeconfig: Kubeconfig,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Embedded {
    /// Binds the port and answers from then on. Times of objects are the clock's; uids and generated names follow from the seed.
    /// With a data directory there are objects of earlier runs, whose uids may not come again: there the seed is mixed with the time.
    pub async fn start(place: Place, clock: SharedClock, seed: u64) -> Result<Self> {
        let owner = place.owner();
        let Place { port, data_dir, service_account_admission } = place;
        let seed = if data_dir.is_some() { seed ^ clock.now().as_nanosecond() as u64 } else { seed };
        let environment = TimedEnvironment::new(seed, move || clock.now());
        let options = Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            environment: Box::new(environment),
            data_dir,
            controllers: Some(Controllers::default()),
            service_account_admission,
            ..Options::default()
        };
        let cluster = Cluster::bind(options).await?;
        let client = Client::new(cluster.server.router(), "default");
        let kubeconfig = cluster.kubeconfig(owner);
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        Ok(Self { client, kubeconfig, stop, serving })
    }

    /// Closes the port and lets running requests end.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.serving.await;
    }
}
