//! How the API server is reached over TLS.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::Router;
use envtest::serve::TlsListener;
use http::{Request, Version};
use koord_runtime::connect::{Protocol, connect};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::sync::watch;

type Seen = Arc<Mutex<Vec<(String, Version)>>>;

/// A server that remembers by which version of HTTP it was asked, and a client of it.
fn reached_by(protocol: Protocol) -> (Client, Seen, watch::Sender<bool>) {
    let listener = TlsListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &[]).unwrap();
    let mut config = Config::new(listener.url().parse().unwrap());
    config.accept_invalid_certs = true;
    let seen = Seen::default();
    let remembered = Arc::clone(&seen);
    let router = Router::new().fallback(async move |request: Request<axum::body::Body>| {
        remembered.lock().push((request.method().to_string(), request.version()));
        "{}"
    });
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(listener.run(router, stopped));
    (connect(config, protocol).unwrap(), seen, stop)
}

async fn ask(client: &Client, method: &str) {
    let request = Request::builder().method(method).uri("/api/v1/pods").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "{}");
}

#[tokio::test]
async fn writes_share_a_connection_of_http2_and_reads_do_not_stand_in_their_way() {
    for (protocol, writes) in [(Protocol::Offered, Version::HTTP_2), (Protocol::Http1, Version::HTTP_11)] {
        let (client, seen, stop) = reached_by(protocol);
        for method in ["GET", "POST", "PATCH"] {
            ask(&client, method).await;
        }
        let expected = [("GET", Version::HTTP_11), ("POST", writes), ("PATCH", writes)];
        assert_eq!(*seen.lock(), expected.map(|(method, version)| (method.to_owned(), version)), "{protocol:?}");
        stop.send_replace(true);
    }
}

#[tokio::test]
async fn a_server_name_that_is_none_is_refused_before_anything_is_contacted() {
    let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
    config.tls_server_name = Some("not a name".to_owned());
    let message = connect(config, Protocol::Offered).err().unwrap().to_string();
    assert_eq!(message, r#"tls-server-name "not a name" is neither a DNS name nor an IP address"#);
}
