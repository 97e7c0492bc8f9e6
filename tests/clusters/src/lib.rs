//! Random clusters with what Koordinator adds to a scheduler: Reservations, quotas, gangs, NUMA policies, CPUs and GPUs that pods
//! have to themselves. No other implementation is at hand to compare with, so what comes of them is held against laws.
//!
//! A seed draws a cluster ([`draw`]); the scheduler's own engine plays it. At its end, and at a time in the middle, what was given
//! out must be legal ([`laws`]); at the end no pod may wait for which a search of all nodes finds a place ([`room`]). Both read the
//! objects alone ([`facts`]), and share no code with the plugins. The crate knows no server.
//!
//! Read first: [`check`] (what is done with a seed), [`laws`] and [`room`] (what must hold).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod devices;
pub mod draw;
pub mod facts;
mod json;
pub mod laws;
pub mod room;
mod usage;

use std::time::Duration;

use anyhow::Result;
use koord_program::gates::Gates;
use koord_runtime::random::Random;
use koord_scheduler::BUILD;
use koord_scheduler_assembly::{Configuration, engine};
use koord_scheduler_runtime::Transformers;
use koord_scheduler_simulator::{End, Scenario, play};

use self::facts::Facts;

/// What was seen in the clusters of some seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Pods with a node at the end.
    pub placed: usize,
    /// Pods that wait at the end.
    pub waiting: usize,
    /// Pods with GPUs, with CPUs of their own, with resources of certain NUMA nodes, and with a reservation.
    pub gpus: usize,
    /// Pods with CPUs of their own.
    pub cpus: usize,
    /// Pods with resources of certain NUMA nodes.
    pub numa: usize,
    /// Pods with a reservation.
    pub owners: usize,
    /// Gangs that were placed.
    pub gangs: usize,
}

impl Seen {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            placed: self.placed + other.placed,
            waiting: self.waiting + other.waiting,
            gpus: self.gpus + other.gpus,
            cpus: self.cpus + other.cpus,
            numa: self.numa + other.numa,
            owners: self.owners + other.owners,
            gangs: self.gangs + other.gangs,
        }
    }

    fn of(facts: &Facts) -> Self {
        let (placed, waiting): (Vec<_>, Vec<_>) = facts.pods.iter().partition(|pod| pod.node.is_some());
        let with = |has: fn(&facts::Pod) -> bool| placed.iter().filter(|pod| has(pod)).count();
        Self {
            placed: placed.len(),
            waiting: waiting.len(),
            gpus: with(|pod| !pod.given.gpus.is_empty()),
            cpus: with(|pod| !pod.given.cpus.is_empty()),
            numa: with(|pod| !pod.given.zones.is_empty()),
            owners: with(|pod| pod.reservation.is_some()),
            gangs: facts.gangs.keys().filter(|gang| facts.members(gang).any(|pod| pod.node.is_some())).count(),
        }
    }
}

/// Plays the cluster of a seed. Gives what was seen, or everything that is wrong.
pub fn check(seed: u64) -> Result<Seen, String> {
    let scenario = draw::scenario(seed);
    let half = Scenario { until: Some(draw::HALF), ..scenario.clone() };
    let mut wrong = Vec::new();
    for (scenario, when) in [(&half, "halfway: "), (&scenario, "")] {
        let end = played(scenario).map_err(|error| format!("seed {seed}: {error:#}"))?;
        let facts = Facts::of(&end.objects);
        wrong.extend(laws::broken(&facts, scenario.until.is_none()).into_iter().map(|what| format!("{when}{what}")));
        if scenario.until.is_none() {
            wrong.extend(room::overlooked(&facts, &end.outcome));
            if wrong.is_empty() {
                return Ok(Seen::of(&facts));
            }
        }
    }
    Err(format!("seed {seed}:\n  {}", wrong.join("\n  ")))
}

/// What a scheduler with the configuration that is shipped makes of a scenario.
pub fn played(scenario: &Scenario) -> Result<End> {
    let configuration = Configuration::shipped_for_all_pods()?;
    let engine = engine(&configuration, &Gates::new(BUILD.gates), Random::seeded(scenario.seed))?;
    play(engine, Transformers::default(), scenario, |_| {})
}

/// How long a pod of a cluster runs at least, where it ends.
pub(crate) const RUNS_MIN: Duration = Duration::from_secs(30);
