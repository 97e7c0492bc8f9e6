//! Which nodes have a label.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduler_framework::labels::Labels;

use super::NodeId;

/// Nodes by the keys and values of their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct NodesByLabel(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Vec<NodeId>>>);

impl NodesByLabel {
    /// The nodes with a label, in no particular order.
    pub(super) fn of(&self, key: &str, value: &str) -> &[NodeId] {
        self.0.get(key).and_then(|values| values.get(value)).map_or(&[], Vec::as_slice)
    }

    /// The labels of a node changed.
    pub(super) fn change(&mut self, node: NodeId, was: &Labels, is: &Labels) {
        for (key, value) in was.iter().filter(|(key, value)| is.get(key) != Some(value)) {
            self.remove(node, key, value);
        }
        for (key, value) in is.iter().filter(|(key, value)| was.get(key) != Some(value)) {
            if !self.0.contains_key(key) {
                self.0.insert(key.into(), BTreeMap::new());
            }
            let Some(values) = self.0.get_mut(key) else { continue };
            match values.get_mut(value) {
                Some(nodes) => nodes.push(node),
                None => _ = values.insert(value.into(), vec![node]),
            }
        }
    }

    fn remove(&mut self, node: NodeId, key: &str, value: &str) {
        let Some(values) = self.0.get_mut(key) else { return };
        let Some(nodes) = values.get_mut(value) else { return };
        nodes.retain(|other| *other != node);
        if nodes.is_empty() {
            values.remove(value);
        }
        if values.is_empty() {
            self.0.remove(key);
        }
    }
}
