//! Pods as changes of the engine, made of what transformers have left.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core, Watch,
    cache::{Change, Entry, Revision},
    changes::ChangeSender,
    reflector::Selection,
    store::{Sink as _, Store},
};
use koord_scheduler_framework::pod::Pod;

use super::Delta;
use crate::{
    transform::{Transformers, WithPods},
    view::{Life, PodViewBy},
};

/// The cache of pods, by whatever transformers.
pub(crate) struct Pods {
    pub(super) are_complete: Box<dyn Fn() -> bool + Send + Sync>,
    pub(super) all: Box<dyn Fn() -> Vec<Delta> + Send + Sync>,
    status: Box<StatusOf>,
    without_node: Box<dyn Fn() -> usize + Send + Sync>,
    /// What feeds the cache.
    pub(super) watches: Vec<Arc<Watch>>,
}

type StatusOf = dyn Fn(&Pod) -> Option<PodStatus> + Send + Sync;

/// The part of a pod's status that the scheduler writes, and the generation of the pod.
pub(crate) struct PodStatus {
    /// Why it has no node.
    pub(crate) unscheduled: Option<Arc<str>>,
    /// Its nominated node.
    pub(crate) nominated: Option<Arc<str>>,
    /// The generation of the pod; 0 where the API server counts none.
    pub(crate) generation: i64,
}

/// Follows pods of whichever type.
struct Following<'c> {
    core: &'c mut Core,
    sender: &'c ChangeSender<Delta>,
}

impl WithPods for Following<'_> {
    type Done = Pods;

    fn with<const T: u8>(self) -> Pods {
        Pods::by::<T>(self.core, self.sender)
    }
}

impl Pods {
    pub(super) fn of(core: &mut Core, sender: &ChangeSender<Delta>, transformers: Transformers) -> Self {
        transformers.choose(Following { core, sender })
    }

    fn by<const T: u8>(core: &mut Core, sender: &ChangeSender<Delta>) -> Self {
        let store: Arc<Store<PodViewBy<T>>> = core.store(&Selection::default());
        sender.follow(&store, |change: &Change<PodViewBy<T>>| delta(change));
        let (complete, every, counted) = (Arc::clone(&store), Arc::clone(&store), Arc::clone(&store));
        let is_of_all = |watch: &&Arc<Watch>| watch.kind == ResourceKind::POD && watch.selection.fields.is_empty();
        Self {
            watches: core.watches().iter().filter(is_of_all).map(Arc::clone).collect(),
            are_complete: Box::new(move || complete.synced()),
            all: Box::new(move || all(&every)),
            status: Box::new(move |pod| status(&store, pod)),
            without_node: Box::new(move || without_node(&counted)),
        }
    }

    /// The cache holds what was written of pods up to this revision.
    pub(crate) fn revision(&self) -> Revision {
        self.watches.iter().map(|watch| watch.revision()).min().unwrap_or_default()
    }

    /// How many pods have no node, those that have ended among them.
    pub(crate) fn without_node(&self) -> usize {
        (self.without_node)()
    }

    /// What the status of this pod says; none of one that is gone or being deleted.
    pub(crate) fn status(&self, pod: &Pod) -> Option<PodStatus> {
        (self.status)(pod)
    }
}

fn all<const T: u8>(store: &Store<PodViewBy<T>>) -> Vec<Delta> {
    let pods = store.read();
    let living = pods.iter().filter(|(_, entry)| !entry.value.0.has_ended());
    living.map(|(_, entry)| Delta::Pod { pod: Arc::clone(&entry.value.0.pod), replaced: None }).collect()
}

fn without_node<const T: u8>(store: &Store<PodViewBy<T>>) -> usize {
    store.read().iter().filter(|(_, entry)| entry.value.0.pod.node.is_none()).count()
}

fn status<const T: u8>(store: &Store<PodViewBy<T>>, pod: &Pod) -> Option<PodStatus> {
    let pods = store.read();
    let entry = pods.get(pod.key.as_str()).filter(|entry| entry.uid == pod.uid && !entry.deleting)?;
    let view = &entry.value.0;
    let (unscheduled, nominated) = (view.unscheduled().cloned(), view.pod.nominated.clone());
    Some(PodStatus { unscheduled, nominated, generation: view.generation })
}

fn delta<const T: u8>(change: &Change<PodViewBy<T>>) -> Option<Delta> {
    let living = |entry: &&Entry<PodViewBy<T>>| !entry.value.0.has_ended();
    if change.again {
        let pod = change.new.as_ref().filter(living).map(|new| Arc::clone(&new.value.0.pod));
        return Some(Delta::PodAgain { key: change.key.clone(), pod });
    }
    let known = change.old.as_ref().filter(living).map(|old| &old.uid);
    match change.new.as_ref().filter(living) {
        Some(new) => {
            let replaced = known.filter(|known| **known != new.uid).cloned();
            Some(Delta::Pod { pod: Arc::clone(&new.value.0.pod), replaced })
        }
        None => known.cloned().map(|uid| match change.new.as_ref().map(|new| &new.value.0.life) {
            Some(Life::Ended { lacked: Some(resource) }) => Delta::PodRejected { uid, resource: Arc::clone(resource) },
            _ => Delta::PodGone(uid),
        }),
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::{cache::Cache, key::ObjectKey};

    use super::*;

    fn entry(members: &str) -> Entry<PodViewBy<0>> {
        entry_of("1", members)
    }

    fn entry_of(uid: &str, members: &str) -> Entry<PodViewBy<0>> {
        let mut cache = Cache::<PodViewBy<0>>::default();
        let metadata = format!(r#"{{"name": "a", "namespace": "ns", "uid": "{uid}", "resourceVersion": "1"}}"#);
        cache.upsert(&format!(r#"{{"metadata": {metadata}, "spec": {{"containers": []}}, {members}}}"#)).unwrap();
        cache.get("ns/a").cloned().unwrap()
    }

    #[test]
    fn a_pod_takes_the_place_of_another_of_its_name() {
        let replaced = |old: &str, new: &str| {
            let (key, status) = (ObjectKey::new("ns", "a"), r#""status": {}"#);
            let (old, new) = (Some(entry_of(old, status)), Some(entry_of(new, status)));
            match super::delta(&Change { key, old, new, again: false }) {
                Some(Delta::Pod { pod, replaced }) => (pod.uid.to_string(), replaced.map(|uid| uid.to_string())),
                _ => unreachable!("the pod lives"),
            }
        };
        assert_eq!(replaced("1", "1"), ("1".to_owned(), None));
        assert_eq!(replaced("1", "2"), ("2".to_owned(), Some("1".to_owned())));
    }

    #[test]
    fn deltas_before_a_complete_list_do_not_matter() {
        let (living, ended) = (|| entry(r#""status": {}"#), || entry(r#""status": {"phase": "Failed"}"#));
        let delta = |old: Option<Entry<PodViewBy<0>>>, new, again| {
            super::delta(&Change { key: ObjectKey::new("ns", "a"), old, new: Some(new), again })
        };
        assert!(matches!(delta(Some(living()), ended(), false), Some(Delta::PodGone(_))));
        assert!(delta(None, ended(), false).is_none(), "nobody was told of it");
        let rejected = || entry(r#""status": {"phase": "Failed", "reason": "OutOfcpu"}"#);
        let known = delta(Some(living()), rejected(), false);
        assert!(matches!(known, Some(Delta::PodRejected { resource, .. }) if &*resource == "cpu"));
        assert!(delta(None, rejected(), false).is_none(), "that was before");
        assert!(matches!(delta(None, ended(), true), Some(Delta::PodAgain { pod: None, .. })));
        assert!(matches!(delta(None, living(), true), Some(Delta::PodAgain { pod: Some(_), .. })));
    }
}
