//! No node ever has more than it offers, and the same seed gives the same outcome.

use koord_runtime::random::Random;
use koord_scheduler_simulator::{Outcome, Scenario};
use serde_json::Value;

use crate::{ending, node, played, pod, scenario};

const NODES: u64 = 8;

/// Nodes and pods that a seed draws; many of them end, and there are too many of them.
fn drawn(seed: u64) -> Scenario {
    let random = Random::seeded(seed);
    let draw = |from: u64, to: u64| u32::try_from(from + random.below(to - from)).unwrap();
    let mut objects: Vec<Value> = (0..NODES).map(|number| node(&format!("n{number}"), draw(4, 17))).collect();
    for number in 0..120 {
        let pod = pod(&format!("p{number}"), i64::from(draw(0, 900)), draw(1, 9));
        let lasts = draw(0, 600);
        objects.push(if lasts > 200 { ending(pod, &format!("{lasts}s")) } else { pod });
    }
    Scenario { seed, ..scenario(objects) }
}

fn cpu(object: &Value) -> i64 {
    let amount = object.pointer("/status/allocatable/cpu");
    let amount = amount.or_else(|| object.pointer("/spec/containers/0/resources/requests/cpu"));
    amount.and_then(Value::as_str).unwrap().parse().unwrap()
}

/// Checks every node at every time at which a pod came to it.
fn assert_legal(scenario: &Scenario, outcome: &Outcome) {
    let requested = |name: &str| {
        let mut pods = scenario.arrivals.iter();
        cpu(&pods.find(|arrival| arrival.key().as_str() == name).unwrap().pod)
    };
    for node in scenario.objects.iter().filter(|object| object["kind"] == "Node") {
        let name = node["metadata"]["name"].as_str().unwrap();
        let here: Vec<(f64, f64, i64)> = outcome
            .placements
            .iter()
            .filter(|placement| placement.node.as_deref() == Some(name))
            .map(|placement| {
                let left = placement.left_s.unwrap_or(f64::INFINITY);
                (placement.placed_s.unwrap(), left, requested(&placement.pod))
            })
            .collect();
        for (at, ..) in &here {
            let there = here.iter().filter(|(placed, left, _)| placed <= at && at < left);
            let used: i64 = there.map(|(.., cpu)| cpu).sum();
            assert!(used <= cpu(node), "{name} has {used} of {} at {at} s", cpu(node));
        }
    }
}

/// Who waits at the end has a place nowhere.
fn assert_no_room(scenario: &Scenario, outcome: &Outcome) {
    let nodes = scenario.objects.iter().filter(|object| object["kind"] == "Node");
    let free = nodes.map(|node| {
        let known = outcome.nodes.iter().find(|known| node["metadata"]["name"] == *known.name).unwrap();
        cpu(node) as f64 * (1.0 - known.requested["cpu"])
    });
    let largest = free.fold(0.0, f64::max);
    for placement in outcome.placements.iter().filter(|placement| placement.node.is_none()) {
        let mut arrivals = scenario.arrivals.iter();
        let pod = &arrivals.find(|arrival| arrival.key().as_str() == placement.pod).unwrap().pod;
        assert!(cpu(pod) as f64 > largest + 1e-3, "{} waits beside {largest} free CPUs", placement.pod);
    }
}

#[test]
fn no_node_has_more_than_it_offers_at_any_time() {
    for seed in 0..6 {
        let scenario = drawn(seed);
        let outcome = played(&scenario);
        let pods = outcome.pods;
        assert_eq!((pods.arrived, pods.placed + pods.waiting), (120, 120), "seed {seed}");
        assert!(pods.ended > 20 && pods.waiting > 0, "seed {seed}: {pods:?}");
        assert_legal(&scenario, &outcome);
        assert!(outcome.samples.iter().all(|sample| sample.requested["cpu"] <= 1.0), "seed {seed}");
        assert_no_room(&scenario, &outcome);
    }
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let scenario = drawn(3);
    let text = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
    assert_eq!(text(&played(&scenario)), text(&played(&scenario)));
    let other = Scenario { seed: 4, ..scenario.clone() };
    assert_ne!(text(&played(&scenario)), text(&played(&other)), "ties are decided by the seed");
}
