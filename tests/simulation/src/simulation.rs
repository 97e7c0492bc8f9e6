//! Runs of a scenario. Through the real tasks more can be asked for than step by step.

use std::collections::BTreeMap;

use koord_simulator::{Failure, Fault, Rounds};

use crate::Scenario;

/// How much trouble there is.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Trouble goes on until people and the program have carried out so many writes.
    pub writes: u64,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// Whether no program is left behind what others did: lists and watches of the real tasks are never old, nor are programs paused.
    pub calm: bool,
    /// Kills the program right after so many writes of its first life.
    pub crash_after_write: Option<u64>,
}

/// What a good run was like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of everything that happened.
    pub trace_hash: u64,
    /// Steps that were made.
    pub steps: u64,
    /// Writes that were carried out, by people and the program.
    pub writes: u64,
    /// Writes that the program sent.
    pub program_writes: u64,
    /// How often several quotas were compared with what they were promised.
    pub promises: u64,
    /// Bindings that were judged by what their author knew, or evictions.
    pub bindings: u64,
    /// What went wrong, and how often.
    pub faults: BTreeMap<Fault, u64>,
}

/// A scenario whose stage is set: every run begins with a copy of it.
pub struct Simulation<'s> {
    pub(crate) scenario: &'s dyn Scenario,
    pub(crate) steps: koord_simulator::Simulation<'s>,
}

impl Default for Options {
    fn default() -> Self {
        let koord_simulator::Options { writes, faults, crash_after_write } = koord_simulator::Options::default();
        Self { writes, faults, calm: false, crash_after_write }
    }
}

impl<'s> Simulation<'s> {
    /// Sets the stage.
    pub fn of(scenario: &'s dyn Scenario) -> Self {
        Self { scenario, steps: koord_simulator::Simulation::of(scenario) }
    }

    /// One run, step by step.
    pub fn run(&self, seed: u64, options: Options) -> Result<Report, Failure> {
        let Options { writes, faults, crash_after_write, .. } = options;
        let report = self.steps.run(seed, koord_simulator::Options { writes, faults, crash_after_write })?;
        let koord_simulator::Report { trace_hash, steps, writes, program_writes, judged, faults } = report;
        Ok(Report { trace_hash, steps, writes, program_writes, promises: 0, bindings: judged, faults })
    }

    /// One recorded run, in which the program may die right after one of its writes.
    pub fn rounds(&self, seed: u64, crash_after_write: Option<u64>) -> Result<Rounds, Failure> {
        self.steps.rounds(seed, crash_after_write)
    }
}
