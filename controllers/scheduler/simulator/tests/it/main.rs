//! Simulations with the scheduler's own configuration: what they place is legal, repeatable, and what a cluster would do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod kinds;
mod legality;
mod traces;

use std::time::Duration;

use jiff::Timestamp;
use koord_program::gates::Gates;
use koord_runtime::random::Random;
use koord_scheduler::BUILD;
use koord_scheduler_assembly::{Configuration, engine};
use koord_scheduler_runtime::Transformers;
use koord_scheduler_simulator::{DURATION, Outcome, Scenario, run};
use serde_json::{Value, json};

fn node(name: &str, cpu: u32) -> Value {
    let amounts = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": name});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}})
}

/// A pod that comes at this second.
fn pod(name: &str, second: i64, cpu: u32) -> Value {
    let created = Timestamp::from_second(1_767_225_600 + second).unwrap().to_string();
    let resources = json!({"requests": {"cpu": cpu.to_string(), "memory": "1Gi"}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created, "labels": {}},
        "spec": {"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

fn ending(mut pod: Value, after: &str) -> Value {
    pod["metadata"]["annotations"] = json!({DURATION: after});
    pod
}

fn with(mut pod: Value, pointer: &str, value: &Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[field] = value.clone();
    pod
}

fn scenario(objects: Vec<Value>) -> Scenario {
    Scenario::of(objects, Some(Timestamp::from_second(1_767_225_600).unwrap()), Timestamp::UNIX_EPOCH).unwrap()
}

fn played(scenario: &Scenario) -> Outcome {
    let configuration = Configuration::shipped_for_all_pods().unwrap();
    let engine = engine(&configuration, &Gates::new(BUILD.gates), Random::seeded(scenario.seed)).unwrap();
    run(engine, Transformers::default(), scenario, |_| {}).unwrap()
}

fn fails(scenario: &Scenario) -> String {
    let configuration = Configuration::shipped_for_all_pods().unwrap();
    let engine = engine(&configuration, &Gates::new(BUILD.gates), Random::seeded(1)).unwrap();
    run(engine, Transformers::default(), scenario, |_| {}).unwrap_err().to_string()
}

/// Where a pod went, and when.
fn place(outcome: &Outcome, pod: &str) -> Option<(String, f64)> {
    let placement = outcome.placements.iter().find(|placement| placement.pod == format!("shop/{pod}")).unwrap();
    placement.node.clone().zip(placement.placed_s)
}

#[test]
fn a_pod_that_ends_leaves_its_room_to_one_that_waits() {
    let objects = vec![node("n", 4), ending(pod("first", 0, 3), "10m"), pod("second", 60, 3)];
    let outcome = played(&scenario(objects));
    let (node, at) = place(&outcome, "second").unwrap();
    assert!(node == "n" && (600.0..612.0).contains(&at), "{at}");
    let pods = outcome.pods;
    assert_eq!((pods.placed, pods.waiting, pods.ended, pods.evicted), (2, 0, 1, 0));
    assert!((outcome.waits.max_s - (at - 60.0)).abs() < 1e-6 && outcome.waits.p50_s.abs() < 1e-6);
    assert!((outcome.resources[0].requested - 0.75).abs() < 1e-6, "{:?}", outcome.resources);
}

#[test]
fn a_pod_that_runs_when_it_begins_ends_at_its_time() {
    let mut runs = ending(pod("runs", 0, 3), "10m");
    runs["spec"]["nodeName"] = json!("n");
    runs["status"] = json!({"phase": "Running", "startTime": "2025-12-31T23:55:00Z"});
    let outcome = played(&scenario(vec![node("n", 4), runs, pod("waits", 0, 2)]));
    let (_, at) = place(&outcome, "waits").unwrap();
    assert!((300.0..312.0).contains(&at), "five of its ten minutes were over: {at}");
}

#[test]
fn why_pods_wait_is_told_once_for_alike_ones() {
    let foreign = with(pod("foreign", 0, 1), "/spec/schedulerName", &json!("other"));
    let gated = with(pod("gated", 0, 1), "/spec/schedulingGates", &json!([{"name": "example.com/gate"}]));
    let unreadable = with(pod("unreadable", 0, 1), "/spec/containers", &json!(7));
    let objects = vec![
        node("n1", 4),
        node("n2", 2),
        pod("a", 0, 9),
        pod("b", 30, 10),
        foreign,
        gated,
        unreadable,
        pod("fits", 0, 1),
    ];
    let outcome = played(&scenario(objects));
    let reasons: Vec<(usize, String, &str)> =
        outcome.reasons.iter().map(|reason| (reason.pods, reason.plugins.join(","), reason.reason.as_str())).collect();
    assert_eq!(reasons[0], (2, "NodeResourcesFit".to_owned(), "Insufficient cpu"));
    assert_eq!(outcome.reasons[0].example, "shop/a");
    assert!(outcome.reasons[0].message.starts_with("0/2 nodes are available: 2 Insufficient cpu."));
    let said = |words: &str| reasons.iter().any(|(pods, _, reason)| *pods == 1 && reason.contains(words));
    assert!(said("left to another scheduler: its schedulerName is \"other\""), "{reasons:?}");
    assert!(reasons.iter().any(|(_, plugins, _)| plugins == "SchedulingGates"), "{reasons:?}");
    assert!(said("this Pod cannot be read"), "{reasons:?}");
    assert_eq!((outcome.pods.placed, outcome.pods.waiting), (1, 5));
}

#[test]
fn it_ends_at_the_time_that_is_named() {
    let objects = vec![node("n", 4), ending(pod("first", 0, 3), "10m"), pod("second", 60, 3), pod("late", 400, 1)];
    let scenario = Scenario { until: Some(Duration::from_mins(5)), ..scenario(objects) };
    let outcome = played(&scenario);
    assert!((outcome.lasted_s - 300.0).abs() < 1e-6);
    assert_eq!((outcome.pods.arrived, outcome.pods.placed, outcome.pods.waiting), (2, 1, 1));
    assert!((outcome.waits.waiting_max_s - 240.0).abs() < 1e-6);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    assert!(fails(&scenario(vec![pod("a", 0, 1)])).starts_with("there is no node"));
    assert!(fails(&scenario(vec![node("n", 1)])).starts_with("there is no pod that waits for a node"));
    let twice = vec![node("n", 1), pod("a", 0, 1), pod("a", 5, 1)];
    assert_eq!(fails(&scenario(twice)), "there are two pods shop/a; give one of them another name");
    let mut old = node("n", 1);
    old["apiVersion"] = json!("v2");
    assert!(fails(&scenario(vec![old, pod("a", 0, 1)])).contains("it is written in v2, and v1 is read"));
}
