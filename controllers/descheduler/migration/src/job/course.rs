//! The stages of a running job.

mod eviction;
mod reservation;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_types::pod_migration_job::{
    PodMigrationJobConditionType as Type, PodMigrationJobReason as Reason, PodMigrationJobStatus,
};

use super::{
    Decision, FALLBACK, Fetch, Fetched, Job, JobEvent, JobPod, Lookup, Seen, Settings,
    decision::decided,
    fail,
    status::{self as says, Says, find, is_true, set, set_condition, succeed},
};

/// A job that has begun.
#[derive(Clone, Copy)]
pub(super) struct Course<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) seen: &'a Seen,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
}

/// The pod of the job, as it is now.
enum Pod<'a> {
    /// It is there.
    There(&'a JobPod),
    /// It is not, or its name belongs to another now.
    Gone,
    Unknown,
}

impl<'a> Course<'a> {
    pub(super) fn run(&self) -> Decision {
        let Some(pod) = self.job.pod() else {
            let reason = Reason::Other(says::INVALID_POD_REF.to_owned());
            return self.fail(&reason, says::INVALID_POD);
        };
        let is_announced = find(self.status(), &Type::Eviction).is_some();
        if !is_announced {
            // A job never counts against itself: its own eviction fills the limiter.
            if let Some(wait) = self.seen.limited.filter(|_| !self.job.is_exempt) {
                let wait = SignedDuration::try_from(wait).unwrap_or(FALLBACK);
                return Decision::default().not_later_than(wait.min(FALLBACK));
            }
            if self.job.pod_uid().is_empty()
                && let Some(decision) = self.identify(&pod)
            {
                return decision;
            }
        }
        if self.job.evicts_directly(self.settings) {
            return self.evict(&pod).unwrap_or_else(|| self.succeed(says::evicted(&pod)));
        }
        self.reserve(&pod).or_else(|| self.schedule(&pod)).or_else(|| self.evict(&pod)).unwrap_or_else(|| self.bind())
    }

    /// Finds the pod of the job and writes its uid. `None` when it is known; another pod of that name is not the job's.
    pub(super) fn identify(&self, key: &ObjectKey) -> Option<Decision> {
        let uid = self.job.pod_uid();
        match &self.seen.pod {
            Lookup::Unknown => Some(Decision::fetching(Fetched::Pod, key.clone())),
            Lookup::Absent => Some(self.fail(&Reason::MissingPod, says::missing_pod(key))),
            Lookup::Found(pod) if uid.is_empty() => {
                Some(Decision { pod_uid: Some(pod.uid.clone()), ..Decision::default() })
            }
            Lookup::Found(pod) if pod.uid != uid => Some(self.fail(&Reason::MissingPod, says::other_pod(key))),
            Lookup::Found(_) => None,
        }
    }

    /// Waits until a pod uses the Reservation and is ready.
    fn bind(&self) -> Decision {
        let reservation = self.seen.reservation();
        let bound = self.status().pod_ref.as_ref();
        let Some(owner) = bound.or_else(|| reservation?.current_owners.first()) else {
            let says = Says::no(Reason::WaitForPodBindReservation);
            return self.write(|status| set(status, &Type::PodBoundReservation, says, self.now));
        };
        let key = key_of(owner);
        let message = says::bound(&key, &self.job.reservation_name());
        if is_true(self.status(), &Type::BoundPodReady) {
            let event = JobEvent::normal(says::COMPLETE, message.clone());
            let decision = self.write(|status| {
                set(status, &Type::PodBoundReservation, Says::yes().because(message.clone()), self.now);
                succeed(status, message);
            });
            return decision.with_event(event);
        }
        let uid = Uid::from(owner.uid.as_deref().unwrap_or_default());
        let is_ready = match &self.seen.new_pod {
            Lookup::Unknown => None,
            Lookup::Found(pod) if uid.is_empty() || pod.uid == uid => Some(pod.is_ready),
            // QUIRK: a pod that is gone again counts as ready; its successor is its controller's affair.
            Lookup::Absent | Lookup::Found(_) => Some(true),
        };
        let mut decision = self.write(|status| {
            let ObjectReference { namespace, name, uid, .. } = owner.clone();
            status.pod_ref = Some(ObjectReference { namespace, name, uid, ..ObjectReference::default() });
            set_condition(status, &Type::ReservationBound, Says::yes(), self.now);
            match is_ready {
                Some(true) => set(status, &Type::BoundPodReady, Says::yes(), self.now),
                Some(false) => {
                    set(status, &Type::BoundPodReady, Says::no(Reason::WaitForBoundPodReady), self.now);
                }
                None => {}
            }
        });
        if decision.status.is_some() && bound.is_none() {
            decision.events.push(JobEvent::normal("PodBoundReservation", message));
        }
        if is_ready == Some(true) {
            decision.events.push(JobEvent::normal("BoundPodReady", format!("Pod \"{key}\" is ready")));
        }
        if is_ready.is_none() {
            decision.fetch = Some(Fetch { of: Fetched::Pod, key, uid: Uid::default() });
        }
        decision
    }

    fn succeed(&self, message: String) -> Decision {
        let event = JobEvent::normal(says::COMPLETE, message.clone());
        self.write(|status| succeed(status, message)).with_event(event)
    }

    fn fail(&self, reason: &Reason, message: impl Into<String>) -> Decision {
        fail(self.job, self.seen, reason, message.into())
    }

    fn write(&self, change: impl FnOnce(&mut PodMigrationJobStatus)) -> Decision {
        let mut status = self.status().clone();
        change(&mut status);
        decided(self.status(), status)
    }

    fn status(&self) -> &'a PodMigrationJobStatus {
        self.job.status
    }

    /// Whether a pod has taken the Reservation, which then is not needed any more.
    fn is_bound(&self) -> bool {
        self.status().pod_ref.is_some()
    }

    /// The uid of the Reservation that the job has made; empty for another.
    fn reservation_uid(&self) -> Uid {
        let options = self.job.spec.reservation_options.as_ref();
        let reference = options.and_then(|options| options.reservation_ref.as_ref());
        Uid::from(reference.and_then(|reference| reference.uid.as_deref()).unwrap_or_default())
    }

    fn pod(&self) -> Pod<'a> {
        match &self.seen.pod {
            Lookup::Unknown => Pod::Unknown,
            Lookup::Found(pod) if pod.uid == self.job.pod_uid() => Pod::There(pod),
            Lookup::Absent | Lookup::Found(_) => Pod::Gone,
        }
    }
}

fn key_of(reference: &ObjectReference) -> ObjectKey {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    ObjectKey::new(&text(&reference.namespace), &text(&reference.name))
}
