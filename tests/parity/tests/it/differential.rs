use std::path::Path;

use parity::{
    ADMIN_TOKEN, DEV_TOKEN, RealServer, Tokens,
    differential::{Seeds, compare},
    relay,
};

use crate::servers;

/// Few enough for half a minute.
const REQUESTS: u64 = 400;
/// What at least is answered alike, of a hundred; the command of the same name lists the rest.
const PERCENT_MIN: usize = 93;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_requests_are_answered_as_a_real_server_answers_them() {
    let Some(assets) = RealServer::assets() else {
        println!("SKIPPED mutated_requests: KUBEBUILDER_ASSETS names no folder with a kube-apiserver");
        return;
    };
    let real_server = RealServer::start(&assets).await.unwrap();
    let real = relay(&real_server.url, &real_server.ca).unwrap();
    let tokens = Tokens { admin: ADMIN_TOKEN.to_owned(), dev: DEV_TOKEN.to_owned() };
    let ours = servers::embedded(&tokens).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/differential");
    let seeds = Seeds::load(&folder).unwrap();
    seeds.plant(&real, &tokens).await.unwrap();
    seeds.plant(&ours, &tokens).await.unwrap();
    let found = compare(&seeds, &ours, &real, &tokens, 1, 0..REQUESTS, None).await.unwrap();
    let (same, all) = found.total();
    for (number, difference) in &found.differences {
        println!("=== request {number}: {difference}");
    }
    assert!(100 * same / all.max(1) >= PERCENT_MIN, "{}", found.table());
}
