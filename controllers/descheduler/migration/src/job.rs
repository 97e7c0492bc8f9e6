//! The course of a PodMigrationJob as a pure function (`spec/descheduler.md` 5.6).
//!
//! [`step`] is given a job, what is seen of the objects that it concerns, and the time; it says what is to be written next. All that it knows it reads from
//! the objects, so a process that starts anywhere in the course goes on from there.
//!
//! An eviction is announced in the job before it is sent: the condition `Eviction` is `Unknown` meanwhile. A pod that is gone after that has been evicted, also
//! where the process ended before it could say so; and no pod is evicted twice.
//!
//! | file | what it is about |
//! |---|---|
//! | `course.rs` and its folder | the stages of a running job |
//! | `decision.rs` | what is to be done |
//! | `eviction.rs` | how a pod is evicted, and what an answer says |
//! | `seen.rs` | what is seen of other objects |
//! | `status.rs` | the status of a job, and its messages |

mod course;
mod decision;
mod eviction;
mod seen;
mod status;

use jiff::{SignedDuration, Timestamp};
use koord_config::descheduler::{EvictionPolicy, JobMode};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::Duration;
use koord_types::pod_migration_job::{
    PodMigrationJobMode, PodMigrationJobPhase as Phase, PodMigrationJobReason as Reason, PodMigrationJobSpec,
    PodMigrationJobStatus,
};
use serde_json::Value;

use self::{course::Course, decision::decided, status as says};
pub use self::{
    decision::{Decision, Fetch, Fetched, JobEvent, ReservationReference},
    eviction::{EVICT_POLICY, EvictionRequest, SOFT_EVICTION, refusal},
    seen::{EvictionSeen, JobPod, JobReservation, Lookup, Seen},
    status::find as condition,
};
use crate::scavenger;

/// How long a job waits for what no event announces.
const FALLBACK: SignedDuration = SignedDuration::from_secs(3);

/// The settings of all jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The mode of jobs that name none.
    pub default_mode: PodMigrationJobMode,
    /// How pods are evicted unless a label says otherwise.
    pub policy: EvictionPolicy,
    /// Whether Reservations leave volumes with claims out (`DisablePVCReservation`).
    pub drops_claims: bool,
}

impl Settings {
    /// The settings that arguments of MigrationController give.
    pub fn of(mode: JobMode, policy: EvictionPolicy, drops_claims: bool) -> Self {
        let default_mode = match mode {
            JobMode::ReservationFirst => PodMigrationJobMode::ReservationFirst,
            JobMode::EvictDirectly => PodMigrationJobMode::EvictDirectly,
        };
        Self { default_mode, policy, drops_claims }
    }
}

/// A PodMigrationJob.
#[derive(Clone, Debug, PartialEq)]
pub struct Job<'a> {
    pub name: &'a str,
    pub uid: &'a Uid,
    pub created: Timestamp,
    /// Whether it has passed arbitration.
    pub has_passed: bool,
    /// Whether object limiters do not hold it up.
    pub is_exempt: bool,
    /// The annotation `koordinator.sh/evict-reason`.
    pub evict_reason: Option<&'a str>,
    /// The annotation `koordinator.sh/evict-trigger`.
    pub evict_trigger: Option<&'a str>,
    /// The label `koordinator.sh/evict-policy`.
    pub evict_policy: Option<&'a str>,
    /// Its spec; the template is beside it.
    pub spec: &'a PodMigrationJobSpec,
    /// `spec.reservationOptions.template`.
    pub template: Option<&'a Value>,
    pub status: &'a PodMigrationJobStatus,
}

impl Job<'_> {
    /// The pod that it migrates; `None` where its reference lacks the namespace or the name.
    pub fn pod(&self) -> Option<ObjectKey> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (namespace, name) = (text(&self.spec.pod_ref.namespace)?, text(&self.spec.pod_ref.name)?);
        Some(ObjectKey::new(&namespace, &name))
    }

    /// The uid of that pod; empty as long as the job has not found it.
    pub fn pod_uid(&self) -> Uid {
        Uid::from(self.spec.pod_ref.uid.as_deref().unwrap_or_default())
    }

    /// The name of its Reservation: the one that it refers to, or else the one that it makes.
    pub fn reservation_name(&self) -> String {
        match self.reservation_ref() {
            Some(name) => name.to_owned(),
            None => crate::reservation::name(self.template, self.uid),
        }
    }

    /// The name in `spec.reservationOptions.reservationRef`.
    pub fn reservation_ref(&self) -> Option<&str> {
        let options = self.spec.reservation_options.as_ref()?;
        options.reservation_ref.as_ref()?.name.as_deref().filter(|name| !name.is_empty())
    }

    pub fn phase(&self) -> Phase {
        match &self.status.phase {
            None => Phase::Pending,
            Some(Phase::Other(text)) if text.is_empty() => Phase::Pending,
            Some(phase) => phase.clone(),
        }
    }

    /// The limit of its time; `None` without one.
    pub fn ttl(&self) -> Option<Duration> {
        scavenger::ttl(self.spec.ttl.as_deref())
    }

    fn evicts_directly(&self, settings: &Settings) -> bool {
        let mode = self.spec.mode.as_ref().filter(|mode| !mode.as_str().is_empty()).unwrap_or(&settings.default_mode);
        // A mode that is not known reserves first.
        *mode == PodMigrationJobMode::EvictDirectly
    }
}

/// What is to be done for a job now.
pub fn step(job: &Job<'_>, seen: &Seen, settings: &Settings, now: Timestamp) -> Decision {
    let (ttl, end) = (job.ttl(), scavenger::end(job.created, job.ttl()));
    if now >= end {
        let deletes_reservation = seen.reservation().is_some_and(|reservation| reservation.is_generated);
        return Decision { deletes_job: true, deletes_reservation, ..Decision::default() };
    }
    let wait = |decision: Decision| decision.not_later_than(end.duration_since(now));
    match job.phase() {
        Phase::Pending | Phase::Running => {}
        // What a failure leaves is deleted with it, or now where that did not succeed.
        Phase::Failed => {
            return wait(Decision { deletes_reservation: is_left(job.status, seen), ..Decision::default() });
        }
        Phase::Succeeded | Phase::Aborted | Phase::Other(_) => return wait(Decision::default()),
    }
    let waits_for_arbitration = job.phase() == Phase::Pending && !job.has_passed;
    if job.spec.paused || waits_for_arbitration {
        return wait(Decision::default());
    }
    let deadline = scavenger::deadline(job.created, ttl);
    if deadline.is_some_and(|deadline| now >= deadline) {
        return wait(fail(job, seen, &Reason::Timeout, says::TIMEOUT.to_owned()));
    }
    let course = Course { job, seen, settings, now };
    let decision = wait(if job.phase() == Phase::Pending { start(&course) } else { course.run() });
    match deadline {
        Some(deadline) => decision.not_later_than(deadline.duration_since(now)),
        None => decision,
    }
}

/// The eviction that a job would ask for now; `None` where its pod is not there.
pub fn eviction_request(job: &Job<'_>, seen: &Seen, settings: &Settings) -> Option<EvictionRequest> {
    let pod = seen.pod.found().filter(|pod| pod.uid == job.pod_uid())?;
    Some(EvictionRequest::of(job, &job.pod()?, pod, settings.policy))
}

/// A job that has passed arbitration finds its pod and begins.
fn start(course: &Course<'_>) -> Decision {
    let (job, seen) = (course.job, course.seen);
    let Some(pod) = job.pod() else {
        return fail(job, seen, &Reason::Other(says::INVALID_POD_REF.to_owned()), says::INVALID_POD.to_owned());
    };
    course.identify(&pod).unwrap_or_else(|| {
        let status = PodMigrationJobStatus { phase: Some(Phase::Running), ..job.status.clone() };
        decided(job.status, status)
    })
}

/// The job ends without success. Its Reservation goes, unless a pod uses it.
fn fail(job: &Job<'_>, seen: &Seen, reason: &Reason, message: String) -> Decision {
    let mut status = job.status.clone();
    status.phase = Some(Phase::Failed);
    reason.as_str().clone_into(&mut status.reason);
    message.clone_into(&mut status.message);
    let deletes_reservation = is_left(&status, seen);
    let event = JobEvent::warning(says::event_of(reason), message);
    Decision { deletes_reservation, events: vec![event], ..decided(job.status, status) }
}

/// Whether a failed job leaves a Reservation of its own. One that a pod uses stays, unless the time of the job is over.
fn is_left(status: &PodMigrationJobStatus, seen: &Seen) -> bool {
    let is_timeout = status.reason == Reason::Timeout.as_str();
    seen.reservation().is_some_and(|reservation| reservation.is_generated && (is_timeout || !reservation.is_used()))
}

#[cfg(test)]
mod every_path;
#[cfg(test)]
mod tests;
