//! One eviction on a copy of the scheduler's engine.

use std::sync::Arc;

use koord_core::{clock::Moment, key::ObjectKey, uid::Uid};
use koord_descheduler_framework::{EvictedPod, Eviction, Means, Successor};
use koord_scheduler_engine::{Engine, Outcome};
use koord_scheduler_framework::{labels::Labels, node::Node, pod::Pod};
use koord_types::pod_migration_job::PodMigrationJobMode;

/// A cluster in which evictions are tried, one after the other.
pub(crate) struct Rehearsal {
    engine: Engine,
    /// How many successors there have been, for their names.
    successors: u64,
    /// The last pod that was taken away, and its successor.
    last: Option<(Arc<Pod>, Option<Uid>)>,
}

impl Rehearsal {
    /// Evictions are tried on a copy of the engine.
    pub(crate) fn of(engine: &Engine) -> Self {
        Self { engine: engine.copy(), successors: 0, last: None }
    }

    /// Brings the last pod back that was taken away.
    pub(crate) fn take_back(&mut self) {
        let Some((old, successor)) = self.last.take() else { return };
        let now = Moment::default();
        if let Some(successor) = successor {
            self.engine.remove_pod(&successor, now);
        }
        self.engine.set_pod(old, now);
    }

    /// Takes a pod away and schedules its successor. What follows sees the result.
    pub(crate) fn evict(&mut self, eviction: &Eviction) -> Successor {
        self.last = None;
        let now = Moment::default();
        let EvictedPod { uid, .. } = &eviction.pod;
        let Some(placed) = self.engine.cluster().pod(uid) else {
            return Successor::Unknown("the scheduler does not know the pod");
        };
        let old = Arc::clone(&placed.pod);
        if self.engine.profile(&old.template.scheduler).is_none() {
            return Successor::Unknown("another scheduler places it");
        }
        let row = placed.row;
        let node = self.engine.cluster().node(row).map(Arc::clone);
        self.engine.remove_pod(uid, now);
        self.last = Some((Arc::clone(&old), None));
        if old.controller.is_none() {
            return Successor::None;
        }
        // A Reservation for the successor leaves the node of the pod out.
        let left_out = node.as_ref().filter(|_| reserves_first(eviction));
        if let Some(node) = left_out {
            self.engine.set_node(Arc::new(Node { unschedulable: true, ..Node::clone(node) }), now);
        }
        let successor = self.successor(&old);
        let new = successor.uid.clone();
        self.last = Some((old, Some(new.clone())));
        self.engine.set_pod(Arc::new(successor), now);
        let outcome = self.engine.attempt_for(&new, now);
        if let Some(node) = left_out {
            self.engine.set_node(Arc::clone(node), now);
        }
        match outcome {
            Some(Outcome::Bind { node: on, .. } | Outcome::Waiting { node: on }) => {
                let is_back = node.is_some_and(|node| node.name == on);
                if is_back { Successor::ComesBack(on) } else { Successor::On(on) }
            }
            Some(Outcome::Refused(refused)) => Successor::Pending(refused.message),
            Some(Outcome::ExtenderCall { .. }) => Successor::Unknown("an extender of the scheduler decides"),
            None => {
                let pod = self.engine.cluster().pending_pod(&new).map(Arc::clone);
                let held = pod.and_then(|pod| self.engine.not_tried(&pod));
                Successor::Pending(held.map_or_else(|| "it is not tried".to_owned(), |(_, reason)| reason.text))
            }
        }
    }

    /// The pod that a workload makes instead of another: the same template, and nothing that the other was given. A StatefulSet gives it the name, too.
    fn successor(&mut self, old: &Pod) -> Pod {
        self.successors += 1;
        let keeps_name = old.controller.as_ref().is_some_and(|owner| &*owner.kind == "StatefulSet");
        let name = format!("{}-successor-{}", old.key.name(), self.successors);
        Pod {
            key: if keeps_name { old.key.clone() } else { ObjectKey::new(old.key.namespace(), &name) },
            uid: Uid::from(format!("successor-{}", self.successors).as_str()),
            node: None,
            nominated: None,
            deleting: false,
            ends: None,
            is_preempted: false,
            given: Labels::default(),
            generated_claims: Box::default(),
            started: None,
            scheduled: None,
            initialized: None,
            is_running: false,
            is_ready: false,
            ..old.clone()
        }
    }
}

fn reserves_first(eviction: &Eviction) -> bool {
    matches!(&eviction.means, Means::Job { mode, .. } if *mode != PodMigrationJobMode::EvictDirectly)
}
