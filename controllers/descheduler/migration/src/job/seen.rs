//! What is seen of the objects that a job concerns.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use koord_core::uid::Uid;
use koord_descheduler_framework::{Pod, pod::Phase};
use koord_types::reservation::{ReservationCondition, ReservationConditionType, ReservationPhase, ReservationReason};
use serde_json::Value;

use super::eviction::EVICT_POLICY;

/// Whether an object of a name exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Lookup<T> {
    /// No cache shows it, and the API server has not been asked.
    #[default]
    Unknown,
    /// The API server says that it does not exist.
    Absent,
    Found(T),
}

impl<T> Lookup<T> {
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Unknown | Self::Absent => None,
        }
    }
}

/// What is seen of the objects that a job concerns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The pod that has the name of the job's pod now.
    pub pod: Lookup<JobPod>,
    /// The same pod whole, as the API server has it.
    pub whole_pod: Lookup<Arc<Value>>,
    /// The Reservation of the job's name for it ([`Job::reservation_name`](super::Job::reservation_name)).
    pub reservation: Lookup<JobReservation>,
    /// The pod that uses the Reservation.
    pub new_pod: Lookup<JobPod>,
    /// What has become of the eviction that was asked for.
    pub eviction: EvictionSeen,
    /// Why the API server refused the Reservation last; `None` where it did not.
    pub creation_error: Option<String>,
    /// How long object limiters hold the pod up; `None` where they do not.
    pub limited: Option<Duration>,
}

/// What has become of an eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EvictionSeen {
    /// It has not been answered, or not been asked for.
    #[default]
    Pending,
    /// The API server took it.
    Accepted,
    /// It was refused, and is tried again.
    Refused(String),
}

/// What jobs read of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobPod {
    pub uid: Uid,
    /// Empty without one.
    pub node: Arc<str>,
    pub phase: Phase,
    pub is_deleting: bool,
    pub is_ready: bool,
    /// Whether its condition `PodScheduled` is true.
    pub is_scheduled: bool,
    /// Its label `koordinator.sh/evict-policy`.
    pub evict_policy: Option<Arc<str>>,
}

impl JobPod {
    pub fn of(pod: &Pod) -> Self {
        let mut conditions = pod.state.conditions.iter();
        Self {
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            phase: pod.state.phase,
            is_deleting: pod.is_deleting,
            is_ready: pod.is_ready(),
            is_scheduled: conditions
                .any(|condition| &*condition.kind == "PodScheduled" && &*condition.status == "True"),
            evict_policy: pod.label(EVICT_POLICY).map(Arc::from),
        }
    }
}

/// What jobs read of a Reservation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReservation {
    pub uid: Uid,
    /// Whether the job has made it.
    pub is_generated: bool,
    /// Whether it has the label `scheduling.koordinator.sh/reservation-order`.
    pub has_order: bool,
    /// Whether it is for one pod that waits for a node.
    pub is_for_pod: bool,
    pub phase: Option<ReservationPhase>,
    pub node: String,
    pub conditions: Vec<ReservationCondition>,
    pub current_owners: Vec<ObjectReference>,
}

impl JobReservation {
    fn condition(&self, type_: &ReservationConditionType) -> Option<&ReservationCondition> {
        self.conditions.iter().find(|condition| condition.type_.as_ref() == Some(type_))
    }

    /// Whether no decision about it has been made.
    pub(super) fn is_pending(&self) -> bool {
        match &self.phase {
            None | Some(ReservationPhase::Pending) => true,
            Some(phase) => phase.as_str().is_empty(),
        }
    }

    pub(super) fn is_failed(&self) -> bool {
        self.phase == Some(ReservationPhase::Failed)
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.phase == Some(ReservationPhase::Succeeded)
    }

    /// Whether a pod uses it, or has used it.
    pub(super) fn is_used(&self) -> bool {
        self.has_succeeded() || !self.current_owners.is_empty()
    }

    /// Why it failed.
    pub(super) fn failure(&self) -> (bool, &str) {
        let ready = self.condition(&ReservationConditionType::Ready);
        let is_expired = ready.is_some_and(|ready| ready.reason == Some(ReservationReason::Expired));
        (is_expired, ready.map_or("", |ready| &ready.message))
    }

    pub(super) fn is_scheduled(&self) -> bool {
        let scheduled = self.condition(&ReservationConditionType::Scheduled);
        let is_true = scheduled.is_some_and(|scheduled| {
            scheduled.status == "True" && scheduled.reason == Some(ReservationReason::Scheduled)
        });
        is_true && !self.node.is_empty()
    }

    /// What the scheduler says of a Reservation that fits no node; `None` where it does not say that.
    pub(super) fn unschedulable(&self) -> Option<&str> {
        let scheduled = self.condition(&ReservationConditionType::Scheduled)?;
        (scheduled.reason == Some(ReservationReason::Unschedulable)).then_some(&*scheduled.message)
    }

    /// What the condition `Scheduled` says; empty without one.
    pub(super) fn scheduled_message(&self) -> &str {
        self.condition(&ReservationConditionType::Scheduled).map_or("", |scheduled| &scheduled.message)
    }
}

impl Seen {
    pub(super) fn reservation(&self) -> Option<&JobReservation> {
        self.reservation.found()
    }
}
