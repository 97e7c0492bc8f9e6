//! Accidents under load: what happens to the Secret, to the clock and between replicas, while reviews go on.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_runtime::{
    api::Api,
    clock::{Clock, ManualClock, SystemClock},
};
use koord_webhook::{Environment, Keeper, Metrics, Served, ServiceBuilder, certificates, listen, serve, tls};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    api_server::{ApiServer, SECRET, VALIDATING},
    rotation::{HANDLER, review},
};

const HOST: &str = "koordinator-webhook-service.koordinator-system.svc";

/// A replica that serves, and API servers that review without a pause.
struct Drill {
    server: ApiServer,
    api: Api,
    clock: Arc<ManualClock>,
    keeper: Keeper,
    reviews: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Result<(), String>>>,
    done: CancellationToken,
    _folder: TempDir,
}

pub(crate) fn keeper(folder: &TempDir, clock: &Arc<ManualClock>) -> Keeper {
    let home = folder.path().to_string_lossy().into_owned();
    let environment = Environment::from(|name| (name == "WEBHOOK_CERT_DIR").then(|| home.clone())).unwrap();
    let served = Served { paths: vec!["/validate-pod"], definitions: Vec::new() };
    Keeper::new(environment, served, 0, Arc::clone(clock) as _)
}

pub(crate) fn bundle(server: &ApiServer) -> String {
    let bundle = server.get(VALIDATING).unwrap()["webhooks"][0]["clientConfig"]["caBundle"].clone();
    String::from_utf8(BASE64.decode(bundle.as_str().unwrap()).unwrap()).unwrap()
}

impl Drill {
    async fn begin() -> Self {
        let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let (keeper, api) = (keeper(&folder, &clock), server.api());
        keeper.pass(&api).await.unwrap();
        let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
        let service = ServiceBuilder::new(metrics, SystemClock::shared()).handler(&HANDLER, || &()).build();
        let listener = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (address, done) = (listener.local_addr().unwrap(), CancellationToken::new());
        let tls = tls(Arc::clone(keeper.certificate())).unwrap();
        tokio::spawn(serve(listener, tls, service, SystemClock::shared(), done.clone()));
        let reviews = Arc::new(AtomicUsize::new(0));
        let clients = (0..4).map(|_| client(address, &server, &clock, &reviews, &done)).collect();
        Self { server, api, clock, keeper, reviews, clients, done, _folder: folder }
    }

    /// One pass of the replica, and reviews of every client after it.
    async fn pass(&self) {
        self.keeper.pass(&self.api).await.unwrap();
        assert_eq!(self.keeper.ready(), Ok(()));
        let seen = self.reviews.load(Ordering::Relaxed);
        while self.reviews.load(Ordering::Relaxed) < seen + 32
            && self.clients.iter().all(|client| !client.is_finished())
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn presented(&self) -> Vec<u8> {
        self.keeper.certificate().presented().unwrap()
    }

    /// No review failed.
    async fn end(self) {
        self.done.cancel();
        for client in self.clients {
            client.await.unwrap().unwrap();
        }
    }
}

fn client(
    address: SocketAddr,
    server: &ApiServer,
    clock: &Arc<ManualClock>,
    reviews: &Arc<AtomicUsize>,
    done: &CancellationToken,
) -> JoinHandle<Result<(), String>> {
    let (server, clock, reviews, done) = (server.clone(), Arc::clone(clock), Arc::clone(reviews), done.clone());
    tokio::spawn(async move {
        while !done.is_cancelled() {
            match review(address, &bundle(&server), &clock).await {
                Ok(()) => reviews.fetch_add(2, Ordering::Relaxed),
                Err(_) if done.is_cancelled() => break,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_deleted_comes_back_as_it_was() {
    let drill = Drill::begin().await;
    let (before, presented) = (drill.server.get(SECRET).unwrap()["data"].clone(), drill.presented());
    for _ in 0..5 {
        drill.server.delete(SECRET);
        drill.pass().await;
        assert_eq!(
            (drill.server.get(SECRET).unwrap()["data"].clone(), drill.presented()),
            (before.clone(), presented.clone())
        );
    }
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_full_of_garbage_is_replaced_by_what_is_presented() {
    let drill = Drill::begin().await;
    let (before, presented) = (drill.server.get(SECRET).unwrap()["data"].clone(), drill.presented());
    let garbage = BASE64.encode("garbage");
    for names in [
        &["cert.pem", "tls.crt"][..],
        &["key.pem", "tls.key"],
        &["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"],
    ] {
        let mut secret: Value = drill.server.get(SECRET).unwrap();
        for name in names {
            secret["data"][name] = json!(garbage);
        }
        drill.server.put(SECRET, secret);
        drill.pass().await;
        assert_eq!(drill.server.get(SECRET).unwrap()["data"], before, "{names:?}");
        assert_eq!(drill.presented(), presented);
    }
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_sleeps_through_a_rotation_is_trusted_until_the_old_authority_is_forgotten() {
    let drill = Drill::begin().await;
    // The other one reads the Secret and serves what is there, as a replica of the original does.
    let (folder, before) = (tempfile::tempdir().unwrap(), drill.presented());
    let other = keeper(&folder, &drill.clock);
    other.pass(&drill.api).await.unwrap();
    let trusted =
        |certificate: &[u8]| certificates::verifies(certificate, &bundle(&drill.server), HOST, drill.clock.now());
    for step in [Duration::from_hours(24 * 3560), Duration::from_secs(61), Duration::from_mins(5)] {
        drill.clock.jump_to(drill.clock.now() + step);
        drill.pass().await;
        assert!(trusted(&drill.presented()) && trusted(&before), "both are trusted after {step:?}");
    }
    assert_ne!(drill.presented(), before, "the new authority has signed");
    other.pass(&drill.api).await.unwrap();
    assert_eq!(other.certificate().presented(), Some(drill.presented()), "it wakes and serves what the Secret holds");
    drill.clock.jump_to(drill.clock.now() + Duration::from_secs(601));
    drill.pass().await;
    assert!(!trusted(&before), "the overlap is over");
    drill.end().await;
}

#[tokio::test]
async fn a_clock_that_jumps_ends_with_a_certificate_that_is_valid_then() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let (keeper, api) = (keeper(&folder, &clock), server.api());
    for time in ["2026-01-01T00:00:00Z", "2046-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"] {
        clock.jump_to(time.parse().unwrap());
        keeper.pass(&api).await.unwrap();
        assert_eq!(keeper.ready(), Ok(()), "{time}");
        let presented = keeper.certificate().presented().unwrap();
        assert!(certificates::verifies(&presented, &bundle(&server), HOST, clock.now()), "{time}");
    }
}
