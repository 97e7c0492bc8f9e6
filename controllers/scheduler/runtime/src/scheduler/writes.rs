//! The writes of the scheduler, from the decision of which they follow to their answers.

use std::collections::{BTreeMap, VecDeque};

use koord_runtime::clock::Moment;
use koord_scheduler_engine::Attempt;

use super::{
    background::BackgroundWrites,
    prepare::Preparing,
    repeated::Repeated,
    status_updates::StatusUpdateWrites,
    work::{Subject, Work},
};

/// The writes that are to be sent, on their way, or to be sent again.
#[derive(Default)]
pub(super) struct Writes {
    /// Bindings of which it is not known whether they have arrived, those of Reservations that have changed since, and those before which
    /// something could not be written, by the time of the next try. Their pods stay where they are assumed to be.
    pub(super) unconfirmed: BTreeMap<(Moment, u64), Unconfirmed>,
    /// How many there were: the number of the next one.
    pub(super) unconfirmed_ever: u64,
    /// Bindings before which other objects have been written that have to take effect.
    pub(super) preparing: Preparing,
    pub(super) status_updates: StatusUpdateWrites,
    /// Conditions that say why pods are not tried: the messages.
    pub(super) conditions: Repeated<String>,
    /// Writes that are on their way, by object.
    pub(super) in_flight: BTreeMap<Subject, InFlight>,
    /// What follows from the last attempt beside its first write.
    pub(super) follow_ups: VecDeque<Work>,
    /// Writes for which no binding waits.
    pub(super) background: BackgroundWrites,
}

/// A binding that is tried again, and from where.
pub(super) enum Unconfirmed {
    /// From the write of another object, of this index, that comes before it.
    Prepare(Box<Attempt>, usize),
    /// From what its pod is given.
    Give(Box<Attempt>),
    /// The request to bind.
    Bind(Box<Attempt>),
}

/// A write that is on its way.
pub(super) struct InFlight {
    pub(super) since: Moment,
    /// Whether no binding waits for it.
    pub(super) is_in_background: bool,
    /// What of the same object comes after it.
    pub(super) after: VecDeque<Work>,
}

impl Writes {
    /// The engine begins again: what followed from its decisions is not sent any more, and only what is on its way is still awaited.
    pub(super) fn restart(&mut self) {
        let mut in_flight = std::mem::take(&mut self.in_flight);
        for write in in_flight.values_mut() {
            write.after.clear();
        }
        *self = Self { in_flight, unconfirmed_ever: self.unconfirmed_ever, ..Self::default() };
        self.status_updates.changed();
    }
}
