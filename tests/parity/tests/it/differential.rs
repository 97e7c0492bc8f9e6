use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use parity::{
    ADMIN_TOKEN, DEV_TOKEN, RealServer, Tokens,
    differential::{Seeds, compare},
    relay,
};

use crate::servers;

/// Few enough for half a minute.
const REQUESTS: u64 = 400;
/// What the requests are drawn from.
const SEED: u64 = 1;

/// The requests that are known to be answered differently, each with its reason.
fn known_differences() -> BTreeMap<u64, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/known-mutated-requests.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_requests_are_answered_as_a_real_server_answers_them() {
    let Some(assets) = RealServer::assets() else {
        return programs::skipped("mutated requests", "KUBEBUILDER_ASSETS names no folder with a kube-apiserver");
    };
    let real_server = RealServer::start(&assets).await.unwrap();
    let real = relay(&real_server.url, &real_server.ca).unwrap();
    let tokens = Tokens { admin: ADMIN_TOKEN.to_owned(), dev: DEV_TOKEN.to_owned() };
    let ours = servers::embedded(&tokens).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/differential");
    let seeds = Seeds::load(&folder).unwrap();
    seeds.plant(&real, &tokens).await.unwrap();
    seeds.plant(&ours, &tokens).await.unwrap();
    let found = compare(&seeds, &ours, &real, &tokens, SEED, 0..REQUESTS, None).await.unwrap();
    for (number, difference) in &found.differences {
        println!("=== request {number}: {difference}");
    }
    let known: BTreeSet<u64> = known_differences().into_keys().collect();
    let different: BTreeSet<u64> = found.differences.iter().map(|(number, _)| *number).collect();
    let unknown: Vec<_> = different.difference(&known).collect();
    assert!(unknown.is_empty(), "not known to be answered differently: {unknown:?}\n{}", found.table());
    let gone: Vec<_> = known.difference(&different).collect();
    assert!(gone.is_empty(), "answered alike by now: {gone:?}; tests/data/known-mutated-requests.json names them");
}
