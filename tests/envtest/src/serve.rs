//! TLS in front of the router, and the kubeconfig that leads to it.

mod certificates;
mod kubeconfig;
mod probe;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use certificates::{Authority, CertificateError};
pub use kubeconfig::{Kubeconfig, KubeconfigError, Owner};
pub use probe::{NotReady, until_ready};

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
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The certificate cannot be made or used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A bound socket that speaks TLS with a certificate of its own authority.
pub struct TlsListener {
    listener: TcpListener,
    address: SocketAddr,
    authority: Authority,
    acceptor: TlsAcceptor,
}

// === impl TlsListener ===

impl TlsListener {
    /// Binds `address`; port 0 takes any free one. `names` are further names that the certificate is for.
    pub async fn bind(address: SocketAddr, names: &[String]) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                ServeError::PortInUse { host: address.ip().to_string(), port: address.port() }
            }
            _ => ServeError::Bind { address, source },
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Bind { address, source })?;
        let authority = Authority::new()?;
        let config = authority.server_config(address.ip(), names)?;
        Ok(Self { listener, address, authority, acceptor: TlsAcceptor::from(Arc::new(config)) })
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

    /// The authority's certificate, PEM.
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Answers connections until `stop` turns true, then closes those that are idle.
    pub async fn run(self, router: Router, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let connection = connection(stream, self.acceptor.clone(), router.clone(), stop.clone());
                        tokio::spawn(connection);
                    }
                    // Out of file descriptors, or a client that left at once: neither is a reason to stop.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    }
                },
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "TLS handshake failed"),
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1000);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(%error, "connection ended");
            }
            return;
        }
        () = stopped(&mut stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    // Watches have no end of their own.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(200), connection).await;
}

/// Waits until the server is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
