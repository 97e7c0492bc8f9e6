//! Who foresees what evictions lead to.

use futures::future::BoxFuture;
use koord_descheduler_framework::{Descheduler, History, Input, Plan};

/// Follows the same cluster as the descheduler, and computes passes whose evictions are followed through.
pub trait Planner: Send {
    /// Waits for changes of the cluster, and takes them in.
    fn follow(&mut self) -> BoxFuture<'_, ()>;

    /// Takes in all changes that have come.
    fn catch_up(&mut self);

    /// Why nothing can be foreseen; none where it can.
    fn obstacle(&self) -> Option<String>;

    /// One pass. With results of steps it is the pass that was planned last, under way.
    fn plan(&mut self, descheduler: &Descheduler, input: &Input<'_>, history: &History) -> Plan;
}
