//! The loads of nodes as the arguments of each profile count them.

use std::sync::Arc;

use jiff::Timestamp;
use koord_scheduler_framework::{
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    object::ObjectChange,
};
use koord_types::node_metric;

use super::{LoadAwareSettings, Loads};

/// The loads of nodes, once for all profiles with the same arguments.
#[derive(Clone, Debug)]
pub struct LoadsBySettings(Vec<Loads>);

impl LoadsBySettings {
    /// Of no nodes, with the arguments of one profile.
    pub fn new(settings: Arc<LoadAwareSettings>) -> Self {
        Self(vec![Loads::new(settings)])
    }

    /// Which loads are those of these arguments.
    pub fn index(&self, settings: &Arc<LoadAwareSettings>) -> Option<usize> {
        let is_same = |loads: &Loads| Arc::ptr_eq(loads.settings(), settings) || loads.settings() == settings;
        self.0.iter().position(is_same)
    }

    /// The loads of this index.
    pub fn at(&self, index: usize) -> Option<&Loads> {
        self.0.get(index)
    }

    #[cfg(test)]
    pub(super) fn first_mut(&mut self) -> &mut Loads {
        &mut self.0[0]
    }
}

impl State for LoadsBySettings {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn join(&mut self, other: Box<dyn State>) {
        let other: Box<dyn std::any::Any> = other;
        let others = other.downcast::<Self>().map(|other| other.0).unwrap_or_default();
        let new = others.into_iter().filter(|loads| self.index(loads.settings()).is_none()).collect::<Vec<_>>();
        self.0.extend(new);
    }

    fn placed(&mut self, cluster: &Cluster, placed: &Placed) {
        self.0.iter_mut().for_each(|loads| loads.placed(cluster, placed));
    }

    fn removed(&mut self, cluster: &Cluster, placed: &Placed) {
        self.0.iter_mut().for_each(|loads| loads.removed(cluster, placed));
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        self.0.iter_mut().for_each(|loads| loads.node(cluster, row));
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        let Some(row) = is_metric(change).and_then(|name| cluster.row(name)) else { return Vec::new() };
        self.0.iter_mut().for_each(|loads| loads.report(cluster, row));
        vec![row]
    }

    fn tick(&mut self, _: &Cluster, now: Timestamp) -> Vec<Row> {
        self.0.iter_mut().flat_map(|loads| loads.tick(now)).collect()
    }

    fn set_back(&mut self, cluster: &Cluster) -> Vec<Row> {
        self.0.iter_mut().flat_map(|loads| loads.set_back(cluster)).collect()
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        self.0.iter_mut().flat_map(|loads| loads.audit_row(cluster, row)).collect()
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(Loads::wake_at).min()
    }
}

/// The node that a change of an object is about, if it is one of a NodeMetric.
pub(super) fn is_metric(change: &ObjectChange) -> Option<&str> {
    change.of::<node_metric::NodeMetric>()?;
    change.key().map(koord_core::key::ObjectKey::name)
}
