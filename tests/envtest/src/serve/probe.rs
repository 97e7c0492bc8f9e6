//! One question over TLS, as a client asks it: does the server answer at `/readyz`?

use std::{io, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};
use tokio_rustls::TlsConnector;

use super::Kubeconfig;

const ASK_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// The longest that a server may take to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// More of an answer than its first line is not needed.
const ANSWER_BYTES_MAX: usize = 512;

/// The server did not answer as ready.
#[derive(Debug, thiserror::Error)]
#[error("the server at {server} does not answer its own question at /readyz: {why}")]
pub struct NotReady {
    /// Where it was asked.
    pub server: String,
    /// What came instead.
    pub why: String,
}

/// Asks until the server says that it is ready, with what every client reads from the kubeconfig.
pub async fn until_ready(kubeconfig: &Kubeconfig) -> Result<(), NotReady> {
    let failed = |why: String| NotReady { server: kubeconfig.server.clone(), why };
    let authority = CertificateDer::from_pem_slice(kubeconfig.authority_pem.as_bytes());
    let authority = authority.map_err(|error| failed(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    roots.add(authority).map_err(|error| failed(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed(error.to_string()))?;
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let ends = Instant::now() + PATIENCE;
    loop {
        let why = match tokio::time::timeout_at(ends, ask(&connector, kubeconfig)).await {
            Ok(Ok(status)) if status.contains(" 200 ") => return Ok(()),
            Ok(Ok(status)) => status,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if Instant::now() + ASK_AGAIN_AFTER >= ends {
            return Err(failed(why));
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

/// The first line of the answer.
async fn ask(connector: &TlsConnector, kubeconfig: &Kubeconfig) -> io::Result<String> {
    let wrong = |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    let authority: http::uri::Authority =
        kubeconfig.server.trim_start_matches("https://").parse().map_err(|error| wrong(&error))?;
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    let name = ServerName::try_from(host).map_err(|error| wrong(&error))?;
    let mut stream = connector.connect(name, stream).await?;
    let token = &kubeconfig.token;
    let question = format!(
        "GET /readyz HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(question.as_bytes()).await?;
    let mut answer = Vec::new();
    // A server may close the socket without saying so in TLS; what came until then counts.
    let _ = stream.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer).await;
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}
