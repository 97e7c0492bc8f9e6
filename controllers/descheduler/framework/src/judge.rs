//! Who foresees what evictions lead to.

use crate::{cluster::Cluster, outlook::Outlook, step::Eviction};

/// Foresees what evictions lead to, one after the other: each is assumed to happen unless it is taken back.
pub trait Judge {
    /// What an eviction leads to, after all before it.
    fn outlook(&mut self, cluster: &Cluster, eviction: &Eviction) -> Outlook;

    /// The last eviction that was asked about does not happen.
    fn take_back(&mut self);
}
