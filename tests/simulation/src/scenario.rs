//! What a simulation is about: the program, the people who change things, and the states that are right.

use std::sync::Arc;

use koord_runtime::{Core, events::EventSink, random::Random, write::Write};
use koord_scheduler_runtime::Scheduler;

use crate::{fault::Fault, stage::Stage};

/// Who is simulated, what people do to it, and what should become of it.
pub trait Scenario: Sync {
    /// Sets the stage before anybody acts.
    fn prepare(&self, stage: &mut Stage);
    /// Makes the program's controllers.
    fn wire(&self, core: &mut Core) -> Result<(), String>;
    /// Makes the program's scheduler, if it is one.
    fn scheduler(&self, _core: &mut Core, _events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        None
    }
    /// One thing that a person does.
    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance;
    /// Paths of the collections that people and the program change.
    fn collections(&self) -> &'static [&'static str];
    /// The last thing that people do; what should be follows from the stage alone afterwards.
    fn conclude(&self, stage: &mut Stage);
    /// What goes on by itself when people leave everything as it is: the agents of nodes report.
    fn report(&self, _stage: &mut Stage, _random: &Random) {}
    /// Which writes an admission webhook denies for ever.
    fn denied(&self) -> fn(&Write) -> bool {
        |_| false
    }
    /// Whether nothing is there that must never be.
    fn always(&self, _stage: &mut Stage) -> Result<(), String> {
        Ok(())
    }
    /// Whether what is, is what should be.
    fn check(&self, stage: &mut Stage) -> Result<(), String>;
}

/// What a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// In words.
    pub what: String,
    /// Whether that belongs to the catalogue of faults.
    pub fault: Option<Fault>,
}
