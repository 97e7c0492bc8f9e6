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
    /// Indexes of those that look at the pod as a whole, in order.
    pub admits: Vec<u8>,
    /// Indexes of those that filter, in order.
    pub filters: Vec<u8>,
    /// Indexes of those that score, with their weights.
    pub scores: Vec<(u8, i64)>,
    /// Indexes of those that make room, in order.
    pub post_filters: Vec<u8>,
    /// Indexes of those that give the pod something on the chosen node, in order.
    pub reserves: Vec<u8>,
    /// Indexes of those that may let it wait there, in order.
    pub permits: Vec<u8>,
    /// Indexes of those that write something before it is bound, in order.
    pub pre_binds: Vec<u8>,
}

impl Profile {
    /// A profile of which all plugins are asked, in their order, except for filters, scores and making room.
    pub fn of(scheduler: &str, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let all: Vec<u8> = (0..).zip(&plugins).map(|(index, _)| index).collect();
        let (admits, reserves, permits) = (all.clone(), all.clone(), all.clone());
        Self { scheduler: scheduler.into(), plugins, admits, reserves, permits, pre_binds: all, ..Self::default() }
    }

    /// The plugins of these indexes, with the indexes.
    pub fn among<'p>(&'p self, indexes: &'p [u8]) -> impl DoubleEndedIterator<Item = (u8, &'p Arc<dyn Plugin>)> {
        indexes.iter().filter_map(|index| Some((*index, self.plugins.get(usize::from(*index))?)))
    }
}
