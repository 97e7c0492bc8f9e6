//! The life of an object that every node has exactly one of, under the node's name.

use koord_runtime::{
    cache::{Cache, Change, Entry},
    error::ReconcileError,
    key::ObjectKey,
    metrics::{Description, Metrics},
    outcome::{Outcome, Owned},
    write::Write,
};
use prometheus::IntCounterVec;
use serde_json::{Map, Value};

use crate::view::NodeView;

/// What a controller of such objects counts.
pub(crate) struct Counts {
    pub(crate) specs: Tally,
    writes: Tally,
}

impl Counts {
    pub(crate) fn new(metrics: &Metrics, writes: Description, specs: Description) -> prometheus::Result<Self> {
        Ok(Self { specs: Tally(metrics.counter(specs)?), writes: Tally(metrics.counter(writes)?) })
    }

    /// Counts a write.
    pub(crate) fn written(&self, write: &Write, result: Result<(), &ReconcileError>) {
        self.writes.count(result.is_ok(), &reason(write));
    }
}

/// Whether a node came, went, or changed in a way that matters.
pub(crate) fn matters(change: &Change<NodeView>) -> bool {
    change.matters(|old, new| new.triggers_reconcile(old))
}

/// Decides about one name: no node, no object; a node, and its object's spec is what `spec` says. `spec` may leave
/// an object as it is by giving none.
pub(crate) fn keep<P: Owned>(
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
