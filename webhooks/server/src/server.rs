//! The whole server: ports, certificates and configurations together.

use std::{net::SocketAddr, sync::Arc};

use koord_runtime::{Core, api::Api, clock::SharedClock};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Environment, ListenError, Service,
    keeper::{Keeper, Served},
    listener::{listen, serve, tls},
};

/// A webhook server that holds its ports.
///
/// [`Server::open`] takes the ports, [`Server::watch`] follows what the keeper cares for, [`Server::run`] serves.
pub struct Server {
    listeners: Vec<TcpListener>,
    service: Service,
    keeper: Arc<Keeper>,
    clock: SharedClock,
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Server {
    /// Takes the ports. A second port that is taken is none of our business.
    pub async fn open(environment: Environment, service: Service, clock: SharedClock) -> Result<Self, ServeError> {
        let address = |port| SocketAddr::from((environment.listen, port));
        let first = listen(address(environment.port)).await?;
        // Port 0 lets the system choose.
        let port = first.local_addr().map_or(environment.port, |address| address.port());
        let mut listeners = vec![first];
        if let Some(second) = environment.second_port {
            match listen(address(second)).await {
                Ok(listener) => listeners.push(listener),
                Err(error) => tracing::warn!(%error, "the original's port is not served"),
            }
        }
        let keeper = Keeper::new(environment, Served::by(&service), port, Arc::clone(&clock));
        let keeper = Arc::new(keeper.telling(service.metrics().clone()));
        Ok(Self { listeners, service, keeper, clock })
    }

    /// Follows the Secret, the configurations and the definitions of converted kinds, so that changes are noticed at once.
    pub fn watch(&self, core: &mut Core) {
        self.keeper.watch(core);
    }

    /// The check for readiness: API servers believe the certificate that is presented.
    pub fn readiness(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let keeper = Arc::clone(&self.keeper);
        move || keeper.ready()
    }

    /// The port that is served.
    pub fn port(&self) -> Option<u16> {
        self.listeners.first().and_then(|listener| listener.local_addr().ok()).map(|address| address.port())
    }

    /// Serves until it is told to stop.
    pub async fn run(self, api: Api, stop: CancellationToken) -> Result<(), ServeError> {
        let tls = tls(Arc::clone(self.keeper.certificate()))?;
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            let (tls, service, clock) = (Arc::clone(&tls), self.service.clone(), Arc::clone(&self.clock));
            tasks.spawn(serve(listener, tls, service, clock, stop.clone()));
        }
        self.keeper.run(&api, &stop).await;
        while tasks.join_next().await.is_some() {}
        Ok(())
    }
}
