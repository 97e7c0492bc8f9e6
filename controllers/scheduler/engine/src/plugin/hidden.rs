//! What is not there for one pod.

use std::sync::Arc;

use koord_core::uid::Uid;

use crate::columns::Row;

/// The pods that are not there for one pod while a node is looked for ([`Plugin::hides`](super::Plugin::hides)).
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// Pods that stand for objects, each with its row, in order. They are hidden when their row is asked.
    pub by_row: Arc<[(Row, Uid)]>,
    /// Other pods, which count in sums over all rows. They are hidden at once.
    pub at_once: Vec<Uid>,
}
