//! Requests to the kubelet of the node.

use std::{net::IpAddr, time::Duration};

use http::{Request, header};
use http_body_util::{BodyExt as _, Limited};
use koord_koordlet_framework::Node;
use koord_runtime::connect::{Protocol, connect};
use kube::{Client, Config, client::Body};
use parking_lot::Mutex;

use crate::{
    exchange::{KubeletFailure, KubeletPath},
    settings::KubeletSettings,
};

/// Most bytes of an answer: a thousand pods of 60 KiB.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Asks the kubelet. The connection is made anew when the node has another address.
pub struct KubeletClient {
    settings: KubeletSettings,
    /// The credentials for the API server, which the kubelet accepts too.
    config: Config,
    connection: Mutex<Option<(String, Client)>>,
}

fn no_answer(reason: String) -> KubeletFailure {
    KubeletFailure { status: None, reason }
}

impl KubeletClient {
    /// A client with the credentials of this configuration.
    pub fn new(settings: KubeletSettings, config: Config) -> Self {
        Self { settings, config, connection: Mutex::new(None) }
    }

    /// Asks for a path; gives the body of a good answer.
    ///
    /// # Errors
    ///
    /// There is no answer in time, or it is not 200.
    pub async fn get(&self, node: &Node, path: KubeletPath) -> Result<Vec<u8>, KubeletFailure> {
        let base = self.base(node).map_err(no_answer)?;
        let url = format!("{base}{}", path.as_str());
        let answer = tokio::time::timeout(self.settings.timeout, self.answer(&base, path));
        match answer.await {
            Ok(result) => {
                result.map_err(|failure| KubeletFailure { reason: format!("GET {url}: {}", failure.reason), ..failure })
            }
            Err(_) => Err(no_answer(format!("GET {url}: no answer within {} s", self.settings.timeout.as_secs_f32()))),
        }
    }

    async fn answer(&self, base: &str, path: KubeletPath) -> Result<Vec<u8>, KubeletFailure> {
        let client = self.client(base).map_err(no_answer)?;
        let request = Request::get(path.as_str()).header(header::ACCEPT, "application/json").body(Body::empty());
        let request = request.map_err(|error| no_answer(error.to_string()))?;
        let response = client.send(request).await;
        let response = response.map_err(|error| no_answer(koord_runtime::error::in_one_line(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| no_answer(error.to_string()))?.to_bytes();
        if status != http::StatusCode::OK {
            let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
            let reason = format!("HTTP {status}: {}", text.trim());
            return Err(KubeletFailure { status: Some(status.as_u16()), reason });
        }
        Ok(body.into())
    }

    /// Scheme, address and port.
    fn base(&self, node: &Node) -> Result<String, String> {
        let of_type =
            |type_: &str| node.addresses.iter().find(|(other, _)| **other == *type_).map(|(_, address)| address);
        let wanted = of_type(&self.settings.address_type).or_else(|| of_type("InternalIP"));
        let address = wanted.ok_or_else(|| format!("node {} has no address of type InternalIP yet", node.name))?;
        // An address of IPv6 stands in brackets in a URL.
        let host = match address.parse() {
            Ok(IpAddr::V6(_)) => format!("[{address}]"),
            _ => address.to_string(),
        };
        if self.settings.is_insecure {
            return Ok(format!("http://{host}:{}", self.settings.read_only_port));
        }
        if node.kubelet_port == 0 {
            return Err(format!("node {} does not say the port of its kubelet yet", node.name));
        }
        Ok(format!("https://{host}:{}", node.kubelet_port))
    }

    fn client(&self, base: &str) -> Result<Client, String> {
        let mut connection = self.connection.lock();
        if let Some((_, client)) = connection.as_ref().filter(|(known, _)| known == base) {
            return Ok(client.clone());
        }
        let url = base.parse().map_err(|error| format!("{base} is no URL: {error}"))?;
        let mut config = if self.settings.is_insecure { Config::new(url) } else { self.with_credentials(url) };
        config.default_retry = false;
        config.read_timeout = Some(Duration::from_secs(30));
        let client = connect(config, Protocol::Http1).map_err(|error| error.to_string())?;
        *connection = Some((base.to_owned(), client.clone()));
        Ok(client)
    }

    /// The kubelet's certificate is self-signed unless another authority signs one; it knows the users of the API server.
    fn with_credentials(&self, url: http::Uri) -> Config {
        let mut config = self.config.clone();
        config.cluster_url = url;
        config.accept_invalid_certs = true;
        config.root_cert = None;
        config.tls_server_name = None;
        config
    }
}
