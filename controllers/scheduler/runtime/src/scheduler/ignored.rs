//! Invalid labels, annotations and fields of objects: they are ignored, and an event of the object says what is expected.

mod gangs;
mod kinds;
mod reported;
mod waiting;

use std::{
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use koord_resource::controller::ResourceKind;
use koord_runtime::clock::Moment;
use koord_scheduler_engine::Attempt;
use koord_scheduler_framework::columns::Row;
use koord_types::{catalogue, node_resource_topology::v1alpha1::NodeResourceTopology, protocol::ProtocolError};

use self::{
    kinds::KINDS,
    reported::{Part, Reported},
};
use super::{Scheduler, audit::Named};
use crate::report;

/// How often some nodes, waiting pods and other objects are checked.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of each at once.
const ROWS: usize = 64;
/// The most events that one check of an object gives.
const EVENTS_MAX: usize = 16;
/// How much of a value is shown.
const VALUE_MAX: usize = 120;

/// How far nodes, waiting pods and other objects have been checked, and what was reported.
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
    /// Checks the next nodes, other objects and waiting pods, if that was not done lately.
    pub(crate) fn report_ignored(&mut self) {
        if !self.may_look(self.ignored.looked, PERIOD) {
            return;
        }
        self.ignored.looked = Some(self.clock.moment());
        self.report_on_nodes();
        self.report_on_objects();
        self.report_on_waiting();
    }

    /// Checks the next nodes, the reports of their CPUs, and the allocations of their pods.
    fn report_on_nodes(&mut self) {
        let width = self.engine.cluster().width();
        self.ignored.read.resize(width, [0; 3]);
        let end = width.min(self.ignored.next + ROWS);
        for index in self.ignored.next..end {
            let Some(row) = Row::at(index) else { continue };
            let mut read = self.ignored.read[index];
            for (object, findings) in self.remarks(row, &mut read) {
                let part = if object.0 == ResourceKind::POD { Part::Given } else { Part::Object };
                self.report_once(part, &object, findings);
            }
            self.ignored.read[index] = read;
        }
        self.ignored.next = if end == width { 0 } else { end };
    }

    /// Checks the next objects of other kinds. A kind whose objects have not changed is skipped.
    fn report_on_objects(&mut self) {
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
                for (object, findings) in page.findings {
                    self.report_once(Part::Object, &object, findings);
                }
                return;
            }
            self.ignored.kind = (index + 1) % KINDS.len();
        }
    }

    /// The findings in a node, in the report of its CPUs and in its pods. What has not changed since it was read is not read again: the CPUs
    /// of a large machine are half a millisecond of JSON.
    fn remarks(&self, row: Row, read: &mut [u64; 3]) -> Vec<(Named, Vec<String>)> {
        let cluster = self.engine.cluster();
        let (mut findings, [of_node, of_report, of_pods]) = (Vec::new(), read);
        let Some(node) = cluster.node(row) else { return findings };
        let pairs = || node.labels.iter().chain(node.annotations.iter());
        if let Some(named) =
            self.node(&node.name).filter(|(.., uid)| is_other(of_node, pairs().map(|pair| (uid, pair))))
        {
            findings.push((named, ignored(pairs())));
        }
        if let Some(entry) = cluster.objects().entry::<NodeResourceTopology>(&node.name)
            && let Some(report) = entry.get::<NodeResourceTopology>()
        {
            let annotations = || report.metadata.annotations.iter().flatten();
            let pairs = || annotations().map(|(name, text)| (name.as_str(), text.as_str()));
            if is_other(of_report, pairs().map(|pair| (&entry.uid, pair))) {
                let named = (ResourceKind::typed::<NodeResourceTopology>(), entry.key.clone(), entry.uid.clone());
                findings.push((named, ignored(pairs())));
            }
        }
        let pods = || {
            let pods = cluster.pods_on(row).map(|placed| &*placed.pod);
            pods.filter(|pod| !pod.is_reservation() && pod.given.iter().next().is_some())
        };
        if is_other(of_pods, pods().flat_map(|pod| pod.given.iter().map(move |pair| (&pod.uid, pair)))) {
            findings.extend(
                pods().map(|pod| ((ResourceKind::POD, pod.key.clone(), pod.uid.clone()), ignored(pod.given.iter()))),
            );
        }
        findings
    }

    /// Reports the findings in a pod, or in a Reservation, that has got its node.
    pub(super) fn report_ignored_of(&mut self, attempt: &Attempt) {
        let pod = &attempt.pod;
        let (kind, key) = report::subject(pod);
        let findings = ignored(pod.template.labels.iter().chain(pod.template.annotations.iter()));
        self.report_once(Part::Spec, &(kind, key.clone(), pod.uid.clone()), findings);
    }

    /// Reports findings, unless the last ones about this part of the object were the same.
    fn report_once(&mut self, part: Part, object: &Named, findings: Vec<String>) {
        if self.ignored.reported.is_new(part, &object.2, &findings) {
            self.report_all(object, findings);
        }
    }

    fn report_all(&self, object: &Named, findings: Vec<String>) {
        for message in findings.into_iter().take(EVENTS_MAX) {
            self.warn(object.clone(), ("Scheduling", "Ignored"), message);
        }
    }
}

/// Whether the texts differ from those that were read last.
fn is_other(read: &mut u64, texts: impl Iterator<Item = impl Hash>) -> bool {
    let mut hasher = DefaultHasher::new();
    texts.for_each(|text| text.hash(&mut hasher));
    let hash = hasher.finish();
    std::mem::replace(read, hash) != hash
}

/// The findings in labels and annotations.
fn ignored<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    pairs.flat_map(|(name, text)| findings_in(name, text)).collect()
}

/// The findings in a label or annotation: that it cannot be decoded, or what of it hardly does what was meant.
fn findings_in(name: &str, text: &str) -> Vec<String> {
    match catalogue::find(name).map(|entry| entry.check(text)) {
        Some(Err(error)) => vec![unreadable(error, "is ignored")],
        _ => catalogue::doubts(name, text).iter().map(|doubt| format!("{name}: {doubt}")).collect(),
    }
}

/// The message about a text that cannot be decoded and has this effect.
fn unreadable(error: ProtocolError, effect: &str) -> String {
    let ProtocolError { key, value, reason, expected } = error;
    let shown = value.char_indices().nth(VALUE_MAX).map_or(&*value, |(end, _)| &value[..end]);
    format!("{key} {effect}: {reason}; expected {expected}, and it has {shown:?}")
}
