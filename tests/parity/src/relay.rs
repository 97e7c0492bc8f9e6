//! A server elsewhere, as a router: what is sent to it is sent on.

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;
use http::StatusCode;
use kube::{Client, Config};

/// Sends every request on to the server at `url`, which the authority `ca_pem` vouches for. Credentials are the
/// request's own.
pub fn relay(url: &str, ca_pem: &str) -> Result<Router> {
    let mut config = Config::new(url.parse()?);
    config.root_cert = Some(pem_contents(ca_pem)?);
    let client = Client::try_from(config)?;
    Ok(Router::new().fallback(forward).with_state(client))
}

/// The certificate in DER.
fn pem_contents(text: &str) -> Result<Vec<Vec<u8>>> {
    let base64: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    Ok(vec![base64::engine::general_purpose::STANDARD.decode(base64)?])
}

async fn forward(State(client): State<Client>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let request = http::Request::from_parts(parts, kube::client::Body::from(bytes.to_vec()));
    match client.send(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
