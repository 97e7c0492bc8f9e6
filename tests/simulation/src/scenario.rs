//! What is simulated: a program of Koordinator, which may be a scheduler.

use std::sync::Arc;

use koord_runtime::{Core, events::EventSink};
use koord_scheduler_runtime::Scheduler;

use crate::{manager::Manager, name_cards::NameCards, whole_manager::WholeManager};

/// A scenario that can also run on the real tasks.
pub trait Scenario: koord_simulator::Scenario {
    /// Makes the program's scheduler, if it is one.
    fn scheduler(&self, _core: &mut Core, _events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        None
    }
}

impl Scenario for NameCards {}
impl Scenario for Manager {}
impl Scenario for WholeManager {}
