//! FindOneNode: the only node for a pod, chosen by a plugin.

use super::{Profile, Reason, Refusal, Rejection, Request};
use crate::{cluster::Cluster, columns::Row};

/// Chooses the node of a pod before nodes are filtered, such as for pods that are placed together.
pub trait FindOneNode: Send + Sync + 'static {
    /// The only node that the pod may go to, or why it may go nowhere. `None` leaves it to filters and scores. It is called in every attempt,
    /// after PreFilter.
    fn find_one_node(
        &self,
        request: &Request<'_>,
        profile: &Profile,
        cluster: &mut Cluster,
    ) -> Option<Result<Row, Rejection>>;

    /// Why the pod may not go to any other node, as events and conditions show it.
    fn reasons(&self) -> Vec<Reason>;
}

impl Refusal {
    /// The node is not the one that the plugin chose for the pod.
    pub const UNPLANNED: Self = Self::unresolvable(u16::MAX);
    /// The node was not part of the extender call, because filters refused it then.
    pub const NOT_REQUESTED: Self = Self::unresolvable(u16::MAX - 1);
}
