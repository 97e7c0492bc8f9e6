//! The server as tasks of a manager: what panics starts again, is counted, and serves in the end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use koord_runtime::{
    Core,
    clock::{ManualClock, ScaledClock, SharedClock},
    manager::{Manager, RunError, Settings},
    metrics::{Audience, Metrics as Registry},
    panics::{Injector, Place},
    random::Random,
    recorder::Recorder,
    tasks::TaskError,
};
use koord_webhook_server::{Environment, Metrics, Server, ServiceBuilder};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    api_server::{ApiServer, defaults},
    caller::Caller,
    replica::HANDLER,
};

/// What is judged by certificates stands still; pauses of tasks are a hundred times shorter than usual.
const NOW: &str = "2026-01-01T00:00:00Z";

struct Supervised {
    manager: Manager,
    registry: Registry,
    server: ApiServer,
    clock: Arc<ManualClock>,
    port: u16,
    _folder: TempDir,
}

/// A webhook server in a manager whose tasks panic the first so many times that one of them starts.
fn supervised(panics: u32) -> Supervised {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let (clock, pauses) = (ManualClock::new(NOW.parse().unwrap()), ScaledClock::shared(NOW.parse().unwrap(), 100.0));
    let registry = Registry::new().unwrap();
    let (recorder, events) = Recorder::new(Arc::clone(&pauses));
    let mut core = Core::new("test", Arc::clone(&pauses), Random::seeded(1), registry.clone(), Arc::new(recorder));
    let left = AtomicU32::new(panics);
    let injector: Injector = Arc::new(move |at| {
        let panics = at == Place::Task
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!panics, "injected");
    });
    core.inject_panics(injector);
    let home = folder.path().to_string_lossy().into_owned();
    let environment = Environment::of(defaults(), |name| match name {
        "WEBHOOK_PORT" => Some("0".to_owned()),
        "WEBHOOK_CERT_DIR" => Some(home.clone()),
        _ => None,
    });
    let counters = Metrics::register(&registry).unwrap();
    let service = ServiceBuilder::new(counters, Arc::clone(&clock) as SharedClock).handler(&HANDLER, || &()).build();
    let webhooks = Server::open(environment.unwrap(), service, Arc::clone(&clock) as SharedClock).unwrap();
    let port = webhooks.port().unwrap();
    let settings = Settings {
        requests_per_second: 0.0,
        requests_burst: 0,
        leader_election: None,
        metrics: None,
        health: None,
        host: "test".to_owned(),
    };
    let mut manager = Manager::timed_by(pauses, core, server.client(), events, settings);
    webhooks.run_in(&mut manager).unwrap();
    Supervised { manager, registry, server, clock, port, _folder: folder }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_whose_tasks_panic_at_first_answer_and_are_ready_in_the_end() {
    // The server, the certificates and the events: each panics at least once.
    let Supervised { manager, registry, server, clock, port, _folder } = supervised(12);
    let (health, stop) = (manager.health().clone(), CancellationToken::new());
    assert!(health.is_ready().unwrap_err().starts_with("webhook-ready: "));
    let running = tokio::spawn(manager.run(stop.clone()));
    let caller = Caller::new(&server, &clock, ([127, 0, 0, 1], port).into());
    let deadline = Instant::now() + Duration::from_mins(1);
    while health.is_ready().is_err() {
        assert!(Instant::now() < deadline && !running.is_finished(), "{:?}", health.is_ready());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A panic that is still to come ends the connections of its server.
    while let Err(error) = caller.review().await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let text = registry.text(&[Audience::Runtime]);
    for task in ["webhook server", "webhook certificates"] {
        let counted = format!(r#"koord_panics_total{{place="task",task="{task}"}} "#);
        let count = text.lines().find_map(|line| line.strip_prefix(&counted));
        assert!(count.is_some_and(|count| count != "0"), "{task}: {count:?}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_server_that_cannot_go_on_ends_the_program_with_its_name() {
    let manager = supervised(u32::MAX).manager;
    let (tasks, health) = (manager.tasks().clone(), manager.health().clone());
    let running = manager.run(CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_mins(1), running).await.unwrap();
    let Err(RunError::Task(TaskError::GivenUp { last, .. })) = ended else { panic!("{ended:?}") };
    assert_eq!(last.to_string(), "panicked: injected; please report it");
    assert!(tasks.alive().is_err() && health.is_ready().is_err());
}
