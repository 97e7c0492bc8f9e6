//! Who uses a Reservation: the pods that match its owners, those that use it, and why the others do not.

use std::collections::BTreeSet;

use koord_runtime::clock::Moment;
use koord_scheduler_allocation::{Owners, ReservationInfo, ReservationMatch, ReservationMismatch, ReservationSelector};
use koord_scheduler_engine::{Decision, Engine, Outcome};
use koord_scheduler_framework::{Reason, ReasonCode, labels::Labels, pod::Pod};
use koord_scheduler_plugins_koordinator::reservation::lifecycle::missing;
use koord_scheduler_what_if::service;
use koord_types::reservation::{Reservation, ReservationPhase};
use serde_json::{Value, json};

use super::pods;
use crate::{screen::Screen, table};

/// Pods that are named.
const PODS_MAX: usize = 20;

/// A Reservation, with the pods that it concerns.
pub(super) struct Usage<'e> {
    object: &'e Reservation,
    /// Why it cannot be placed, whatever nodes there are.
    not_accepted: Option<String>,
    users: usize,
    matching: usize,
    pods: Vec<Concerned>,
    left_out: usize,
}

/// A pod that matches the owners, uses the Reservation, or asks for it by its name.
struct Concerned {
    key: String,
    node: Option<String>,
    matches: bool,
    uses: bool,
    /// Why it does not use it.
    why: Option<Unused>,
}

/// Why a pod does not use a Reservation.
struct Unused {
    code: Option<ReasonCode>,
    text: String,
}

/// What is asked of pods about one Reservation.
struct Question<'e> {
    engine: &'e Engine,
    object: &'e Reservation,
    name: &'e str,
    owners: Option<Owners>,
    users: BTreeSet<String>,
}

/// Who uses a Reservation; none where there is no such object.
pub(super) fn usage<'e>(engine: &'e Engine, name: &'e str) -> Option<Usage<'e>> {
    let object = engine.cluster().objects().get::<Reservation>(name)?;
    let owners = Owners::new(&object.spec.owners);
    let unreadable = owners.as_ref().err().map(|error| format!("spec.owners: {error}"));
    let not_accepted = missing(object).map(str::to_owned).or(unreadable);
    let question = Question { engine, object, name, owners: owners.ok(), users: users(engine, object, name) };
    let mut concerned: Vec<&Pod> =
        pods(engine).map(|pod| &**pod).filter(|pod| !pod.is_reservation() && question.concerns(pod)).collect();
    let users = concerned.iter().filter(|pod| question.is_used_by(pod)).count();
    let matching = concerned.iter().filter(|pod| question.is_owner(pod)).count();
    // Those that use it first, then those that wait.
    concerned.sort_by_key(|pod| (!question.is_used_by(pod), engine.cluster().pod(&pod.uid).is_some(), pod.key.clone()));
    let left_out = concerned.len().saturating_sub(PODS_MAX);
    let pods = concerned.into_iter().take(PODS_MAX).map(|pod| question.answer(pod)).collect();
    Some(Usage { object, not_accepted, users, matching, pods, left_out })
}

/// The uids of the pods that use it, as the scheduler knows or the status says.
fn users(engine: &Engine, object: &Reservation, name: &str) -> BTreeSet<String> {
    let known = service(engine, "Reservation", &["nodeReservations", &object.status.node_name]).unwrap_or_default();
    let items = known["items"].as_array().into_iter().flatten();
    let own = items.filter(|item| item["name"] == name && item["kind"] == "Reservation");
    let assigned = own.flat_map(|item| item["assignedPods"].as_array().into_iter().flatten());
    let assigned = assigned.filter_map(|pod| pod["UID"].as_str().map(str::to_owned));
    let written = object.status.current_owners.iter().filter_map(|owner| owner.uid.clone());
    assigned.chain(written).collect()
}

impl Question<'_> {
    fn is_owner(&self, pod: &Pod) -> bool {
        self.owners.as_ref().is_some_and(|owners| owners.match_pod(pod))
    }

    fn is_used_by(&self, pod: &Pod) -> bool {
        self.users.contains(&pod.uid.to_string())
    }

    fn concerns(&self, pod: &Pod) -> bool {
        let asks = || selector(pod).is_some_and(|selector| selector.name() == Some(self.name));
        self.is_owner(pod) || self.is_used_by(pod) || asks()
    }

    fn answer(&self, pod: &Pod) -> Concerned {
        let cluster = self.engine.cluster();
        let node = cluster.pod(&pod.uid).and_then(|placed| cluster.node(placed.row)).map(|node| node.name.to_string());
        let uses = self.is_used_by(pod);
        let why = (!uses).then(|| self.unused(pod, node.as_deref()));
        Concerned { key: pod.key.to_string(), node, matches: self.is_owner(pod), uses, why }
    }

    /// Why a pod does not use it: what it is, what the pod says, and at last where the pod goes.
    fn unused(&self, pod: &Pod, node: Option<&str>) -> Unused {
        let status = &self.object.status;
        if !self.is_owner(pod) {
            let text = "the pod asks for it by name, and matches none of its owners".to_owned();
            return Unused { code: Some(ReasonCode::ReservationOwnerMismatch), text };
        }
        if let Some(node) = node {
            let text = if node == status.node_name {
                "the pod took its place on that node without it".to_owned()
            } else {
                format!("the pod is on {node}, and the Reservation {}", place(self.object))
            };
            return Unused { code: None, text };
        }
        match &status.phase {
            Some(ReservationPhase::Failed) => {
                return Unused {
                    code: Some(ReasonCode::ReservationExpired),
                    text: "it has failed or expired".to_owned(),
                };
            }
            Some(ReservationPhase::Succeeded) => {
                return Unused { code: Some(ReasonCode::ReservationFull), text: "it is used up".to_owned() };
            }
            _ if self.object.spec.is_allocate_once() && !self.users.is_empty() => {
                let text = "it is for one pod (allocateOnce), and another uses it".to_owned();
                return Unused { code: Some(ReasonCode::ReservationFull), text };
            }
            _ => {}
        }
        match self.mismatch(pod) {
            Some(text) => Unused { code: Some(ReasonCode::ReservationNotMatched), text },
            None => self.attempted(pod),
        }
    }

    /// What a pod says about reservations, or the Reservation about pods, that keeps an owner from it.
    fn mismatch(&self, pod: &Pod) -> Option<String> {
        let Some(selector) = selector(pod) else {
            return Some("an annotation of the pod about reservations cannot be read".to_owned());
        };
        let allocatable = &self.object.status.allocatable;
        let Some(info) = ReservationInfo::new(self.object, allocatable) else {
            return Some("it has no node yet".to_owned());
        };
        let nothing = Labels::default();
        let cluster = self.engine.cluster();
        let node = cluster.row(&info.node).and_then(|row| cluster.node(row));
        let labels = node.map_or(&nothing, |node| &node.labels);
        match selector.matches(pod, &pod.template.requests, &info, allocatable, labels) {
            ReservationMatch::Matched => None,
            ReservationMatch::Ignored => Some("the pod has the label reservation-ignored".to_owned()),
            ReservationMatch::NotOwner => Some("the pod matches none of its owners".to_owned()),
            ReservationMatch::Mismatch(ReservationMismatch::Name) => {
                Some("the reservation-affinity of the pod names another one".to_owned())
            }
            ReservationMatch::Mismatch(ReservationMismatch::NotExact) => {
                Some("the pod asks for exactly what it requests, and the Reservation has other amounts".to_owned())
            }
            ReservationMatch::Mismatch(ReservationMismatch::Unschedulable) => {
                Some("the Reservation is unschedulable".to_owned())
            }
            ReservationMatch::Mismatch(ReservationMismatch::Taint(key, value)) => {
                Some(format!("the pod does not tolerate the taint {key}={value} of the Reservation"))
            }
            ReservationMatch::Mismatch(ReservationMismatch::Affinity) => {
                Some("the reservation-affinity of the pod selects others".to_owned())
            }
            ReservationMatch::Mismatch(ReservationMismatch::NotMatchable) => {
                Some("the Reservation is not available".to_owned())
            }
        }
    }

    /// What an attempt makes of a pod that may use it and waits.
    fn attempted(&self, pod: &Pod) -> Unused {
        let why = self.engine.copy().why(&pod.uid, Moment::default());
        let because = |reason: &Reason| Unused { code: Some(reason.code), text: reason.text.clone() };
        let decision = match why.map(|why| why.decision) {
            Some(Ok(decision)) => decision,
            Some(Err(reason)) => return because(&reason),
            None => return Unused { code: None, text: "the pod is gone".to_owned() },
        };
        let Decision { held, rejected, nodes, outcome, .. } = &decision;
        if let Some((_, reason)) = held {
            return because(reason);
        }
        if let Some(Outcome::Bind { node, .. } | Outcome::Waiting { node }) = outcome {
            return Unused { code: None, text: format!("the pod has no node yet, and would be placed on {node}") };
        }
        let here = nodes.iter().find(|on| *on.node == *self.object.status.node_name);
        let of_node = here.and_then(|on| on.refusals.first()).map(|refusal| &refusal.reasons);
        let reasons = rejected.as_ref().map(|(_, rejection)| &rejection.reasons).or(of_node);
        match reasons.and_then(|reasons| Some((reasons.first()?, reasons))) {
            Some((first, all)) => Unused { code: Some(first.code), text: Reason::joined(all) },
            None => Unused { code: None, text: "the pod is not tried".to_owned() },
        }
    }
}

/// What a pod says about reservations; none where that cannot be read.
fn selector(pod: &Pod) -> Option<ReservationSelector> {
    ReservationSelector::new(&pod.template.labels, &pod.template.annotations).ok()
}

/// Where a Reservation is.
fn place(object: &Reservation) -> String {
    match &*object.status.node_name {
        "" => "has no node".to_owned(),
        node => format!("is on {node}"),
    }
}

fn phase(object: &Reservation) -> &str {
    object.status.phase.as_ref().map_or("Pending", ReservationPhase::as_str)
}

impl Usage<'_> {
    /// What is so, in one line.
    pub(super) fn summary(&self) -> String {
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        let message = self.object.status.conditions.iter().rev().map(|one| &*one.message).find(|text| !text.is_empty());
        let message = self.not_accepted.as_deref().or(message).map(|text| format!(": {text}")).unwrap_or_default();
        format!("Reservation {name} ({}) {}{message}", phase(self.object), place(self.object))
    }

    pub(super) fn to_text(&self, screen: Screen) -> String {
        let accepted = match &self.not_accepted {
            Some(why) => format!("it is not accepted: {why}\n"),
            None => String::new(),
        };
        let Self { users, matching, .. } = self;
        let counts = format!("pods that match its owners: {matching}, that use it: {users}\n");
        let header = ["POD", "NODE", "USES IT", "CODE", "WHY NOT"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(self.pods.iter().map(Concerned::row)).collect();
        let pods = if self.pods.is_empty() { String::new() } else { table::lines(&rows, screen) };
        let further =
            if self.left_out > 0 { format!("{} further pods are not shown\n", self.left_out) } else { String::new() };
        format!("{accepted}{counts}{pods}{further}")
    }

    pub(super) fn document(&self) -> Value {
        json!({
            "phase": phase(self.object), "node": self.object.status.node_name,
            "accepted": self.not_accepted.is_none(), "notAccepted": self.not_accepted,
            "conditions": self.object.status.conditions, "matching": self.matching, "users": self.users,
            "pods": self.pods.iter().map(Concerned::document).collect::<Vec<_>>(), "podsLeftOut": self.left_out,
        })
    }
}

impl Concerned {
    fn code(&self) -> Option<&'static str> {
        self.why.as_ref().and_then(|why| why.code).map(ReasonCode::as_str)
    }

    fn row(&self) -> Vec<String> {
        let uses = if self.uses { "yes" } else { "no" };
        let why = self.why.as_ref().map(|why| why.text.clone()).unwrap_or_default();
        let node = self.node.clone().unwrap_or_default();
        vec![self.key.clone(), node, uses.to_owned(), self.code().unwrap_or_default().to_owned(), why]
    }

    fn document(&self) -> Value {
        json!({
            "pod": self.key, "node": self.node, "matches": self.matches, "uses": self.uses,
            "code": self.code(), "reason": self.why.as_ref().map(|why| &why.text),
        })
    }
}
