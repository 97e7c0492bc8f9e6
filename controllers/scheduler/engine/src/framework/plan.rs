//! Where a pod is to go, decided before nodes are asked.

use super::{Refusal, Rejection};
use crate::columns::Row;

/// Where a pod is to go, beside what filters say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// To any node that takes it.
    #[default]
    Any,
    /// To the first of these nodes that takes it; to any where none does.
    Prefer(Vec<Row>),
    /// To this node or nowhere: pods that go with it depend on that.
    Only(Row),
    /// Nowhere.
    Nowhere(Rejection),
}

impl Refusal {
    /// The node is not the one that the plugin has planned for the pod.
    pub const UNPLANNED: Self = Self::unresolvable(u16::MAX);
    /// Nobody was asked about the node, because it did not take the pod then.
    pub const UNASKED: Self = Self::unresolvable(u16::MAX - 1);
}
