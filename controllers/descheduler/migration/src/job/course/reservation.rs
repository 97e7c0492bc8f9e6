//! The Reservation of a job is made, and waits for its node.

use koord_core::{key::ObjectKey, uid::Uid};
use koord_types::{
    pod_migration_job::{PodMigrationJobConditionType as Type, PodMigrationJobReason as Reason},
    reservation::ReservationPhase,
};

use super::{Course, Pod};
use crate::{
    job::{
        Decision, Fetched, JobEvent, JobReservation, Lookup, ReservationReference,
        status::{self as says, Says, find, is_true, set, succeed},
    },
    reservation::{self, Purpose},
};

impl Course<'_> {
    /// Makes the Reservation, unless the job refers to one.
    pub(super) fn reserve(&self, pod: &ObjectKey) -> Option<Decision> {
        if self.job.reservation_ref().is_some() || self.is_bound() {
            return None;
        }
        let Some(template) = self.job.template.filter(|template| reservation::is_complete(template)) else {
            return Some(self.make_template(pod));
        };
        if let Some(reservation) = self.seen.reservation() {
            let name = reservation::name(Some(template), self.job.uid);
            let reference = ReservationReference { name, uid: reservation.uid.clone() };
            return Some(Decision { reservation_ref: Some(reference), ..Decision::default() });
        }
        let mut decision = Decision::default();
        if let Some(error) = &self.seen.creation_error {
            let message = format!("Failed to create Reservation caused by {error}");
            let event = JobEvent::warning("FailedCreateReservation", message.clone());
            let failed = Says::no(Reason::FailedCreateReservation).because(message);
            decision = self.write(|status| set(status, &Type::ReservationCreated, failed, self.now)).with_event(event);
        }
        Some(Decision { creates_reservation: true, ..decision })
    }

    /// Stores the whole Reservation in the job, before it is created.
    fn make_template(&self, key: &ObjectKey) -> Decision {
        let uid = self.job.pod_uid();
        let whole = match (self.pod(), &self.seen.whole_pod) {
            (Pod::Unknown, _) => return Decision::fetching(Fetched::Pod, key.clone()),
            (Pod::Gone, _) | (_, Lookup::Absent) => return self.fail(&Reason::MissingPod, says::missing_pod(key)),
            (Pod::There(_), Lookup::Unknown) => return Decision::fetching_whole(key, uid),
            (Pod::There(_), Lookup::Found(whole)) => whole,
        };
        let drops_claims = self.settings.drops_claims;
        let purpose = Purpose { job_uid: self.job.uid, ttl: self.job.ttl(), drops_claims };
        match reservation::complete(self.job.template, whole, purpose, self.now) {
            Ok(template) => Decision { template: Some(template), ..Decision::default() },
            Err(no_owner) => {
                let message = no_owner.to_string();
                let mut decision = self.fail(&Reason::FailedCreateReservation, &*message);
                if let Some(status) = &mut decision.status {
                    let says = Says::no(Reason::FailedCreateReservation).because(message);
                    set(status, &Type::ReservationCreated, says, self.now);
                }
                decision
            }
        }
    }

    /// Waits until the Reservation has a node.
    pub(super) fn schedule(&self, pod: &ObjectKey) -> Option<Decision> {
        if self.is_bound() {
            return None;
        }
        let name = self.job.reservation_name();
        let known = self.reservation_uid();
        let reservation = match &self.seen.reservation {
            Lookup::Unknown => return Some(Decision::fetching(Fetched::Reservation, ObjectKey::cluster(&name))),
            Lookup::Found(reservation) if known.is_empty() || reservation.uid == known => reservation,
            Lookup::Absent | Lookup::Found(_) => {
                return Some(self.fail(&Reason::MissingReservation, says::missing_reservation(&name)));
            }
        };
        if !is_true(self.status(), &Type::ReservationCreated) {
            let event = JobEvent::normal("ReservationCreated", format!("Reservation \"{name}\" is created"));
            let decision =
                self.write(|status| set(status, &Type::ReservationCreated, Says::yes(), self.now)).with_event(event);
            let order = self.now.as_millisecond().to_string();
            return Some(Decision { reservation_order: (!reservation.has_order).then_some(order), ..decision });
        }
        self.wait_for_node(reservation, &name).or_else(|| self.take_node(reservation, &name, pod)).or_else(|| {
            let is_for_pod = reservation.is_for_pod;
            is_for_pod.then(|| self.wait_for_pod(reservation, pod))
        })
    }

    fn wait_for_node(&self, reservation: &JobReservation, name: &str) -> Option<Decision> {
        if !is_true(self.status(), &Type::ReservationScheduled)
            && let Some(message) = reservation.unschedulable()
        {
            let says = Says::no(Reason::Unschedulable).because(message);
            let event = JobEvent::warning("Unschedulable", format!("Reservation \"{name}\" fits no node: {message}"));
            let decision =
                self.write(|status| set(status, &Type::ReservationScheduled, says, self.now)).with_event(event);
            if decision.status.is_some() {
                return Some(decision);
            }
        }
        if reservation.is_pending() {
            return Some(Decision::default());
        }
        if reservation.is_failed() {
            let (is_expired, message) = reservation.failure();
            let message = match message {
                text if is_expired || text.is_empty() => says::EXPIRED.to_owned(),
                text => format!("Reservation failed: {text}"),
            };
            // One that failed for another reason, as with its node, reserves nothing either.
            if is_expired || reservation.is_scheduled() {
                return Some(self.fail(&Reason::ReservationExpired, message));
            }
        }
        if !reservation.is_scheduled() && reservation.phase != Some(ReservationPhase::Waiting) {
            return Some(self.fail(&Reason::Unschedulable, reservation.scheduled_message()));
        }
        // It waits for pods that make room for it.
        (!reservation.is_scheduled()).then(Decision::default)
    }

    /// The Reservation has a node: not the pod's own.
    fn take_node(&self, reservation: &JobReservation, name: &str, pod: &ObjectKey) -> Option<Decision> {
        let status = self.status();
        if is_true(status, &Type::ReservationScheduled) && !status.node_name.is_empty() {
            return None;
        }
        match self.pod() {
            Pod::Unknown => return Some(Decision::fetching(Fetched::Pod, pod.clone())),
            Pod::There(pod) if *pod.node == *reservation.node => {
                return Some(self.fail(&Reason::ForbiddenMigratePod, says::same_node(name)));
            }
            Pod::There(_) | Pod::Gone => {}
        }
        let message = format!("Reservation \"{name}\" is scheduled to node \"{}\"", reservation.node);
        let decision = self.write(|status| {
            status.node_name.clone_from(&reservation.node);
            set(status, &Type::ReservationScheduled, Says::yes(), self.now);
        });
        Some(decision.with_event(JobEvent::normal("ReservationScheduled", message)))
    }

    /// A pod that waits for a node gets one by its Reservation, and is not evicted.
    fn wait_for_pod(&self, reservation: &JobReservation, key: &ObjectKey) -> Decision {
        let pod = match self.pod() {
            Pod::Unknown => return Decision::fetching(Fetched::Pod, key.clone()),
            Pod::Gone => return self.fail(&Reason::MissingPod, says::missing_pod(key)),
            Pod::There(pod) => pod,
        };
        if pod.is_scheduled {
            let message = says::assigned(key, &pod.node);
            let event = JobEvent::normal(says::COMPLETE, message.clone());
            let decision = self.write(|status| {
                set(status, &Type::PodScheduled, Says::yes(), self.now);
                succeed(status, message);
            });
            return decision.with_event(event);
        }
        let owner = reservation.current_owners.first().and_then(|owner| owner.uid.as_deref());
        if reservation.has_succeeded() && owner.is_some_and(|owner| Uid::from(owner) != pod.uid) {
            return self.fail(&Reason::ForbiddenMigratePod, says::BOUND_BY_OTHER);
        }
        if find(self.status(), &Type::PodScheduled).is_some() {
            return Decision::default();
        }
        // Why it fits no node is in the pod alone.
        let why = match &self.seen.whole_pod {
            Lookup::Unknown => return Decision::fetching_whole(key, pod.uid.clone()),
            Lookup::Absent => "",
            Lookup::Found(whole) => {
                let conditions = whole["status"]["conditions"].as_array().into_iter().flatten();
                let mut scheduled = conditions.filter(|condition| condition["type"] == "PodScheduled");
                scheduled.find_map(|condition| condition["message"].as_str()).unwrap_or_default()
            }
        };
        let says = Says::no(Reason::Unschedulable).because(why);
        let event = JobEvent::warning("Unschedulable", format!("Pod \"{key}\" fits no node: {why}"));
        self.write(|status| set(status, &Type::PodScheduled, says, self.now)).with_event(event)
    }
}
