//! What is to be done for a job.

use jiff::SignedDuration;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_types::pod_migration_job::PodMigrationJobStatus;
use serde::Serialize;
use serde_json::Value;

use super::eviction::EvictionRequest;

/// What is to be done for a job. At most one thing is written into the job itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The status that the job shall have; `None` to leave it.
    pub status: Option<PodMigrationJobStatus>,
    /// The uid that the reference to the pod shall have.
    pub pod_uid: Option<Uid>,
    /// The Reservation that is stored in the job before it is created.
    pub template: Option<Value>,
    /// The Reservation that the job shall refer to.
    pub reservation_ref: Option<ReservationReference>,
    /// Whether the Reservation that the job holds is created.
    pub creates_reservation: bool,
    /// The label `scheduling.koordinator.sh/reservation-order` that the Reservation shall have.
    pub reservation_order: Option<String>,
    pub deletes_reservation: bool,
    pub deletes_job: bool,
    /// The eviction that is wanted; where it was wanted before it goes on.
    pub eviction: Option<EvictionRequest>,
    /// The object that has to be looked up before the job can go on.
    pub fetch: Option<Fetch>,
    /// When to look at the job again although nothing may have changed.
    pub again: Option<SignedDuration>,
    pub events: Vec<JobEvent>,
}

/// A Reservation by its name, and by its uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationReference {
    pub name: String,
    pub uid: Uid,
}

/// An object that is looked up at the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fetch {
    pub of: Fetched,
    #[serde(serialize_with = "super::eviction::as_text")]
    pub key: ObjectKey,
    /// Another object of this name is none; empty for any.
    pub uid: Uid,
}

/// The kind of an object that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Fetched {
    Pod,
    Reservation,
}

/// An event about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    pub is_warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// Whether it is about the pod instead.
    pub is_about_pod: bool,
}

impl JobEvent {
    pub(super) fn normal(reason: &'static str, message: String) -> Self {
        Self { is_warning: false, reason, message, is_about_pod: false }
    }

    pub(super) fn warning(reason: &'static str, message: String) -> Self {
        Self { is_warning: true, ..Self::normal(reason, message) }
    }
}

/// The job shall have this status; nothing is written where it has it.
pub(super) fn decided(old: &PodMigrationJobStatus, new: PodMigrationJobStatus) -> Decision {
    Decision { status: (*old != new).then_some(new), ..Decision::default() }
}

impl Decision {
    /// Nothing can be said before this object was looked up.
    pub(super) fn fetching(of: Fetched, key: ObjectKey) -> Self {
        Self { fetch: Some(Fetch { of, key, uid: Uid::default() }), ..Self::default() }
    }

    /// The pod of the job is needed whole.
    pub(super) fn fetching_whole(key: &ObjectKey, uid: Uid) -> Self {
        Self { fetch: Some(Fetch { of: Fetched::Pod, key: key.clone(), uid }), ..Self::default() }
    }

    pub(super) fn with_event(mut self, event: JobEvent) -> Self {
        // A status that stays is no news.
        if self.status.is_some() {
            self.events.push(event);
        }
        self
    }

    pub(super) fn not_later_than(self, span: SignedDuration) -> Self {
        Self { again: Some(self.again.map_or(span, |again| again.min(span))), ..self }
    }
}
