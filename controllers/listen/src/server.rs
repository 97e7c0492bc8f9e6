//! Accepts connections and serves them within the limits.

use std::{
    borrow::Borrow,
    error::Error,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, extract::ConnectInfo, http::Request};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

use crate::{
    Limits,
    body::Arriving,
    connections::{Connection, Connections, InFlight},
    open_files::open_files_max,
    peer::PeerCertificates,
    stream::Watched,
};

/// How long a connection that is closed may take to say so to its client.
const CLOSE_MAX: Duration = Duration::from_millis(500);
/// Most bytes of what a client sends ahead on an HTTP/1.1 connection: also the longest head.
const BUFFER_BYTES: usize = 32 * 1024;
/// Most bytes of a body that an HTTP/2 client sends ahead, on a stream and on a connection.
const WINDOW_BYTES: u32 = 64 * 1024;

/// Serves HTTP within limits. The listeners of one server share its connections and its budget for bodies.
///
/// Handlers find the address of the client by `axum::extract::ConnectInfo<SocketAddr>`.
#[derive(Clone, Debug)]
pub struct Server {
    connections: Arc<Connections>,
}

// === impl Server ===

impl Server {
    /// A server with these limits, and no more connections than the process may open files for.
    pub fn new(limits: Limits) -> Self {
        Self { connections: Connections::new(limits.within_open_files(open_files_max())) }
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many connections were refused or closed for others so far.
    pub fn turned_away(&self) -> u64 {
        self.connections.turned_away()
    }

    /// How many connections of HTTP/2 were closed so far because their clients reset too many requests.
    pub fn flooded(&self) -> u64 {
        self.connections.flooded()
    }

    /// Serves what a listener accepts, with TLS if it is given, until `stop`; then lets running requests finish. A listener
    /// that is shared stays open when this is dropped, and can be served again.
    pub async fn serve(
        &self,
        listener: impl Borrow<TcpListener> + Send + Sync,
        tls: Option<Arc<ServerConfig>>,
        router: Router,
        stop: impl Future<Output = ()> + Send,
    ) {
        let acceptor = tls.map(TlsAcceptor::from);
        let (stopping, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.as_mut() => break,
                accepted = listener.borrow().accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(connection) = self.connections.admit(peer.ip()) {
                        let (acceptor, router) = (acceptor.clone(), router.clone());
                        spawn_connected(&tasks, stream, connection, acceptor, router, stopping.clone());
                    }
                }
                Err(error) => {
                    // A client that was gone at once, or no more files: neither is a reason to stop.
                    tracing::debug!(%error, "a connection could not be accepted");
                    self.connections.shed();
                    sleep(Duration::from_millis(20)).await;
                }
            }
        }
        stopping.cancel();
        tasks.close();
        let _ = timeout(self.connections.limits.drain_max, tasks.wait()).await;
    }
}

/// Spawns [`connected`]. A function without parameters of type: HTTP is compiled once, here, and not wherever something is served.
fn spawn_connected(
    tasks: &TaskTracker,
    stream: TcpStream,
    connection: Connection,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    stopping: CancellationToken,
) {
    tasks.spawn(connected(stream, Arc::new(connection), acceptor, router, stopping));
}

/// One connection from its first byte to its last.
async fn connected(
    stream: TcpStream,
    connection: Arc<Connection>,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    stopping: CancellationToken,
) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok();
    // A client that says nothing costs no more than its socket.
    tokio::select! {
        biased;
        _ = stream.readable() => {}
        () = overdue(&connection) => return,
        () = connection.ended.cancelled() => return,
        () = stopping.cancelled() => return,
    }
    match acceptor {
        None => {
            connection.handshaken();
            Box::pin(serve(stream, connection, peer, None, false, router, stopping)).await;
        }
        Some(acceptor) => {
            let Some(stream) = Box::pin(handshake(acceptor, stream, &connection, &stopping)).await else { return };
            connection.handshaken();
            let (_, session) = stream.get_ref();
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            let certificates = session.peer_certificates().and_then(PeerCertificates::of);
            Box::pin(serve(stream, connection, peer, certificates, is_http2, router, stopping)).await;
        }
    }
}

async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    connection: &Connection,
    stopping: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    tokio::select! {
        biased;
        shaken = acceptor.accept(stream) => {
            shaken.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed")).ok()
        }
        () = overdue(connection) => None,
        () = connection.ended.cancelled() => None,
        () = stopping.cancelled() => None,
    }
}

async fn serve<S>(
    stream: S,
    connection: Arc<Connection>,
    peer: Option<SocketAddr>,
    certificates: Option<PeerCertificates>,
    is_http2: bool,
    router: Router,
    stopping: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = {
        let connection = Arc::clone(&connection);
        service_fn(move |request: Request<Incoming>| {
            let request_in_flight = InFlight::begin(Arc::clone(&connection));
            let kept = Arc::clone(&request_in_flight);
            let mut request = request.map(|body| axum::body::Body::new(Arriving::new(body, request_in_flight)));
            if let Some(peer) = peer {
                request.extensions_mut().insert(ConnectInfo(peer));
            }
            if let Some(certificates) = &certificates {
                request.extensions_mut().insert(certificates.clone());
            }
            let answer = router.clone().call(request);
            async move { answer.await.map(|response| response.map(|body| Answer { body, _request: kept })) }
        })
    };
    let limits = connection.limits();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Heads are timed by `overdue`, together with everything else that can be late.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .keep_alive_interval(limits.ping_every)
        .keep_alive_timeout(limits.ping_max);
    let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    // Between the requests of HTTP/2 come frames that begin no head, such as answers to pings.
    let stream = TokioIo::new(Watched::new(stream, Arc::clone(&connection), !is_http2));
    // A request may take the connection over for another protocol; that ends this function, not the connection.
    let mut serving = pin!(builder.serve_connection_with_upgrades(stream, answer));
    let drain_max = tokio::select! {
        biased;
        ended = serving.as_mut() => {
            if let Err(error) = ended {
                if is_flood(&*error) {
                    connection.flooded();
                }
                tracing::debug!(error, "connection ended early");
            }
            return;
        }
        () = connection.ended.cancelled() => CLOSE_MAX,
        () = overdue(&connection) => CLOSE_MAX,
        () = stopping.cancelled() => limits.drain_max,
    };
    serving.as_mut().graceful_shutdown();
    let _ = timeout(drain_max, serving).await;
}

/// Whether a connection was closed because its client reset too many requests.
fn is_flood<'e>(error: &'e (dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source());
    causes.any(|cause| {
        cause.downcast_ref::<h2::Error>().is_some_and(|error| error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
    })
}

/// Waits until a stage of the connection has lasted too long.
async fn overdue(connection: &Connection) {
    // Stages change without a word to this task: it looks again when the shortest of them could be over.
    let look_again = connection.limits().header_max;
    loop {
        let now = Instant::now();
        let deadline = connection.deadline();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return;
        }
        sleep_until(deadline.map_or(now + look_again, |deadline| deadline.min(now + look_again))).await;
    }
}

/// The body of an answer. Its request is in flight until the answer is sent.
struct Answer {
    body: axum::body::Body,
    _request: Arc<InFlight>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
