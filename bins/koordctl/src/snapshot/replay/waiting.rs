//! The pods that wait in a snapshot: they are tried in the order of the queue, in a simulation of one minute.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use koord_program::gates::Gates;
use koord_runtime::random::Random;
use koord_scheduler_assembly::{Configuration, engine, transformers};
use koord_scheduler_simulator::{Arrival, Outcome, Scenario, outcome::Placement};
use serde_json::Value;

use super::{Decision, Replay, Replayed, is_over, node_of, scheduler_of};

/// Long enough for pods that are evicted, and for those that are tried again after them.
const LASTS: Duration = Duration::from_mins(1);

pub(super) fn replay(
    objects: &[Value],
    configurations: Vec<(String, Configuration, Gates)>,
    at: Timestamp,
    seed: u64,
) -> Result<Replay> {
    let schedulers: Vec<String> = configurations
        .iter()
        .flat_map(|(_, configuration, _)| configuration.profiles())
        .map(|profile| profile.scheduler_name.clone())
        .collect();
    let is_foreign = |object: &&Value| {
        let waits = object["kind"] == "Pod" && node_of(object).is_none() && !is_over(object);
        waits && !schedulers.iter().any(|name| name == scheduler_of(object))
    };
    let left_out = objects.iter().filter(is_foreign).count();
    let ours: Vec<Value> = objects.iter().filter(|object| !is_foreign(object)).cloned().collect();
    let scenario = scenario(ours, at, seed)?;
    let names = configurations.iter().map(|(name, ..)| name.clone()).collect();
    let mut replay =
        Replay { at, is_check: false, configurations: names, pods: Vec::new(), evicted: Vec::new(), left_out };
    if scenario.arrivals.is_empty() {
        return Ok(replay);
    }
    let mut outcomes = Vec::new();
    for (_, configuration, gates) in configurations {
        let transformers = transformers(&gates);
        let engine = engine(&configuration, &gates, Random::seeded(seed))?;
        outcomes.push(koord_scheduler_simulator::run(engine, transformers, &scenario, |_| {})?);
    }
    replay.pods = pods(&outcomes);
    replay.evicted = outcomes.into_iter().map(|outcome| outcome.displaced).collect();
    Ok(replay)
}

/// All pods come before the first is tried, in the order of the objects.
fn scenario(objects: Vec<Value>, at: Timestamp, seed: u64) -> Result<Scenario> {
    let mut scenario = Scenario::of(objects, Some(at), at)?;
    for (index, arrival) in (0..).zip(&mut scenario.arrivals) {
        let Arrival { at, lasts, .. } = arrival;
        (*at, *lasts) = (Duration::from_micros(index), None);
    }
    Ok(Scenario { until: Some(LASTS), seed, gathers: true, ..scenario })
}

/// The pods, in the order in which the first configuration decides about them.
fn pods(outcomes: &[Outcome]) -> Vec<Replayed> {
    let Some(first) = outcomes.first() else { return Vec::new() };
    let mut order: Vec<&Placement> = first.placements.iter().collect();
    order.sort_by_key(|placement| (placement.turn.is_none(), placement.turn));
    let by_name = |outcome: &'_ Outcome| -> BTreeMap<String, Placement> {
        outcome.placements.iter().map(|placement| (placement.pod.clone(), placement.clone())).collect()
    };
    let all: Vec<BTreeMap<String, Placement>> = outcomes.iter().map(by_name).collect();
    let of = |placement: &Placement| {
        let decisions: Vec<Decision> =
            all.iter().filter_map(|placements| placements.get(&placement.pod)).map(decision).collect();
        let differs = decisions.windows(2).any(|pair| matches!(pair, [one, other] if one.node != other.node));
        Replayed { pod: placement.pod.clone(), node: None, decisions, differs }
    };
    order.into_iter().map(of).collect()
}

fn decision(placement: &Placement) -> Decision {
    let (plugins, words) = match &placement.refusal {
        Some(refusal) => (refusal.plugins.iter().map(ToString::to_string).collect(), Some(refusal.message.clone())),
        None => (Vec::new(), None),
    };
    if placement.evicted {
        let node = placement.node.as_deref().unwrap_or_default();
        return Decision { node: None, plugins, words: Some(format!("got {node}, and was evicted for another pod")) };
    }
    Decision { node: placement.node.clone(), plugins, words }
}
