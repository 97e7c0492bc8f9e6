//! PreferNodes: nodes that are tried before all others.

use super::Request;
use crate::{cluster::Cluster, columns::Row};

/// Names nodes that are tried first.
pub trait PreferNodes: Send + Sync + 'static {
    /// The first of these nodes that takes the pod is chosen; where none does, filters and scores choose. Of several plugins the first that
    /// names any counts. It is called in every attempt, after PreFilter.
    fn prefer_nodes(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Row>;
}
