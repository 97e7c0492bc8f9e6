//! The secure port: what the other port serves, with TLS, to users whom the API server permits it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use axum::{Router, middleware};
use koord_listen::{Limits, Server, bind};
use koord_runtime::{
    clock::{Clock, SharedClock},
    manager::Manager,
};
use koord_webhook_server::TlsPolicy;
use rustls::{
    ServerConfig,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

use super::{
    access::{self, Access},
    authority::AnyCertificate,
    certificate::CertificateFiles,
    clients::Clients,
    names::{Certificates, NamedCertificate},
};

/// How often files are read again, and a certificate of our own is looked at.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How the secure port is served.
#[derive(Clone, Debug)]
pub struct SecurePort {
    /// Where.
    pub address: SocketAddr,
    /// Whether somebody has chosen this port. One that is taken is an error then, and not served otherwise.
    pub is_chosen: bool,
    /// Files of the certificate and its key; without them the program makes a certificate that nobody trusts.
    pub files: Option<CertificateFiles>,
    /// Certificates for clients that ask for some name.
    pub named: Vec<NamedCertificate>,
    /// Which versions and cipher suites of TLS are spoken.
    pub tls: TlsPolicy,
    /// Most requests at once on an HTTP/2 connection; none for the server's own limit.
    pub streams_max: Option<u32>,
    /// File with the authorities whose certificates name users; without it certificates name nobody.
    pub client_authority: Option<PathBuf>,
    /// Who speaks for others; none where nobody does.
    pub front_proxy: Option<FrontProxy>,
    /// Paths that everybody may read; one that ends in `*` stands for all that begin so.
    pub open_paths: Vec<String>,
    /// How long an answer about a token holds.
    pub token_life: Duration,
    /// How long a permission holds.
    pub permission_life: Duration,
    /// How long a refusal holds.
    pub refusal_life: Duration,
}

/// A proxy that names the users of its requests in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// File with the authorities of its certificate.
    pub authority: PathBuf,
    /// Common names of which its certificate has one; without any every name will do.
    pub names: Vec<String>,
    /// Headers with the user's name; the first that says something counts.
    pub username_headers: Vec<String>,
    /// Headers with the user's uid; the first that says something counts.
    pub uid_headers: Vec<String>,
    /// Headers with the user's groups.
    pub group_headers: Vec<String>,
    /// What headers with further facts about the user begin with.
    pub extra_prefixes: Vec<String>,
}

impl SecurePort {
    /// Takes the port, and serves it while the manager runs.
    pub fn run_in(self, router: Router, clock: SharedClock, manager: &mut Manager) -> Result<()> {
        let listener = match bind(self.address) {
            Ok(listener) => listener,
            Err(error) if error.is_in_use() && !self.is_chosen => {
                tracing::warn!(%error, "the secure port is not served");
                return Ok(());
            }
            Err(error) => return Err(anyhow!("{error}; choose another port with --secure-port, or 0 for none")),
        };
        let certificates = Arc::new(Certificates::open(self.files.clone(), self.named.clone(), clock.now())?);
        let clients = Arc::new(Clients::open(&self)?);
        let tls = self.tls(Arc::clone(&certificates), &clients)?;
        let small = Limits::small();
        let limits = Limits { streams_max: self.streams_max.unwrap_or(small.streams_max), ..small };
        let access = Arc::new(Access::new(self, Arc::clone(&clients), manager.api().clone(), Arc::clone(&clock)));
        let router = router.layer(middleware::from_fn_with_state(access, access::check));
        let (server, listener) = (Server::new(limits), Arc::new(listener));
        manager.on_every_replica("secure server", move |_, stop| {
            let (server, listener) = (server.clone(), Arc::clone(&listener));
            let (tls, router) = (Arc::clone(&tls), router.clone());
            async move { server.serve(listener, Some(tls), router, stop.cancelled_owned()).await }
        });
        manager.on_every_replica("secure server's certificates", move |_, stop| {
            let (certificates, clients, clock) = (Arc::clone(&certificates), Arc::clone(&clients), Arc::clone(&clock));
            async move {
                tokio::select! { biased; () = stop.cancelled() => {}, () = follow(&certificates, &clients, &*clock) => {} }
            }
        });
        Ok(())
    }

    fn tls(&self, certificates: Arc<Certificates>, clients: &Clients) -> Result<Arc<ServerConfig>> {
        let verifier: Arc<dyn ClientCertVerifier> =
            if clients.are_asked() { Arc::new(AnyCertificate) } else { WebPkiClientVerifier::no_client_auth() };
        Ok(self.tls.clone().serving_clients(certificates, verifier)?)
    }
}

/// Reads the files again now and then, for ever.
async fn follow(certificates: &Certificates, clients: &Clients, clock: &dyn Clock) {
    loop {
        clock.sleep(LOOK_AGAIN).await;
        if let Err(error) = certificates.refresh(clock.now()) {
            tracing::warn!("a certificate of the secure port stays as it was: {error:#}");
        }
        if let Err(error) = clients.refresh() {
            tracing::warn!("authorities of clients of the secure port stay as they were: {error:#}");
        }
    }
}
