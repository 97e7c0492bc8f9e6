//! The whole server: ports, certificates and configurations together.

use std::{env, net::SocketAddr, sync::Arc};

use koord_listen::{BindError, Limits, bind};
use koord_runtime::{
    Core,
    clock::{SharedClock, SystemClock},
    manager::{Manager, Runnable},
};
use tokio::net::TcpListener;

use crate::{
    Defaults, Environment, EnvironmentError, Service,
    controller::{Served, WebhookController},
    tls,
};

/// A webhook server that holds its ports.
///
/// A program has one that returns its [`Service`] where it adds its controllers (`koord_program::run_controllers`). Others have
/// [`Server::beside`], and [`Server::run_in`] serves. Its steps are [`Server::open`], which takes the ports,
/// and [`Server::watch`], which watches what the certificates depend on.
pub struct Server {
    listeners: Vec<TcpListener>,
    service: Service,
    controller: Arc<WebhookController>,
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A variable of the environment cannot be used.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The port cannot be used.
    #[error("{0}; set WEBHOOK_PORT to a free port")]
    Listen(#[from] BindError),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Server {
    /// A server with these settings, which takes its ports, and for which `core` watches what its certificates depend on. Their time
    /// is the system's, whatever the clock of `core` shows.
    pub fn beside(core: &mut Core, environment: Environment, service: Service) -> Result<Self, ServeError> {
        let server = Self::open(environment, service, SystemClock::shared())?;
        server.watch(core);
        Ok(server)
    }

    /// Takes the ports. A second port that another program has is left out, with a warning.
    pub fn open(environment: Environment, service: Service, clock: SharedClock) -> Result<Self, ServeError> {
        let address = |port| SocketAddr::from((environment.listen, port));
        let first = bind(address(environment.port))?;
        // Port 0 lets the system choose.
        let port = first.local_addr().map_or(environment.port, |address| address.port());
        let mut listeners = vec![first];
        if let Some(second) = environment.second_port {
            match bind(address(second)) {
                Ok(listener) => listeners.push(listener),
                Err(error) => tracing::warn!(%error, "the second port is not served"),
            }
        }
        let controller = WebhookController::new(environment, Served::by(&service), port, clock);
        let controller = Arc::new(controller.telling(service.metrics().clone()));
        Ok(Self { listeners, service, controller })
    }

    /// Follows the Secret, the configurations and the definitions of converted kinds, so that changes are noticed at once.
    pub fn watch(&self, core: &mut Core) {
        self.controller.watch(core);
    }

    /// The check for readiness: API servers trust the certificate that is presented.
    pub fn readiness(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let controller = Arc::clone(&self.controller);
        move || controller.ready()
    }

    /// The port that is served.
    pub fn port(&self) -> Option<u16> {
        self.listeners.first().and_then(|listener| listener.local_addr().ok()).map(|address| address.port())
    }

    /// Serves while the manager runs. Each port and the care for the certificates are tasks that the manager supervises;
    /// it is ready when API servers trust the certificate.
    pub fn run_in(self, manager: &mut Manager) -> Result<(), ServeError> {
        const PORTS: [&str; 2] = ["webhook server", "webhook server on the second port"];
        let tls = tls(Arc::clone(self.controller.certificate()))?;
        manager.health().ready("webhook-ready", self.readiness());
        let (server, router) = (koord_listen::Server::new(Limits::default()), self.service.router());
        for (name, listener) in PORTS.into_iter().zip(self.listeners) {
            let (server, tls, router, listener) =
                (server.clone(), Arc::clone(&tls), router.clone(), Arc::new(listener));
            manager.on_every_replica(name, move |_, stop| {
                let (server, tls, router, listener) =
                    (server.clone(), Arc::clone(&tls), router.clone(), Arc::clone(&listener));
                async move { server.serve(listener, Some(tls), router, stop.cancelled_owned()).await }
            });
        }
        let controller = self.controller;
        manager.on_every_replica("webhook certificates", move |api, stop| {
            let controller = Arc::clone(&controller);
            async move { controller.run(&api, &stop).await }
        });
        Ok(())
    }
}

// === impl Service ===

/// The server that answers with it, by the variables of the process's environment. None where `ENABLE_WEBHOOKS` is `false`: for a
/// program that no API server reaches.
impl Runnable for Service {
    type Open = Option<Server>;
    type Error = ServeError;
    const VARIABLES: &'static [(&'static str, &'static str)] = Environment::VARIABLES;

    fn open(self, core: &mut Core, program: &str, namespace: &str) -> Result<Option<Server>, ServeError> {
        if !Environment::enables(|name| env::var(name).ok()) {
            return Ok(None);
        }
        Server::beside(core, Environment::read(Defaults::of(program, namespace))?, self).map(Some)
    }

    fn run_in(open: Option<Server>, manager: &mut Manager) -> Result<(), ServeError> {
        open.map_or(Ok(()), |server| server.run_in(manager))
    }
}
