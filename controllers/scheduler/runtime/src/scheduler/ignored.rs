//! Labels and annotations that make no sense: what they ask for does not count, and an event of their object says so.

use std::{collections::BTreeMap, time::Duration};

use koord_api::{catalogue, node_resource_topology::v1alpha1::NodeResourceTopology, protocol::ProtocolError};
use koord_engine::{columns::Row, engine::Attempt, pod::Pod};
use koord_resource::controller::ResourceKind;
use koord_runtime::{clock::Moment, uid::Uid};

use super::{Scheduler, audit::Named};
use crate::report;

/// How often nodes are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of them at once.
const ROWS: usize = 64;
/// Of how many objects it is remembered what was said; with more it is said again.
const TOLD_MAX: usize = 1024;
/// How much of a value is shown.
const VALUE_MAX: usize = 120;

/// How far the nodes have been looked at, and what was said.
#[derive(Default)]
pub(super) struct Ignored {
    looked: Option<Moment>,
    next: usize,
    told: BTreeMap<Uid, Vec<String>>,
}

impl Scheduler {
    /// Looks at the next nodes, at what is reported of their CPUs, and at what their pods were given, if that was not done lately.
    pub(crate) fn tell_ignored(&mut self) {
        if !self.may_look(self.ignored.looked, PERIOD) {
            return;
        }
        self.ignored.looked = Some(self.clock.moment());
        let cluster = self.engine.cluster();
        let end = cluster.width().min(self.ignored.next + ROWS);
        let remarks: Vec<(Named, Vec<String>)> =
            (self.ignored.next..end).filter_map(Row::at).flat_map(|row| self.remarks(row)).collect();
        self.ignored.next = if end == cluster.width() { 0 } else { end };
        for (object, said) in remarks {
            if self.ignored.is_new(&object.2, &said) {
                self.say_ignored(&object, said);
            }
        }
    }

    /// What there is to say of a node, of the report of its CPUs and of its pods.
    fn remarks(&self, row: Row) -> Vec<(Named, Vec<String>)> {
        let cluster = self.engine.cluster();
        let node = cluster.node(row).and_then(|node| {
            Some((self.node(&node.name)?, ignored(node.labels.iter().chain(node.annotations.iter()))))
        });
        let name = cluster.node(row).map(|node| &*node.name);
        let report = name.and_then(|name| cluster.objects().entry::<NodeResourceTopology>(name)).and_then(|entry| {
            let annotations = entry.get::<NodeResourceTopology>()?.metadata.annotations.iter().flatten();
            let said = ignored(annotations.map(|(name, text)| (name.as_str(), text.as_str())));
            Some(((ResourceKind::typed::<NodeResourceTopology>(), entry.key.clone(), entry.uid.clone()), said))
        });
        let pods = cluster.pods_on(row).map(|placed| &*placed.pod).filter(|pod| !pod.is_reservation());
        let pods = pods
            .filter(|pod| pod.given.iter().next().is_some())
            .map(|pod: &Pod| ((ResourceKind::POD, pod.key.clone(), pod.uid.clone()), ignored(pod.given.iter())));
        node.into_iter().chain(report).chain(pods).collect()
    }

    /// A pod, or one that stands for an object, has its place in spite of what makes no sense.
    pub(super) fn tell_ignored_of(&self, attempt: &Attempt) {
        let pod = &attempt.pod;
        let (kind, key) = report::subject(pod);
        let said = ignored(pod.template.labels.iter().chain(pod.template.annotations.iter()));
        self.say_ignored(&(kind, key.clone(), pod.uid.clone()), said);
    }

    fn say_ignored(&self, object: &Named, said: Vec<String>) {
        for message in said {
            self.warn(object.clone(), ("Scheduling", "Ignored"), message);
        }
    }
}

impl Ignored {
    /// Whether this was not said yet of the object as it is.
    fn is_new(&mut self, uid: &Uid, said: &[String]) -> bool {
        if said.is_empty() {
            self.told.remove(uid);
            return false;
        }
        if self.told.get(uid).is_some_and(|told| told == said) {
            return false;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        self.told.insert(uid.clone(), said.to_vec());
        true
    }
}

/// What is said of those that make no sense.
fn ignored<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let wrong = pairs.filter_map(|(name, text)| catalogue::find(name)?.rewrite(text).err());
    let said = wrong.map(|ProtocolError { key, value, reason, expected }| {
        let shown = value.char_indices().nth(VALUE_MAX).map_or(&*value, |(end, _)| &value[..end]);
        format!("{key} is ignored: {reason}; expected {expected}, and it has {shown:?}")
    });
    said.collect()
}
