//! A thousand reviews a second, whatever happens meanwhile to certificates, Secret and webhook configurations.
//!
//! The reviews are paced: each has its time, and none waits because another one took long. Their connections are kept open as those of an API
//! server are, and made anew when the configuration shows another bundle.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_runtime::clock::Clock;
use serde_json::{Value, json};

use crate::{
    api_server::{MUTATING, SECRET, VALIDATING},
    caller::{Caller, ask, bundle},
    replica::Replica,
};

const PER_SECOND: usize = 1_000;
const REVIEWS: usize = 5 * PER_SECOND;
const CLIENTS: usize = 16;
/// So many reviews go over one connection, so that there are always some handshakes.
const PER_CONNECTION: usize = 100;
const TAMPERED: [&str; 2] = ["", "garbage"];

/// What the clients share.
struct Load {
    caller: Caller,
    next: AtomicUsize,
    /// Reviews of each client.
    answered: [AtomicUsize; CLIENTS],
    /// Connections that a tampered bundle prevented.
    prevented: AtomicUsize,
}

impl Load {
    async fn client(self: Arc<Self>, number: usize, begin: Instant) -> Result<(), String> {
        let mut open = None;
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= REVIEWS {
                return Ok(());
            }
            tokio::time::sleep_until((begin + Duration::from_secs(1) / PER_SECOND as u32 * index as u32).into()).await;
            let trusted = self.caller.bundle();
            let (mut connection, used) = match open.take() {
                Some((connection, known, used)) if known == trusted && used < PER_CONNECTION => (connection, used),
                _ => match self.caller.connect(&trusted).await {
                    Ok(connection) => (connection, 0),
                    Err(_) if TAMPERED.map(|text| BASE64.encode(text)).contains(&trusted) => {
                        self.prevented.fetch_add(1, Ordering::Relaxed);
                        self.answered[number].fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            ask(&mut connection).await?;
            self.answered[number].fetch_add(1, Ordering::Relaxed);
            open = Some((connection, trusted, used + 1));
        }
    }

    /// Waits until every client has had two answers, the second of which was asked for under the present state.
    async fn every_client(&self) {
        let counts = || self.answered.each_ref().map(|count| count.load(Ordering::Relaxed));
        let before = counts();
        while self.next.load(Ordering::Relaxed) < REVIEWS
            && counts().iter().zip(before).any(|(count, before)| *count < before + 2)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// What happens meanwhile, again and again.
async fn accidents(load: &Load, Replica { server, api, clock, controller, .. }: &Replica) -> usize {
    let mut rounds = 0;
    let pass = async || {
        controller.pass(api).await.unwrap();
        assert_eq!(controller.ready(), Ok(()));
        load.every_client().await;
    };
    while load.next.load(Ordering::Relaxed) < REVIEWS {
        for step in [Duration::from_hours(24 * 3560), Duration::from_secs(61), Duration::from_secs(601)] {
            clock.jump_to(clock.now() + step);
            pass().await;
        }
        server.delete(SECRET);
        pass().await;
        let mut secret = server.get(SECRET).unwrap();
        for name in ["cert.pem", "key.pem", "tls.crt", "tls.key"] {
            secret["data"][name] = json!(BASE64.encode("garbage"));
        }
        server.put(SECRET, secret);
        pass().await;
        let good = bundle(server);
        for tampered in TAMPERED {
            for path in [MUTATING, VALIDATING] {
                let mut configuration: Value = server.get(path).unwrap();
                for webhook in configuration["webhooks"].as_array_mut().unwrap() {
                    webhook["clientConfig"]["caBundle"] = json!(BASE64.encode(tampered));
                }
                server.put(path, configuration);
            }
            pass().await;
            assert_eq!(bundle(server), good, "one pass puts the bundle right");
        }
        rounds += 1;
    }
    rounds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_review_fails_of_a_thousand_a_second_but_where_a_bundle_was_tampered_with_and_not_yet_put_right() {
    let replica = Replica::start().await;
    let load = Arc::new(Load {
        caller: Caller::new(&replica.server, &replica.clock, replica.address),
        next: AtomicUsize::new(0),
        answered: Default::default(),
        prevented: AtomicUsize::new(0),
    });
    let begin = Instant::now();
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(Arc::clone(&load).client(number, begin))).collect();
    let rounds = accidents(&load, &replica).await;
    for client in clients {
        client.await.unwrap().unwrap();
    }
    let prevented = load.prevented.load(Ordering::Relaxed);
    println!(
        "{REVIEWS} reviews in {:?}, {rounds} rounds of accidents, {prevented} met a tampered bundle",
        begin.elapsed()
    );
    let answered: usize = load.answered.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert_eq!(answered, REVIEWS);
    assert!(rounds > 0);
}
