//! What is kept of jobs and Reservations, and how a pod is read.

use std::sync::Arc;

use jiff::Timestamp;
use koord_descheduler_framework::{Pod, pod::EVICT};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    cache::Entry,
    index::{By, Term},
    intern::Interner,
    key::ObjectKey,
    outcome::WithStatus,
    ownership::Owner,
    projection::{DecodeError, Labels, Projection, WireObject, part},
    uid::Uid,
};
use koord_types::{
    pod_migration_job::{PodMigrationJob, PodMigrationJobSpec, PodMigrationJobStatus},
    reservation::{Reservation, ReservationCondition, ReservationOwner, ReservationStatus},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    job::{EVICT_POLICY, Job, JobReservation},
    jobs::{EVICT_REASON, EVICT_TRIGGER, PASSED_ARBITRATION},
    reservation::{CREATED_BY_LABEL, DESCHEDULER, RESERVATION_ORDER},
};

/// A projection of pods that keeps what the framework knows of them, with key and uid. A program has one cache of it for all who read pods.
pub trait PodProjection: Projection {
    fn pod(&self) -> &Arc<Pod>;
}

/// A PodMigrationJob. The template of its Reservation, which is as large as a pod, is kept as text.
#[derive(Debug, PartialEq)]
pub struct JobView {
    labels: Labels,
    annotations: Labels,
    created: Timestamp,
    spec: PodMigrationJobSpec,
    template: Option<Box<str>>,
    status: Option<PodMigrationJobStatus>,
}

/// What is read of a job.
#[derive(Deserialize)]
pub struct JobMembers<'a> {
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

impl Projection for JobView {
    const KIND: ResourceKind = ResourceKind::typed::<PodMigrationJob>();
    type Wire<'a> = WireObject<'a, JobMembers<'a>>;
    type Index = (By<Self, ByPod>, By<Self, ByReservation>);

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let (metadata, JobMembers { spec, status }) = (wire.metadata, wire.members);
        let mut spec: PodMigrationJobSpec = part("spec", spec)?;
        let template = spec.reservation_options.as_mut().and_then(|options| options.template.take());
        Ok(Self {
            labels: Labels::read_some("metadata.labels", metadata.labels, strings, |key| key == EVICT_POLICY)?,
            annotations: Labels::read_some("metadata.annotations", metadata.annotations, strings, |key| {
                [PASSED_ARBITRATION, EVICT, EVICT_REASON, EVICT_TRIGGER].contains(&key)
            })?,
            created: metadata.created()?.unwrap_or(Timestamp::UNIX_EPOCH),
            spec,
            template: template.map(|template| template.to_string().into()),
            status: part("status", status)?,
        })
    }
}

impl WithStatus for JobView {
    type Status = PodMigrationJobStatus;

    fn status(&self) -> Option<&Self::Status> {
        self.status.as_ref()
    }
}

impl JobView {
    /// `spec.reservationOptions.template`.
    pub(super) fn template(&self) -> serde_json::Result<Option<Value>> {
        self.template.as_deref().map(serde_json::from_str).transpose()
    }

    pub(super) fn job<'a>(
        &'a self,
        name: &'a str,
        uid: &'a Uid,
        template: Option<&'a Value>,
        nothing: &'a PodMigrationJobStatus,
    ) -> Job<'a> {
        Job {
            name,
            uid,
            created: self.created,
            has_passed: self.annotations.get(PASSED_ARBITRATION) == Some("true"),
            is_exempt: self.annotations.get(EVICT).is_some(),
            evict_reason: self.annotations.get(EVICT_REASON),
            evict_trigger: self.annotations.get(EVICT_TRIGGER),
            evict_policy: self.labels.get(EVICT_POLICY),
            spec: &self.spec,
            template,
            status: self.status.as_ref().unwrap_or(nothing),
        }
    }
}

/// Jobs by the pods that they migrate and wait for.
#[derive(Debug)]
pub struct ByPod;

impl Term<JobView> for ByPod {
    type Value = ObjectKey;

    fn terms(_: &ObjectKey, job: &JobView, found_by: &mut dyn FnMut(ObjectKey)) {
        let new = job.status.as_ref().and_then(|status| status.pod_ref.as_ref());
        for pod in [Some(&job.spec.pod_ref), new].into_iter().flatten() {
            let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
            found_by(ObjectKey::new(&text(&pod.namespace), &text(&pod.name)));
        }
    }
}

/// Jobs by the Reservation that they refer to.
#[derive(Debug)]
pub struct ByReservation;

impl Term<JobView> for ByReservation {
    type Value = String;

    fn terms(_: &ObjectKey, job: &JobView, found_by: &mut dyn FnMut(String)) {
        let options = job.spec.reservation_options.as_ref();
        let reference = options.and_then(|options| options.reservation_ref.as_ref());
        if let Some(name) = reference.and_then(|reference| reference.name.clone()) {
            found_by(name);
        }
    }
}

/// A Reservation.
#[derive(Debug, PartialEq)]
pub struct ReservationView {
    labels: Labels,
    controller: Option<Owner>,
    is_for_pod: bool,
    status: ReservationStatus,
}

/// What is read of a Reservation.
#[derive(Deserialize)]
pub struct ReservationMembers<'a> {
    #[serde(default)]
    spec: Option<ReservationSpec>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ReservationSpec {
    #[serde(default)]
    owners: Option<Vec<ReservationOwner>>,
}

impl Projection for ReservationView {
    const KIND: ResourceKind = ResourceKind::typed::<Reservation>();
    type Wire<'a> = WireObject<'a, ReservationMembers<'a>>;
    type Index = By<Self, ByJob>;

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let (metadata, ReservationMembers { spec, status }) = (wire.metadata, wire.members);
        let status: Option<ReservationStatus> = part("status", status)?;
        let status = status.unwrap_or_default();
        let timeless = |condition: ReservationCondition| ReservationCondition {
            last_probe_time: None,
            last_transition_time: None,
            ..condition
        };
        let owners = spec.and_then(|spec| spec.owners).unwrap_or_default();
        let is_object = |owner: &ReservationOwner| {
            owner.object.is_some() && owner.controller.is_none() && owner.label_selector.is_none()
        };
        Ok(Self {
            labels: Labels::read_some("metadata.labels", metadata.labels, strings, |key| {
                [CREATED_BY_LABEL, RESERVATION_ORDER].contains(&key)
            })?,
            controller: Owner::read(metadata.owner_references, strings)?,
            is_for_pod: owners.iter().any(is_object),
            status: ReservationStatus {
                conditions: status.conditions.into_iter().map(timeless).collect(),
                phase: status.phase,
                current_owners: status.current_owners,
                node_name: status.node_name,
                ..ReservationStatus::default()
            },
        })
    }
}

impl ReservationView {
    /// The job that has made it.
    pub(super) fn job(&self) -> Option<&Owner> {
        self.controller.as_ref().filter(|owner| owner.is_a(&JobView::KIND))
    }

    pub(super) fn of_job(&self, entry: &Entry<Self>, job: &Job<'_>) -> JobReservation {
        // The original writes no owner; it names a Reservation after its job.
        let is_named = job.reservation_name() == job.uid.to_string();
        let is_generated = match self.job() {
            Some(owner) => owner.uid == *job.uid,
            None => is_named && self.labels.get(CREATED_BY_LABEL) == Some(DESCHEDULER),
        };
        JobReservation {
            uid: entry.uid.clone(),
            is_generated,
            has_order: self.labels.get(RESERVATION_ORDER).is_some_and(|order| !order.is_empty()),
            is_for_pod: self.is_for_pod,
            phase: self.status.phase.clone(),
            node: self.status.node_name.clone(),
            conditions: self.status.conditions.clone(),
            current_owners: self.status.current_owners.clone(),
        }
    }
}

/// Reservations by the job that has made them.
#[derive(Debug)]
pub struct ByJob;

impl Term<ReservationView> for ByJob {
    type Value = String;

    fn terms(_: &ObjectKey, reservation: &ReservationView, found_by: &mut dyn FnMut(String)) {
        if let Some(job) = reservation.job() {
            found_by(job.name.to_string());
        }
    }
}
