//! The controller of PodMigrationJobs: caches, the decisions of [`step`], and what they write.
//!
//! It reads pods in the cache that the program has of them ([`PodProjection`]), and asks the API server for a whole pod only when a Reservation is made of it.
//! Evictions are effects, as fast as `evictQPS` and `evictBurst` allow.

mod api;
mod counter;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tests;
mod view;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_config::descheduler::MigrationControllerArgs;
use koord_descheduler_framework::Pod;
use koord_resource::{controller, controller::ResourceKind, schema::patch::merge};
use koord_runtime::{
    cache::{Change, Entry},
    controller::{Controller, Requests},
    effect::{EffectLimits, Effects, Progress},
    error::{Fault, ReconcileError},
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    outcome::Outcome,
    prometheus,
    store::Store,
    uid::Uid,
    write::{Action, Write},
};
use koord_types::{pod_migration_job::PodMigrationJobStatus, reservation::Reservation};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use self::api::{Evictions, fetch};
pub use self::{
    api::{Answered, Requester},
    counter::{COMMUNITY_PODS_EVICTED, COMMUNITY_PODS_EVICTED_TOTAL, EndedEviction, EvictionCounter, PODS_EVICTED},
    view::{JobView, PodProjection, ReservationView},
};
use crate::{
    job::{
        Decision, EvictionRequest, EvictionSeen, Fetch, Fetched, Job, JobEvent, JobPod, Lookup, Seen, Settings,
        eviction_request, step,
    },
    reservation::{RESERVATION_ORDER, object_of},
};

/// The component of its events.
pub const COMPONENT: &str = "koord-descheduler";
/// What its events say that it does.
const MIGRATING: &str = "Migrating";

/// What is looked up is asked for again when the caches do not show it for so long.
const FETCHES: EffectLimits = EffectLimits {
    concurrency: 4,
    backoff_max: Duration::from_secs(30),
    refresh: Some(Duration::from_secs(3)),
    ..EffectLimits::DEFAULT
};

/// Limits of evictions over time, by workload and namespace.
pub trait ObjectLimits: Send + Sync + 'static {
    /// How long the limits hold up the eviction of a pod for a job; `None` where they do not.
    fn hold_up(&self, pod: &Arc<Pod>, job: &Uid, now: Timestamp) -> Option<Duration>;

    /// A pod was evicted for a job. The pod is as it was before.
    fn evicted(&self, pod: &Arc<Pod>, job: &Uid, now: Timestamp);
}

/// How fast pods are evicted.
fn eviction_limits(args: &MigrationControllerArgs) -> EffectLimits {
    let per_second = match &args.evict_qps {
        Value::String(text) => text.parse().unwrap_or_default(),
        number => number.as_f64().unwrap_or_default(),
    };
    EffectLimits {
        concurrency: 16,
        per_second: per_second as f32,
        burst: u32::try_from(args.evict_burst).unwrap_or(1).max(1),
        backoff_max: Duration::from_secs(30),
        ..EffectLimits::DEFAULT
    }
}

/// Brings PodMigrationJobs to their end.
#[controller(
    name = "podmigrationjob",
    for(jobs, writes = [patch, status, delete]),
    watches(reservations, by = Self::reservation_changed, writes = [create, patch, delete]),
    watches(pods, by = Self::pod_changed),
    rbac(group = "", resource = "pods", verbs = [get, patch, delete]),
    rbac(group = "", resource = "pods/eviction", verbs = [create]),
    rbac(group = "scheduling.koordinator.sh", resource = "reservations", verbs = [get]),
    rate_limit(max_ms = 30000),
    arguments(args: &MigrationControllerArgs, drops_claims: bool, requester: Arc<dyn Requester>, evicted: EvictionCounter),
    init(
        settings = Settings::of(args.default_job_mode, args.eviction_policy, drops_claims),
        fetches = wiring.effects("fetches", FETCHES),
        evictions = wiring.effects("evictions", eviction_limits(args)),
        evicts = Evictions::new(requester, evicted),
        refused,
    ),
    error = prometheus::Error,
)]
pub struct JobController<P: PodProjection> {
    jobs: Arc<Store<JobView>>,
    reservations: Arc<Store<ReservationView>>,
    pods: Arc<Store<P>>,
    settings: Settings,
    limits: Arc<dyn ObjectLimits>,
    fetches: Arc<Effects<Fetch, Option<Arc<Value>>>>,
    evictions: Arc<Effects<EvictionRequest, ()>>,
    evicts: Evictions,
    /// Why Reservations were refused, by job.
    refused: Arc<Mutex<BTreeMap<ObjectKey, String>>>,
}

impl<P: PodProjection> JobController<P> {
    /// A Reservation changed: those jobs go on that refer to it, and the one that made it.
    fn reservation_changed(&self, change: &Change<ReservationView>, requests: &mut Requests) {
        let of_job = |entry: &Entry<ReservationView>| entry.value.job().map(|owner| ObjectKey::cluster(&owner.name));
        for key in [&change.old, &change.new].into_iter().flatten().filter_map(of_job) {
            requests.enqueue(&key);
        }
        self.jobs.read().index().1.get(change.key.name()).for_each(|job| requests.enqueue(job));
    }

    /// A pod changed: those jobs go on that migrate it, or wait for it.
    fn pod_changed(&self, change: &Change<P>, requests: &mut Requests) {
        self.jobs.read().index().0.get(&change.key).for_each(|job| requests.enqueue(job));
    }

    fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        Some(Arc::clone(self.pods.read().get(key.as_str())?.value.pod()))
    }

    /// What the API server has answered about an object.
    fn fetched(&self, job: &ObjectKey, of: Fetched, key: &ObjectKey, uid: &Uid) -> Lookup<Arc<Value>> {
        let fetch = Fetch { of, key: key.clone(), uid: uid.clone() };
        match self.fetches.progress(job, &fetch) {
            Progress::Done(found) => found.as_ref().clone().map_or(Lookup::Absent, Lookup::Found),
            Progress::Pending | Progress::Failed { .. } => Lookup::Unknown,
        }
    }

    /// An object that no cache shows is not there only where the API server says so.
    fn absent<T>(&self, job: &ObjectKey, of: Fetched, key: &ObjectKey) -> Lookup<T> {
        match self.fetched(job, of, key, &Uid::default()) {
            Lookup::Absent => Lookup::Absent,
            Lookup::Unknown | Lookup::Found(_) => Lookup::Unknown,
        }
    }

    fn look_up_pod(&self, job: &ObjectKey, key: &ObjectKey) -> Lookup<JobPod> {
        self.pod(key).map_or_else(|| self.absent(job, Fetched::Pod, key), |pod| Lookup::Found(JobPod::of(&pod)))
    }

    fn see(&self, key: &ObjectKey, job: &Job<'_>, now: Timestamp) -> Seen {
        let mut seen = Seen { creation_error: self.refused.lock().get(key).cloned(), ..Seen::default() };
        let name = job.reservation_name();
        seen.reservation = match self.reservations.read().get(&name) {
            Some(entry) => Lookup::Found(entry.value.of_job(entry, job)),
            None => self.absent(key, Fetched::Reservation, &ObjectKey::cluster(&name)),
        };
        if let Some(pod) = job.pod() {
            seen.pod = self.look_up_pod(key, &pod);
            seen.whole_pod = self.fetched(key, Fetched::Pod, &pod, &job.pod_uid());
            if let Some(request) = eviction_request(job, &seen, &self.settings) {
                seen.eviction = match self.evictions.progress(key, &request) {
                    Progress::Pending => EvictionSeen::Pending,
                    Progress::Done(_) => EvictionSeen::Accepted,
                    Progress::Failed { error, .. } => EvictionSeen::Refused(error.message),
                };
            }
            seen.limited = self.pod(&pod).and_then(|pod| self.limits.hold_up(&pod, job.uid, now));
        }
        let bound = job.status.pod_ref.as_ref();
        let owner = bound.or_else(|| seen.reservation.found()?.current_owners.first());
        if let Some(owner) = owner {
            let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
            let pod = ObjectKey::new(&text(&owner.namespace), &text(&owner.name));
            seen.new_pod = self.look_up_pod(key, &pod);
        }
        seen
    }

    /// A job that is gone takes the Reservation along that it has made.
    fn clean_up(&self, outcome: &mut Outcome, key: &ObjectKey, uid: Option<&Uid>) {
        let reservations = self.reservations.read();
        let orphans = reservations.index().get(key.name()).filter(|reservation| {
            let owner = reservations.get(reservation.as_str()).and_then(|entry| entry.value.job());
            owner.is_some_and(|owner| uid.is_none_or(|uid| owner.uid != *uid))
        });
        orphans.for_each(|reservation| outcome.absent(&reservations, reservation));
    }

    fn write(
        &self,
        outcome: &mut Outcome,
        (key, job): (&ObjectKey, &Job<'_>),
        decision: Decision,
    ) -> Result<(), ReconcileError> {
        let (jobs, reservations) = (self.jobs.read(), self.reservations.read());
        let reservation = ObjectKey::cluster(&job.reservation_name());
        if decision.deletes_reservation {
            outcome.absent(&reservations, &reservation);
        }
        if decision.deletes_job {
            outcome.absent(&jobs, key);
        }
        if let Some(order) = decision.reservation_order {
            let labels = json!({"metadata": {"labels": {RESERVATION_ORDER: order}}});
            outcome.change(&reservations, &reservation, "", object(labels));
        }
        if let Some(uid) = decision.pod_uid {
            outcome.change(&jobs, key, "", object(json!({"spec": {"podRef": {"uid": uid}}})));
        }
        if let Some(template) = &decision.template {
            let patch = merge::diff(job.template.unwrap_or(&Value::Null), template).unwrap_or_default();
            outcome.change(&jobs, key, "", object(json!({"spec": {"reservationOptions": {"template": patch}}})));
        }
        if let Some(reference) = decision.reservation_ref {
            let reference = json!({"name": reference.name, "uid": reference.uid});
            outcome.change(
                &jobs,
                key,
                "",
                object(json!({"spec": {"reservationOptions": {"reservationRef": reference}}})),
            );
        }
        if let Some(status) = &decision.status {
            outcome.status(&jobs, key, status)?;
        }
        match job.template {
            Some(template) if decision.creates_reservation => self.create(outcome, (key, job), template),
            _ => {}
        }
        Ok(())
    }

    fn create(&self, outcome: &mut Outcome, (key, job): (&ObjectKey, &Job<'_>), template: &Value) {
        let (kind, reservation) = (ResourceKind::typed::<Reservation>(), ObjectKey::cluster(&job.reservation_name()));
        let action = Action::Create(object_of(template, job.name, job.uid));
        outcome.plan.push(Write { kind, key: reservation.clone(), action });
        let (refused, key) = (Arc::clone(&self.refused), key.clone());
        outcome.remember_of(kind, &reservation, move |result| match result {
            // One that exists already will be seen.
            Err(error) if !error.stale => drop(refused.lock().insert(key, error.message.clone())),
            Ok(()) | Err(_) => drop(refused.lock().remove(&key)),
        });
    }

    fn ask(&self, outcome: &mut Outcome, (key, job): (&ObjectKey, &Uid), decision: &Decision, now: Timestamp) {
        if let Some(lookup) = &decision.fetch {
            let work = fetch(self.evicts.requester(), lookup.clone());
            drop(outcome.effect(&self.fetches, key, lookup.clone(), work));
        }
        if let Some(request) = &decision.eviction {
            let count = self.pod(&request.pod).map(|pod| {
                let (limits, job) = (Arc::clone(&self.limits), job.clone());
                move || limits.evicted(&pod, &job, now)
            });
            let work = self.evicts.evict(request.clone(), now, count);
            drop(outcome.effect(&self.evictions, key, request.clone(), work));
        }
    }
}

impl<P: PodProjection> Controller for JobController<P> {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let mut outcome = Outcome::settled();
        let entry = self.jobs.read().get(key.as_str()).cloned();
        self.clean_up(&mut outcome, key, entry.as_ref().map(|entry| &entry.uid));
        let Some(entry) = entry.filter(|entry| !entry.deleting) else {
            let (refused, key) = (Arc::clone(&self.refused), key.clone());
            outcome.remember(move || drop(refused.lock().remove(&key)));
            return Ok(outcome);
        };
        let template = entry.value.template().map_err(|error| ReconcileError::never(Fault::User, error.to_string()))?;
        let nothing = PodMigrationJobStatus::default();
        let job = entry.value.job(key.name(), &entry.uid, template.as_ref(), &nothing);
        let seen = self.see(key, &job, now);
        let decision = step(&job, &seen, &self.settings, now);

        self.ask(&mut outcome, (key, &entry.uid), &decision, now);
        for event in &decision.events {
            outcome.event(report(event, (key, &entry), &job));
        }
        if let Some(again) = decision.again {
            // Not at once: clocks for waiting and for limits may differ by less than that.
            let again = Duration::try_from(again).unwrap_or_default().max(Duration::from_millis(1));
            outcome.requeue_after(again);
        }
        self.write(&mut outcome, (key, &job), decision)?;
        Ok(outcome)
    }
}

/// An event about a job, or about its pod.
fn report(event: &JobEvent, (key, entry): (&ObjectKey, &Entry<JobView>), job: &Job<'_>) -> Event {
    let type_ = if event.is_warning { EventType::Warning } else { EventType::Normal };
    let of_job = Event::normal((key, entry), MIGRATING, event.reason, event.message.clone());
    match job.pod().filter(|_| event.is_about_pod) {
        Some(pod) => {
            let about = Regarded { kind: ResourceKind::POD, key: pod, uid: job.pod_uid() };
            Event::new(about, type_, MIGRATING, event.reason, event.message.clone())
        }
        None => Event { type_, ..of_job },
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
