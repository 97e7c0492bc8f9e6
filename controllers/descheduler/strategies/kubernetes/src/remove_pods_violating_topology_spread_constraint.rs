//! Evicts pods of topology domains that have too many of them for a spread constraint.

mod constraint;
mod destination;
mod index;
mod rebalance;
mod sizes;

use std::sync::Arc;

use koord_config::descheduler::RemovePodsViolatingTopologySpreadConstraintArgs;
use koord_descheduler_framework::{
    Balance, ByClass, Pass, Plugin, PodSelection, ReasonCode, Refusal, Registration, StrategyError,
};

use self::{constraint::Constraints, index::Index, rebalance::rebalance};
use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemovePodsViolatingTopologySpreadConstraint {
    args: RemovePodsViolatingTopologySpreadConstraintArgs,
    selection: PodSelection,
}

impl RemovePodsViolatingTopologySpreadConstraint {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: RemovePodsViolatingTopologySpreadConstraintArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        Ok(Self { args, selection })
    }

    /// The pods that count: active ones that the arguments choose, be it that they may be evicted or not. The original does not count those that may not, and
    /// so sees other domains than the scheduler.
    fn index<'a>(&self, pass: &mut Pass<'a>) -> Index<'a> {
        let cluster = pass.cluster();
        let mut index = Index::new(cluster, pass.nodes());
        let selected = ByClass::default();
        for (at, node) in pass.nodes().iter().enumerate() {
            for (id, pod) in cluster.active_pods_on(*node) {
                if let Err(code) = selected.of(cluster, id, || self.selection.check(pod)) {
                    pass.leave(id, code);
                } else if cluster.is_deleting(id) {
                    pass.leave(id, ReasonCode::Terminating);
                } else if pass.is_evicted(id) {
                    pass.leave(id, ReasonCode::EvictedAlready);
                } else {
                    index.pods[cluster.equivalence_class(id)].push((id, at));
                }
            }
        }
        index
    }
}

impl Plugin for RemovePodsViolatingTopologySpreadConstraint {
    fn name(&self) -> &'static str {
        "RemovePodsViolatingTopologySpreadConstraint"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for RemovePodsViolatingTopologySpreadConstraint {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if !pass.is_search_of_use() {
            return Ok(());
        }
        let mut index = self.index(pass);
        let mut constraints = Constraints::new(&mut index, &self.args.constraints);
        if pass.wants_verdicts() {
            for (class, _) in constraints.counting.iter().enumerate().filter(|(_, counting)| counting.is_empty()) {
                for (id, _) in index.pods_of(class) {
                    pass.leave(*id, ReasonCode::NoSpreadConstraint);
                }
            }
        }
        for number in 0..constraints.all.len() {
            if !pass.is_search_of_use() {
                break;
            }
            let constraint = &constraints.all[number];
            if constraint.skew() > constraint.spec.skew_max {
                rebalance(pass, &index, &mut constraints, number, self.args.topology_balance_node_fit);
            } else if pass.wants_verdicts() {
                let refusal = Refusal::new(ReasonCode::SpreadConstraintHolds)
                    .with("topologyKey", &constraint.spec.topology_key)
                    .with("skew", constraint.skew());
                for (id, ..) in constraint.pods(&index) {
                    pass.leave(id, refusal.clone());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
