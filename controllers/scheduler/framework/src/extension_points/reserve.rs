//! Reserve: what a pod is given on the node that was chosen.

use super::{Orders, Rejection, Request};
use crate::{
    cluster::{Cluster, Placed},
    columns::Row,
    hold::Holds,
};

/// Allocates what the pod needs of the chosen node.
pub trait Reserve: Send + Sync + 'static {
    /// Adds what the pod is given to `holds`, where earlier plugins' allocations already are.
    fn reserve(
        &self,
        _request: &Request<'_>,
        _cluster: &Cluster,
        _row: Row,
        _holds: &mut Holds,
    ) -> Result<(), Rejection> {
        Ok(())
    }

    /// A pod that was reserved is not to be bound after all, and has been taken off its node. The last plugin is called first.
    fn unreserve(&self, _placed: &Placed, _cluster: &mut Cluster, _orders: &mut Orders) {}
}
