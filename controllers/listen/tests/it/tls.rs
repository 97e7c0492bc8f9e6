//! TLS in front: a handshake has its time, and the protocol is the one agreed on.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router, routing::get};
use koord_listen::{Limits, PeerCertificates, Server, bind};
use rustls::{ClientConfig, RootCertStore, ServerConfig, pki_types::ServerName, server::WebPkiClientVerifier};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use crate::client::{SOON, router};

fn configs(protocol: &[u8]) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![protocol.to_vec()];
    (Arc::new(server), Arc::new(client))
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_closed_and_others_are_served() {
    let (server_config, client_config) = configs(b"http/1.1");
    let handshake_max = Duration::from_millis(300);
    let server = Server::new(Limits { handshake_max, ..Limits::default() });
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    tokio::spawn(async move {
        serving.serve(listener, Some(server_config), router(), std::future::pending()).await;
    });
    let begin = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(client_config);
    let socket = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    stream.write_all(b"GET /length HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(timeout(SOON, silent.read(&mut [0; 1])).await.unwrap().unwrap_or(0), 0);
    assert!(begin.elapsed() >= handshake_max);
}

#[tokio::test]
async fn a_request_carries_the_certificates_that_its_client_has_shown() {
    let (server_config, _) = configs(b"http/1.1");
    let own_key = rcgen::KeyPair::generate().unwrap();
    let own = rcgen::CertificateParams::new(["client".to_owned()]).unwrap().self_signed(&own_key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.der().clone()).unwrap();
    let provider = Arc::clone(server_config.crypto_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let server_key = rcgen::KeyPair::generate().unwrap();
    let presented = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&server_key).unwrap();
    let asking = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
        .with_single_cert(vec![presented.der().clone()], server_key.serialize_der().try_into().unwrap())
        .unwrap();
    let shown = get(async |certificates: Option<Extension<PeerCertificates>>| {
        let split = certificates.as_ref().and_then(|Extension(certificates)| certificates.split());
        split.map_or_else(Vec::new, |(own, _)| own.to_vec())
    });
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let (server, router) = (Server::new(Limits::default()), Router::new().route("/", shown));
    tokio::spawn(async move { server.serve(listener, Some(Arc::new(asking)), router, std::future::pending()).await });
    let mut roots = RootCertStore::empty();
    roots.add(presented.der().clone()).unwrap();
    let client = || {
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
        client.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots.clone())
    };
    let key = own_key.serialize_der().try_into().unwrap();
    let with = client().with_client_auth_cert(vec![own.der().clone()], key).unwrap();
    for (config, expected) in [(with, own.der().to_vec()), (client().with_no_client_auth(), Vec::new())] {
        let socket = TcpStream::connect(address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        assert_eq!(answer[head + 4..], expected);
    }
}

#[tokio::test]
async fn http2_idles_between_pings_and_is_closed_when_it_never_asks() {
    let (server_config, client_config) = configs(b"h2");
    let limit = Duration::from_millis(300);
    let ping_every = Duration::from_millis(50);
    let limits = Limits { header_max: limit, idle_max: limit * 4, ping_every, ..Limits::default() };
    let server = Server::new(limits);
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    tokio::spawn(async move {
        serving.serve(listener, Some(server_config), router(), std::future::pending()).await;
    });
    let connect = async || {
        let socket = TcpStream::connect(address).await.unwrap();
        let connector = TlsConnector::from(Arc::clone(&client_config));
        connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap()
    };
    // The handshake is done, nothing follows.
    let begin = Instant::now();
    let mut silent = connect().await;
    // What comes are the server's settings.
    let _ = timeout(SOON, silent.read_to_end(&mut Vec::new())).await.expect("the connection is closed");
    assert!(begin.elapsed() >= limit);

    let executor = hyper_util::rt::TokioExecutor::new();
    let stream = hyper_util::rt::TokioIo::new(connect().await);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    let mut connection = tokio::spawn(connection);
    let ask = || http::Request::get("https://localhost/length").body(String::new()).unwrap();
    let begin = Instant::now();
    assert_eq!(sender.send_request(ask()).await.unwrap().status(), 200);
    // Answers to pings begin no head.
    let _ = timeout(SOON, &mut connection).await.expect("an idle connection is closed in the end");
    assert!(begin.elapsed() >= limit * 4, "{:?}", begin.elapsed());
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[tokio::test]
async fn a_client_that_resets_its_requests_is_closed_and_counted() {
    let (server_config, client_config) = configs(b"h2");
    let server = Server::new(Limits::default());
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    tokio::spawn(async move {
        serving.serve(listener, Some(server_config), router(), std::future::pending()).await;
    });
    // `GET /` of https, in the static table of HPACK; then the reset of the same stream with CANCEL.
    let request =
        |stream: u32| [frame(1, 5, stream, &[0x82, 0x84, 0x87]), frame(3, 0, stream, &8_u32.to_be_bytes())].concat();
    let flood: Vec<u8> = (0..1000).flat_map(|number| request(2 * number + 1)).collect();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    for connections in 1..=3 {
        let socket = TcpStream::connect(address).await.unwrap();
        let connector = TlsConnector::from(Arc::clone(&client_config));
        let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
        // The server may close while this is being sent.
        let _ = stream.write_all(&[begin.clone(), flood.clone()].concat()).await;
        let _ = timeout(SOON, stream.read_to_end(&mut Vec::new())).await.unwrap();
        let deadline = Instant::now() + SOON;
        while server.flooded() < connections {
            assert!(Instant::now() < deadline, "{} of {connections} are counted", server.flooded());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
