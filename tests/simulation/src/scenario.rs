//! What is simulated: a program of Koordinator, which may be a scheduler.

use std::sync::Arc;

use envtest::shell::Server;
use futures::future::BoxFuture;
use koord_runtime::{Core, clock::SharedClock, events::EventSink, manager::Manager as TaskManager};
use koord_scheduler_runtime::Scheduler;

use crate::{Stage, manager::Manager, name_cards::NameCards, whole_manager::WholeManager};

/// Installs something on the manager of a program.
pub type Install = Box<dyn FnOnce(&mut TaskManager)>;

/// A scenario that can also run on the real tasks.
pub trait Scenario: koord_simulator::Scenario {
    /// Makes the program's scheduler, if it is one.
    fn scheduler(&self, _core: &mut Core, _events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        None
    }

    /// Makes what works beside the controllers and the scheduler on the real tasks.
    fn install(&self, _core: &mut Core, _events: &Arc<dyn EventSink>) -> Result<Vec<Install>, String> {
        Ok(Vec::new())
    }

    /// How many decisions of a run on the real tasks could be judged.
    fn judged(&self, _stage: &mut Stage) -> u64 {
        0
    }

    /// What Kubernetes' own controllers and kubelets do while a run on the real tasks goes on.
    fn surroundings(&self, _server: &Server, _clock: &SharedClock) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

impl Scenario for NameCards {}
impl Scenario for Manager {}
impl Scenario for WholeManager {}
