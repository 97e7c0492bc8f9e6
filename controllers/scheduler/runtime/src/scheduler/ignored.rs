//! What in objects makes no sense: it does not count, and an event of the object names it with what is expected.

mod gangs;
mod kinds;
mod reported;
mod waiting;

use std::{
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use koord_api::{catalogue, node_resource_topology::v1alpha1::NodeResourceTopology, protocol::ProtocolError};
use koord_resource::controller::ResourceKind;
use koord_runtime::clock::Moment;
use koord_scheduler_engine::Attempt;
use koord_scheduler_framework::columns::Row;

use self::{
    kinds::KINDS,
    reported::{Part, Reported},
};
use super::{Scheduler, audit::Named};
use crate::report;

/// How often nodes, pods that wait and other objects are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of each at once.
const ROWS: usize = 64;
/// How many events one look at an object gives.
const SAID_MAX: usize = 16;
/// How much of a value is shown.
const VALUE_MAX: usize = 120;

/// How far nodes, pods that wait and other objects have been looked at, and what was said.
#[derive(Default)]
pub(super) struct Ignored {
    looked: Option<Moment>,
    next: usize,
    /// By row, what the texts of its node, of the report of its CPUs and of its pods were when they were read.
    read: Vec<[u64; 3]>,
    /// The next of the pods that wait.
    waiting: usize,
    /// The kind of the next object, and its number among the objects of the kind.
    kind: usize,
    object: usize,
    /// By kind, how often objects had changed when the last look at all of them began.
    changes: [u64; kinds::COUNT],
    reported: Reported,
}

impl Scheduler {
    /// Looks at the next nodes, other objects and pods that wait, if that was not done lately.
    pub(crate) fn tell_ignored(&mut self) {
        if !self.may_look(self.ignored.looked, PERIOD) {
            return;
        }
        self.ignored.looked = Some(self.clock.moment());
        self.tell_of_nodes();
        self.tell_of_objects();
        self.tell_of_waiting();
    }

    /// Looks at the next nodes, at what is reported of their CPUs, and at what their pods were given.
    fn tell_of_nodes(&mut self) {
        let width = self.engine.cluster().width();
        self.ignored.read.resize(width, [0; 3]);
        let end = width.min(self.ignored.next + ROWS);
        for index in self.ignored.next..end {
            let Some(row) = Row::at(index) else { continue };
            let mut read = self.ignored.read[index];
            for (object, said) in self.remarks(row, &mut read) {
                let part = if object.0 == ResourceKind::POD { Part::Given } else { Part::Object };
                self.say_once(part, &object, said);
            }
            self.ignored.read[index] = read;
        }
        self.ignored.next = if end == width { 0 } else { end };
    }

    /// Looks at the next objects of other kinds. A kind whose objects are as they were is passed over.
    fn tell_of_objects(&mut self) {
        for _ in 0..KINDS.len() {
            let (index, from) = (self.ignored.kind, self.ignored.object);
            let kind = &KINDS[index];
            let objects = self.engine.cluster().objects();
            let changes = (kind.changes)(objects);
            let is_other = from > 0 || std::mem::replace(&mut self.ignored.changes[index], changes) != changes;
            if is_other {
                let page = (kind.look)(objects, from);
                if page.is_last {
                    (self.ignored.kind, self.ignored.object) = ((index + 1) % KINDS.len(), 0);
                } else {
                    self.ignored.object = from + ROWS;
                }
                for (object, said) in page.said {
                    self.say_once(Part::Object, &object, said);
                }
                return;
            }
            self.ignored.kind = (index + 1) % KINDS.len();
        }
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

    /// A pod, or a reserve pod, has its place in spite of what makes no sense.
    pub(super) fn tell_ignored_of(&mut self, attempt: &Attempt) {
        let pod = &attempt.pod;
        let (kind, key) = report::subject(pod);
        let said = ignored(pod.template.labels.iter().chain(pod.template.annotations.iter()));
        self.say_once(Part::Wishes, &(kind, key.clone(), pod.uid.clone()), said);
    }

    /// Says it, if it was not said of this part of the object as it is.
    fn say_once(&mut self, part: Part, object: &Named, said: Vec<String>) {
        if self.ignored.reported.is_new(part, &object.2, &said) {
            self.say_ignored(object, said);
        }
    }

    fn say_ignored(&self, object: &Named, said: Vec<String>) {
        for message in said.into_iter().take(SAID_MAX) {
            self.warn(object.clone(), ("Scheduling", "Ignored"), message);
        }
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
    pairs.flat_map(|(name, text)| findings(name, text)).collect()
}

/// What is said of a label or annotation: that it cannot be read, or what of it hardly does what was meant.
fn findings(name: &str, text: &str) -> Vec<String> {
    match catalogue::find(name).map(|entry| entry.check(text)) {
        Some(Err(error)) => vec![unreadable(error, "is ignored")],
        _ => catalogue::doubts(name, text).iter().map(|doubt| format!("{name}: {doubt}")).collect(),
    }
}

/// What is said of a text that cannot be read and has this effect.
fn unreadable(error: ProtocolError, effect: &str) -> String {
    let ProtocolError { key, value, reason, expected } = error;
    let shown = value.char_indices().nth(VALUE_MAX).map_or(&*value, |(end, _)| &value[..end]);
    format!("{key} {effect}: {reason}; expected {expected}, and it has {shown:?}")
}
