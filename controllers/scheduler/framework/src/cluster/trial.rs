//! Something that is tried on the state itself and undone.

use std::{ops::Deref, sync::Arc};

use koord_core::uid::Uid;

use super::{Cluster, Placed};
use crate::{columns::Row, hold::Holds, pod::Pod};

/// The cluster as it would be. Reads see what was tried; when the trial is dropped, everything is as it was before. A trial
/// leaves no trace in the log of changes, so what is derived from that log must not be brought up to date meanwhile.
#[derive(Debug)]
pub struct Trial<'c> {
    cluster: &'c mut Cluster,
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Take(Uid),
    Put(Placed),
}

/// How far a trial has come, to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl<'c> Trial<'c> {
    pub(super) fn new(cluster: &'c mut Cluster) -> Self {
        cluster.trials += 1;
        Self { cluster, undo: Vec::new() }
    }

    /// Places a pod that is nowhere.
    pub fn place(&mut self, pod: Arc<Pod>, row: Row, holds: Holds) {
        self.remove(&pod.uid);
        self.undo.push(Undo::Take(pod.uid.clone()));
        self.cluster.put(pod, row, holds);
    }

    /// Removes a pod. Gives where it was.
    pub fn remove(&mut self, uid: &Uid) -> Option<Row> {
        let placed = self.cluster.take(uid)?;
        let row = placed.row;
        self.undo.push(Undo::Put(placed));
        Some(row)
    }

    /// The point that the trial has come to.
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Undoes what was tried since.
    pub fn back_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.0 {
            match self.undo.pop() {
                Some(Undo::Take(uid)) => _ = self.cluster.take(&uid),
                Some(Undo::Put(Placed { pod, row, holds, .. })) => self.cluster.put(pod, row, holds),
                None => return,
            }
        }
    }
}

impl Deref for Trial<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.back_to(Mark(0));
        self.cluster.trials -= 1;
    }
}
