//! Filter: which nodes take a pod.

use std::collections::BTreeSet;

use super::{Operands, Reason, ReasonCode, Request};
use crate::{
    cluster::{Cluster, Placed},
    columns::Row,
    node::Node,
};

/// Filters nodes. It looks at the pod once, and prepares the filter of every node.
///
/// What is prepared for one pod is used for all pods of its class, unless [`SchedulingSignature`](super::SchedulingSignature) says that the pod itself
/// matters.
pub trait Filter: Send + Sync + 'static {
    /// The prepared filter of this pod.
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter;

    /// The reasons of a refusal, as events and conditions show them.
    fn reasons(&self, _refusal: &Refusal, _cluster: &Cluster) -> Vec<Reason> {
        Vec::new()
    }

    /// What is known of the refusal of one node beside its reasons: operands that these lack. It is called when the pod is refused, about one
    /// node of those that are refused alike.
    fn details(&self, _refusal: &Refusal, _request: &Request<'_>, _cluster: &Cluster, _row: Row) -> Operands {
        Operands::new()
    }

    /// Whether [`Filter::prepare_filter`] may name the only nodes that are filtered ([`PreparedFilter::NodeNames`]). Such a plugin is called for a pod that
    /// another plugin rejects in PreFilter too, for that no node is left over may come before that.
    fn names_nodes(&self) -> bool {
        false
    }

    /// The code of a node that is left out because the plugin has not named it.
    fn unnamed_node_code(&self) -> ReasonCode {
        ReasonCode::NodeNameMismatch
    }

    /// Whether a refusal is one of Reserve that is only known earlier, so that other nodes can be tried. Where no other node takes the pod, it
    /// is the whole message, and no pod is preempted.
    fn is_of_reserve(&self, _refusal: &Refusal) -> bool {
        false
    }
}

/// The result of [`Filter::prepare_filter`].
pub enum PreparedFilter {
    /// Every node will do.
    Skip,
    /// Each node is filtered.
    Nodes(Box<dyn NodeFilter>),
    /// The nodes of these names are filtered; all others are left out before any filter runs.
    NodeNames(BTreeSet<Box<str>>, Option<Box<dyn NodeFilter>>),
    /// No node will do.
    None(Refusal),
}

impl PreparedFilter {
    /// Each node is filtered by what is reported of it alone: the function sees neither pods nor other nodes, so its answer holds for
    /// all pods of the class until the node changes. Beside the node it may depend on the class, and on nothing else.
    pub fn of_node(filter: impl Fn(&Node) -> Result<(), Refusal> + Send + Sync + 'static) -> Self {
        Self::Nodes(Box::new(OfNode(filter)))
    }
}

/// The prepared filter of a plugin, for one pod or for all pods of a class.
pub trait NodeFilter: Send + Sync {
    /// Whether the pod may run there.
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal>;

    /// The same of many nodes: keeps those rows where the pod may run, and hands over why each of the others is refused, in their order.
    fn filter_rows(&self, cluster: &Cluster, rows: &mut Vec<Row>, refused: &mut dyn FnMut(Row, Refusal)) {
        rows.retain(|row| self.filter(cluster, *row).map_err(|refusal| refused(*row, refusal)).is_ok());
    }

    /// What [`NodeFilter::filter`] would say after so many pods of the class were placed there; `None` when only placing them shows it. A node
    /// that takes no more after some of them takes no more after all that follow, and nothing is refused in Reserve that is not here.
    fn filter_after(&self, _cluster: &Cluster, _row: Row, _alike: usize) -> Option<Result<(), Refusal>> {
        None
    }

    /// Whether the answer depends on the class and the node alone, not on other nodes and not on the time of the call.
    fn is_local(&self) -> bool {
        true
    }

    /// Whether this holds for as long as [`NodeFilter::refresh`] is called for every row that has changed. It is prepared again
    /// for every pod otherwise.
    fn follows_rows(&self) -> bool {
        self.is_local()
    }

    /// Whether what this answered for the last pod of the class holds for this pod on rows that have not changed, although it is
    /// prepared again for every pod. Rows on which something else is hidden count as changed.
    fn inherits(&self) -> bool {
        false
    }

    /// A row has changed after this was prepared: its node, or the pods on it. Only what is summed over rows is affected.
    fn refresh(&mut self, _cluster: &Cluster, _row: Row) {}

    /// A pod was placed in this cluster, or removed from it, after this was prepared.
    fn changed(&mut self, cluster: &Cluster, placed: &Placed, _is_added: bool) {
        self.refresh(cluster, placed.row);
    }
}

/// Why a plugin refuses a node, in as few bytes as the answer for thousands of nodes allows. The plugin makes words of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Which of the plugin's reasons.
    pub reason: u16,
    /// Whether the removal of pods from the node may help (`Unschedulable`, not `UnschedulableAndUnresolvable`).
    pub resolvable: bool,
    /// What belongs to the reason: a number, or a set of bits.
    pub operand: u64,
}

impl Refusal {
    /// A reason that the removal of pods may resolve.
    pub const fn resolvable(reason: u16, operand: u64) -> Self {
        Self { reason, resolvable: true, operand }
    }

    /// A reason that lies in the node.
    pub const fn unresolvable(reason: u16) -> Self {
        Self { reason, resolvable: false, operand: 0 }
    }

    /// The answer about a node that is refused for this reason, or not.
    pub const fn when(self, is_refused: bool) -> Result<(), Self> {
        if is_refused { Err(self) } else { Ok(()) }
    }
}

/// A function of a node. A row without a node is not refused.
struct OfNode<F>(F);

impl<F: Fn(&Node) -> Result<(), Refusal> + Send + Sync> NodeFilter for OfNode<F> {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        cluster.node(row).map_or(Ok(()), |node| (self.0)(node))
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        Some(self.filter(cluster, row))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_filter_is_called_for_its_node() {
        let mut cluster = Cluster::default();
        for (name, unschedulable) in [("open", false), ("cordoned", true)] {
            cluster.set_node(Arc::new(Node { name: name.into(), unschedulable, ..Node::default() }));
        }
        let [open, cordoned] = ["open", "cordoned"].map(|name| cluster.row(name).unwrap());
        let refusal = Refusal::resolvable(3, 4);
        let PreparedFilter::Nodes(filter) = PreparedFilter::of_node(move |node| refusal.when(node.unschedulable))
        else {
            panic!("nodes are asked")
        };
        for (row, expected) in [(open, Ok(())), (cordoned, Err(refusal))] {
            assert_eq!(filter.filter(&cluster, row), expected);
            assert_eq!(filter.filter_after(&cluster, row, 7), Some(expected), "pods on the node do not matter");
        }
        assert!(filter.is_local());
        cluster.remove_node("cordoned");
        assert_eq!(filter.filter(&cluster, cordoned), Ok(()));
    }
}
