//! Changes that are tried: on a copy of the engine, with the changed objects in it.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use koord_resource::controller::ResourceKind;
use koord_runtime::{clock::Moment, key::ObjectKey, uid::Uid};
use koord_scheduler_engine::{Engine, Outcome};
use serde_json::Value;

use super::change::{Change, Edit};
use crate::Objects;

/// Attempts of other pods that are played before a gang is given up.
const ATTEMPTS_MAX: usize = 2000;

/// How changes are tried for one pod.
pub(super) struct Trials<'a> {
    pub(super) engine: &'a Engine,
    pub(super) objects: &'a mut Objects,
    uid: Uid,
    /// Whether the pods before it in the queue are tried too, and those of its gang.
    pub(super) in_turn: bool,
    /// Trials that may still be made.
    left: u32,
    /// Whether more were wanted.
    is_short: bool,
}

/// The pod is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) node: Arc<str>,
    /// Whether it waits there for the others of its gang.
    pub(super) waits: bool,
}

impl<'a> Trials<'a> {
    /// So many trials for a pod.
    pub(super) fn of(engine: &'a Engine, objects: &'a mut Objects, uid: Uid, trials_max: u32) -> Self {
        Self { engine, objects, uid, in_turn: false, left: trials_max, is_short: false }
    }

    /// Whether no trial may be made any more.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Whether more trials were wanted than may be made.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Where an attempt would place the pod after these changes; none where it would not, or too much was tried already.
    pub(super) async fn placement(&mut self, changes: &[&Change]) -> Result<Option<Placement>> {
        let Some(engine) = self.changed(changes).await? else { return Ok(None) };
        if self.in_turn {
            let node = engine.rounds(ATTEMPTS_MAX, Moment::default()).remove(&self.uid);
            return Ok(node.map(|node| Placement { node, waits: false }));
        }
        Ok(match engine.would(&self.uid, Moment::default()) {
            Some(Outcome::Bind { node, .. }) => Some(Placement { node, waits: false }),
            Some(Outcome::Waiting { node }) => Some(Placement { node, waits: true }),
            Some(Outcome::Refused(_) | Outcome::ExtenderCall { .. }) | None => None,
        })
    }

    /// A copy of the engine with these changes.
    async fn changed(&mut self, changes: &[&Change]) -> Result<Option<Engine>> {
        let Some(left) = self.left.checked_sub(1) else {
            self.is_short = true;
            return Ok(None);
        };
        self.left = left;
        let mut changed: BTreeMap<(ResourceKind, ObjectKey), Value> = BTreeMap::new();
        let edits: Vec<&Edit> = changes.iter().flat_map(|change| applied(change)).collect();
        for edit in edits {
            let key = (edit.kind, edit.key.clone());
            if !changed.contains_key(&key) {
                let Some(object) = self.objects.get(edit.kind, &edit.key).await? else { return Ok(None) };
                changed.insert(key.clone(), object);
            }
            changed.get_mut(&key).into_iter().for_each(|object| edit.apply(object));
        }
        let added = changes.iter().flat_map(|change| change.added.iter().cloned());
        let mut engine = self.engine.copy();
        let changed = changed.into_values().chain(added).collect();
        koord_scheduler_assembly::amend(&mut engine, changed, self.objects.transformers).await?;
        for uid in changes.iter().flat_map(|change| &change.ended) {
            engine.remove_pod(uid, Moment::default());
        }
        Ok(Some(engine))
    }
}

/// The edits of a change that are made; a pod of which one says that it has ended is removed instead.
fn applied(change: &Change) -> impl Iterator<Item = &Edit> {
    change.edits.iter().filter(move |edit| change.ended.is_empty() || edit.kind != ResourceKind::POD)
}
