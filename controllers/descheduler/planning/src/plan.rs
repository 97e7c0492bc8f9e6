//! A pass with what becomes of it.

use koord_descheduler_framework::{Descheduler, History, Input, Plan};
use koord_scheduler_engine::Engine;

use crate::{again::EvictedAgain, judgement::Judgement};

/// How often a pass is computed without the evictions that the one before has shown to be in vain.
const ROUNDS_MAX: usize = 3;

/// What it takes to foresee what evictions lead to.
#[derive(Clone, Copy)]
pub struct Foresight<'a> {
    /// The scheduler's engine, which knows the same cluster; without one only budgets and the history are looked at. It stays as it is.
    pub scheduler: Option<&'a Engine>,
    pub history: &'a History,
}

/// One pass, with what becomes of each eviction. Pods whose successors would be evicted again are looked for before a step is carried out; with results of
/// steps in the input, those that are known already count.
pub fn plan(descheduler: &Descheduler, input: &Input<'_>, foresight: Foresight<'_>, again: &mut EvictedAgain) -> Plan {
    let mut plan = one(descheduler, input, foresight, again);
    if input.results.is_empty() {
        for _ in 0..ROUNDS_MAX {
            if !again.look(descheduler, input, &plan) {
                break;
            }
            plan = one(descheduler, input, foresight, again);
        }
    }
    plan
}

fn one(descheduler: &Descheduler, input: &Input<'_>, foresight: Foresight<'_>, again: &EvictedAgain) -> Plan {
    descheduler.foreseen_pass(input, Box::new(Judgement::new(descheduler, input, foresight, again)))
}

#[cfg(test)]
mod tests;
