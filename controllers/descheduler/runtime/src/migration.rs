//! Arbitration and object limiters of PodMigrationJobs, between the snapshot and the API server.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use koord_descheduler_framework::{Cluster, Pod};
use koord_descheduler_migration::{
    MigrationController, MigrationJob, ObjectLimiters,
    arbitration::{Decision, forbidden_message},
    controller::{Answered, ObjectLimits, Requester},
    jobs::PASSED_ARBITRATION,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    clock::Moment,
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    uid::Uid,
    write::{Action, WireRequest, Write},
};
use koord_types::pod_migration_job::PodMigrationJob;
use parking_lot::{Mutex, RwLock};
use serde_json::json;

/// The snapshot, which the controller of jobs reads between two changes.
pub(crate) type SharedCluster = Arc<Mutex<Cluster>>;

/// The plugin, which another configuration replaces.
type SharedPlugin = Arc<RwLock<Arc<MigrationController>>>;

/// What the plugin MigrationController needs beside passes.
pub struct Migration {
    plugin: SharedPlugin,
    limiters: Arc<Mutex<ObjectLimiters>>,
    /// Jobs that have passed in this process, and do not show it yet.
    passed: BTreeSet<Uid>,
    interval: Duration,
    /// When jobs are arbitrated next; `None` while none waits and none has changed.
    next: Option<Moment>,
    /// How often jobs had changed when they were arbitrated last.
    arbitrated: u64,
}

/// What becomes of a job that has waited.
pub(crate) struct Verdict {
    pub(crate) uid: Uid,
    pub(crate) write: Write,
    /// What is reported when that is written; `None` for a job that may start.
    pub(crate) event: Option<Event>,
}

impl Migration {
    /// Arbitration by a plugin, this often.
    pub fn new(plugin: Arc<MigrationController>, interval: Duration) -> Self {
        let plugin = Arc::new(RwLock::new(plugin));
        Self { plugin, limiters: Arc::default(), passed: BTreeSet::new(), interval, next: None, arbitrated: 0 }
    }

    /// Another configuration is in effect. The limiters know what they knew.
    pub(crate) fn reconfigure(&mut self, plugin: Arc<MigrationController>, interval: Duration) {
        *self.plugin.write() = plugin;
        self.interval = interval;
    }

    pub(crate) fn limits(&self, cluster: SharedCluster) -> Arc<dyn ObjectLimits> {
        Arc::new(Limits { plugin: Arc::clone(&self.plugin), limiters: Arc::clone(&self.limiters), cluster })
    }

    /// Lets a pass know the object limiters as they are.
    pub(crate) fn prepare(&self, cluster: &mut Cluster) {
        self.limiters.lock().clone().store(cluster);
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Where jobs have come or changed since the last time, they are arbitrated after an interval. Which of them wait is looked at then: as many jobs as
    /// there are would otherwise be looked at for each change of one.
    pub(crate) fn changed(&mut self, cluster: &Cluster, now: Moment) {
        if self.next.is_none() && self.arbitrated != changes(cluster) {
            self.next = Some(now + self.interval);
        }
    }

    /// Decides about all jobs that wait. Those that stay are not among the verdicts.
    pub(crate) fn arbitrate(&mut self, cluster: &Cluster, now: Moment) -> Vec<Verdict> {
        self.arbitrated = changes(cluster);
        let seen: BTreeSet<&Uid> = MigrationJob::all(cluster)
            .filter(|job| job.is_live() && !job.has_passed_arbitration)
            .map(|job| &job.uid)
            .collect();
        self.passed.retain(|uid| seen.contains(uid));
        let plugin = Arc::clone(&self.plugin.read());
        let decided = plugin.arbitrate(cluster, &self.passed);
        self.next = (!decided.is_empty()).then(|| now + self.interval);
        decided.into_iter().filter_map(|arbitrated| verdict(arbitrated.job, &arbitrated.decision)).collect()
    }

    /// A job has passed, though the snapshot does not show it yet.
    pub(crate) fn passed(&mut self, job: Uid) {
        self.passed.insert(job);
    }
}

/// How often jobs have changed.
fn changes(cluster: &Cluster) -> u64 {
    cluster.objects().changes::<MigrationJob>()
}

fn verdict(job: &MigrationJob, decision: &Decision) -> Option<Verdict> {
    let (kind, key) = (ResourceKind::typed::<PodMigrationJob>(), ObjectKey::cluster(&job.name));
    let (subresource, patch, event) = match decision {
        Decision::Stay(_) => return None,
        Decision::Pass => {
            let annotations = json!({PASSED_ARBITRATION: "true"});
            ("", json!({"metadata": {"uid": job.uid, "annotations": annotations}}), None)
        }
        Decision::Fail(refusal) => {
            let message = forbidden_message(job);
            let status = json!({"phase": "Failed", "reason": "ForbiddenMigratePod", "message": message});
            let about = Regarded { kind, key: key.clone(), uid: job.uid.clone() };
            let text = format!("{message}: {refusal}");
            let event = Event::new(about, EventType::Warning, "Migrating", "ForbiddenMigratePod", text);
            ("status", json!({"metadata": {"uid": job.uid}, "status": status}), Some(event))
        }
    };
    let write = Write { kind, key, action: Action::Patch { subresource, patch } };
    Some(Verdict { uid: job.uid.clone(), write, event })
}

/// Object limiters over the snapshot.
struct Limits {
    plugin: SharedPlugin,
    limiters: Arc<Mutex<ObjectLimiters>>,
    cluster: SharedCluster,
}

impl ObjectLimits for Limits {
    fn hold_up(&self, pod: &Arc<Pod>, job: &Uid, now: Timestamp) -> Option<Duration> {
        let cluster = self.cluster.lock();
        let held_up = self.plugin.read().hold_up(&self.limiters.lock(), &cluster, pod, Some(job), now);
        held_up.map(|held_up| held_up.for_)
    }

    fn evicted(&self, pod: &Arc<Pod>, job: &Uid, now: Timestamp) {
        let cluster = self.cluster.lock();
        self.plugin.read().count_eviction(&mut self.limiters.lock(), &cluster, pod, Some(job), now);
    }
}

/// A connection to the API server that is made after what uses it.
#[derive(Clone, Default)]
pub struct LateRequester(Arc<OnceLock<Api>>);

impl LateRequester {
    pub fn connect(&self, api: Api) {
        // Only the first connection counts.
        let _ = self.0.set(api);
    }
}

impl Requester for LateRequester {
    fn call(&self, request: WireRequest) -> Answered {
        match self.0.get() {
            Some(api) => Requester::call(api, request),
            None => Box::pin(async { Err("the program has not started yet".to_owned()) }),
        }
    }
}
