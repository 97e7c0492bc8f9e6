//! What a simulation is about: the program, the people who change things, and the states that are right.

use std::sync::Arc;

use koord_runtime::{Core, events::EventSink, random::Random, write::Write};

use crate::{
    companion::{Companion, Witness},
    fault::Fault,
    stage::Stage,
};

/// Who is simulated, what people do to it, and what should become of it. [`Trial`](crate::Trial) makes one of functions.
pub trait Scenario: Sync {
    /// Sets the stage before anybody acts.
    fn prepare(&self, stage: &mut Stage);
    /// Makes the program's controllers.
    fn wire(&self, core: &mut Core) -> Result<(), String>;
    /// Makes what decides beside the controllers, if there is something.
    fn companion(&self, _core: &mut Core, _events: &Arc<dyn EventSink>) -> Option<Box<dyn Companion>> {
        None
    }
    /// Makes what judges one life of the program by what that life knows.
    fn witness(&self) -> Option<Box<dyn Witness>> {
        None
    }
    /// One thing that a person does.
    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance;
    /// Paths of the collections that people and the program change: what [`Rounds::states`](crate::Rounds::states) holds.
    fn collections(&self) -> &'static [&'static str] {
        &[]
    }
    /// The last thing that people do; what should be follows from the stage alone afterwards.
    fn conclude(&self, stage: &mut Stage);
    /// What goes on by itself when people leave everything as it is: the agents of nodes report.
    fn report(&self, _stage: &mut Stage, _random: &Random) {}
    /// Which writes an admission webhook denies for ever.
    fn denied(&self) -> fn(&Write) -> bool {
        |_| false
    }
    /// Which writes go on although nothing changes, such as events about a malformed object. They are not counted where nothing may be written.
    fn repeated(&self) -> fn(&Write) -> bool {
        |_| false
    }
    /// Whether nothing is there that must never be. Checked after every step in which the program may have written something else than events.
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

impl From<String> for Disturbance {
    fn from(what: String) -> Self {
        Self { what, fault: None }
    }
}

impl From<&str> for Disturbance {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}
