//! Requests that are passed on to kubelets: text that may be followed, and connections in both directions.

use std::{io, net::SocketAddr, time::Duration};

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header, request::Parts as Head};
use http_body_util::{BodyExt as _, Limited};
use hyper::{
    body::Incoming,
    client::conn::http1,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::BoxFuture;
use crate::{
    server::{CallKind, KubeletCall, Scheme},
    status::ApiError,
};

/// How long a kubelet may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(30);
/// Bytes of a kubelet's failure that are read.
const FAILURE_BYTES_MAX: usize = 50_000;
/// Headers that concern one connection alone.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// Connects to kubelets and what else runs on their nodes.
pub trait Dial: Send + Sync {
    /// A connection that is ready for HTTP/1.1.
    fn dial(&self, address: SocketAddr, scheme: Scheme) -> BoxFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// Passes a request on, and its answer back.
pub(super) async fn pass(
    dialer: &dyn Dial,
    call: &KubeletCall,
    mut head: Head,
    body: Body,
) -> Result<Response, ApiError> {
    let asks_upgrade = is_upgrade(&head.headers);
    match call.kind {
        CallKind::Stream if !asks_upgrade => return Err(ApiError::bad_request("Upgrade request required")),
        // A root without a path is not what relative links on its pages refer to.
        CallKind::Proxy if matches!(call.path.bytes().next(), None | Some(b'?')) => return Ok(redirect(&head)),
        _ => {}
    }
    let client = asks_upgrade.then(|| head.extensions.remove::<OnUpgrade>()).flatten();
    let request = passed_on(call, head, if client.is_some() { Body::empty() } else { body })?;
    let mut response = send(dialer, call, request).await.map_err(|error| unreachable(call, &error))?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let missing = || ApiError::internal("the connection of the client cannot be handed over");
        let client = client.ok_or_else(missing)?;
        let kubelet = hyper::upgrade::on(&mut response);
        tokio::spawn(tunnel(client, kubelet));
        return Ok(response.map(|_| Body::empty()));
    }
    if call.kind == CallKind::Log {
        return log(call, response).await;
    }
    let mut response = response.map(Body::new);
    for name in &OF_CONNECTION {
        response.headers_mut().remove(name);
    }
    Ok(response)
}

async fn send(dialer: &dyn Dial, call: &KubeletCall, request: Request<Body>) -> io::Result<http::Response<Incoming>> {
    let dialed = tokio::time::timeout(CONNECT_MAX, dialer.dial(call.address, call.scheme));
    let stream = dialed.await.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "i/o timeout"))??;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends when the answer has been read, or with the connection that it became.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a kubelet ended early");
        }
    });
    sender.send_request(request).await.map_err(io::Error::other)
}

/// Carries bytes in both directions until one side has nothing more to say.
async fn tunnel(client: OnUpgrade, kubelet: OnUpgrade) {
    let both = futures::future::try_join(client, kubelet).await;
    let (client, kubelet): (Upgraded, Upgraded) = match both {
        Ok(both) => both,
        Err(error) => return tracing::debug!(%error, "a connection could not be handed over"),
    };
    let (mut client, mut kubelet) = (TokioIo::new(client), TokioIo::new(kubelet));
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut kubelet).await {
        tracing::debug!(%error, "a connection to a kubelet was cut");
    }
}

/// The request as the kubelet gets it: who the user is stays here.
fn passed_on(call: &KubeletCall, head: Head, body: Body) -> Result<Request<Body>, ApiError> {
    let path = if call.path.starts_with('/') { call.path.clone() } else { format!("/{}", call.path) };
    let uri: Uri = path.parse().map_err(|_| ApiError::bad_request(format!("invalid path {path:?}")))?;
    let (method, mut headers, body) = match call.kind {
        CallKind::Log => (Method::GET, HeaderMap::new(), Body::empty()),
        _ => (head.method, head.headers, body),
    };
    let is_upgrade = is_upgrade(&headers);
    let of_user = |name: &HeaderName| *name == header::AUTHORIZATION || name.as_str().starts_with("impersonate-");
    let dropped: Vec<HeaderName> = headers
        .keys()
        .filter(|name| of_user(name) || *name == header::HOST || (!is_upgrade && OF_CONNECTION.contains(name)))
        .cloned()
        .collect();
    for name in &dropped {
        headers.remove(name);
    }
    let host =
        HeaderValue::from_str(&call.address.to_string()).map_err(|error| ApiError::internal(error.to_string()))?;
    headers.insert(header::HOST, host);
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Ok(request)
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

fn redirect(head: &Head) -> Response {
    let query = head.uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(place) = HeaderValue::from_str(&format!("{}/{query}", head.uri.path())) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// The text of a log; what is none becomes a failure.
async fn log(call: &KubeletCall, response: http::Response<Incoming>) -> Result<Response, ApiError> {
    let status = response.status();
    if status.is_success() {
        let mut text = Response::new(Body::new(response.into_body()));
        text.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        return Ok(text);
    }
    let body = Limited::new(response.into_body(), FAILURE_BYTES_MAX).collect().await;
    let said = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
    Err(match status {
        StatusCode::INTERNAL_SERVER_ERROR => ApiError::internal(said),
        StatusCode::BAD_REQUEST => ApiError::bad_request(said),
        status => refused(status, &call.name, &said),
    })
}

/// A kubelet's refusal, as the real server words it.
fn refused(status: StatusCode, name: &str, said: &str) -> ApiError {
    let unknown =
        format!("the server responded with the status code {} but did not return more information", status.as_u16());
    let broken = format!("an error on the server ({said:?}) has prevented the request from succeeding");
    let (reason, message) = match status.as_u16() {
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        // The kubelet says why.
        403 => ("Forbidden", said),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        500.. => ("InternalError", broken.as_str()),
        _ => ("", unknown.as_str()),
    };
    ApiError::new(status.as_u16(), reason, format!("{message} ( pods/log {name})"))
}

/// Why nobody answers for the kubelet.
fn unreachable(call: &KubeletCall, error: &io::Error) -> ApiError {
    let dialed = match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {}: connect: connection refused", call.address),
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            format!("dial tcp {}: {error}", call.address)
        }
        // The connection was there.
        _ => error.to_string(),
    };
    match call.kind {
        CallKind::Log => ApiError::unclassified(format!("Get \"https://{}{}\": {dialed}", call.address, call.path)),
        CallKind::Stream => ApiError::unclassified(format!("error dialing backend: {dialed}")),
        CallKind::Proxy => ApiError::new(503, "ServiceUnavailable", format!("error trying to reach service: {dialed}")),
    }
}
