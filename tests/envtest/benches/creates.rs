//! Creates without a socket: the core alone, the server in process, and the same with a data directory; and what a stored
//! object costs in memory.
//!
//! `cargo bench -p koord-apiserver` prints one line per setting. The floor is the time to read the body's JSON into a
//! `serde_json::Value` and write it again, in the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    fs,
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use envtest::{
    cluster::{Cluster, Options},
    environment::SystemEnvironment,
    kinds,
    request::ApiRequest,
    server::{ApiServer, Outcome},
    store::HistoryLimits,
};
use http::Method;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps";
const OBJECTS: usize = 20_000;
const RUNS: usize = 5;
/// As many as the clients of a busy cluster.
const WRITERS: usize = 32;

fn body(index: usize) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{index:06}")},
        "data": {"text": "x".repeat(900)},
    })
    .to_string()
}

fn core() -> ApiServer {
    let mut core = ApiServer::empty(Box::new(SystemEnvironment::default()), HistoryLimits::default());
    kinds::install(&mut core);
    envtest::bootstrap::run(&mut core).unwrap();
    core
}

fn create(core: &mut ApiServer, index: usize) {
    match core.handle(&ApiRequest::new(Method::POST, PATH, body(index))) {
        Outcome::Done(answer) => assert_eq!(answer.code, 201),
        other => panic!("{other:?}"),
    }
}

/// Median, smallest and largest number per second.
fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let rate = |time: Duration| OBJECTS as f64 / time.as_secs_f64();
    let (median, fast, slow) = (rate(times[times.len() / 2]), rate(times[0]), rate(times[times.len() - 1]));
    println!("{name}: {median:.0}/s [{slow:.0}-{fast:.0}], {:.1} µs each", 1e6 / median);
}

fn measured(mut run: impl FnMut()) -> Vec<Duration> {
    let once = |_| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    };
    (0..RUNS).map(once).collect()
}

fn resident_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

fn memory() {
    let mut core = core();
    create(&mut core, OBJECTS * 3);
    let Some(before) = resident_bytes() else { return println!("memory: not measured on this system") };
    for index in 0..OBJECTS * 2 {
        create(&mut core, index);
    }
    let grown = resident_bytes().unwrap_or_default().saturating_sub(before) as f64 / (OBJECTS * 2) as f64;
    let wire = match core.handle(&ApiRequest::new(Method::GET, &format!("{PATH}/map-000001"), "")) {
        Outcome::Done(answer) => answer.body.len() as f64,
        other => panic!("{other:?}"),
    };
    println!("memory: {grown:.0} bytes per object of {wire:.0} bytes on the wire: {:.2}", grown / wire);
}

async fn in_process(data_dir: Option<&Path>) -> Duration {
    let options = Options { data_dir: data_dir.map(Path::to_owned), ..Options::default() };
    let cluster = Arc::new(Cluster::bind(options).await.unwrap());
    let begun = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let cluster = Arc::clone(&cluster);
        tokio::spawn(async move {
            for index in (writer..OBJECTS).step_by(WRITERS) {
                let request = ApiRequest::new(Method::POST, PATH, body(index));
                assert_eq!(cluster.server.answer(&request).await.unwrap().code, 201);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    begun.elapsed()
}

fn main() {
    memory();
    report(
        "floor: read and write the JSON",
        measured(|| {
            for index in 0..OBJECTS {
                let value: Value = serde_json::from_str(&body(index)).unwrap();
                black_box(value.to_string());
            }
        }),
    );
    report(
        "creates, the core alone",
        measured(|| {
            let mut core = core();
            for index in 0..OBJECTS {
                create(&mut core, index);
            }
        }),
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    report("creates, in process, 32 writers", (0..RUNS).map(|_| runtime.block_on(in_process(None))).collect());
    let on_disk = |_| {
        let folder = tempfile::tempdir().unwrap();
        runtime.block_on(in_process(Some(folder.path())))
    };
    report("creates, in process, 32 writers, each on disk before its answer", (0..RUNS).map(on_disk).collect());
}
