//! The secure port: what the other port serves, with TLS, to users whom the API server knows and permits it.

mod access;
mod certificate;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use axum::{Router, middleware};
use koord_listen::{Limits, Server, bind};
use koord_runtime::{clock::SharedClock, manager::Manager};
use koord_webhook::TlsPolicy;

use self::{access::Access, certificate::Certificate};

/// How the secure port is served.
#[derive(Clone, Debug)]
pub struct Secure {
    /// Where.
    pub address: SocketAddr,
    /// Whether somebody has chosen this port. One that is taken is an error then, and not served otherwise.
    pub is_chosen: bool,
    /// Files of the certificate and its key; without them the program makes a certificate that nobody trusts.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Which versions and cipher suites of TLS are spoken.
    pub tls: TlsPolicy,
    /// Paths that everybody may read; one that ends in `*` stands for all that begin so.
    pub open_paths: Vec<String>,
    /// How long an answer about a token holds.
    pub token_life: Duration,
    /// How long a permission holds.
    pub permission_life: Duration,
    /// How long a refusal holds.
    pub refusal_life: Duration,
}

impl Secure {
    /// Takes the port, and serves it while the manager runs.
    pub(crate) fn run_in(self, router: Router, clock: SharedClock, manager: &mut Manager) -> Result<()> {
        let listener = match bind(self.address) {
            Ok(listener) => listener,
            Err(error) if error.is_in_use() && !self.is_chosen => {
                tracing::warn!(%error, "the secure port is not served");
                return Ok(());
            }
            Err(error) => return Err(anyhow!("{error}; choose another port with --secure-port, or 0 for none")),
        };
        let certificate = Arc::new(Certificate::open(self.files.clone(), clock.now())?);
        let tls = self.tls.clone().serving(certificate.served())?;
        let access = Arc::new(Access::new(self, manager.api().clone(), Arc::clone(&clock)));
        let router = router.layer(middleware::from_fn_with_state(access, access::check));
        let (server, listener) = (Server::new(Limits::small()), Arc::new(listener));
        manager.on_every_replica("secure server", move |_, stop| {
            let (server, listener) = (server.clone(), Arc::clone(&listener));
            let (tls, router) = (Arc::clone(&tls), router.clone());
            async move { server.serve(listener, Some(tls), router, stop.cancelled_owned()).await }
        });
        manager.on_every_replica("secure server's certificate", move |_, stop| {
            let (certificate, clock) = (Arc::clone(&certificate), Arc::clone(&clock));
            async move {
                tokio::select! { biased; () = stop.cancelled() => {}, () = certificate.follow(&clock) => {} }
            }
        });
        Ok(())
    }
}
