//! What the controllers of a program would write now, without writing it.
//!
//! Their caches are filled from lists of a cluster or from files instead of watches, and what they decide is compared with what is
//! there instead of being written. A cluster is asked for lists alone, and no effect is begun.
//!
//! Read first: [`core()`] (what controllers are added to), [`Plan::of`] (what they would do), [`Plan::to_text`].

mod changes;
mod command;
mod shown;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    clock::ManualClock,
    effect::Wanted,
    events::{Event, EventSink},
    key::ObjectKey,
    metrics::Metrics,
    outcome::Outcome,
    random::Random,
    write::{Action, Write},
};
use parking_lot::Mutex;

pub(crate) use self::command::PlanFlags;
use self::{changes::hide, source::Stored};
pub use self::{
    changes::{Change, changes, planned},
    source::{Collection, Source, collections, feed, fill_caches, kind_of, list, read, wanting},
};
use crate::output::FAILED;

/// A core for controllers that are planned: its clock stands still at `now`, and the events are recorded here.
pub fn core(field_manager: &'static str, now: Timestamp) -> Result<(Core, Arc<Recorded>)> {
    let recorded = Arc::new(Recorded::default());
    let sink: Arc<dyn EventSink> = Arc::clone(&recorded) as _;
    // No decision depends on chance; the runtime needs a source all the same.
    Ok((Core::new(field_manager, ManualClock::new(now), Random::seeded(0), Metrics::new()?, sink), recorded))
}

/// Events of controllers and caches, in order and each once.
#[derive(Default)]
pub struct Recorded(Mutex<BTreeSet<(&'static str, Event)>>);

impl Recorded {
    /// Those that were recorded since the last call.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock()).into_iter().map(|(_, event)| event).collect()
    }
}

impl EventSink for Recorded {
    fn record(&self, component: &'static str, event: Event) {
        self.0.lock().insert((component, event));
    }
}

/// Everything that would happen.
#[derive(Debug)]
pub struct Plan {
    at: Timestamp,
    steps: Vec<Step>,
    effects: Vec<(&'static str, Wanted)>,
    events: Vec<Event>,
    problems: Vec<Problem>,
    unrecorded: Vec<(ResourceKind, ObjectKey)>,
}

/// One write that would be made.
#[derive(Debug)]
struct Step {
    controller: &'static str,
    write: Write,
    changes: Vec<Change>,
}

/// Something about which a controller cannot decide, or what it decides cannot be written.
#[derive(Debug)]
struct Problem {
    controller: &'static str,
    key: String,
    message: String,
}

// === impl Plan ===

impl Plan {
    /// Fills the caches of a core from a source, and lets every controller decide about everything that the caches lead it to.
    pub async fn of(core: &Core, recorded: &Recorded, source: Source) -> Result<Self> {
        let stored = source::fill(core, source).await?;
        let (at, events) = (core.clock().now(), Vec::new());
        let mut plan =
            Self { at, steps: Vec::new(), effects: Vec::new(), events, problems: Vec::new(), unrecorded: Vec::new() };
        plan.decide(core, stored);
        plan.events = recorded.take();
        Ok(plan)
    }

    /// The exit code: 0 when nothing would be done, 1 when something would, [`FAILED`] when a controller cannot decide.
    pub fn code(&self) -> u8 {
        match (&self.problems[..], self.steps.is_empty() && self.effects.is_empty()) {
            ([], true) => 0,
            ([], false) => 1,
            _ => FAILED,
        }
    }

    fn decide(&mut self, core: &Core, mut stored: Stored) {
        for worker in core.workers() {
            let controller = worker.spec().name;
            let mut decided = BTreeMap::new();
            while let Some(attempt) = worker.take() {
                match worker.decide(&attempt) {
                    Ok(mut outcome) => {
                        worker.record(std::mem::take(&mut outcome.events));
                        decided.insert(attempt.key().clone(), outcome);
                    }
                    Err(error) => self.problem(controller, attempt.key(), &error),
                }
                worker.settle(attempt, Ok(None));
            }
            for (key, Outcome { plan, effects, .. }) in decided {
                for write in plan {
                    self.step(core.field_manager(), controller, write, &mut stored)
                        .unwrap_or_else(|error| self.problem(controller, &key, &error));
                }
                self.effects.extend(effects.into_iter().map(|effect| (controller, effect)));
            }
        }
    }

    fn step(&mut self, manager: &str, controller: &'static str, write: Write, stored: &mut Stored) -> Result<()> {
        let before = stored.get(write.kind, &write.key);
        let is_recorded = before.is_null() || before["metadata"]["managedFields"].is_array();
        if matches!(write.action, Action::Apply { .. }) && !is_recorded {
            self.unrecorded.push((write.kind, write.key.clone()));
        }
        let after = planned(&write.action, &before, manager)
            .map_err(|error| anyhow!("{} {} cannot be applied: {error}", write.kind.kind, write.key))?;
        let mut changes = changes(&before, &after);
        if (write.kind.group, write.kind.kind) == ("", "Secret") {
            changes.iter_mut().for_each(hide);
        }
        stored.put(write.kind, &write.key, after);
        self.steps.push(Step { controller, write, changes });
        Ok(())
    }

    fn problem(&mut self, controller: &'static str, key: &ObjectKey, error: &impl ToString) {
        self.problems.push(Problem { controller, key: key.to_string(), message: error.to_string() });
    }
}
