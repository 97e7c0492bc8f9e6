//! What a plugin knows about its own decisions, for people.

use std::time::Duration;

use super::{Reason, Request};
use crate::{cluster::Cluster, columns::Row};

/// Explains decisions and the data behind them.
pub trait Diagnostics: Send + Sync + 'static {
    /// What is worth knowing about a pod although nothing refuses it for that. Asked by `koordctl why` and its like.
    fn remarks(&self, _request: &Request<'_>, _cluster: &Cluster) -> Vec<Reason> {
        Vec::new()
    }

    /// How old the measurements of a node are that the plugin decides by. `None` where there are none, or their time is unknown.
    fn input_age(&self, _cluster: &Cluster, _row: Row) -> Option<Duration> {
        None
    }

    /// Whether the measurements of a node are too old to decide by.
    fn is_input_stale(&self, _cluster: &Cluster, _row: Row) -> bool {
        false
    }
}
