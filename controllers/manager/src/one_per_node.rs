//! The life of an object that every node has exactly one of, under the node's name.

use std::sync::Arc;

use koord_runtime::{
    Wiring,
    cache::{Cache, Change, Entry},
    controller::Requests,
    error::ReconcileError,
    key::ObjectKey,
    metrics::Description,
    outcome::{Outcome, Owned},
    store::Store,
    write::Write,
};
use prometheus::IntCounterVec;
use serde_json::{Map, Value};

use crate::view::NodeView;

/// The caches and metrics of a controller of such objects.
pub(crate) struct OnePerNode<P: Owned> {
    pub(crate) nodes: Arc<Store<NodeView>>,
    pub(crate) objects: Arc<Store<P>>,
    pub(crate) specs: Tally,
    writes: Tally,
}

impl<P: Owned> OnePerNode<P> {
    /// Connects the caches. A node that changes triggers a reconcile; which changes of the objects do, is for the controller
    /// to say.
    pub(crate) fn wire(wiring: &mut Wiring<'_>, writes: Description, specs: Description) -> prometheus::Result<Self> {
        let (nodes, objects) = (wiring.reads(), wiring.reads());
        wiring.on(&nodes, node_changed);
        let (writes, specs) = (wiring.metrics().counter(writes)?, wiring.metrics().counter(specs)?);
        Ok(Self { nodes, objects, writes: Tally(writes), specs: Tally(specs) })
    }

    /// Every node is reconciled.
    pub(crate) fn enqueue_nodes(&self, requests: &mut Requests) {
        self.nodes.read().keys().for_each(|node| requests.enqueue(node));
    }

    /// Decides about one name; see [`keep`].
    pub(crate) fn reconcile(
        &self,
        key: &ObjectKey,
        spec: impl FnOnce(&Entry<NodeView>, Option<&P>) -> Result<Option<Value>, ReconcileError>,
    ) -> Result<Outcome, ReconcileError> {
        keep(key, &self.nodes.read(), &self.objects.read(), spec)
    }

    /// Counts a write.
    pub(crate) fn written(&self, write: &Write, result: Result<(), &ReconcileError>) {
        self.writes.count(result.is_ok(), &reason(write));
    }
}

/// A node came, went, or changed in a way that matters.
fn node_changed(change: &Change<NodeView>, requests: &mut Requests) {
    if change.matters(|old, new| new.triggers_reconcile(old)) {
        requests.enqueue(&change.key);
    }
}

/// Decides about one name: no node, no object; a node, and its object's spec is what `spec` says. `spec` may leave
/// an object as it is by giving none.
fn keep<P: Owned>(
    key: &ObjectKey,
    nodes: &Cache<NodeView>,
    objects: &Cache<P>,
    spec: impl FnOnce(&Entry<NodeView>, Option<&P>) -> Result<Option<Value>, ReconcileError>,
) -> Result<Outcome, ReconcileError> {
    let mut outcome = Outcome::settled();
    let Some(node) = nodes.get(key.as_str()) else {
        // A node that cannot be read is still there.
        if nodes.quarantined(key.as_str()).is_none() {
            outcome.absent(objects, key);
        }
        return Ok(outcome);
    };
    let object = objects.get(key.as_str()).map(|entry| &*entry.value);
    if let Some(spec) = spec(node, object)? {
        outcome.present(objects, key, Map::from_iter([("spec".to_owned(), spec)]))?;
    }
    Ok(outcome)
}

/// What a write is called in the original's metrics: `createNodeSLO`.
fn reason(write: &Write) -> String {
    let verb = if write.action.verb() == "patch" { "update" } else { write.action.verb() };
    format!("{verb}{}", write.kind.kind)
}

/// Counts successes and failures by reason, as the original does.
#[derive(Clone)]
pub(crate) struct Tally(pub(crate) IntCounterVec);

impl Tally {
    /// Shows this reason from the beginning, so that its rate is known when it first happens.
    pub(crate) fn expect(&self, reason: &str) {
        for status in ["succeeded", "failed"] {
            self.0.with_label_values(&[status, reason]);
        }
    }

    pub(crate) fn count(&self, succeeded: bool, reason: &str) {
        let status = if succeeded { "succeeded" } else { "failed" };
        self.0.with_label_values(&[status, reason]).inc();
    }
}
