//! Which nodes are to be relieved, and which may take pods.

use super::{
    thresholds::Bounds,
    usage::{NodeUsage, Scope},
};

/// What a node is for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It uses too much.
    High,
    /// Only its production pods use too much.
    ProdHigh,
    /// It uses little.
    Low,
    /// Its production pods use little.
    ProdLow,
    /// Both.
    BothLow,
    /// Nothing of that.
    Neutral,
}

impl Class {
    /// The class of a node. A cordoned node is never low, and may well be high. Without thresholds of production pods those decide nothing.
    pub(super) fn of(node: &NodeUsage<'_>, bounds: &[Bounds<'_>], has_prod: bool) -> Self {
        let is_schedulable = !node.node.is_unschedulable;
        let is_prod_over = has_prod && node.is_over(Scope::Prod, bounds);
        let is_prod_under = has_prod && is_schedulable && node.is_under(Scope::Prod, bounds);
        let is_low = is_schedulable && node.is_under(Scope::Node, bounds);
        match (is_low, node.is_over(Scope::Node, bounds), is_prod_over, is_prod_under) {
            (false, true, ..) => Self::High,
            (_, _, true, _) => Self::ProdHigh,
            (true, _, _, true) => Self::BothLow,
            (true, ..) => Self::Low,
            (false, _, _, true) => Self::ProdLow,
            (false, ..) => Self::Neutral,
        }
    }

    /// Whether it may take pods in a scope.
    pub(super) fn is_target(self, scope: Scope) -> bool {
        match scope {
            Scope::Node => matches!(self, Self::Low | Self::BothLow),
            Scope::Prod => matches!(self, Self::ProdLow | Self::BothLow),
        }
    }

    /// Whether it may take any pods.
    pub(super) fn is_low(self) -> bool {
        self.is_target(Scope::Node) || self.is_target(Scope::Prod)
    }

    /// Whether it is to be relieved in a scope.
    pub(super) fn is_source(self, scope: Scope) -> bool {
        match scope {
            Scope::Node => self == Self::High,
            Scope::Prod => self == Self::ProdHigh,
        }
    }
}
