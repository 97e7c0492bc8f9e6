//! What a life of the scheduler knows of the cluster, and whether what it decides is legal by that.
//!
//! A scheduler cannot do better than its watches: a list of the past does not show what was placed since, and a node may be changed while
//! a binding is on its way. So every binding is judged by what this life has been shown, read from the lines of its watches by this module alone,
//! together with its own bindings that arrived, whether or not it got an answer. What is shown less is judged less.

mod knowledge;
mod legal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use clusters::{facts::Facts, laws};
use jiff::Timestamp;
use koord_resource::{controller::ResourceKind, schema::patch::merge};
use koord_runtime::{
    clock::Moment,
    write::{Action, Write},
};
use koord_simulator::Witness;
use serde_json::{Value, json};

use self::knowledge::Knowledge;
use crate::people::name_of;

/// So many of the last versions of an object count: a decision may be a few events old when its binding is sent.
const VERSIONS: usize = 3;
/// How much longer than its timeout, in milliseconds, a gang may be there in part.
const PARTIAL_MS_MAX: u64 = 900_000;
/// A gang is there in part for too long when the scheduler has gone on so often meanwhile.
const DECISIONS_MIN: u64 = 60;
pub(crate) const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
pub(crate) const GANG: &str = "pod-group.scheduling.sigs.k8s.io";
const DECLARED_GANG: &str = "gang.scheduling.koordinator.sh/name";
/// What the names of objects with nonsense begin with; how much such an object has or wants is not judged.
pub(crate) const ODD: char = 'x';

/// What one life of the scheduler knows.
#[derive(Default)]
pub(crate) struct BindingWitness {
    known: Knowledge,
    /// What is being written of pods before their bindings, by uid.
    giving: BTreeMap<String, Value>,
    /// What of that arrived.
    given: BTreeMap<String, Value>,
    /// The writes of pods that ended last, by key, with the uid of the pod that was to be bound, if that was the write. What was decided about a pod
    /// meanwhile was sent after them.
    ended: BTreeMap<String, Option<String>>,
    /// The node of each binding of which the scheduler does not know whether it arrived, by the uid of the pod.
    doubtful: BTreeMap<String, String>,
    /// Bindings of this life that arrived or are on their way, by uid: the pod with its node.
    decided: BTreeMap<String, Value>,
    /// Gangs with fewer members than they need: since when, and how often the scheduler has gone on since.
    partial: BTreeMap<String, (Moment, u64)>,
    /// Gangs of which a member was shown with a node: from then on further members need nobody, as in the original.
    satisfied: BTreeSet<String>,
    latest: Timestamp,
    /// Bindings that were judged.
    judged: u64,
}

impl Witness for BindingWitness {
    fn list_begins(&mut self, plural: &str) {
        self.known.forget(plural, false);
    }

    fn is_lost(&mut self, plural: &str) {
        self.known.forget(plural, true);
    }

    /// A list from before what was seen is not taken.
    fn page(&mut self, plural: &'static str, body: &str, is_first: bool, revision: u64) {
        let page: Value = serde_json::from_str(body).unwrap_or_default();
        if is_first {
            if knowledge::revision(&page) != revision {
                return;
            }
            self.known.forget(plural, false);
        }
        if self.known.page(plural, &page) {
            self.list_ends(plural);
        }
    }

    fn line(&mut self, plural: &'static str, line: &str) {
        let Some(seen) = self.known.line(plural, line) else { return };
        match seen {
            knowledge::Seen::Whole => self.list_ends(plural),
            knowledge::Seen::Pod { pod, is_new, is_gone } => {
                let (uid, key) = (uid_of(&pod), key_of(&pod));
                self.satisfied.extend(gang_of_placed(&pod));
                self.decided.retain(|of, decided| key_of(decided) != key || (*of == uid && !is_gone));
                if is_new || is_gone {
                    self.begin_anew(&pod);
                }
            }
            knowledge::Seen::Other => {
                if plural == "podgroups" {
                    self.partial.clear();
                }
            }
        }
    }

    fn goes_on(&mut self, moment: Moment, now: Timestamp) -> Result<(), String> {
        self.latest = self.latest.max(now);
        for (gang, (since, decisions)) in &mut self.partial {
            *decisions += 1;
            let lasts = moment.since(*since).as_millis();
            if lasts > u128::from(PARTIAL_MS_MAX) && *decisions > DECISIONS_MIN {
                return Err(format!("gang {gang} has too few members with a node for {lasts} ms"));
            }
        }
        Ok(())
    }

    fn decides(&mut self, write: &Write, moment: Moment) -> Result<(), String> {
        if write.kind != ResourceKind::POD {
            return Ok(());
        }
        match &write.action {
            Action::Patch { subresource: "", patch } => {
                let uid = patch["metadata"]["uid"].as_str().unwrap_or_default();
                self.giving.insert(uid.to_owned(), patch.clone());
                Ok(())
            }
            Action::Bind { uid, node, annotations } => {
                let uid = uid.to_string();
                let is_again = self.doubtful.remove(&uid).as_ref() == Some(node);
                let has_waited = self.ended.remove(write.key.as_str()).is_some_and(|of| of.as_ref() != Some(&uid));
                let Some(pod) = self.known.pod(write.key.as_str()).filter(|pod| uid_of(pod) == uid) else {
                    return Ok(());
                };
                if !pod["spec"]["nodeName"].is_null() && !is_again {
                    return Err(format!("{} is bound to {node} and was known to be bound: {}", write.key, pod["spec"]));
                }
                if has_ended(pod) {
                    // It ended while its binding waited to be sent, and uses nothing of the node.
                    return Ok(());
                }
                let given = self.given.get(&uid);
                let mut pod = given.map_or_else(|| pod.clone(), |given| merge::apply(pod.clone(), given));
                if !annotations.is_empty() {
                    pod = merge::apply(pod, &json!({"metadata": {"annotations": annotations}}));
                }
                pod["spec"]["nodeName"] = node.as_str().into();
                self.judged += u64::from(!is_again);
                // What is sent again was judged when it was decided.
                let judged = if is_again { Ok(()) } else { self.judge(&pod, node, has_waited) };
                self.follow_gang(&pod, moment);
                self.decided.insert(uid, pod);
                judged
            }
            _ => Ok(()),
        }
    }

    fn sent(&mut self, write: &Write, arrived: bool, is_certain: bool) {
        if write.kind == ResourceKind::POD {
            let uid = if let Action::Bind { uid, .. } = &write.action { Some(uid.to_string()) } else { None };
            self.ended.insert(write.key.to_string(), uid);
        }
        let is_given = matches!(&write.action, Action::Patch { subresource: "", .. });
        if write.kind != ResourceKind::POD || !(is_given || matches!(&write.action, Action::Bind { .. })) {
            return;
        }
        if let Action::Patch { patch, .. } = &write.action {
            let uid = patch["metadata"]["uid"].as_str().unwrap_or_default();
            if let Some(patch) = self.giving.remove(uid).filter(|_| arrived) {
                let before = self.given.remove(uid).unwrap_or_else(|| patch.clone());
                self.given.insert(uid.to_owned(), overlaid(before, &patch));
            }
        }
        if let Action::Bind { uid, node, .. } = &write.action
            && !is_certain
        {
            self.doubtful.insert(uid.to_string(), node.clone());
        }
        if arrived {
            return;
        }
        let of = self.decided.iter().find(|(_, pod)| key_of(pod) == write.key.as_str());
        if let Some(uid) = of.map(|(uid, _)| uid.clone()) {
            let pod = self.decided.remove(&uid).unwrap_or_default();
            self.begin_anew(&pod);
        } else {
            // What a pod was to be given: its gang waits with it.
            self.partial.clear();
        }
    }

    fn judged(&self) -> u64 {
        self.judged
    }
}

impl BindingWitness {
    fn list_ends(&mut self, plural: &str) {
        if plural == "pods" {
            let there: BTreeSet<String> = self.known.pods().map(uid_of).collect();
            self.decided.retain(|uid, _| there.contains(uid));
            self.satisfied.extend(self.known.pods().filter_map(gang_of_placed));
            self.partial.clear();
        }
    }

    /// Of the gang of this pod nothing follows from what was decided before.
    fn begin_anew(&mut self, pod: &Value) {
        if let Some(gang) = pod["metadata"]["labels"][GANG].as_str() {
            self.partial.remove(gang);
        }
    }

    fn follow_gang(&mut self, pod: &Value, moment: Moment) {
        let Some(gang) = pod["metadata"]["labels"][GANG].as_str() else { return };
        if self.satisfied.contains(gang) {
            return;
        }
        let Some(least) = self.known.of("podgroups", gang).and_then(|group| group["spec"]["minMember"].as_u64()) else {
            return;
        };
        let placed = self.placed().filter(|other| other["metadata"]["labels"][GANG] == gang);
        if (placed.count() as u64) + 1 >= least {
            self.partial.remove(gang);
        } else {
            self.partial.entry(gang.to_owned()).or_insert((moment, 0));
        }
    }

    /// All pods that have a node, as far as this life can know.
    fn placed(&self) -> impl Iterator<Item = &Value> {
        let is_bound = |pod: &&Value| !pod["spec"]["nodeName"].is_null() && !has_ended(pod);
        let shown = self.known.pods().filter(is_bound);
        let own = self.decided.iter().filter(move |(_, pod)| {
            self.known.pod(&key_of(pod)).is_some_and(|known| known["spec"]["nodeName"].is_null() && !has_ended(known))
        });
        shown.chain(own.map(|(_, pod)| pod))
    }

    /// Whether the pod may have that node, by one of the last versions of the node and of the quota; by any, where the decision has waited.
    fn judge(&self, pod: &Value, node: &str, has_waited: bool) -> Result<(), String> {
        let counted = if is_of_gang(pod) || has_waited { usize::MAX } else { VERSIONS };
        let versions = last(self.known.versions(node), counted).filter(|versions| !versions.is_empty());
        let (Some(versions), Some(quotas)) = (versions, self.quotas(pod, counted)) else { return Ok(()) };
        if is_odd(node) || !self.known.knows_nodes() {
            // It is about to be listed again, or nobody knows what it has.
            return Ok(());
        }
        let mut first = None;
        for node_then in versions {
            for quota in quotas.iter().copied() {
                let wrong = self.wrong(pod, node, node_then, quota);
                if wrong.is_empty() {
                    return Ok(());
                }
                first.get_or_insert(wrong);
            }
        }
        let wrong = first.unwrap_or_default().join("; ");
        Err(format!("{} is bound to {node}, although: {wrong}\n{pod}", name_of(pod)))
    }

    /// The last versions of the pod's quota, or that it has none; nothing where nobody knows them all.
    fn quotas(&self, pod: &Value, counted: usize) -> Option<Vec<Option<&Value>>> {
        let name = pod["metadata"]["labels"][QUOTA].as_str();
        let Some(versions) = name.and_then(|name| self.known.quota(name)) else { return Some(vec![None]) };
        Some(last(versions, counted)?.into_iter().map(Some).collect())
    }

    /// Laws that this pod breaks on this node.
    fn wrong(&self, pod: &Value, node: &str, node_then: &[Value], quota: Option<&Value>) -> Vec<String> {
        let is_near = |other: &&Value| {
            let label = &pod["metadata"]["labels"][QUOTA];
            other["spec"]["nodeName"] == node || (!label.is_null() && other["metadata"]["labels"][QUOTA] == *label)
        };
        let near: Vec<&Value> = self.placed().filter(is_near).filter(|other| uid_of(other) != uid_of(pod)).collect();
        let mut objects: Vec<Value> = node_then.to_vec();
        objects.extend(quota.cloned());
        objects.extend(near.iter().map(|pod| of_kind("Pod", pod)));
        objects.extend(self.known.reservations(&near, self.latest).map(|one| of_kind("Reservation", one)));
        let before: BTreeSet<String> = broken(&objects).into_iter().collect();
        objects.push(of_kind("Pod", pod));
        let name = name_of(pod);
        let mut wrong = broken(&objects);
        wrong.retain(|what| !before.contains(what));
        wrong.retain(|what| !(is_odd(what) || is_odd(&name) && what.starts_with(&name)));
        // QUIRK of the original: a node of which no Device is known is taken at its word.
        let has_device = node_then.iter().any(|object| object["kind"] == "Device");
        wrong.retain(|what| has_device || !what.contains(" GPU"));
        wrong.extend(legal::problem(&node_then[0], pod));
        wrong
    }
}

/// The gang of a pod that has a node.
fn gang_of_placed(pod: &Value) -> Option<String> {
    let gang = pod["metadata"]["labels"][GANG].as_str()?;
    pod["spec"]["nodeName"].is_string().then(|| gang.to_owned())
}

/// The last versions of an object, the newest first, if all of them are known.
fn last<T>(versions: &[Option<T>], counted: usize) -> Option<Vec<&T>> {
    versions.iter().rev().take(counted).map(Option::as_ref).collect()
}

/// A merge patch that does what both do, one after the other.
fn overlaid(mut patch: Value, next: &Value) -> Value {
    match (patch.as_object_mut(), next.as_object()) {
        (Some(fields), Some(further)) => {
            for (name, value) in further {
                let before = fields.remove(name).unwrap_or_default();
                fields.insert(name.clone(), overlaid(before, value));
            }
            patch
        }
        _ => next.clone(),
    }
}

fn broken(objects: &[Value]) -> Vec<String> {
    laws::broken(&Facts::of(objects), false)
}

pub(crate) fn is_of_gang(pod: &Value) -> bool {
    let metadata = &pod["metadata"];
    !metadata["labels"][GANG].is_null() || !metadata["annotations"][DECLARED_GANG].is_null()
}

fn is_odd(text: &str) -> bool {
    text.starts_with(ODD)
}

pub(crate) fn of_kind(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    object["kind"] = kind.into();
    object
}

pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn key_of(object: &Value) -> String {
    let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", of("namespace"), of("name"))
}
