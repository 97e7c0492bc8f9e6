//! TLS in front of the router, and the kubeconfig that leads to it.

mod certificates;
mod kubeconfig;
mod kubelets;
mod probe;
mod sign;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use koord_listen::{BindError, BodyLimits, Limits, Server, bind};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use certificates::{Authority, CertificateError};
pub use kubeconfig::{Kubeconfig, KubeconfigError, Owner};
pub use kubelets::Kubelets;
pub use probe::{NotReady, until_ready};
pub use sign::AuthoritySigner;

/// Why a server cannot be put on a socket.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody else listens there.
    #[error("port {port} of {host} is in use by another program; choose another with --port, or 0 for any free one")]
    PortInUse {
        /// The address asked for.
        host: String,
        /// The port asked for.
        port: u16,
    },
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(BindError),
    /// The certificate cannot be made or used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A bound socket that speaks TLS with a certificate of its own authority.
pub struct TlsListener {
    listener: TcpListener,
    address: SocketAddr,
    authority: Arc<Authority>,
    tls: Arc<ServerConfig>,
}

// === impl TlsListener ===

impl TlsListener {
    /// Binds `address`; port 0 takes any free one. `names` are further names that the certificate is for.
    pub fn bind(address: SocketAddr, names: &[String]) -> Result<Self, ServeError> {
        Self::bind_as(address, names, Authority::new)
    }

    /// Binds `address` and has its certificate signed by an authority that is made then.
    pub fn bind_as(
        address: SocketAddr,
        names: &[String],
        authority: impl FnOnce() -> Result<Authority, CertificateError>,
    ) -> Result<Self, ServeError> {
        let listener = bind(address).map_err(|error| {
            if error.is_in_use() {
                ServeError::PortInUse { host: address.ip().to_string(), port: address.port() }
            } else {
                ServeError::Bind(error)
            }
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Bind(BindError { address, source }))?;
        let authority = Arc::new(authority()?);
        let tls = Arc::new(authority.server_config(address.ip(), names)?);
        Ok(Self { listener, address, authority, tls })
    }

    /// Where clients connect: the bound address, or loopback when all addresses are bound.
    pub fn url(&self) -> String {
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        format!("https://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority that has signed the server's certificate.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The authority's certificate, PEM.
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Answers connections until `stop` turns true, then closes those that are idle. Watches have no end of their own
    /// and are cut then.
    pub async fn run(self, router: Router, mut stop: watch::Receiver<bool>) {
        let stopped = async move {
            let _ = stop.wait_for(|stop| *stop).await;
        };
        Server::new(limits()).serve(self.listener, Some(self.tls), router, stopped).await;
    }
}

/// Each node's kubelet and koordlet may keep connections of their own, all from this machine. Bodies are short here, and a
/// process that has webhooks beside this server holds theirs too.
fn limits() -> Limits {
    Limits {
        bodies: BodyLimits { bytes_max: 24 * 1024 * 1024, ..BodyLimits::default() },
        connections_max: 16_384,
        connections_per_peer_max: 16_384,
        drain_max: Duration::from_millis(200),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_a_server_and_of_webhooks_beside_it_stay_within_eighty_megabytes() {
        let bytes_max = |limits: Limits| limits.bodies.bytes_max;
        assert!(bytes_max(limits()) + bytes_max(Limits::default()) <= 80_000_000);
    }
}
