//! The connections to the API server.
//!
//! kube's own stack speaks HTTP/1.1 alone: each write that is on its way has a connection with TLS of its own. Here the layers are kube's, and
//! writes share one connection of HTTP/2 where the server offers it, as those of client-go do. Reads keep connections of their own: the first list
//! of a large cluster does not hold up a binding or a lease, and watches are decrypted side by side.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, ResponseFuture, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _, retry::RetryPolicy},
};
use tower::{BoxError, Service, ServiceBuilder, retry::RetryLayer};

/// A connection that has been silent for so long is asked whether it is there, and closed when no answer comes: client-go's times.
const PING_AFTER: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(15);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Credentials, certificates or headers of the configuration cannot be used.
    #[error(transparent)]
    Config(#[from] kube::Error),
    /// `tls-server-name` is neither a name nor an address.
    #[error("tls-server-name {0:?} is neither a DNS name nor an IP address")]
    ServerName(String),
}

/// Which versions of HTTP writes are sent by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where the server offers it.
    #[default]
    Offered,
    /// HTTP/1.1 alone.
    Http1,
}

impl Protocol {
    /// As the environment of a Go client chooses it: `DISABLE_HTTP2` with any value rules it out.
    pub fn of_environment() -> Self {
        match std::env::var_os("DISABLE_HTTP2") {
            Some(value) if !value.is_empty() => Self::Http1,
            _ => Self::Offered,
        }
    }
}

/// A client of the API server of this configuration. Nothing is contacted yet.
pub fn connect(config: Config, protocol: Protocol) -> Result<Client, ConnectError> {
    // Proxies are kube's.
    if config.proxy_url.is_some() {
        return Ok(Client::try_from(config)?);
    }
    let transport = Transport { reads: transport(&config, Protocol::Http1)?, writes: transport(&config, protocol)? };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(service, config.default_namespace))
}

type Http = legacy::Client<TimeoutConnector<HttpsConnector<HttpConnector>>, Body>;

fn transport(config: &Config, protocol: Protocol) -> Result<Http, ConnectError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| ConnectError::ServerName(name.clone()))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let tls = match protocol {
        Protocol::Offered => tls.enable_all_versions().wrap_connector(tcp),
        Protocol::Http1 => tls.enable_http1().wrap_connector(tcp),
    };
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PONG_WITHIN)
        .http2_keep_alive_while_idle(true);
    Ok(builder.build(connector))
}

/// Sends reads and writes by connections of different kinds.
#[derive(Clone)]
struct Transport {
    reads: Http,
    writes: Http,
}

impl Service<Request<Body>> for Transport {
    type Error = legacy::Error;
    type Future = ResponseFuture;
    type Response = Response<Incoming>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        // A client opens connections as it needs them.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        if request.method() == Method::GET { self.reads.request(request) } else { self.writes.request(request) }
    }
}
