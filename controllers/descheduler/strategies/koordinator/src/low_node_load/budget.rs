//! How much targets can take together, whichever of them does.

use koord_scheduling::{ResourceId, ResourceVector};

use super::{
    classify::Class,
    thresholds::Bounds,
    usage::{NodeUsage, Scope, known},
};

/// What is left of what targets can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    left: ResourceVector,
    /// The resources that count: those with a threshold, and those that a target has.
    counted: Vec<ResourceId>,
    /// Whether a resource with a threshold is unknown to the whole cluster, so that no target has any of it.
    is_void: bool,
}

impl Budget {
    /// What the targets of a scope can take before any becomes overutilized. `shared` is what the pass over nodes has left to production pods.
    pub(super) fn of(
        scope: Scope,
        nodes: &[(NodeUsage<'_>, Class)],
        bounds: &[Bounds<'_>],
        shared: Option<&Self>,
    ) -> Self {
        let targets = || nodes.iter().filter(|(_, class)| class.is_target(scope));
        let counts = |(bounds, id): &(&Bounds<'_>, ResourceId)| {
            scope.percent(bounds).is_set || targets().any(|(node, _)| node.capacity.get(*id) > 0)
        };
        let counted = known(bounds).filter(counts).map(|(_, id)| id).collect();
        let is_void = bounds.iter().any(|bounds| bounds.id.is_none() && scope.percent(bounds).is_set);
        let mut left = sum(scope, targets().map(|(node, _)| node));
        if let Some(shared) = shared {
            let of_both = || targets().filter(|(_, class)| *class == Class::BothLow).map(|(node, _)| node);
            let mut both = sum(scope, of_both());
            left.subtract(&both);
            both.minimise(&sum(Scope::Node, of_both()));
            both.minimise(&shared.left);
            left.add(&both);
        }
        Self { left, counted, is_void }
    }

    /// Whether nothing is left of a resource.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_void || self.counted.iter().any(|id| self.left.get(*id) <= 0)
    }

    pub(super) fn spend(&mut self, usage: &ResourceVector) {
        self.left.subtract(usage);
    }
}

/// What nodes can take together.
fn sum<'n>(scope: Scope, nodes: impl Iterator<Item = &'n NodeUsage<'n>>) -> ResourceVector {
    let mut sum = ResourceVector::default();
    for node in nodes {
        let usage = node.usage(scope);
        sum.add(&usage.high);
        sum.subtract(&usage.used);
    }
    sum
}
