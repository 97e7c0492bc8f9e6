//! Pods as changes of the engine, made of what transformers have left.

use std::sync::Arc;

use koord_engine::pod::Pod;
use koord_runtime::{
    Core,
    cache::{Change, Entry},
    changes::ChangeSender,
    key::ObjectKey,
    reflector::Selection,
    store::{Sink as _, Store},
};

use super::Delta;
use crate::{transform::Transformers, view::PodViewBy};

/// The cache of pods, by whatever transformers.
pub(crate) struct Pods {
    pub(super) are_complete: Box<dyn Fn() -> bool + Send + Sync>,
    /// All that live.
    pub(super) all: Box<dyn Fn() -> Vec<Delta> + Send + Sync>,
    said: Box<SaidOf>,
}

type SaidOf = dyn Fn(&Pod) -> Option<Said> + Send + Sync;

/// What the status of a pod says.
pub(crate) struct Said {
    /// Why it has no node.
    pub(crate) unscheduled: Option<Arc<str>>,
    /// The node on which room is made for it.
    pub(crate) nominated: Option<Arc<str>>,
}

impl Pods {
    pub(super) fn of(core: &mut Core, sender: &ChangeSender<Delta>, transformers: Transformers) -> Self {
        match transformers.bits() {
            0 => Self::by::<0>(core, sender),
            1 => Self::by::<1>(core, sender),
            2 => Self::by::<2>(core, sender),
            3 => Self::by::<3>(core, sender),
            4 => Self::by::<4>(core, sender),
            5 => Self::by::<5>(core, sender),
            6 => Self::by::<6>(core, sender),
            _ => Self::by::<7>(core, sender),
        }
    }

    fn by<const T: u8>(core: &mut Core, sender: &ChangeSender<Delta>) -> Self {
        let store: Arc<Store<PodViewBy<T>>> = core.store(&Selection::default());
        sender.follow(&store, |change: &Change<PodViewBy<T>>| delta(change));
        let (complete, every) = (Arc::clone(&store), Arc::clone(&store));
        Self {
            are_complete: Box::new(move || complete.synced()),
            all: Box::new(move || all(&every)),
            said: Box::new(move |pod| said(&store, pod)),
        }
    }

    /// What the status of this pod says; none of one that is gone or being deleted.
    pub(crate) fn said(&self, pod: &Pod) -> Option<Said> {
        (self.said)(pod)
    }
}

fn all<const T: u8>(store: &Store<PodViewBy<T>>) -> Vec<Delta> {
    let pods = store.read();
    let living = pods.iter().filter(|(_, entry)| !entry.value.0.has_ended);
    living.map(|(key, entry)| Delta::Pod { pod: Arc::new(pod(key, entry)), replaced: None }).collect()
}

fn said<const T: u8>(store: &Store<PodViewBy<T>>, pod: &Pod) -> Option<Said> {
    let pods = store.read();
    let entry = pods.get(pod.key.as_str()).filter(|entry| entry.uid == pod.uid && !entry.deleting)?;
    let view = &entry.value.0;
    Some(Said { unscheduled: view.unscheduled.clone(), nominated: view.nominated.clone() })
}

fn delta<const T: u8>(change: &Change<PodViewBy<T>>) -> Option<Delta> {
    let living = |entry: &&Entry<PodViewBy<T>>| !entry.value.0.has_ended;
    if change.again {
        let pod = change.new.as_ref().filter(living).map(|new| Arc::new(pod(&change.key, new)));
        return Some(Delta::PodAgain { key: change.key.clone(), pod });
    }
    let known = change.old.as_ref().filter(living).map(|old| &old.uid);
    match change.new.as_ref().filter(living) {
        Some(new) => {
            let replaced = known.filter(|known| **known != new.uid).cloned();
            Some(Delta::Pod { pod: Arc::new(pod(&change.key, new)), replaced })
        }
        None => known.cloned().map(Delta::PodGone),
    }
}

fn pod<const T: u8>(key: &ObjectKey, entry: &Entry<PodViewBy<T>>) -> Pod {
    let view = &entry.value.0;
    Pod {
        key: key.clone(),
        uid: entry.uid.clone(),
        template: Arc::clone(&view.template),
        gates: view.gates.clone(),
        node: view.node.clone(),
        nominated: view.nominated.clone(),
        deleting: entry.deleting,
        ends: view.ends,
        is_preempted: view.is_preempted,
        given: view.given.clone(),
        generated_claims: view.generated_claims.clone(),
        created: view.created,
        started: view.started,
        scheduled: view.scheduled,
        initialized: view.initialized,
        controller: view.controller.clone(),
        is_running: view.is_running,
        is_ready: view.is_ready,
        reservation: None,
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;

    use super::*;

    fn entry(members: &str) -> Entry<PodViewBy<0>> {
        let mut cache = Cache::<PodViewBy<0>>::default();
        let metadata = r#"{"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1"}"#;
        cache.upsert(&format!(r#"{{"metadata": {metadata}, "spec": {{"containers": []}}, {members}}}"#)).unwrap();
        cache.get("ns/a").cloned().unwrap()
    }

    #[test]
    fn what_was_told_before_does_not_matter_where_nobody_knows_it() {
        let (living, ended) = (|| entry(r#""status": {}"#), || entry(r#""status": {"phase": "Failed"}"#));
        let delta = |old: Option<Entry<PodViewBy<0>>>, new, again| {
            super::delta(&Change { key: ObjectKey::new("ns", "a"), old, new: Some(new), again })
        };
        assert!(matches!(delta(Some(living()), ended(), false), Some(Delta::PodGone(_))));
        assert!(delta(None, ended(), false).is_none(), "nobody was told of it");
        assert!(matches!(delta(None, ended(), true), Some(Delta::PodAgain { pod: None, .. })));
        assert!(matches!(delta(None, living(), true), Some(Delta::PodAgain { pod: Some(_), .. })));
    }
}
