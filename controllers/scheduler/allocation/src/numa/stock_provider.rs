//! What a node has for a pod, as the topology manager asks for it beside other plugins.

use std::cell::RefCell;

use super::{
    allocate::{Shortage, Stock},
    hints::Sets,
    policy::Policy,
    score::NumaScorer,
    state::NumaState,
    topology_manager::{Provider, TopologyHints},
};
use koord_scheduler_framework::Reason;
use koord_scheduling::{NumaMask, ResourceId};

/// The CPUs and NUMA nodes of a node, as hints for one pod.
pub struct StockProvider<'a> {
    stock: &'a Stock<'a>,
    state: &'a NumaState,
    /// What the pod requests, in the order of names.
    resources: &'a [ResourceId],
    policy: Policy,
    scorer: NumaScorer<'a>,
    /// The sets of NUMA nodes that were found to have enough.
    found: RefCell<Sets>,
}

impl<'a> StockProvider<'a> {
    pub fn new(
        stock: &'a Stock<'a>,
        state: &'a NumaState,
        resources: &'a [ResourceId],
        (policy, scorer): (Policy, NumaScorer<'a>),
    ) -> Self {
        Self { stock, state, resources, policy, scorer, found: RefCell::default() }
    }
}

impl Provider for StockProvider<'_> {
    fn hints<'a>(&'a self, nodes_max: u32, into: &mut TopologyHints<'a>) -> Result<(), Vec<Reason>> {
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
pub fn reasons(shortage: &Shortage, state: &NumaState) -> Vec<Reason> {
    shortage.reasons(|id| state.names().name(id))
}
