//! What becomes of the pods that come.

use std::{collections::BTreeMap, time::Duration};

use koord_runtime::key::ObjectKey;

use crate::listener::Said;

/// What became of a pod so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// When it came.
    pub(crate) arrived: Duration,
    /// When it was placed, and where.
    pub(crate) placed: Option<(Duration, String)>,
    /// When it ended, or was evicted.
    pub(crate) left: Option<Duration>,
    /// Whether it was evicted.
    pub(crate) evicted: bool,
    /// Attempts in which it was refused.
    pub(crate) refusals: u64,
    /// Why it was refused last, or cannot be read.
    pub(crate) message: Option<String>,
    /// How many pods had been decided about before it, for the first time.
    pub(crate) turn: Option<usize>,
}

/// All pods that have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    records: BTreeMap<ObjectKey, Record>,
    waiting: usize,
    turns: usize,
    /// Pods that were there before and were evicted.
    displaced: Vec<ObjectKey>,
}

impl Pods {
    pub(crate) fn arrive(&mut self, key: ObjectKey, at: Duration) {
        self.records.insert(key, Record { arrived: at, ..Record::default() });
        self.waiting += 1;
    }

    /// A pod has its node. Says whether it is one of those that have come.
    pub(crate) fn place(&mut self, key: &ObjectKey, at: Duration, node: String) -> bool {
        let Some(record) = self.records.get_mut(key) else { return false };
        self.waiting -= usize::from(record.waits());
        record.placed = Some((at, node));
        take_turn(record, &mut self.turns);
        true
    }

    /// A pod is gone.
    pub(crate) fn leave(&mut self, key: &ObjectKey, at: Duration) {
        if let Some(record) = self.records.get_mut(key).filter(|record| record.left.is_none()) {
            self.waiting -= usize::from(record.waits());
            record.left = Some(at);
        }
    }

    /// Something was said about a pod.
    pub(crate) fn observe(&mut self, key: &ObjectKey, event: Said) {
        let Some(record) = self.records.get_mut(key) else {
            self.displaced.extend(matches!(event, Said::Preempted).then(|| key.clone()));
            return;
        };
        match event {
            Said::Refused(message) => {
                take_turn(record, &mut self.turns);
                record.refusals += 1;
                record.message = Some(message);
            }
            Said::Unreadable(message) => record.message = Some(message),
            Said::Preempted => record.evicted = true,
        }
    }

    /// Pods that were there before and were evicted, in this order.
    pub(crate) fn displaced(&self) -> &[ObjectKey] {
        &self.displaced
    }

    /// How many have no node.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many have come.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// All of them, by namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Record)> {
        self.records.iter()
    }
}

/// Something was decided about a pod.
fn take_turn(record: &mut Record, turns: &mut usize) {
    if record.turn.is_none() {
        record.turn = Some(*turns);
        *turns += 1;
    }
}

impl Record {
    /// Whether it has come, has no node, and is not gone.
    pub(crate) fn waits(&self) -> bool {
        self.placed.is_none() && self.left.is_none()
    }
}
