//! How one plugin filters nodes.

use crate::{NodeFilter, Verdict, cluster::Cluster, columns::Row};

/// How one plugin filters nodes.
pub(super) struct Filtering {
    pub(super) plugin: u8,
    pub(super) filter: Box<dyn NodeFilter>,
    /// Whether the answer depends on the class and the node alone. It is asked of every row, and does not change.
    pub(super) is_local: bool,
}

impl Filtering {
    pub(super) fn new(plugin: u8, filter: Box<dyn NodeFilter>) -> Self {
        let is_local = filter.is_local();
        Self { plugin, filter, is_local }
    }

    /// Why the plugin refuses a node.
    pub(super) fn verdict(&self, cluster: &Cluster, row: Row) -> Option<Verdict> {
        let refusal = self.filter.filter(cluster, row).err()?;
        Some(Verdict { plugin: self.plugin, refusal })
    }

    /// A row has changed, which matters to what is summed over rows.
    pub(super) fn refresh(&mut self, cluster: &Cluster, row: Row) {
        if !self.is_local {
            self.filter.refresh(cluster, row);
        }
    }
}

/// The first refusal of a node by these filters.
pub(super) fn first_refusal<'f>(
    mut filters: impl Iterator<Item = &'f Filtering>,
    cluster: &Cluster,
    row: Row,
) -> Option<Verdict> {
    filters.find_map(|filter| filter.verdict(cluster, row))
}
