//! What a small change of a large object costs, in allocations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use allocations::allocations;
use envtest::{
    environment::SeededEnvironment,
    kinds,
    request::ApiRequest,
    server::{ApiServer, Outcome},
    store::HistoryLimits,
};
use http::Method;
use serde_json::{Value, json};

fn answer(core: &mut ApiServer, method: Method, path: &str, content_type: &str, body: &Value) -> u16 {
    let mut request = ApiRequest::new(method, path, body.to_string());
    content_type.clone_into(&mut request.content_type);
    match core.handle(&request) {
        Outcome::Done(answer) => answer.code,
        other => panic!("{other:?}"),
    }
}

/// Allocations of a patch that adds a label to a node with this many.
fn cost(labels: usize) -> usize {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
    kinds::install(&mut core);
    let all: serde_json::Map<String, Value> = (0..labels).map(|n| (format!("example.com/l{n}"), json!("x"))).collect();
    let node = json!({"metadata": {"name": "n", "labels": all}});
    assert_eq!(answer(&mut core, Method::POST, "/api/v1/nodes", "application/json", &node), 201);
    let patch = json!({"metadata": {"labels": {"another": "label"}}});
    let path = "/api/v1/nodes/n?fieldManager=other";
    let (count, code) = allocations(|| answer(&mut core, Method::PATCH, path, "application/merge-patch+json", &patch));
    assert_eq!(code, 200);
    count
}

/// A node whose labels are added one by one costs the square of their number: what each adds to a write must be little.
#[test]
fn a_label_costs_few_allocations_in_a_write_that_leaves_it_as_it_is() {
    let (few, many) = (cost(300), cost(3000));
    let of_label = (many - few) / 2700;
    assert!(of_label <= 13, "{of_label} allocations for each label: {few} with 300, {many} with 3000");
}
