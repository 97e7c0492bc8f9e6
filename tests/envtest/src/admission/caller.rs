//! A call of a webhook, from where a configuration says it is to the bytes of its answer.

use std::time::Duration;

use base64::Engine;
use serde_json::Value;

use super::client::{Address, Clients};
use super::services::{self, ServiceAlias};
use super::transport::Transport;
use crate::shell::Server;

/// Calls webhooks over TLS.
#[derive(Default)]
pub(super) struct Caller {
    aliases: Vec<ServiceAlias>,
    clients: Clients,
    /// Goes before connections.
    transport: Option<Box<dyn Transport>>,
}

/// Where a webhook is, whom it is trusted by, and how long a call may take.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) target: Target,
    /// PEM; empty trusts nobody.
    pub(super) ca_bundle: Vec<u8>,
    pub(super) timeout: Duration,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// At a URL.
    Url(String),
    /// Behind a service.
    Service {
        /// Namespace of the service.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
        /// Path, with its slash.
        path: String,
    },
}

// === impl Place ===

impl Place {
    /// The place that a `clientConfig` names.
    pub(super) fn read(config: &Value, timeout: Duration) -> Self {
        let ca_bundle = config["caBundle"].as_str().unwrap_or_default();
        Self {
            target: Target::read(config),
            ca_bundle: base64::engine::general_purpose::STANDARD.decode(ca_bundle).unwrap_or_default(),
            timeout,
        }
    }
}

impl Target {
    fn read(config: &Value) -> Self {
        if let Some(url) = config["url"].as_str() {
            return Target::Url(url.to_owned());
        }
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        Target::Service {
            namespace: text("namespace"),
            name: text("name"),
            port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
            path: if path.starts_with('/') { path } else { format!("/{path}") },
        }
    }
}

// === impl Caller ===

impl Caller {
    /// A caller that looks for services among these aliases first.
    pub(super) fn new(aliases: Vec<ServiceAlias>) -> Self {
        Self { aliases, ..Self::default() }
    }

    /// A caller that makes no connections.
    pub(super) fn over(transport: impl Transport + 'static) -> Self {
        Self { transport: Some(Box::new(transport)), ..Self::default() }
    }

    /// Sends a review and gives the body of the answer; errors are worded as Go's client words them.
    pub(super) async fn call(&self, server: &Server, place: &Place, review: &Value) -> Result<bytes::Bytes, String> {
        let query = format!("timeout={}s", place.timeout.as_secs());
        let body = review.to_string().into_bytes();
        let address = match &place.target {
            Target::Url(url) => {
                Address { url: format!("{}?{query}", with_clean_path(url)), server_name: None, socket: None }
            }
            Target::Service { namespace, name, port, path } => {
                let host = format!("{name}.{namespace}.svc");
                let url = format!("https://{host}:{port}{path}?{query}");
                if let Some(transport) = &self.transport {
                    return within(place.timeout, &url, transport.post(&url, &place.ca_bundle, body)).await;
                }
                let found = server.with_core(|core| services::resolve(core, &self.aliases, namespace, name, *port));
                let socket = found.map_err(|error| format!("Post \"{url}\": {error}"))?;
                Address { url, server_name: Some(host), socket: Some(socket) }
            }
        };
        within(place.timeout, &address.url, self.clients.post(&address, &place.ca_bundle, body)).await
    }
}

/// The address that kube-apiserver's client makes of a URL: without empty segments, query or slash at the end.
fn with_clean_path(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    format!("{scheme}://{host}/{}", segments.join("/"))
}

async fn within<T>(timeout: Duration, url: &str, call: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(timeout, call).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("Post \"{url}\": context deadline exceeded")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_called_without_empty_segments() {
        for (url, called) in [
            ("https://127.0.0.1:9443//validate-pod", "https://127.0.0.1:9443/validate-pod"),
            ("https://hooks.example/a//b/", "https://hooks.example/a/b"),
            ("https://hooks.example", "https://hooks.example/"),
        ] {
            assert_eq!(with_clean_path(url), called);
        }
    }
}
