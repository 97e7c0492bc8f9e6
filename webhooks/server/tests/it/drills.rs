//! Accidents under load: what happens to the authority, to the Secret, to the clock and between replicas, while reviews
//! go on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_runtime::clock::{Clock, ManualClock};
use koord_webhook_server::certificates;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    api_server::{ApiServer, SECRET},
    caller::{Caller, bundle},
    replica::{HOST, Replica, controller},
};

/// A replica that serves, and API servers that review without a pause, over new connections all the time.
struct Drill {
    replica: Replica,
    reviews: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Result<(), String>>>,
}

impl Drill {
    async fn begin() -> Self {
        let replica = Replica::start().await;
        let reviews = Arc::new(AtomicUsize::new(0));
        let clients = (0..4).map(|_| client(&replica, &reviews)).collect();
        Self { replica, reviews, clients }
    }

    /// One pass of the replica, and reviews of every client after it.
    async fn pass(&self) {
        let Replica { controller, api, .. } = &self.replica;
        controller.pass(api).await.unwrap();
        assert_eq!(controller.ready(), Ok(()));
        let seen = self.reviews.load(Ordering::Relaxed);
        while self.reviews.load(Ordering::Relaxed) < seen + 32
            && self.clients.iter().all(|client| !client.is_finished())
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// No review failed. Gives how many there were.
    async fn end(self) -> usize {
        self.replica.stop.cancel();
        for client in self.clients {
            client.await.unwrap().unwrap();
        }
        self.reviews.load(Ordering::Relaxed)
    }
}

fn client(replica: &Replica, reviews: &Arc<AtomicUsize>) -> JoinHandle<Result<(), String>> {
    let caller = Caller::new(&replica.server, &replica.clock, replica.address);
    let (reviews, stop) = (Arc::clone(reviews), replica.stop.clone());
    tokio::spawn(async move {
        while !stop.is_cancelled() {
            match caller.review().await {
                Ok(()) => reviews.fetch_add(2, Ordering::Relaxed),
                Err(_) if stop.is_cancelled() => break,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_new_authorities_under_load_fail_no_review() {
    let drill = Drill::begin().await;
    let mut presented = vec![drill.replica.presented()];
    for _ in 0..10 {
        // The authority has less than a year left, the certificate less than half a year.
        for step in [Duration::from_hours(24 * 3560), Duration::from_secs(61), Duration::from_secs(601)] {
            drill.replica.clock.jump_to(drill.replica.clock.now() + step);
            drill.pass().await;
        }
        presented.push(drill.replica.presented());
    }
    presented.dedup();
    assert_eq!(presented.len(), 11, "ten times another certificate was presented");
    assert!(drill.end().await >= 960);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_deleted_comes_back_as_it_was() {
    let drill = Drill::begin().await;
    let (before, presented) = (drill.replica.server.get(SECRET).unwrap()["data"].clone(), drill.replica.presented());
    for _ in 0..5 {
        drill.replica.server.delete(SECRET);
        drill.pass().await;
        assert_eq!(
            (drill.replica.server.get(SECRET).unwrap()["data"].clone(), drill.replica.presented()),
            (before.clone(), presented.clone())
        );
    }
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_full_of_garbage_is_replaced_by_what_is_presented() {
    let drill = Drill::begin().await;
    let (before, presented) = (drill.replica.server.get(SECRET).unwrap()["data"].clone(), drill.replica.presented());
    let garbage = BASE64.encode("garbage");
    for names in [
        &["cert.pem", "tls.crt"][..],
        &["key.pem", "tls.key"],
        &["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"],
    ] {
        let mut secret: Value = drill.replica.server.get(SECRET).unwrap();
        for name in names {
            secret["data"][name] = json!(garbage);
        }
        drill.replica.server.put(SECRET, secret);
        drill.pass().await;
        assert_eq!(drill.replica.server.get(SECRET).unwrap()["data"], before, "{names:?}");
        assert_eq!(drill.replica.presented(), presented);
    }
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_sleeps_through_a_rotation_is_trusted_until_the_old_authority_is_forgotten() {
    let drill = Drill::begin().await;
    // The other one reads the Secret and serves what is there, as a replica of the original does.
    let (folder, before) = (tempfile::tempdir().unwrap(), drill.replica.presented());
    let other = controller(&folder, &drill.replica.clock);
    other.pass(&drill.replica.api).await.unwrap();
    let trusted = |certificate: &[u8]| {
        certificates::verifies(certificate, &bundle(&drill.replica.server), HOST, drill.replica.clock.now())
    };
    for step in [Duration::from_hours(24 * 3560), Duration::from_secs(61), Duration::from_mins(5)] {
        drill.replica.clock.jump_to(drill.replica.clock.now() + step);
        drill.pass().await;
        assert!(trusted(&drill.replica.presented()) && trusted(&before), "both are trusted after {step:?}");
    }
    assert_ne!(drill.replica.presented(), before, "the new authority has signed");
    other.pass(&drill.replica.api).await.unwrap();
    assert_eq!(
        other.certificate().presented(),
        Some(drill.replica.presented()),
        "it wakes and serves what the Secret holds"
    );
    drill.replica.clock.jump_to(drill.replica.clock.now() + Duration::from_secs(601));
    drill.pass().await;
    assert!(!trusted(&before), "the overlap is over");
    drill.end().await;
}

#[tokio::test]
async fn a_clock_that_jumps_ends_with_a_certificate_that_is_valid_then() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let (controller, api) = (controller(&folder, &clock), server.api());
    for time in ["2026-01-01T00:00:00Z", "2046-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"] {
        clock.jump_to(time.parse().unwrap());
        controller.pass(&api).await.unwrap();
        assert_eq!(controller.ready(), Ok(()), "{time}");
        let presented = controller.certificate().presented().unwrap();
        assert!(certificates::verifies(&presented, &bundle(&server), HOST, clock.now()), "{time}");
    }
}
