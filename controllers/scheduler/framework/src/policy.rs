//! How a scheduler treats pods of other schedulers, the pod in which it runs, and nominated pods.

use koord_core::key::ObjectKey;

/// What may be done for and to pods beside the one that is placed. The default is the safe one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether pods of other schedulers may be evicted for pods of this one.
    pub evicts_foreign: bool,
    /// Whether nominations by another scheduler count for pods of a higher priority.
    pub keeps_foreign_nominations: bool,
    /// Whether nodes are filtered without the pods that are nominated to them.
    pub ignores_nominated: bool,
    /// The pod in which this scheduler runs, which is never evicted.
    pub scheduler_pod: Option<ObjectKey>,
}
