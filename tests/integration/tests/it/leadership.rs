//! Replicas of koord-manager and their Lease, on both servers.

use std::time::{Duration, Instant};

use koord_manager::{Options, run};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::suite::{Scene, on_every_server};

/// A replica with threads of its own, so that it can die.
struct Replica {
    threads: Runtime,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Replica {
    fn start(scene: &Scene<'_>) -> Self {
        let (kubeconfig, namespace) = (scene.kubeconfig().display().to_string(), &scene.namespace);
        let arguments = [
            "koord-manager".to_owned(),
            format!("--kubeconfig={kubeconfig}"),
            format!("--leader-election-namespace={namespace}"),
            "--controllers=none".to_owned(),
            "--feature-gates=WebhookFramework=false".to_owned(),
            "--metrics-addr=0".to_owned(),
            "--health-probe-addr=0".to_owned(),
        ];
        let options = Options::from_arguments(arguments).unwrap();
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let stop = CancellationToken::new();
        let ends = stop.clone();
        let running = threads.spawn(async move { run(options, ends).await.unwrap() });
        Self { threads, stop, running }
    }

    /// As a Deployment stops it.
    fn stop(self) {
        self.stop.cancel();
        self.threads.block_on(self.running).unwrap();
    }

    /// As a machine stops it.
    fn die(self) {
        self.threads.shutdown_background();
    }
}

fn lease(scene: &Scene<'_>) -> Value {
    let printed = scene.run(&["get", "lease", "koordinator-manager", "-o", "json"], None);
    serde_json::from_str::<Value>(&printed.stdout).map_or(Value::Null, |lease| lease["spec"].clone())
}

/// Waits until somebody else than `before` holds the lease; gives who, and how long it took.
fn successor(scene: &Scene<'_>, before: &str, at_most: Duration) -> (String, Duration) {
    let begin = Instant::now();
    loop {
        let found = lease(scene);
        match found["holderIdentity"].as_str() {
            Some(holder) if !holder.is_empty() && holder != before => return (holder.to_owned(), begin.elapsed()),
            _ => assert!(begin.elapsed() < at_most, "nobody takes the lease within {at_most:?}: {found}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn leadership_passes_at_once_from_a_replica_that_stops_and_after_the_lease_from_one_that_dies() {
    on_every_server(|scene| {
        let a = Replica::start(scene);
        let (first, _) = successor(scene, "", Duration::from_secs(30));
        let (_, unique) = first.rsplit_once('_').unwrap();
        assert_eq!(unique.len(), 36, "host name, underscore, UUID: {first}");
        assert_eq!(lease(scene)["leaseTransitions"], 0);

        let b = Replica::start(scene);
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(lease(scene)["holderIdentity"], first, "there is one leader");
        a.stop();
        let (second, took) = successor(scene, &first, Duration::from_secs(30));
        assert!(took < Duration::from_secs(10), "the lease was given back, but it took {took:?}");
        assert_eq!(lease(scene)["leaseTransitions"], 1);

        b.die();
        let c = Replica::start(scene);
        let (_, took) = successor(scene, &second, Duration::from_mins(1));
        assert!(took > Duration::from_secs(10), "a lease of 15 s was taken after {took:?}");
        assert_eq!(lease(scene)["leaseTransitions"], 2);
        c.stop();
        assert_eq!(lease(scene)["holderIdentity"], "", "given back");
    });
}
