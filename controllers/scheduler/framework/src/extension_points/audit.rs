//! Audit: what is allocated more than once.

use std::collections::BTreeSet;

use koord_core::uid::Uid;

use crate::{
    cluster::{Cluster, Subject},
    columns::Row,
};

/// Looks for allocations that contradict each other. Nothing is corrected: the pods run with them.
pub trait Audit: Send + Sync + 'static {
    /// What of a node more pods hold than may hold it; without a row, what belongs to no single node.
    fn double_allocations(&self, cluster: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation>;
}

/// Something that is given to more than may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubleAllocation {
    /// Which kind of thing it is, in one word.
    pub what: &'static str,
    /// Which one it is, and who has it.
    pub details: String,
    /// The pods that have it.
    pub pods: BTreeSet<Uid>,
    /// The object that an event about it names; none for the node.
    pub subject: Option<Subject>,
}
