//! Hints of a pod about its nodes, for the plugins that look at nodes before filters do.

use crate::pod::Template;

/// Reads which nodes a pod is limited to.
pub trait SchedulingHintSource: Send + Sync + 'static {
    /// The names of the only nodes that the pod may be scheduled to; empty where it may be scheduled to all.
    fn hinted_nodes(&self, template: &Template) -> Vec<String>;
}
