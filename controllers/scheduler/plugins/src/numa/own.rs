//! The plugin itself, as the topology manager asks it beside others.

use std::cell::RefCell;

use koord_scheduler_framework::Reason;
use koord_scheduling::{NumaMask, ResourceId};

use super::{
    allocate::{Shortage, Stock},
    hints::Sets,
    manager::{Hints, Provider},
    policy::Policy,
    score::Scorer,
    state::NumaState,
};

/// One pod and one node.
pub(super) struct Own<'a> {
    stock: &'a Stock<'a>,
    state: &'a NumaState,
    /// What the pod requests, in the order of names.
    resources: &'a [ResourceId],
    policy: Policy,
    scorer: Scorer<'a>,
    /// The sets of NUMA nodes that were found to have enough.
    found: RefCell<Sets>,
}

impl<'a> Own<'a> {
    pub(super) fn new(
        stock: &'a Stock<'a>,
        state: &'a NumaState,
        resources: &'a [ResourceId],
        (policy, scorer): (Policy, Scorer<'a>),
    ) -> Self {
        Self { stock, state, resources, policy, scorer, found: RefCell::default() }
    }
}

impl Provider for Own<'_> {
    fn hints<'a>(&'a self, nodes_max: u32, into: &mut Hints<'a>) -> Result<(), Vec<Reason>> {
        let sets = self.stock.sets(nodes_max, &self.scorer);
        for id in self.resources {
            if let Some(hints) = self.stock.hints(&sets, *id, self.policy) {
                into.add(self.state.names().name(*id), hints);
            }
        }
        self.found.replace(sets);
        Ok(())
    }

    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        let is_found = |affinity| self.found.borrow().iter().any(|(found, _)| *found == affinity);
        if affinity.is_some_and(is_found) || self.stock.givers(affinity).is_some() {
            return Ok(());
        }
        self.stock.allocate(affinity).map(drop).map_err(|shortage| reasons(&shortage, self.state))
    }
}

/// The reasons of a shortage, with the names of resources.
pub(super) fn reasons(shortage: &Shortage, state: &NumaState) -> Vec<Reason> {
    shortage.reasons(|id| state.names().name(id))
}
