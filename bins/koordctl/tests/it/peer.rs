//! What else may listen where koordctl looks: something that answers everything alike, or that presents a certificate.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
};

use koord_webhook_server::certificates::CertificateSet;
use rustls::{ServerConfig, ServerConnection, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};

use crate::program::folder;

/// A kubeconfig of a server, in a folder of its own.
pub(crate) fn kubeconfig(name: &str, server: &str) -> PathBuf {
    written(name, &json!({ "server": server }), &json!({}))
}

/// A kubeconfig with this cluster and user.
pub(crate) fn written(name: &str, cluster: &Value, user: &Value) -> PathBuf {
    let file = folder(name).join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "staging",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "staging", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

/// Answers every request with this, until the test ends.
pub(crate) fn answers(code: u16, body: String) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            // A request without a body ends with an empty line.
            let _: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {code} \r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

/// Presents a certificate to whoever comes, until the test ends.
pub(crate) fn presented(set: &CertificateSet) -> SocketAddr {
    let chain = CertificateDer::pem_slice_iter(set.cert.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(set.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust it closes the connection.
            let _ = connection.complete_io(&mut stream.unwrap());
        }
    });
    address
}
