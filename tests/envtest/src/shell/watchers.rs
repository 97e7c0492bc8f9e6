//! Which watches a change wakes: those that report it, and no other.
//!
//! A watch that waits is *marked* with the revision of the first change that concerns it, under the lock of the core, and
//! is woken once. Until a watch is marked nothing has happened that it would report, so it need not read the log, and the
//! log may forget what it never read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    filter::Filter,
    server::{ApiServer, Frame, Watch},
    store::{Change, CollectionId},
};

/// All watches of a server, by collection.
#[derive(Default)]
pub(super) struct Watchers {
    collections: Mutex<HashMap<CollectionId, Watched>>,
    next_id: AtomicU64,
}

/// The watches of a collection, in the order in which they began, so that the order of waking can be repeated.
#[derive(Default)]
struct Watched {
    /// Watches of the objects with one value of one field, such as the pods of a node.
    by_field: BTreeMap<usize, BTreeMap<Box<str>, Group>>,
    others: Group,
}

/// Watches in the order in which they began.
type Group = BTreeMap<u64, Arc<Watcher>>;

struct Watcher {
    filter: Filter,
    /// Revision of the first change that concerns the watch since it was read; 0 for none.
    marked: AtomicU64,
    wake: Notify,
}

/// The place of one watch; it ends with its owner.
pub(super) struct Registration {
    watchers: Arc<Watchers>,
    collection: CollectionId,
    id: u64,
    watcher: Arc<Watcher>,
    /// Whether the watch had read everything when it was last read.
    is_current: bool,
}

/// Watches that are to be woken when the core is free again.
#[must_use]
pub(super) struct Woken(Vec<Arc<Watcher>>);

// === impl Watchers ===

impl Watchers {
    pub(super) fn register(self: &Arc<Self>, watch: &Watch) -> Registration {
        let watcher =
            Arc::new(Watcher { filter: watch.filter().clone(), marked: AtomicU64::new(0), wake: Notify::new() });
        let (id, collection) = (self.next_id.fetch_add(1, Ordering::Relaxed), watch.collection());
        let mut collections = self.collections.lock();
        let entry = collections.entry(collection).or_default();
        let group = match watcher.filter.exact_field() {
            None => &mut entry.others,
            Some((field, value)) => entry.by_field.entry(field).or_default().entry(value.into()).or_default(),
        };
        group.insert(id, Arc::clone(&watcher));
        Registration { watchers: Arc::clone(self), collection, id, watcher, is_current: false }
    }

    /// Marks the watches that report these changes. The caller holds the core.
    pub(super) fn mark(&self, core: &ApiServer, changed: &[(CollectionId, u64)]) -> Woken {
        let mut woken = Woken(Vec::new());
        if changed.is_empty() {
            return woken;
        }
        let collections = self.collections.lock();
        for (id, revision) in changed {
            let Some(collection) = collections.get(id) else { continue };
            match core.store.collection(*id).change_at(*revision) {
                Some(change) => collection.mark(change, &mut woken),
                // Forgotten already: each of them must find out by itself.
                None => collection.all().for_each(|watcher| watcher.mark(*revision, &mut woken)),
            }
        }
        woken
    }
}

// === impl Watched ===

impl Watched {
    fn all(&self) -> impl Iterator<Item = &Arc<Watcher>> {
        self.by_field.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values).chain(self.others.values())
    }

    fn mark(&self, change: &Change, woken: &mut Woken) {
        let states = [Some(&change.new), change.old.as_ref()];
        for (field, by_value) in &self.by_field {
            let mut values = states.map(|state| state.and_then(|record| record.fields.get(*field)));
            if values[0] == values[1] {
                values[1] = None;
            }
            let groups = values.into_iter().flatten().filter_map(|value| by_value.get(value));
            for watcher in groups.flat_map(BTreeMap::values) {
                if watcher.filter.concerns(change) {
                    watcher.mark(change.revision(), woken);
                }
            }
        }
        for watcher in self.others.values().filter(|watcher| watcher.filter.concerns(change)) {
            watcher.mark(change.revision(), woken);
        }
    }
}

// === impl Watcher ===

impl Watcher {
    fn mark(self: &Arc<Self>, revision: u64, woken: &mut Woken) {
        // One that is marked already has been woken and will read this change too.
        if self.marked.compare_exchange(0, revision, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            woken.0.push(Arc::clone(self));
        }
    }
}

// === impl Woken ===

impl Woken {
    pub(super) fn wake(self) {
        for watcher in self.0 {
            watcher.wake.notify_one();
        }
    }
}

// === impl Registration ===

impl Registration {
    /// Waits until a change concerns the watch.
    pub(super) async fn marked(&self) {
        self.watcher.wake.notified().await;
    }

    /// The next frames of the watch, at most about `limit`.
    pub(super) fn read(&mut self, core: &mut ApiServer, watch: &mut Watch, limit: usize) -> Vec<Frame> {
        let marked = self.watcher.marked.swap(0, Ordering::AcqRel);
        let newest = core.store.shown();
        if self.is_current {
            watch.pass_over(if marked == 0 { newest } else { marked.saturating_sub(1) });
        }
        let frames = core.poll_watch(watch, limit);
        self.is_current = watch.is_at(newest);
        frames
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut collections = self.watchers.collections.lock();
        let Some(collection) = collections.get_mut(&self.collection) else { return };
        if let Some((field, value)) = self.watcher.filter.exact_field() {
            let Some(by_value) = collection.by_field.get_mut(&field) else { return };
            if let Some(group) = by_value.get_mut(value) {
                group.remove(&self.id);
                if group.is_empty() {
                    by_value.remove(value);
                }
            }
            if by_value.is_empty() {
                collection.by_field.remove(&field);
            }
        } else {
            collection.others.remove(&self.id);
        }
        if collection.by_field.is_empty() && collection.others.is_empty() {
            collections.remove(&self.collection);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::{environment::SeededEnvironment, kinds, request::ApiRequest, server::Outcome, store::HistoryLimits};

    const PODS: &str = "/api/v1/namespaces/default/pods";

    struct Stage {
        core: ApiServer,
        watchers: Arc<Watchers>,
    }

    impl Stage {
        fn new() -> Self {
            let now = "2026-01-02T03:04:05Z".parse().unwrap();
            let environment = Box::new(SeededEnvironment::new(1, now));
            let mut core = ApiServer::empty(environment, HistoryLimits::default());
            kinds::install(&mut core);
            crate::bootstrap::run(&mut core).unwrap();
            core.take_changed();
            Self { core, watchers: Arc::default() }
        }

        fn watch(&mut self, query: &str) -> (Registration, Box<Watch>) {
            let path = format!("{PODS}?watch=1{query}");
            let Outcome::Watch(mut watch) = self.core.handle(&ApiRequest::new(Method::GET, &path, "")) else {
                panic!("{path}")
            };
            let mut registration = self.watchers.register(&watch);
            assert!(registration.read(&mut self.core, &mut watch, 10).is_empty());
            (registration, watch)
        }

        /// Creates a pod on a node; gives the number of watches that it wakes.
        fn create(&mut self, name: &str, node: &str) -> usize {
            let body = json!({
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            });
            let outcome = self.core.handle(&ApiRequest::new(Method::POST, PODS, body.to_string()));
            assert!(matches!(outcome, Outcome::Done(answer) if answer.code == 201));
            let changed = self.core.take_changed();
            self.watchers.mark(&self.core, &changed).0.len()
        }
    }

    #[test]
    fn a_change_wakes_the_watches_that_report_it_once_until_they_read() {
        let mut stage = Stage::new();
        let (mut all, mut all_watch) = stage.watch("");
        let (_of_one, _watch_of_one) = stage.watch("&fieldSelector=spec.nodeName%3Dnode-1");
        let (_of_label, _watch_of_label) = stage.watch("&labelSelector=app%3Dweb");
        assert_eq!(stage.create("a", "node-2"), 1, "the watch of all pods");
        assert_eq!(stage.create("b", "node-1"), 1, "the watch of all pods is awake already");
        assert_eq!(all.read(&mut stage.core, &mut all_watch, 10).len(), 2);
        assert_eq!(stage.create("c", "node-1"), 1, "the watch of the node has not read yet");
    }

    #[test]
    fn a_watch_that_nothing_concerned_outlives_what_the_log_forgets() {
        let mut stage = Stage::new();
        let (mut registration, mut watch) = stage.watch("&fieldSelector=spec.nodeName%3Dnode-1");
        for name in ["a", "b", "c"] {
            assert_eq!(stage.create(name, "node-2"), 0);
        }
        stage.core.store.compact(stage.core.store.revision());
        assert_eq!(stage.create("d", "node-1"), 1);
        let frames = registration.read(&mut stage.core, &mut watch, 10);
        let line: serde_json::Value = serde_json::from_slice(&frames[0].text).unwrap();
        assert_eq!(
            (frames.len(), &line["type"], &line["object"]["metadata"]["name"]),
            (1, &json!("ADDED"), &json!("d"))
        );
    }

    #[test]
    fn a_watch_that_reads_in_parts_misses_nothing() {
        let mut stage = Stage::new();
        let (mut registration, mut watch) = stage.watch("");
        for name in ["a", "b", "c", "d", "e"] {
            stage.create(name, "node-1");
        }
        let mut read = |stage: &mut Stage| registration.read(&mut stage.core, &mut watch, 2).len();
        assert_eq!([read(&mut stage), read(&mut stage)], [2, 2]);
        stage.create("f", "node-1");
        assert_eq!([read(&mut stage), read(&mut stage), read(&mut stage)], [2, 0, 0]);
    }

    #[test]
    fn a_watch_that_ends_leaves_nothing_behind() {
        let mut stage = Stage::new();
        let one = stage.watch("&fieldSelector=spec.nodeName%3Dnode-1");
        let other = stage.watch("");
        drop((one, other));
        assert!(stage.watchers.collections.lock().is_empty());
    }
}
