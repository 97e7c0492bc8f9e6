//! Clients that want to keep API servers from being answered, or all of the memory. Reviews go through an API server
//! meanwhile, from the same address as everything else.

use std::{sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::process::Installation;

const SILENT: usize = 8_000;
/// So many of them finish the handshake and say nothing then.
const SHAKEN: usize = 200;
const DRIPPING: usize = 200;
const WITHHELD: usize = 120;
const WITHHELD_BYTES: usize = 7_900_000;
/// Files of this process: the sockets, and some for its own work.
const FILES: u64 = 9_000;
/// On a machine with time to spare. Where other work runs beside, reviews alone take longer, and everything else too.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
const MIB: u64 = 1024 * 1024;
const GROWTH_MAX: u64 = 80 * MIB;

fn connector(authority: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authority.as_bytes()).map(Result::unwrap));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn connect(running: &Installation, connector: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(running.webhooks).await?;
    connector.connect(ServerName::try_from("127.0.0.1").unwrap(), socket).await
}

fn head(length: usize) -> String {
    format!(
        "POST /validate-pod HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends a review of 8 MB that never ends, a byte at a time.
async fn drip(mut stream: TlsStream<TcpStream>) {
    if stream.write_all(head(8_000_000).as_bytes()).await.is_err() {
        return;
    }
    while stream.write_all(b"x").await.is_ok() && stream.flush().await.is_ok() {
        sleep(Duration::from_millis(500)).await;
    }
}

/// Sends a review but for its last byte, as far as the server takes it, and holds the connection.
async fn withhold(mut stream: TlsStream<TcpStream>) {
    let most = vec![b' '; WITHHELD_BYTES - 1];
    if stream.write_all(head(WITHHELD_BYTES).as_bytes()).await.is_ok() && stream.write_all(&most).await.is_ok() {
        let _ = stream.flush().await;
        std::future::pending::<()>().await;
    }
}

/// Reviews for a while. Gives the longest wait and the most memory.
async fn reviews(running: &Installation, span: Duration) -> (Duration, u64) {
    let begin = Instant::now();
    let (mut slowest, mut most) = (Duration::ZERO, 0);
    while begin.elapsed() < span {
        slowest = slowest.max(running.review().await);
        most = most.max(running.resident_bytes());
    }
    (slowest, most)
}

/// Waits until the manager's memory is back, more or less.
async fn returns(running: &Installation, before: u64) -> u64 {
    const REST: u64 = 30 * MIB;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let now = running.resident_bytes();
        if now <= before + REST {
            return now;
        }
        assert!(Instant::now() < deadline, "{} MiB remain of {} MiB before", now / MIB, before / MIB);
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_are_answered_within_a_second_whatever_others_withhold_and_memory_returns() {
    koord_listen::raise_open_files();
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if files.is_some_and(|files| files < FILES) {
        let why = format!("{FILES} open files are needed, {files:?} are allowed");
        return programs::skipped("reviews beside connections that withhold theirs", &why);
    }
    let running = Installation::start().await;
    let connector = connector(&running.authority);
    let (calm, before) = reviews(&running, Duration::from_secs(1)).await;
    let answered_within = ANSWERED_WITHIN.max(calm * 20);
    println!("alone: a review takes {calm:?} at most, koord-manager has {} MiB", before / MIB);

    let mut silent = Vec::new();
    for _ in 0..SHAKEN {
        silent.push(connect(&running, &connector).await.unwrap());
    }
    let mut dripping = JoinSet::new();
    for _ in 0..DRIPPING {
        dripping.spawn(drip(connect(&running, &connector).await.unwrap()));
    }
    let mut mute = Vec::new();
    for _ in SHAKEN..SILENT {
        mute.push(TcpStream::connect(running.webhooks).await.unwrap());
    }
    println!("while they are accepted, a review takes {:?}", running.review().await);
    let (slowest, most) = reviews(&running, Duration::from_secs(3)).await;
    let grown = most.saturating_sub(before);
    println!("{SILENT} silent and {DRIPPING} dripping: {slowest:?} at most, {} MiB more", grown / MIB);
    assert!(slowest < answered_within, "a review took {slowest:?}");
    assert!(grown <= GROWTH_MAX, "{} MiB more", grown / MIB);
    drop((silent, mute));
    dripping.shutdown().await;
    let rest = returns(&running, before).await;
    println!("they are gone: {} MiB", rest / MIB);

    let mut withheld = JoinSet::new();
    for _ in 0..WITHHELD {
        withheld.spawn(withhold(connect(&running, &connector).await.unwrap()));
    }
    let (slowest, most) = reviews(&running, Duration::from_secs(5)).await;
    let grown = most.saturating_sub(rest);
    println!("{WITHHELD} bodies withheld: {slowest:?} at most, {} MiB more", grown / MIB);
    assert!(slowest < answered_within, "a review took {slowest:?}");
    assert!(grown <= GROWTH_MAX, "{} MiB more", grown / MIB);
    timeout(Duration::from_secs(10), withheld.shutdown()).await.unwrap();
    println!("they are gone: {} MiB", returns(&running, before).await / MIB);
}
