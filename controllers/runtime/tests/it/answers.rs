//! Answers of an API server that exists in a test alone. The unit tests of watches have this file too.

use std::io;

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures::{StreamExt as _, stream};

/// A watch that sends these lines and stays open.
pub(crate) fn open(lines: &str) -> Response {
    let sent = stream::iter([Ok::<_, io::Error>(Bytes::from(lines.to_owned()))]);
    Response::new(Body::from_stream(sent.chain(stream::pending())))
}
