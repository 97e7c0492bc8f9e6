//! What came of a simulation, as values that programs can read.
//!
//! Shares are parts of 1, times are seconds of the simulation, amounts are thousandths of a CPU and whole units of everything
//! else. Lists have a stable order: by name, or the largest first.

mod fairness;
mod reasons;
mod waits;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::{columns::Row, node::Node};
use serde::Serialize;

pub use self::{
    fairness::{Fairness, Served},
    reasons::{Reason, Refusal},
    waits::{Bucket, Waits},
};
use crate::{
    measure::{GPUS, gpus, of_row},
    pods::{Pods, Record},
    survey::Survey,
};

/// What came of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// How long it lasted.
    pub lasted_s: f64,
    /// What became of the pods.
    pub pods: Counts,
    /// How often the scheduler decided.
    pub decisions: Decisions,
    /// How much of each resource is requested.
    pub resources: Vec<Utilisation>,
    /// How evenly pods were served.
    pub fairness: Fairness,
    /// How long pods waited.
    pub waits: Waits,
    /// Why pods wait at the end, the most frequent reason first.
    pub reasons: Vec<Reason>,
    /// The pods that came, by namespace and name.
    pub placements: Vec<Placement>,
    /// Pods that were there before and were evicted, in this order.
    #[serde(skip)]
    pub displaced: Vec<String>,
    /// The nodes at the end, by name.
    pub nodes: Vec<NodeState>,
    /// What was measured, in the course of time.
    pub samples: Vec<Sample>,
}

/// What became of the pods that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Pods that came.
    pub arrived: usize,
    /// Pods that got a node, whatever became of them then.
    pub placed: usize,
    /// Pods that wait for a node at the end.
    pub waiting: usize,
    /// Pods that had a node and have ended.
    pub ended: usize,
    /// Pods that were evicted for others.
    pub evicted: usize,
}

/// How often the scheduler decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    /// Attempts that ended: with a binding, or with a refusal.
    pub attempts: u64,
    /// Pods that were bound.
    pub bindings: u64,
    /// Attempts in which a pod was refused.
    pub refusals: u64,
}

/// How much of a resource is requested, and how much of it is free and of no use.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Utilisation {
    /// The resource; `gpus` for whole GPUs, whatever resources stand for them.
    pub name: String,
    /// What all nodes offer; of GPUs thousandths.
    pub allocatable: i64,
    /// The share that is requested at the end.
    pub requested: f64,
    /// The mean share over time.
    pub mean: f64,
    pub max: f64,
    /// The share of all that is free and of no use at the end; none where it is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragmented: Option<f64>,
}

/// What became of a pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Namespace and name.
    pub pod: String,
    /// When it came.
    pub arrived_s: f64,
    /// Its node; none where it got none.
    pub node: Option<String>,
    /// When it got its node.
    pub placed_s: Option<f64>,
    /// When it was gone.
    pub left_s: Option<f64>,
    /// Whether it was evicted for another.
    pub evicted: bool,
    /// How often it was refused.
    pub refusals: u64,
    /// How many pods had been decided about before it, for the first time; none where nothing was decided about it.
    #[serde(skip)]
    pub turn: Option<usize>,
    /// Why it waits at the end; none where it does not.
    #[serde(skip)]
    pub refusal: Option<Refusal>,
}

/// A node at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    pub name: String,
    pub pods: usize,
    /// The share of each of its resources that is requested.
    pub requested: BTreeMap<String, f64>,
}

/// What was measured at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When.
    pub at_s: f64,
    /// Pods that had come.
    pub arrived: usize,
    /// Pods that waited for a node.
    pub waiting: usize,
    /// What the pods that had come request of GPUs, as a share of all; none without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_demand: Option<f64>,
    /// The share of each resource that was requested.
    pub requested: BTreeMap<String, f64>,
    /// The share of all that was free and of no use.
    pub fragmented: BTreeMap<String, f64>,
}

/// What an outcome is made of.
pub(crate) struct Parts<'s> {
    pub(crate) engine: &'s Engine,
    pub(crate) survey: &'s Survey,
    pub(crate) pods: &'s Pods,
    pub(crate) samples: Vec<Sample>,
    pub(crate) bindings: u64,
    pub(crate) lasted: Duration,
}

impl Outcome {
    pub(crate) fn of(parts: Parts<'_>) -> Self {
        let Parts { engine, survey, pods, samples, bindings, lasted } = parts;
        let refusals = pods.iter().map(|(_, record)| record.refusals).sum();
        Self {
            lasted_s: seconds(lasted),
            pods: counts(pods),
            decisions: Decisions { attempts: bindings + refusals, bindings, refusals },
            resources: resources(survey, engine, &samples),
            fairness: Fairness::of(survey, pods),
            waits: Waits::of(pods, lasted),
            reasons: reasons::of(engine, survey, pods),
            placements: placements(engine, survey, pods),
            displaced: pods.displaced().iter().map(ToString::to_string).collect(),
            nodes: nodes(survey, engine),
            samples,
        }
    }
}

fn counts(pods: &Pods) -> Counts {
    let count = |is: fn(&Record) -> bool| pods.iter().filter(|(_, record)| is(record)).count();
    Counts {
        arrived: pods.len(),
        placed: count(|record| record.placed.is_some()),
        waiting: count(Record::waits),
        ended: count(|record| record.placed.is_some() && record.left.is_some() && !record.evicted),
        evicted: count(|record| record.evicted),
    }
}

fn placements(engine: &Engine, survey: &Survey, pods: &Pods) -> Vec<Placement> {
    let mut refusals = reasons::refusals(engine, survey, pods);
    let of = |(key, record): (&ObjectKey, &Record)| placement(key.as_str(), record, refusals.remove(key));
    pods.iter().map(of).collect()
}

fn placement(pod: &str, record: &Record, refusal: Option<Refusal>) -> Placement {
    Placement {
        pod: pod.to_owned(),
        arrived_s: seconds(record.arrived),
        node: record.placed.as_ref().map(|(_, node)| node.clone()),
        placed_s: record.placed.as_ref().map(|(at, _)| seconds(*at)),
        left_s: record.left.map(seconds),
        evicted: record.evicted,
        refusals: record.refusals,
        turn: record.turn,
        refusal,
    }
}

/// Resources, cpu and memory first, then GPUs.
fn resources(survey: &Survey, engine: &Engine, samples: &[Sample]) -> Vec<Utilisation> {
    let cluster = engine.cluster();
    let gpu_milli: i64 = cluster.rows().flat_map(|(row, _)| gpus(cluster, row)).map(|(total, _)| total).sum();
    let mut all: Vec<(&str, i64)> = survey.capacity.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
    all.extend((gpu_milli > 0).then_some((GPUS, gpu_milli)));
    let order = |name: &str| ["cpu", "memory", GPUS].iter().position(|first| *first == name).unwrap_or(3);
    all.sort_by_key(|(name, _)| (order(name), *name));
    let of = |(name, allocatable): (&str, i64)| {
        let shares: Vec<(f64, f64)> =
            samples.iter().filter_map(|sample| Some((sample.at_s, *sample.requested.get(name)?))).collect();
        let last = samples.last();
        Utilisation {
            name: name.to_owned(),
            allocatable,
            requested: shares.last().map_or(0.0, |(_, share)| *share),
            mean: mean(&shares),
            max: shares.iter().map(|(_, share)| *share).fold(0.0, f64::max),
            fragmented: last.and_then(|last| last.fragmented.get(name)).copied(),
        }
    };
    all.into_iter().map(of).collect()
}

/// The mean of what was measured, each as long as it lasted until the next.
fn mean(shares: &[(f64, f64)]) -> f64 {
    let (mut sum, mut time) = (0.0, 0.0);
    for ((at, share), (next, _)) in shares.iter().zip(shares.iter().skip(1)) {
        sum += share * (next - at);
        time += next - at;
    }
    if time > 0.0 { rounded(sum / time) } else { shares.last().map_or(0.0, |(_, share)| *share) }
}

fn nodes(survey: &Survey, engine: &Engine) -> Vec<NodeState> {
    let cluster = engine.cluster();
    let of = |(row, node): (Row, &Arc<Node>)| {
        let share = |used: i64, all: i64| rounded(used as f64 / all as f64);
        let amounts = of_row(cluster, row, &survey.capacity);
        let offered = amounts.into_iter().filter(|(_, _, all)| *all > 0);
        let mut requested: BTreeMap<String, f64> =
            offered.map(|(name, used, all)| (name.to_owned(), share(used, all))).collect();
        let (total, free) = gpus(cluster, row).into_iter().fold((0, 0), |sum, gpu| (sum.0 + gpu.0, sum.1 + gpu.1));
        requested.extend((total > 0).then(|| (GPUS.to_owned(), share(total - free, total))));
        NodeState { name: node.name.to_string(), pods: cluster.pods_on(row).count(), requested }
    };
    let mut nodes: Vec<NodeState> = cluster.rows().map(of).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes
}

/// Seconds, to the thousandth.
pub(crate) fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e3).round() / 1e3
}

/// A share, to the millionth.
pub(crate) fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

pub(crate) fn all_rounded(shares: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    shares.into_iter().map(|(name, share)| (name, rounded(share))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_counts_each_share_as_long_as_it_lasted() {
        assert!((mean(&[(0.0, 0.0), (30.0, 1.0), (40.0, 0.5)]) - 0.25).abs() < 1e-9);
        assert!((mean(&[(0.0, 0.2), (0.0, 0.7)]) - 0.7).abs() < 1e-9, "no time has passed");
        assert!(mean(&[]).abs() < 1e-9);
    }
}
