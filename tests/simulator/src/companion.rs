//! What decides beside the controllers of a program, such as a scheduler, and what judges it.

use jiff::Timestamp;
use koord_runtime::{clock::Moment, error::ReconcileError, write::Write};

/// Something of a program that is no controller: it decides on writes by itself, one at a time, and is
/// notified of the result of each.
pub trait Companion {
    /// Its name in the story of a run.
    fn name(&self) -> &'static str;
    /// Whether a step would do something now.
    fn has_work(&self) -> bool;
    /// When a step would do something although nothing has changed.
    fn wake_at(&self) -> Option<Moment>;
    /// Takes in what has changed, and decides.
    fn step(&mut self) -> Option<Decision>;
    /// A write has ended.
    fn written(&mut self, number: u64, result: Result<(), ReconcileError>);
    /// Whether what it has summed up of the objects is what they amount to.
    fn audit(&mut self) -> Result<(), String>;
}

/// A write that a [`Companion`] has decided on.
#[derive(Debug)]
pub struct Decision {
    /// By which [`Companion::written`] knows it.
    pub number: u64,
    /// What is to be sent.
    pub write: Write,
}

/// Judges one life of a program by what that life knows: it sees what the watches show and what is decided and sent.
pub trait Witness {
    /// A page of a list was shown, after which its reader stands at this revision.
    fn page(&mut self, plural: &'static str, body: &str, is_first: bool, revision: u64);
    /// A line of a watch was shown.
    fn line(&mut self, plural: &'static str, line: &str);
    /// A watch is about to show what there is before what happens.
    fn list_begins(&mut self, plural: &str);
    /// Something was shown, and nobody knows whether it was seen: until the next list nothing is certain.
    fn is_lost(&mut self, plural: &str);
    /// A write has ended; `arrived` is whether the server carried it out, and `is_certain` whether its author can know that.
    fn sent(&mut self, write: &Write, arrived: bool, is_certain: bool);
    /// The companion goes on.
    fn goes_on(&mut self, moment: Moment, now: Timestamp) -> Result<(), String>;
    /// The companion has decided on a write.
    fn decides(&mut self, write: &Write, moment: Moment) -> Result<(), String>;
    /// How many decisions were judged.
    fn judged(&self) -> u64;
}
