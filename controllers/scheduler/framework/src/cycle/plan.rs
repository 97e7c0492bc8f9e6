//! Where a pod is to go, decided before nodes are filtered.

use super::Profile;
use crate::{Rejection, Request, cluster::Cluster, columns::Row};

/// Where a pod is to go, by plugins that choose or prefer nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// To the best of the nodes that take it.
    Any,
    /// To the first of these nodes that takes it; where none does, as with [`Plan::Any`].
    Prefer(Vec<Row>),
    /// To this node or nowhere.
    Only(Row),
    Nowhere(Rejection),
}

impl Profile {
    /// Where the pod is to go, and the index of the plugin that says so: the first that finds its one node, or else the first that prefers nodes.
    pub(super) fn plan(&self, request: &Request<'_>, cluster: &mut Cluster) -> (u8, Plan) {
        let mut preferred = None;
        for (index, plugin) in (0..).zip(&self.plugins) {
            let found = plugin.find_one_node.as_ref().and_then(|point| point.find_one_node(request, self, cluster));
            if let Some(found) = found {
                return (index, found.map_or_else(Plan::Nowhere, Plan::Only));
            }
            if preferred.is_none()
                && let Some(point) = &plugin.prefer_nodes
            {
                let rows = point.prefer_nodes(request, cluster);
                preferred = (!rows.is_empty()).then_some((index, Plan::Prefer(rows)));
            }
        }
        preferred.unwrap_or((0, Plan::Any))
    }
}
