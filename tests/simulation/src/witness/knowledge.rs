//! Objects as the watches of one life have shown them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{has_ended, key_of, of_kind, uid_of};
use crate::people::name_of;

/// So many versions are kept.
const KEPT: usize = 24;
/// What is followed, by the plurals of the kinds.
const FOLLOWED: [(&str, &str); 7] = [
    ("pods", "Pod"),
    ("nodes", "Node"),
    ("devices", "Device"),
    ("noderesourcetopologies", "NodeResourceTopology"),
    ("elasticquotas", "ElasticQuota"),
    ("reservations", "Reservation"),
    ("podgroups", "PodGroup"),
];

/// What makes a node.
const NODES: [&str; 3] = ["nodes", "devices", "noderesourcetopologies"];

/// What a line has shown.
pub(super) enum Seen {
    /// Everything is known now.
    Whole,
    /// A pod, perhaps one that was not known before, or the end of one.
    Pod { pod: Value, is_new: bool, is_gone: bool },
    /// Something else.
    Other,
}

/// What an object was, the newest last; none where nobody knows what was seen of it then.
type Versions<T> = Vec<Option<T>>;

/// The objects of a cluster. A node is kept with what belongs to it.
#[derive(Default)]
pub(super) struct Knowledge {
    objects: BTreeMap<(String, String), Value>,
    /// What was listed, up to which revision; zero while a list is under way.
    listed: BTreeMap<String, u64>,
    /// What counts as unknown until it is listed again.
    lost: BTreeSet<String>,
    nodes: BTreeMap<String, Versions<Vec<Value>>>,
    quotas: BTreeMap<String, Versions<Value>>,
    /// Reservations whose node was gone once: nobody knows what became of them meanwhile.
    homeless: BTreeSet<String>,
}

impl Knowledge {
    /// Forgets what is shown anew, or what comes before it is.
    pub(super) fn forget(&mut self, plural: &str, until_listed: bool) {
        self.objects.retain(|(of, _), _| of != plural);
        self.listed.insert(plural.to_owned(), 0);
        if until_listed {
            self.lost.insert(plural.to_owned());
            match plural {
                "elasticquotas" => self.quotas.values_mut().for_each(|versions| keep(versions, None)),
                plural if NODES.contains(&plural) => self.nodes.values_mut().for_each(|versions| keep(versions, None)),
                _ => {}
            }
        } else {
            self.lost.remove(plural);
        }
        if plural == "nodes" {
            let all: Vec<String> = self.of_kind("reservations").map(uid_of).collect();
            self.homeless.extend(all);
        }
    }

    /// Takes a page of a list; whether it was the last.
    pub(super) fn page(&mut self, plural: &str, page: &Value) -> bool {
        if kind_of(plural).is_none() || self.lost.contains(plural) {
            return false;
        }
        for object in page["items"].as_array().into_iter().flatten() {
            self.set(plural, object.clone());
        }
        let is_last = page["metadata"]["continue"].as_str().unwrap_or_default().is_empty();
        if is_last {
            self.listed.insert(plural.to_owned(), revision(page));
            self.remember_all(plural);
        }
        is_last
    }

    /// Takes a line of a watch. What was shown before is no news.
    pub(super) fn line(&mut self, plural: &str, line: &str) -> Option<Seen> {
        kind_of(plural)?;
        if self.lost.contains(plural) {
            return None;
        }
        let mut line: Value = serde_json::from_str(line).ok()?;
        let object = line["object"].take();
        let listed = self.listed.entry(plural.to_owned()).or_default();
        let revision = revision(&object);
        match line["type"].as_str()? {
            "BOOKMARK" => {
                let is_end = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
                *listed = if is_end || *listed > 0 { revision.max(*listed) } else { 0 };
                if is_end {
                    self.remember_all(plural);
                }
                is_end.then_some(Seen::Whole)
            }
            kind @ ("ADDED" | "MODIFIED" | "DELETED") => {
                if *listed > 0 {
                    if revision <= *listed {
                        return None;
                    }
                    *listed = revision;
                }
                let is_gone = kind == "DELETED";
                let known = self.objects.get(&(plural.to_owned(), key(plural, &object)));
                let is_new = known.is_none_or(|known| uid_of(known) != uid_of(&object));
                if is_gone {
                    self.remove(plural, &object);
                } else {
                    self.set(plural, object.clone());
                }
                let is_gone = is_gone || has_ended(&object);
                Some(if plural == "pods" { Seen::Pod { pod: object, is_new, is_gone } } else { Seen::Other })
            }
            _ => None,
        }
    }

    fn set(&mut self, plural: &str, object: Value) {
        let name = name_of(&object);
        self.objects.insert((plural.to_owned(), key(plural, &object)), object);
        match plural {
            plural if NODES.contains(&plural) => self.remember(&name),
            "elasticquotas" => {
                let quota = self.of(plural, &name).map(|quota| of_kind("ElasticQuota", quota));
                keep(self.quotas.entry(name).or_default(), quota);
            }
            _ => {}
        }
    }

    fn remove(&mut self, plural: &str, object: &Value) {
        let name = name_of(object);
        self.objects.remove(&(plural.to_owned(), key(plural, object)));
        match plural {
            "nodes" => {
                let here = self.of_kind("reservations").filter(|one| one["status"]["nodeName"] == name.as_str());
                let here: Vec<String> = here.map(uid_of).collect();
                self.homeless.extend(here);
            }
            "devices" | "noderesourcetopologies" => self.remember(&name),
            _ => {}
        }
    }

    /// Whether all is known that makes nodes.
    pub(super) fn knows_nodes(&self) -> bool {
        NODES.iter().all(|plural| !self.is_listed_anew(plural))
    }

    fn is_listed_anew(&self, plural: &str) -> bool {
        self.listed.get(plural) == Some(&0)
    }

    fn remember_all(&mut self, plural: &str) {
        if NODES.contains(&plural) {
            let names: Vec<String> = self.of_kind("nodes").map(name_of).collect();
            for name in &names {
                self.remember(name);
            }
        }
    }

    /// Keeps the node of this name as it is now, with what is known to belong to it.
    fn remember(&mut self, name: &str) {
        if self.of("nodes", name).is_none() || self.is_listed_anew("nodes") {
            return;
        }
        let of_node = |(plural, kind): &(&str, &str)| self.of(plural, name).map(|object| of_kind(kind, object));
        let now: Vec<Value> = FOLLOWED[1..4].iter().filter_map(of_node).collect();
        keep(self.nodes.entry(name.to_owned()).or_default(), Some(now));
    }

    pub(super) fn versions(&self, node: &str) -> &[Option<Vec<Value>>] {
        self.nodes.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn quota(&self, name: &str) -> Option<&[Option<Value>]> {
        self.of("elasticquotas", name)?;
        self.quotas.get(name).map(Vec::as_slice)
    }

    pub(super) fn pods(&self) -> impl Iterator<Item = &Value> {
        self.of_kind("pods")
    }

    pub(super) fn pod(&self, key: &str) -> Option<&Value> {
        self.objects.get(&("pods".to_owned(), key.to_owned()))
    }

    pub(super) fn of(&self, plural: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(plural.to_owned(), name.to_owned()))
    }

    /// Reservations that keep what they have by everybody's knowledge: the scheduler ends one before it says so.
    pub(super) fn reservations(&self, placed: &[&Value], latest: Timestamp) -> impl Iterator<Item = &Value> {
        self.of_kind("reservations").filter(move |one| {
            let uid = uid_of(one);
            let is_used = || placed.iter().any(|pod| uses(pod, &uid));
            let is_over = one["spec"]["ttl"] != "0s" && created(one) + TTL <= latest;
            let is_placed = !one["status"]["nodeName"].is_null();
            let is_known = is_placed && one["metadata"]["deletionTimestamp"].is_null() && !self.homeless.contains(&uid);
            is_known && !is_over && (one["spec"]["allocateOnce"] == false || !is_used())
        })
    }

    fn of_kind<'k>(&'k self, plural: &'k str) -> impl Iterator<Item = &'k Value> {
        self.objects.iter().filter(move |((of, _), _)| of == plural).map(|(_, object)| object)
    }
}

fn keep<T: PartialEq>(versions: &mut Versions<T>, now: Option<T>) {
    if versions.last() == Some(&now) {
        return;
    }
    versions.push(now);
    if versions.len() > KEPT {
        versions.remove(0);
    }
}

/// The shortest time that people give a Reservation.
pub(crate) const TTL: jiff::SignedDuration = jiff::SignedDuration::from_mins(3);

fn kind_of(plural: &str) -> Option<&'static str> {
    FOLLOWED.iter().find(|(of, _)| *of == plural).map(|(_, kind)| *kind)
}

/// Quotas and gangs have one namespace here, and pods have two.
fn key(plural: &str, object: &Value) -> String {
    if plural == "pods" { key_of(object) } else { name_of(object) }
}

pub(super) fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn created(object: &Value) -> Timestamp {
    let at = object["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse().ok());
    at.unwrap_or_default()
}

fn uses(pod: &Value, reservation: &str) -> bool {
    let allocated = pod["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-allocated"].as_str();
    allocated.is_some_and(|text| text.contains(reservation))
}
