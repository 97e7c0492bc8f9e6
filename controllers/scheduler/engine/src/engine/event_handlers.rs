//! Event handlers of the engine: nodes, pods and objects that are added, changed and removed.

use std::{any::TypeId, sync::Arc};

use koord_core::{clock::Moment, key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    ReservePodState,
    cluster::Placed,
    event::Event,
    node::Node,
    object::{Object, ObjectChange},
    pod::Pod,
};

use super::{Engine, queueing_hints::PluginHints};

impl Engine {
    /// A node was added or changed.
    pub fn set_node(&mut self, node: Arc<Node>, now: Moment) {
        if self.cluster.has_idle_resources(&node) {
            self.spell_out();
            self.cluster.forget_idle_resources();
        }
        let event = match self.cluster.set_node(Arc::clone(&node)) {
            None => Event::NodeAdded(node),
            Some(old) => Event::NodeChanged { old, new: node },
        };
        self.notify(&event, now);
    }

    /// A node was deleted.
    pub fn remove_node(&mut self, name: &str, now: Moment) {
        if let Some(node) = self.cluster.remove_node(name) {
            self.notify(&Event::NodeRemoved(node), now);
        }
    }

    /// An object of another kind was added or changed.
    pub fn set_object(&mut self, object: Object, now: Moment) {
        let reserve_pod = self.reserve_pod(&object);
        let uid = object.uid.clone();
        let change = self.cluster.set_object(object);
        self.object_changed(change, now);
        match reserve_pod {
            ReservePodState::None => {}
            ReservePodState::Gone => self.remove_pod(&uid, now),
            ReservePodState::Pod(pod) => {
                // An object that had a node and has none any more is placed anew.
                let was_bound = |placed: &Placed| placed.pod.node.is_some() && pod.node.is_none();
                if self.cluster.pod(&uid).is_some_and(was_bound) {
                    self.remove_pod(&uid, now);
                }
                self.set_pod(pod, now);
            }
        }
    }

    /// The reserve pod of an object, by the first plugin that makes one of it.
    fn reserve_pod(&self, object: &Object) -> ReservePodState {
        let points = self.profiles.iter().flat_map(|profile| profile.each(|plugin| &plugin.reserve_pod));
        let mut states = points.map(|point| point.reserve_pod(object));
        states.find(|state| *state != ReservePodState::None).unwrap_or_default()
    }

    fn object_changed(&mut self, change: ObjectChange, now: Moment) {
        if let Some(gone) = change.gone()
            && (self.cluster.pod(gone).is_some() || self.cluster.pending_pod(gone).is_some())
        {
            self.remove_pod(&gone.clone(), now);
        }
        self.notify(&Event::Object(change), now);
    }

    /// An object of another kind was deleted.
    pub fn remove_object(&mut self, type_: TypeId, key: &str, now: Moment) {
        if let Some(change) = self.cluster.remove_object(type_, key) {
            self.object_changed(change, now);
        }
    }

    /// A pod was added or changed. One that has ended is removed instead.
    pub fn set_pod(&mut self, pod: Arc<Pod>, now: Moment) {
        if let Some(node) = pod.node.clone() {
            self.bound(&pod, &node, now);
            return;
        }
        let is_ours = self.profile_of(&pod).is_some();
        if !is_ours {
            self.leave_to_others(&pod, now);
        }
        let was_said = self.cluster.pending_pod(&pod.uid).and_then(|known| known.nominated.clone());
        self.cluster.know(&pod);
        self.has_changed = true;
        // What is assumed is being bound; the change comes again with the node.
        if self.cluster.pod(&pod.uid).is_some() {
            return;
        }
        if is_ours || self.cluster.policy().keeps_foreign_nominations {
            let row = pod.nominated.as_ref().and_then(|node| self.cluster.row(node));
            let is_new = row.is_some() && self.cluster.nomination(&pod.uid).is_none();
            // The nominated node in the status was changed or removed by another writer.
            if is_new || was_said.is_some() && was_said != pod.nominated {
                self.nominate(&pod, row, now);
            }
        }
        if is_ours {
            let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.set(pod, now, &hints);
        }
    }

    /// A pod without a node is another scheduler's, which it may not have been before: it is tried no more, and has no place that was not
    /// being written.
    fn leave_to_others(&mut self, pod: &Arc<Pod>, now: Moment) {
        let was_ours = |known: &Arc<Pod>| self.profile_of(known).is_some();
        if self.waiting.contains(&pod.uid) {
            self.remove_pod(&pod.uid, now);
        } else if self.cluster.pending_pod(&pod.uid).is_some_and(was_ours) {
            self.try_no_more(&pod.uid);
            if self.cluster.nomination(&pod.uid).is_some() {
                self.nominate(pod, None, now);
            }
        }
    }

    fn bound(&mut self, pod: &Arc<Pod>, node: &Arc<str>, now: Moment) {
        self.try_no_more(&pod.uid);
        self.cluster.nominate(pod, None);
        self.cluster.know(pod);
        let known = self.cluster.pod(&pod.uid);
        if known.is_some_and(|known| known.pod == *pod) {
            return;
        }
        let row = self.cluster.row(node);
        let was = known.filter(|known| Some(known.row) == row);
        let mut holds = was.map(|was| was.holds.clone()).unwrap_or_default();
        // Pods of other schedulers hold what they hold all the same.
        let profile = self.profile_of(pod).or(if self.profiles.is_empty() { None } else { Some(0) });
        let profile = profile.and_then(|index| self.profiles.get(index));
        for point in profile.iter().flat_map(|profile| profile.each(|plugin| &plugin.allocation_restore)) {
            point.restore_allocation(pod, &mut holds);
            if let Some(was) = was {
                point.update_allocation(was, pod, &mut holds);
            }
        }
        let old = known.map(|known| Arc::clone(&known.pod));
        self.cluster.place(Arc::clone(pod), node, holds);
        self.notify(&Event::PodAssigned(Arc::clone(pod)), now);
        let Some(old) = old else { return };
        if pod.requests_less(&old) {
            self.notify(&Event::PodScaledDown { old: Arc::clone(&old), new: Arc::clone(pod) }, now);
        }
        if pod.template.labels != old.template.labels {
            self.notify(&Event::PodRelabelled { old, new: Arc::clone(pod) }, now);
        }
    }

    /// A pod was deleted, or has ended.
    pub fn remove_pod(&mut self, uid: &Uid, now: Moment) {
        self.try_no_more(uid);
        if let Some(pod) = self.cluster.pending_pod(uid).cloned() {
            let had = self.cluster.nomination(uid).is_some();
            self.cluster.nominate(&pod, None);
            if had {
                self.notify(&Event::NominationChanged(pod.template.priority), now);
            }
        }
        if let Some(placed) = self.cluster.forget(uid) {
            self.notify(&Event::PodRemoved(placed.pod), now);
        }
        self.has_changed = true;
    }

    /// A pod needs no node any more, wherever it waits.
    fn try_no_more(&mut self, uid: &Uid) {
        self.queue.remove(uid);
        // Who waits in its place is in flight until then.
        if self.waiting.remove(uid).is_some() {
            self.queue.done(uid);
        }
        self.cancel_extender_call(uid);
    }

    /// The node of a pod has rejected it for want of this resource. It has failed, and uses nothing any more.
    pub fn reject_pod(&mut self, uid: &Uid, resource: &str, now: Moment) {
        if let Some(placed) = self.cluster.pod(uid).cloned() {
            self.cluster.rejected(&placed, resource);
        }
        self.remove_pod(uid, now);
    }

    /// Pods of this name are gone, but for one.
    pub fn remove_others(&mut self, key: &ObjectKey, but: Option<&Uid>, now: Moment) {
        let placed = self.cluster.pods().map(|placed| &placed.pod);
        let named = placed.chain(self.cluster.pending()).filter(|pod| pod.key == *key && Some(&pod.uid) != but);
        for uid in named.map(|pod| pod.uid.clone()).collect::<Vec<_>>() {
            self.remove_pod(&uid, now);
        }
    }
}
