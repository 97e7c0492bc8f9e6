//! A trace of the openb family as a scenario.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use koord_scheduler_simulator::{Replay, Scenario, Trace};
use serde_json::json;

use crate::{node, played};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/simulation/openb")
}

fn replay() -> Replay {
    let (seed, scheduler, start) = (1, "koord-scheduler".to_owned(), Timestamp::UNIX_EPOCH);
    Replay { nodes_max: None, pods_max: None, demand_percent: None, seed, scheduler, start, further: Vec::new() }
}

fn scenario(replay: Replay) -> Scenario {
    Trace::read(&folder()).unwrap().scenario(replay).unwrap()
}

#[test]
fn pods_come_and_go_at_the_times_of_the_trace() {
    let scenario = scenario(replay());
    assert_eq!((scenario.nodes(), scenario.arrivals.len()), (8, 40));
    assert!(scenario.arrivals.iter().all(|arrival| arrival.lasts.is_some()));
    let outcome = played(&scenario);
    assert_eq!((outcome.pods.placed, outcome.pods.ended), (40, 40));
    let gpus = outcome.resources.iter().find(|resource| resource.name == "gpus").unwrap();
    assert_eq!((gpus.allocatable, gpus.requested.to_bits()), (36_000, 0.0_f64.to_bits()));
    assert!(gpus.max > 0.2, "{gpus:?}");
}

#[test]
fn pods_come_shuffled_until_the_demand_is_reached() {
    let scenario = scenario(Replay { demand_percent: Some(130), ..replay() });
    assert_eq!(scenario.nodes(), 7, "a node without GPUs plays no part");
    let outcome = played(&scenario);
    let demand = outcome.samples.last().unwrap().gpu_demand.unwrap();
    assert!((1.2..=1.3).contains(&demand), "{demand}");
    let gpus = outcome.resources.iter().find(|resource| resource.name == "gpus").unwrap();
    assert!(gpus.requested > 0.7 && gpus.requested <= 1.0, "{gpus:?}");
    let fragmented = gpus.fragmented.unwrap();
    assert!(
        fragmented > 0.0 && fragmented <= 1.0 - gpus.requested + 1e-6,
        "{fragmented}: only what is free can be of no use"
    );
    assert!(outcome.pods.waiting > 0);
}

#[test]
fn parts_of_a_trace_are_played_on_its_nodes_or_others() {
    let some = scenario(Replay { nodes_max: Some(4), pods_max: Some(5), ..replay() });
    let names: Vec<&str> = some
        .objects
        .iter()
        .filter(|object| object["kind"] == "Node")
        .map(|node| node["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!((names, some.arrivals.len()), (vec!["node-0", "node-2", "node-4", "node-6"], 5));
    let own = scenario(Replay {
        further: vec![node("mine", 64), json!({"kind": "Namespace", "metadata": {"name": "x"}})],
        ..replay()
    });
    assert_eq!((own.nodes(), own.arrivals.len()), (1, 40));
}

#[test]
fn a_trace_that_is_not_there_is_answered_with_those_that_are() {
    let error = |path: PathBuf| Trace::read(&path).unwrap_err().to_string();
    assert!(error(folder().join("cpu100")).ends_with("/cpu100; the folder has: default"));
    assert!(error(PathBuf::from("/nowhere/x")).contains("name a folder with the files of the traces"));
    assert!(Trace::read(&folder().join("default")).is_ok());
    assert!(Trace::read(&folder().join("openb_pod_list_default.csv")).is_ok());
}
