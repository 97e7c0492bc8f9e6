//! A server under test, and its clients: raw sockets that send what they like.

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    http::StatusCode,
    routing::{any, get},
};
use futures::stream;
use koord_listen::{Limits, Server, bind, read};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const SOON: Duration = Duration::from_secs(10);
/// The longest body that `/length` takes.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    _stop: DropGuard,
}

/// Answers the length of a body on `/length`, the address of the client on `/client`, and on `/watch` a line now and another after a second.
pub(crate) fn router() -> Router {
    let length = any(async |request: Request| match read(request.into_body(), BODY_BYTES_MAX).await {
        Ok(body) => (StatusCode::OK, body.len().to_string()),
        Err(error) => (error.status(), error.to_string()),
    });
    let watch = get(async || {
        let lines = stream::unfold(0, async |line| {
            if line == 1 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            (line < 2).then(|| (Ok::<_, std::convert::Infallible>(format!("line {line}\n")), line + 1))
        });
        Body::from_stream(lines)
    });
    let endless = get(async || {
        let zeros = stream::repeat_with(|| Ok::<_, std::convert::Infallible>(vec![0_u8; 64 * 1024]));
        Body::from_stream(zeros)
    });
    let client = get(async |ConnectInfo(address): ConnectInfo<SocketAddr>| address.to_string());
    Router::new().route("/length", length).route("/client", client).route("/watch", watch).route("/endless", endless)
}

pub(crate) fn start(limits: Limits) -> Running {
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let (address, server, stop) = (listener.local_addr().unwrap(), Server::new(limits), CancellationToken::new());
    let (serving, stopped) = (server.clone(), stop.clone());
    tokio::spawn(async move { serving.serve(listener, None, router(), stopped.cancelled_owned()).await });
    Running { address, server, _stop: stop.drop_guard() }
}

impl Running {
    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Waits until so many connections are open.
    pub(crate) async fn has(&self, connections: usize) {
        let deadline = Instant::now() + SOON;
        while self.server.connections() != connections {
            assert!(Instant::now() < deadline, "{} connections", self.server.connections());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends what may be cut off.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// A request without a body, and its status line.
    pub(crate) async fn get(&mut self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        self.receive().await
    }

    /// The next text that comes; empty at the end.
    pub(crate) async fn receive(&mut self) -> String {
        let mut buffer = vec![0; 4096];
        let count = timeout(SOON, self.0.read(&mut buffer)).await.expect("something comes").unwrap_or(0);
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    }

    /// Waits until the server closes the connection, and gives what came before and how long it took.
    pub(crate) async fn closed(&mut self) -> (String, Duration) {
        let begin = Instant::now();
        let mut text = String::new();
        loop {
            match self.receive().await {
                part if part.is_empty() => return (text, begin.elapsed()),
                part => text.push_str(&part),
            }
        }
    }
}
