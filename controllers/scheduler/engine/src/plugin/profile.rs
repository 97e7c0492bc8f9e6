//! Plugins that work together.

use std::sync::Arc;

use super::Plugin;

/// The plugins by which the pods of one scheduler name are placed, in their order.
#[derive(Clone, Default)]
pub struct Profile {
    /// The name that pods give.
    pub scheduler: Arc<str>,
    /// All plugins.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Indexes of those that filter, in order.
    pub filters: Vec<u8>,
    /// Indexes of those that score, with their weights.
    pub scores: Vec<(u8, i64)>,
    /// Indexes of those that make room, in order.
    pub post_filters: Vec<u8>,
}
