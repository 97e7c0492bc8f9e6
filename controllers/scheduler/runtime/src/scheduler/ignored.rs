//! Labels and annotations that make no sense: what they ask for does not count, and an event of their object says so.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use koord_api::{catalogue, node_resource_topology::v1alpha1::NodeResourceTopology, protocol::ProtocolError};
use koord_engine::{columns::Row, engine::Attempt};
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
    /// By row, what the texts of its node, of the report of its CPUs and of its pods were when they were read.
    read: Vec<[u64; 3]>,
    told: BTreeMap<Uid, Vec<String>>,
}

impl Scheduler {
    /// Looks at the next nodes, at what is reported of their CPUs, and at what their pods were given, if that was not done lately.
    pub(crate) fn tell_ignored(&mut self) {
        if !self.may_look(self.ignored.looked, PERIOD) {
            return;
        }
        self.ignored.looked = Some(self.clock.moment());
        let width = self.engine.cluster().width();
        self.ignored.read.resize(width, [0; 3]);
        let end = width.min(self.ignored.next + ROWS);
        for index in self.ignored.next..end {
            let Some(row) = Row::at(index) else { continue };
            let mut read = self.ignored.read[index];
            for (object, said) in self.remarks(row, &mut read) {
                if self.ignored.is_new(&object.2, &said) {
                    self.say_ignored(&object, said);
                }
            }
            self.ignored.read[index] = read;
        }
        self.ignored.next = if end == width { 0 } else { end };
    }

    /// What there is to say of a node, of the report of its CPUs and of its pods. What is as it was when it was read is not read again:
    /// the CPUs of a large machine are half a millisecond of JSON.
    fn remarks(&self, row: Row, read: &mut [u64; 3]) -> Vec<(Named, Vec<String>)> {
        let cluster = self.engine.cluster();
        let (mut said, [of_node, of_report, of_pods]) = (Vec::new(), read);
        let Some(node) = cluster.node(row) else { return said };
        let pairs = || node.labels.iter().chain(node.annotations.iter());
        if let Some(named) =
            self.node(&node.name).filter(|(.., uid)| is_other(of_node, pairs().map(|pair| (uid, pair))))
        {
            said.push((named, ignored(pairs())));
        }
        if let Some(entry) = cluster.objects().entry::<NodeResourceTopology>(&node.name)
            && let Some(report) = entry.get::<NodeResourceTopology>()
        {
            let annotations = || report.metadata.annotations.iter().flatten();
            let pairs = || annotations().map(|(name, text)| (name.as_str(), text.as_str()));
            if is_other(of_report, pairs().map(|pair| (&entry.uid, pair))) {
                let named = (ResourceKind::typed::<NodeResourceTopology>(), entry.key.clone(), entry.uid.clone());
                said.push((named, ignored(pairs())));
            }
        }
        let pods = || {
            let pods = cluster.pods_on(row).map(|placed| &*placed.pod);
            pods.filter(|pod| !pod.is_reservation() && pod.given.iter().next().is_some())
        };
        if is_other(of_pods, pods().flat_map(|pod| pod.given.iter().map(move |pair| (&pod.uid, pair)))) {
            said.extend(
                pods().map(|pod| ((ResourceKind::POD, pod.key.clone(), pod.uid.clone()), ignored(pod.given.iter()))),
            );
        }
        said
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

/// Whether these are others than those that were read; now they are.
fn is_other(read: &mut u64, texts: impl Iterator<Item = impl Hash>) -> bool {
    let mut hasher = DefaultHasher::new();
    texts.for_each(|text| text.hash(&mut hasher));
    let hash = hasher.finish();
    std::mem::replace(read, hash) != hash
}

/// What is said of those that make no sense.
fn ignored<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let wrong = pairs.filter_map(|(name, text)| catalogue::find(name)?.check(text).err());
    let said = wrong.map(|ProtocolError { key, value, reason, expected }| {
        let shown = value.char_indices().nth(VALUE_MAX).map_or(&*value, |(end, _)| &value[..end]);
        format!("{key} is ignored: {reason}; expected {expected}, and it has {shown:?}")
    });
    said.collect()
}
