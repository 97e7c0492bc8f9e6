//! The scheduler of a program that is simulated step by step.

use std::{collections::BTreeMap, sync::Arc};

use koord_runtime::{Core, clock::Moment, error::ReconcileError, events::EventSink};
use koord_scheduler_runtime::{Next, Scheduler, Work};
use koord_simulator::{Companion, Decision};

use crate::Scenario;

/// A scheduler, and what it has decided and has no result of, by number.
struct Beside {
    scheduler: Scheduler,
    open: BTreeMap<u64, Work>,
    decided: u64,
}

/// The scheduler of this scenario, if it has one.
pub(crate) fn beside(
    scenario: &dyn Scenario,
    core: &mut Core,
    events: &Arc<dyn EventSink>,
) -> Option<Box<dyn Companion>> {
    let scheduler = scenario.scheduler(core, events)?;
    Some(Box::new(Beside { scheduler, open: BTreeMap::new(), decided: 0 }))
}

impl Companion for Beside {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn has_work(&self) -> bool {
        self.scheduler.has_work()
    }

    fn wake_at(&self) -> Option<Moment> {
        self.scheduler.wake_at()
    }

    fn step(&mut self) -> Option<Decision> {
        self.scheduler.catch_up();
        let Next::Send(work) = self.scheduler.step() else { return None };
        self.decided += 1;
        let decision = Decision { number: self.decided, write: work.write.clone() };
        self.open.insert(decision.number, work);
        Some(decision)
    }

    fn written(&mut self, number: u64, result: Result<(), ReconcileError>) {
        if let Some(work) = self.open.remove(&number) {
            self.scheduler.written(work, result);
        }
    }

    fn audit(&mut self) -> Result<(), String> {
        let wrong = self.scheduler.audit_all();
        if wrong.is_empty() { Ok(()) } else { Err(format!("sums of the scheduler were wrong: {wrong:?}")) }
    }
}
