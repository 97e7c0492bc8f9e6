//! A node as the owner of a reservation sees it, and as others see it (`spec/scheduler.md` 3B.9).

use std::borrow::Cow;

use koord_scheduler_allocation::{
    Choice, ReservationRequirement, ReservedResources, choices,
    numa::{
        ledger::NumaAllocation,
        node::{NumaLimits, NumaNode},
        state::{NumaHold, NumaState},
    },
    reserved,
};
use koord_scheduler_framework::AllocationSource;
use koord_scheduling::ResourceVector;

use super::pre_filter_state::NodeInCluster;

/// A way to take something from a node: the node as it is then, and what the pod keeps to.
pub(super) struct NodeView<'a> {
    pub(super) node: Cow<'a, NumaNode>,
    pub(super) limits: NumaLimits,
}

/// What a reservation has, and what its owners do not use of it.
struct Held<'l, 'c> {
    reserved: &'l ReservedResources<'c>,
    rest: NumaAllocation,
    /// What the owners use of it, which counts twice while the reservation is not hidden.
    used: NumaAllocation,
}

/// The ways in which a pod may take something from a node; the first that has enough counts.
pub(super) fn node_views<'a>(
    place: NodeInCluster<'a>,
    requirement: &ReservationRequirement,
    source: &AllocationSource,
) -> Vec<NodeView<'a>> {
    let NodeInCluster { cluster, row, state, node } = place;
    let reserved = reserved(cluster, row);
    let held: Vec<Held<'_, '_>> = reserved.iter().filter_map(|reserved| Held::of(reserved, state)).collect();
    choices(&reserved, requirement, source).into_iter().map(|choice| view(node, &held, &choice, state)).collect()
}

fn view<'a>(node: &'a NumaNode, held: &[Held<'_, '_>], choice: &Choice<'_, '_>, state: &NumaState) -> NodeView<'a> {
    let is_chosen =
        |held: &&Held<'_, '_>| choice.reserved.iter().any(|reserved| std::ptr::eq(*reserved, held.reserved));
    let mut seen = Cow::Borrowed(node);
    for other in held.iter().filter(|held| !is_chosen(held)) {
        match other.reserved.is_restored {
            true => seen.to_mut().add(&other.rest),
            false if other.used != NumaAllocation { exclusive: other.used.exclusive, ..NumaAllocation::default() } => {
                seen.to_mut().remove(&other.used);
            }
            false => {}
        }
    }
    let mut limits = NumaLimits::default();
    for held in held.iter().filter(is_chosen) {
        limits.preferred = limits.preferred.union(&held.rest.cpus);
        if held.reserved.info.is_none() {
            limits.required = limits.required.union(&held.rest.cpus);
        } else if choice.is_only {
            held.narrow(node, state, &mut limits);
        }
    }
    NodeView { node: seen, limits }
}

impl<'l, 'c> Held<'l, 'c> {
    fn of(reserved: &'l ReservedResources<'c>, state: &NumaState) -> Option<Self> {
        let allocation = |hold: &NumaHold| state.allocation_of(hold);
        let all = reserved.holder.holds.get().map(allocation)?;
        let owners: Vec<NumaAllocation> =
            reserved.owners.iter().filter_map(|owner| owner.holds.get()).map(allocation).collect();
        let used = all.shared_with(&owners);
        Some(Self { reserved, rest: all.without(&used), used })
    }

    /// Keeps a pod to what the reservation has left.
    fn narrow(&self, node: &NumaNode, state: &NumaState, limits: &mut NumaLimits) {
        let had_cpus = !self.rest.cpus.is_empty() || !self.used.cpus.is_empty();
        if had_cpus && self.reserved.counts("cpu") {
            limits.cpus = Some(limits.cpus.take().unwrap_or_default().union(&self.rest.cpus));
        }
        if self.rest.shares.is_empty() && self.used.shares.is_empty() {
            return;
        }
        let mut uncounted = ResourceVector::default();
        for id in node.known.iter().filter(|id| !self.reserved.counts(state.names().name(**id))) {
            uncounted.set(*id, i64::MAX);
        }
        let most = limits.shares.get_or_insert_default();
        for zone in &node.zones {
            let rest = self.rest.shares.iter().filter(|(at, _)| *at == zone.number).map(|(_, share)| share);
            let most = most.entry(zone.number).or_default();
            rest.chain([&uncounted]).for_each(|share| most.add(share));
        }
    }
}
