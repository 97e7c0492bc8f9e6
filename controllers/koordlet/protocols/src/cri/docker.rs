//! Docker's API: one request per connection.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header::HOST};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, time::timeout};

use super::stop::StopError;

/// Longest text of an error that is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

pub(super) async fn stop(socket: &Path, id: &str, grace_seconds: u32, limit: Duration) -> Result<(), StopError> {
    let too_late = |_| StopError::TooLate { socket: socket.into(), limit };
    timeout(limit, request(socket, id, grace_seconds)).await.map_err(too_late)?
}

async fn request(socket: &Path, id: &str, grace_seconds: u32) -> Result<(), StopError> {
    let unreachable = |reason: String| StopError::Unreachable { socket: socket.into(), reason };
    let refused = |reason: String| StopError::Refused { container: id.to_owned(), reason };
    // An id is a part of a path here.
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return Err(StopError::NotFound(id.to_owned()));
    }
    let request = Request::post(format!("/containers/{id}/stop?t={grace_seconds}")).header(HOST, "docker");
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| refused(error.to_string()))?;
    let stream = UnixStream::connect(socket).await.map_err(|error| unreachable(error.to_string()))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| unreachable(error.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| unreachable(error.to_string()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ERROR_BYTES_MAX).collect().await;
        let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).trim().to_owned()).unwrap_or_default();
        Ok((status, text))
    };
    tokio::pin!(exchange, connection);
    let (status, text) = tokio::select! {
        answer = &mut exchange => answer?,
        ended = &mut connection => match ended {
            // The connection ends with the answer.
            Ok(()) => exchange.await?,
            Err(error) => return Err(unreachable(error.to_string())),
        },
    };
    match status {
        // Not modified: the container has stopped before.
        StatusCode::NOT_MODIFIED => Ok(()),
        status if status.is_success() => Ok(()),
        StatusCode::NOT_FOUND => Err(StopError::NotFound(id.to_owned())),
        status => Err(refused(format!("{status} {text}"))),
    }
}
