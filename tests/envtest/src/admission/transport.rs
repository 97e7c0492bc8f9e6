//! Another way for reviews than TLS connections.

use bytes::Bytes;

use crate::shell::BoxFuture;

/// Carries reviews to webhooks that run in the same process.
pub trait Transport: Send + Sync {
    /// Posts a review to `url` and gives the body of a successful answer. Who answers must be trusted by `ca_bundle`
    /// (PEM). An error says why there is no answer, as Go's client would.
    fn post<'a>(&'a self, url: &'a str, ca_bundle: &'a [u8], review: Vec<u8>) -> BoxFuture<'a, Result<Bytes, String>>;
}
