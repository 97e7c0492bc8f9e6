//! All that can become of one job: its pod, its Reservation and what others do with them, and processes that end after any write.

use std::collections::{BTreeSet, VecDeque};

use k8s_openapi::api::core::v1::ObjectReference;
use koord_types::{
    pod_migration_job::PodMigrateReservationOptions,
    reservation::{ReservationCondition, ReservationConditionType, ReservationPhase, ReservationReason},
};
use serde_json::json;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PodState {
    There,
    Deleting,
    Gone,
    /// Another has its name.
    Reborn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReservationState {
    None,
    Pending,
    Available,
    /// The successor of the pod uses it.
    Bound,
    /// A pod uses it that is not the job's.
    Taken,
    Expired,
    /// It was there, and is deleted.
    Deleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    None,
    Accepted,
    Refused,
}

/// Everything there is.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    spec: PodMigrationJobSpec,
    template: Option<Value>,
    status: PodMigrationJobStatus,
    pod: PodState,
    reservation: ReservationState,
    is_ready: bool,
    /// What the process remembers.
    answer: Answer,
    asks: bool,
    /// How often the pod was evicted.
    evictions: u8,
}

const NOW: i64 = 1_767_225_600;

impl Model {
    fn new(mode: PodMigrationJobMode) -> Self {
        let reference = |name: &str| ObjectReference {
            namespace: Some("ns".into()),
            name: Some(name.into()),
            ..ObjectReference::default()
        };
        let spec = PodMigrationJobSpec {
            mode: Some(mode),
            ttl: Some("5m0s".into()),
            pod_ref: reference("a"),
            ..PodMigrationJobSpec::default()
        };
        Self {
            spec,
            template: None,
            status: PodMigrationJobStatus::default(),
            pod: PodState::There,
            reservation: ReservationState::None,
            is_ready: false,
            answer: Answer::None,
            asks: false,
            evictions: 0,
        }
    }

    fn key(&self) -> String {
        let conditions = self.status.conditions.iter();
        let conditions = conditions.map(|condition| (condition.type_.as_str(), &*condition.status, &condition.reason));
        let conditions: Vec<_> = conditions.collect();
        let status = (
            &self.status.phase,
            &self.status.status,
            &self.status.reason,
            &self.status.node_name,
            self.status.pod_ref.is_some(),
        );
        let spec = (&self.spec.pod_ref.uid, self.template.is_some(), self.spec.reservation_options.is_some());
        format!(
            "{:?}",
            (
                status,
                conditions,
                spec,
                self.pod,
                self.reservation,
                self.is_ready,
                self.answer,
                self.asks,
                self.evictions
            )
        )
    }

    fn is_over(&self) -> bool {
        !matches!(self.status.phase, None | Some(Phase::Pending | Phase::Running))
    }

    fn seen(&self) -> Seen {
        let pod = |uid: &str| JobPod { uid: Uid::from(uid), node: "n1".into(), ..JobPod::default() };
        let condition = |type_, status: &str, reason| ReservationCondition {
            type_: Some(type_),
            status: status.to_owned(),
            reason: Some(reason),
            ..ReservationCondition::default()
        };
        let owner = |name: &str| ObjectReference {
            namespace: Some("ns".into()),
            name: Some(name.into()),
            uid: Some(name.into()),
            ..ObjectReference::default()
        };
        let placed = |phase, owners: Vec<ObjectReference>| JobReservation {
            phase: Some(phase),
            node: "n2".into(),
            conditions: vec![condition(ReservationConditionType::Scheduled, "True", ReservationReason::Scheduled)],
            current_owners: owners,
            ..JobReservation::default()
        };
        let reservation = match self.reservation {
            ReservationState::None | ReservationState::Deleted => None,
            ReservationState::Pending => Some(JobReservation::default()),
            ReservationState::Available => Some(placed(ReservationPhase::Available, vec![])),
            ReservationState::Bound => Some(placed(ReservationPhase::Succeeded, vec![owner("b")])),
            ReservationState::Taken => Some(placed(ReservationPhase::Succeeded, vec![owner("other")])),
            ReservationState::Expired => {
                let ready = condition(ReservationConditionType::Ready, "False", ReservationReason::Expired);
                Some(JobReservation {
                    phase: Some(ReservationPhase::Failed),
                    conditions: vec![ready],
                    ..JobReservation::default()
                })
            }
        };
        let made =
            |reservation| JobReservation { uid: Uid::from("r"), is_generated: true, has_order: true, ..reservation };
        Seen {
            pod: match self.pod {
                PodState::There => Lookup::Found(pod("a")),
                PodState::Deleting => Lookup::Found(JobPod { is_deleting: true, ..pod("a") }),
                PodState::Gone => Lookup::Absent,
                PodState::Reborn => Lookup::Found(pod("again")),
            },
            whole_pod: match self.pod {
                PodState::There | PodState::Deleting => Lookup::Found(std::sync::Arc::new(json!({
                    "metadata": {"namespace": "ns", "name": "a", "uid": "a", "ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true}]},
                    "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": "Running"},
                }))),
                PodState::Gone | PodState::Reborn => Lookup::Absent,
            },
            reservation: reservation.map_or(Lookup::Absent, |reservation| Lookup::Found(made(reservation))),
            new_pod: Lookup::Found(JobPod {
                is_ready: self.is_ready,
                ..pod(if self.reservation == ReservationState::Taken { "other" } else { "b" })
            }),
            eviction: match self.answer {
                Answer::None => EvictionSeen::Pending,
                Answer::Accepted => EvictionSeen::Accepted,
                Answer::Refused => EvictionSeen::Refused("blocked".into()),
            },
            ..Seen::default()
        }
    }

    fn decide(&self, age: i64) -> Decision {
        let (uid, created) = (Uid::from("j"), Timestamp::from_second(NOW).unwrap());
        let job = Job {
            name: "j",
            uid: &uid,
            created,
            has_passed: true,
            is_exempt: false,
            evict_reason: None,
            evict_trigger: None,
            evict_policy: None,
            spec: &self.spec,
            template: self.template.as_ref(),
            status: &self.status,
        };
        let settings = Settings::of(JobMode::ReservationFirst, EvictionPolicy::Eviction, false);
        step(&job, &self.seen(), &settings, created + SignedDuration::from_secs(age))
    }

    /// The states after each of the writes of a decision, in their order; the last is that of a process that goes on.
    fn written(&self, decision: &Decision) -> Vec<Self> {
        let (mut states, mut next) = (Vec::new(), Self { answer: Answer::None, asks: false, ..self.clone() });
        if decision.deletes_reservation {
            next.reservation = ReservationState::Deleted;
            states.push(next.clone());
        }
        if let Some(uid) = &decision.pod_uid {
            next.spec.pod_ref.uid = Some(uid.to_string());
            states.push(next.clone());
        }
        if let Some(template) = &decision.template {
            next.template = Some(template.clone());
            states.push(next.clone());
        }
        if let Some(reference) = &decision.reservation_ref {
            let reference = ObjectReference {
                name: Some(reference.name.clone()),
                uid: Some(reference.uid.to_string()),
                ..ObjectReference::default()
            };
            next.spec.reservation_options = Some(PodMigrateReservationOptions {
                reservation_ref: Some(reference),
                ..PodMigrateReservationOptions::default()
            });
            states.push(next.clone());
        }
        if let Some(status) = &decision.status {
            next.status = status.clone();
            states.push(next.clone());
        }
        if decision.creates_reservation
            && matches!(self.reservation, ReservationState::None | ReservationState::Deleted)
        {
            next.reservation = ReservationState::Pending;
            states.push(next.clone());
        }
        next.asks = decision.eviction.is_some();
        if next.asks {
            next.answer = self.answer;
        }
        states.push(next);
        states
    }

    /// What the API server makes of the eviction that the process asks for.
    fn evicted(&self) -> Vec<Self> {
        if !self.asks {
            return Vec::new();
        }
        let pod = match self.pod {
            PodState::There => PodState::Deleting,
            pod => pod,
        };
        let evictions = self.evictions + u8::from(self.pod == PodState::There);
        let done = Self { pod, evictions, ..self.clone() };
        vec![
            Self { answer: Answer::Accepted, ..done.clone() },
            // The process ends before it has the answer.
            Self { answer: Answer::None, asks: false, ..done },
            Self { answer: Answer::Refused, ..self.clone() },
        ]
    }

    /// What others do.
    fn others(&self) -> Vec<Self> {
        use PodState::{Deleting, Gone, Reborn, There};
        use ReservationState::{Available, Bound, Deleted, Expired, None as NoReservation, Pending, Taken};
        let pods: &[PodState] = match self.pod {
            There => &[Deleting],
            Deleting => &[Gone],
            // A job that does not know its pod yet takes the one that is there.
            Gone if self.spec.pod_ref.uid.is_some() => &[Reborn],
            Gone | Reborn => &[],
        };
        let reservations: &[ReservationState] = match self.reservation {
            NoReservation | Deleted => &[],
            Pending => &[Available, Expired, Deleted],
            // The successor comes when the pod has left.
            Available if matches!(self.pod, Gone | Reborn) => &[Bound, Taken, Expired, Deleted],
            Available => &[Taken, Expired, Deleted],
            Bound | Taken | Expired => &[Deleted],
        };
        let mut states: Vec<Self> = pods.iter().map(|pod| Self { pod: *pod, ..self.clone() }).collect();
        states.extend(reservations.iter().map(|reservation| Self { reservation: *reservation, ..self.clone() }));
        states.push(Self { is_ready: true, ..self.clone() });
        // A new process.
        states.push(Self { answer: Answer::None, asks: false, ..self.clone() });
        states
    }

    /// With everybody doing their part, the job comes to an end before its time is over.
    fn ends_in_time(&self) -> bool {
        let mut state = self.clone();
        for _ in 0..60 {
            if state.is_over() {
                return true;
            }
            let next = state.written(&state.decide(10)).pop().unwrap();
            if next.key() != state.key() {
                state = next;
            } else if state.asks && state.answer != Answer::Accepted {
                state = state.evicted().swap_remove(0);
            } else if state.pod == PodState::Deleting {
                state.pod = PodState::Gone;
            } else if state.reservation == ReservationState::Pending {
                state.reservation = ReservationState::Available;
            } else if state.reservation == ReservationState::Available && state.pod != PodState::There {
                state.reservation = ReservationState::Bound;
            } else if !state.is_ready {
                state.is_ready = true;
            } else {
                return false;
            }
        }
        false
    }
}

#[test]
fn every_path_of_a_job_ends_and_no_pod_is_evicted_twice() {
    for mode in [PodMigrationJobMode::ReservationFirst, PodMigrationJobMode::EvictDirectly] {
        let reserves = mode == PodMigrationJobMode::ReservationFirst;
        let first = Model::new(mode);
        let mut known = BTreeSet::from([first.key()]);
        let mut waiting = VecDeque::from([first]);
        let mut ends = BTreeSet::new();
        while let Some(state) = waiting.pop_front() {
            let decision = state.decide(10);
            let context = || format!("{}\n{decision:?}", state.key());
            assert!(state.evictions <= 1, "{}", context());
            if state.is_over() {
                assert_eq!((&decision.status, &decision.eviction), (&None, &None), "{}", context());
                ends.insert(state.status.phase.as_ref().map(ToString::to_string));
            } else {
                assert!(state.ends_in_time(), "it stands still: {}", context());
                let late = state.decide(300).status.and_then(|status| status.phase);
                assert_eq!(late, Some(Phase::Failed), "its time is over: {}", context());
            }
            if decision.eviction.is_some() {
                assert_eq!(state.pod, PodState::There, "{}", context());
                assert!(!reserves || state.reservation == ReservationState::Available, "{}", context());
            }
            let next = state.written(&decision).into_iter().chain(state.evicted()).chain(state.others());
            waiting.extend(next.filter(|next| known.insert(next.key())));
        }
        let both = BTreeSet::from([Some("Failed".to_owned()), Some("Succeeded".to_owned())]);
        assert_eq!(ends, both);
        assert!(known.len() > if reserves { 1000 } else { 50 }, "{}", known.len());
    }
}
