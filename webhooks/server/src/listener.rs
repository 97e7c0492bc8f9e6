//! Sockets: accepts connections, speaks TLS on them, and closes them with the program.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use koord_runtime::clock::SharedClock;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Service, certificates::HotCertificate};

/// Most connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 4096;
/// A client that has not finished its handshake by then is let go.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// A client that has not sent a whole header by then is let go.
const HEADER_MAX: Duration = Duration::from_secs(30);
/// How long running requests may take after the program was told to stop.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; set WEBHOOK_PORT to a free port")]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// Opens a port.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError { address, source })
}

/// TLS as Kubernetes wants it: 1.2 and 1.3, HTTP/2 and HTTP/1.1, and the certificate that is presented right now.
pub fn tls(certificate: Arc<HotCertificate>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves until it is told to stop; then lets running requests finish.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    service: Service,
    clock: SharedClock,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (permit, listener.accept().await)
            } => accepted,
        };
        let (Ok(permit), Ok((stream, _))) = accepted else {
            // Out of file descriptors, or the client was gone at once: neither is a reason to stop.
            clock.sleep(Duration::from_millis(20)).await;
            continue;
        };
        let connection = connection(stream, acceptor.clone(), service.clone(), Arc::clone(&clock), stop.clone());
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    connections.close();
    tokio::select! {
        biased;
        () = connections.wait() => {}
        () = clock.sleep(DRAIN_MAX) => {}
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    service: Service,
    clock: SharedClock,
    stop: CancellationToken,
) {
    // A review is a small request that somebody waits for.
    let _ = stream.set_nodelay(true);
    let stream = tokio::select! {
        biased;
        shaken = acceptor.accept(stream) => match shaken {
            Ok(stream) => stream,
            Err(error) => return tracing::debug!(%error, "TLS handshake failed"),
        },
        () = clock.sleep(HANDSHAKE_MAX) => return,
        () = stop.cancelled() => return,
    };
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { service.answer(request).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_MAX);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1024);
    let serving = builder.serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(serving);
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}
