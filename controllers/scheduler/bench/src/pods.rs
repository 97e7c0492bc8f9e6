//! The pods of a run, as the watch shows them.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use koord_runtime::key::ObjectKey;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::{
    WatchStreamExt as _,
    watcher::{self, Event},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::{
    scenario::{Selection, Stage},
    template::RUN_LABEL,
};

/// How long changes are gathered before they are looked at.
const GATHER: Duration = Duration::from_millis(5);

/// What is known of a pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Whether the scenario waits for it; what a churn creates is only seen.
    pub(crate) is_expected: bool,
    /// Whether it counts in the result.
    pub(crate) is_measured: bool,
    pub(crate) gang: Option<Arc<str>>,
    pub(crate) labels: BTreeMap<String, String>,
    /// When the watch showed it first.
    pub(crate) came: Option<Instant>,
    /// When the watch showed it with a node.
    pub(crate) placed: Option<Instant>,
    /// When the server made it, to the second.
    pub(crate) created: Option<Timestamp>,
    /// When its condition says that it got its node, to the second.
    pub(crate) scheduled: Option<Timestamp>,
    /// Whether something was said of it.
    pub(crate) is_attempted: bool,
    /// Why it has no node.
    pub(crate) message: Option<String>,
    /// Whether it is gone, or going.
    pub(crate) is_deleted: bool,
}

impl Seen {
    /// The time from its first event to the one that shows its node.
    pub(crate) fn waited(&self) -> Option<Duration> {
        Some(self.placed?.saturating_duration_since(self.came?))
    }

    /// The same by the times that the objects carry, in whole seconds.
    pub(crate) fn waited_by_the_objects(&self) -> Option<Duration> {
        Duration::try_from(self.scheduled?.duration_since(self.created?)).ok()
    }

    fn has_reached(&self, stage: Stage) -> bool {
        let is_attempted = stage == Stage::Attempted && self.is_attempted;
        self.is_deleted || self.placed.is_some() || is_attempted
    }

    fn note(&mut self, pod: &Pod, now: Instant) {
        self.came.get_or_insert(now);
        self.created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        if self.labels.is_empty() {
            self.labels.clone_from(pod.labels());
        }
        self.is_deleted |= pod.metadata.deletion_timestamp.is_some();
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let condition = conditions.into_iter().flatten().find(|condition| condition.type_ == "PodScheduled");
        self.is_attempted |= condition.is_some();
        self.message = condition.and_then(|condition| condition.message.clone());
        if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) {
            self.placed.get_or_insert(now);
            let bound = condition.filter(|condition| condition.status == "True");
            self.scheduled = bound.and_then(|condition| condition.last_transition_time.as_ref()).map(|time| time.0);
        }
    }
}

/// Every pod of a run.
#[derive(Debug)]
pub struct Pods {
    seen: Mutex<BTreeMap<ObjectKey, Seen>>,
    changed: watch::Sender<()>,
    listed: watch::Sender<bool>,
}

impl Pods {
    /// No pods.
    pub(crate) fn shared() -> Arc<Self> {
        let (changed, listed) = (watch::Sender::new(()), watch::Sender::new(false));
        Arc::new(Self { seen: Mutex::default(), changed, listed })
    }

    /// All pods that are known.
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Seen>> {
        self.seen.lock()
    }

    /// A pod is about to be created.
    pub(crate) fn expect(&self, key: ObjectKey, seen: Seen) {
        self.seen.lock().insert(key, Seen { is_expected: true, ..seen });
    }

    /// Follows the pods of a run.
    pub async fn follow(self: Arc<Self>, client: Client, run: String) {
        let config = watcher::Config::default().labels(&format!("{RUN_LABEL}={run}"));
        let events = watcher::watcher(Api::<Pod>::all(client), config).default_backoff();
        let mut events = pin!(events);
        while let Some(event) = events.next().await {
            let now = Instant::now();
            match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
                    self.seen.lock().entry(key(&pod)).or_default().note(&pod, now);
                }
                Ok(Event::Delete(pod)) => {
                    if let Some(seen) = self.seen.lock().get_mut(&key(&pod)) {
                        seen.is_deleted = true;
                    }
                }
                Ok(Event::InitDone) => _ = self.listed.send_replace(true),
                // The watch is begun anew, after a pause.
                Ok(Event::Init) | Err(_) => {}
            }
            self.changed.send_replace(());
        }
    }

    /// Waits until the watch has begun.
    pub(crate) async fn followed(&self) {
        let mut listed = self.listed.subscribe();
        // The sender is ours.
        let _ = listed.wait_for(|listed| *listed).await;
    }

    /// Waits until nothing is left to wait for. `left` counts that, and `see` gets the count.
    pub(crate) async fn until_none(
        &self,
        mut left: impl FnMut(&BTreeMap<ObjectKey, Seen>) -> usize,
        mut see: impl FnMut(usize),
    ) {
        let mut changed = self.changed.subscribe();
        loop {
            let waiting = left(&self.all());
            see(waiting);
            if waiting == 0 {
                return;
            }
            // The sender is ours.
            let _ = changed.changed().await;
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Counts the pods of a selection that the scenario waits for, and of which not so much has come.
    pub(crate) fn left(selection: &Selection, stage: Stage) -> impl FnMut(&BTreeMap<ObjectKey, Seen>) -> usize + '_ {
        move |pods| {
            let meant = pods.iter().filter(|(key, seen)| seen.is_expected && selected(selection, key, seen));
            meant.filter(|(_, seen)| !seen.has_reached(stage)).count()
        }
    }
}

/// Whether a selection means a pod.
pub(crate) fn selected(selection: &Selection, key: &ObjectKey, seen: &Seen) -> bool {
    let Selection { namespaces, label_selector } = selection;
    let has = |(label, value): (&String, &String)| seen.labels.get(label) == Some(value);
    (namespaces.is_empty() || namespaces.iter().any(|namespace| namespace == key.namespace()))
        && label_selector.iter().all(has)
}

fn key(pod: &Pod) -> ObjectKey {
    ObjectKey::new(pod.namespace().as_deref().unwrap_or_default(), &pod.name_any())
}
