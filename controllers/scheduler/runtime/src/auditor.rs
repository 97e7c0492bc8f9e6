//! The workload auditor: what happens to each pod, or gang group, from its creation until it is scheduled or deleted, and what of it is
//! not as it should be (`spec/scheduler.md` 2.14).
//!
//! It knows neither the engine nor a clock: events come with their moment, and what follows from them is taken as [`Report`]s. The rules of
//! one workload are in [`record`].

mod event;
mod finding;
mod record;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use koord_runtime::{clock::Moment, key::ObjectKey, uid::Uid};

use self::record::Record;
pub(crate) use self::{
    event::{Event, Outcome},
    finding::Finding,
};
pub use finding::Limits;

/// What is scheduled as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// A pod that goes alone.
    Pod(ObjectKey, Uid),
    /// A gang group, by its name.
    GangGroup(Arc<str>),
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key, _) => write!(f, "pod {key}"),
            Self::GangGroup(name) => write!(f, "gang group {name}"),
        }
    }
}

/// A pod, as far as it matters here.
pub(crate) struct Subject<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a Uid,
    /// Whether scheduling gates hold it back.
    pub(crate) is_gated: bool,
    /// What it is scheduled together with.
    pub(crate) together: Option<&'a koord_scheduler_framework::Workload>,
}

impl Subject<'_> {
    fn workload(&self) -> Workload {
        match self.together {
            Some(together) => Workload::GangGroup(Arc::clone(&together.name)),
            None => Workload::Pod(self.key.clone(), self.uid.clone()),
        }
    }
}

/// Something that was found out about a workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) workload: Workload,
    /// The values of the labels of its metrics.
    pub(crate) labels: Arc<[String]>,
    pub(crate) finding: Finding,
}

/// The workloads that wait. What it keeps of one goes with the last of its pods.
#[derive(Debug, Default)]
pub(crate) struct Auditor {
    audited: BTreeMap<Workload, Audited>,
    /// The workload of every pod that waits, and whether the pod is gated.
    pods: BTreeMap<Uid, (Workload, bool)>,
    /// For whom a pod leaves that is evicted.
    victims: BTreeMap<Uid, BTreeSet<Workload>>,
    reports: Vec<Report>,
}

#[derive(Debug, Default)]
struct Audited {
    record: Record,
    labels: Arc<[String]>,
    pods: BTreeSet<Uid>,
    /// The pods that are to leave for it and are still there.
    victims: BTreeSet<Uid>,
    is_gated: bool,
    has_enough_pods: bool,
    /// Of a gang group: its members are tried, and none of them has been refused yet.
    is_unreported: bool,
}

impl Auditor {
    /// What was found out since this was asked last.
    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// Knows nothing any more, and says nothing of it.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether this pod is part of a workload that waits.
    pub(crate) fn knows(&self, uid: &Uid) -> bool {
        self.pods.contains_key(uid)
    }

    /// A pod was created. Its labels are those of its workload, if it is the first one.
    pub(crate) fn created(&mut self, pod: &Subject<'_>, labels: impl FnOnce() -> Arc<[String]>, now: Moment) {
        let workload = pod.workload();
        let is_new = !self.audited.contains_key(&workload);
        let audited = self.audited.entry(workload.clone()).or_default();
        audited.pods.insert(pod.uid.clone());
        self.pods.insert(pod.uid.clone(), (workload.clone(), pod.is_gated));
        if is_new {
            audited.labels = labels();
            self.note(&workload, Event::Create, now);
        }
        self.gated(&workload, pod.is_gated, now);
        self.complete(&workload, pod.together, now);
    }

    /// A pod, or what it is scheduled together with, was changed.
    pub(crate) fn changed(&mut self, pod: &Subject<'_>, now: Moment) {
        let Some((known, was_gated)) = self.pods.get(pod.uid).cloned() else { return };
        // One that needs its gang no more stays what it was until it is scheduled.
        let workload = if pod.together.is_some() { pod.workload() } else { known.clone() };
        self.pods.insert(pod.uid.clone(), (workload.clone(), pod.is_gated));
        if workload != known {
            self.moved(pod.uid, &known, &workload);
        }
        if pod.is_gated != was_gated {
            self.gated(&workload, pod.is_gated, now);
        }
        self.complete(&workload, pod.together, now);
    }

    /// The members that wait of gang groups without enough pods: what they are together may change without them.
    pub(crate) fn incomplete(&self) -> Vec<Uid> {
        let groups = self
            .audited
            .iter()
            .filter(|(workload, audited)| matches!(workload, Workload::GangGroup(_)) && !audited.has_enough_pods);
        groups.flat_map(|(_, audited)| &audited.pods).cloned().collect()
    }

    /// A pod has its node, by this scheduler: a pod that goes alone is scheduled.
    pub(crate) fn scheduled(&mut self, uid: &Uid, now: Moment) {
        match self.pods.get(uid).cloned() {
            Some((workload @ Workload::Pod(..), _)) => {
                self.note(&workload, Event::Scheduled, now);
                self.end(&workload, Outcome::Scheduled, now);
            }
            Some((Workload::GangGroup(_), _)) | None => self.gone(uid, now),
        }
    }

    /// A pod waits no longer: it is deleted, has ended, or has its node from another program.
    pub(crate) fn gone(&mut self, uid: &Uid, now: Moment) {
        let Some((workload, _)) = self.pods.remove(uid) else { return };
        let Some(audited) = self.audited.get_mut(&workload) else { return };
        audited.pods.remove(uid);
        if audited.pods.is_empty() {
            let outcome = if matches!(workload, Workload::Pod(..)) { Outcome::Deleted } else { Outcome::GangDeleted };
            self.end(&workload, outcome, now);
        }
    }

    /// A pod was refused: it waits for victims, or there is another reason. Of a gang group the first refusal
    /// in a row of attempts counts for all.
    pub(crate) fn refused(&mut self, uid: &Uid, event: Event, leaving: &[Uid], now: Moment) {
        let Some((workload, _)) = self.pods.get(uid).cloned() else { return };
        let Some(audited) = self.audited.get_mut(&workload) else { return };
        if matches!(workload, Workload::GangGroup(_)) && !std::mem::take(&mut audited.is_unreported) {
            return;
        }
        self.note(&workload, event, now);
        if event == Event::PreemptNominated {
            self.expect(&workload, leaving, now);
        }
    }

    /// The members of a gang group are tried from now on.
    pub(crate) fn tried(&mut self, group: &str) {
        if let Some(audited) = self.audited.get_mut(&Workload::GangGroup(group.into())) {
            audited.is_unreported = true;
        }
    }

    /// Nothing more is tried of a gang group for now, because of this, if it is an event.
    pub(crate) fn tried_no_more(&mut self, group: &str, why: Option<Event>, now: Moment) {
        let workload = Workload::GangGroup(group.into());
        let Some(audited) = self.audited.get_mut(&workload) else { return };
        audited.is_unreported = false;
        if let Some(event) = why {
            self.note(&workload, event, now);
        }
        if why == Some(Event::Scheduled) {
            self.end(&workload, Outcome::GangScheduled, now);
        }
    }

    /// A pod is gone: its preemptors may have no victims left to wait for.
    pub(crate) fn left(&mut self, victim: &Uid, now: Moment) {
        for workload in self.victims.remove(victim).unwrap_or_default() {
            let Some(audited) = self.audited.get_mut(&workload) else { continue };
            if audited.victims.remove(victim) && audited.victims.is_empty() {
                self.note(&workload, Event::VictimAllDeleted, now);
            }
        }
    }

    /// A pod could not be evicted.
    pub(crate) fn stays(&mut self, victim: &Uid) {
        for workload in self.victims.remove(victim).unwrap_or_default() {
            if let Some(audited) = self.audited.get_mut(&workload) {
                audited.victims.remove(victim);
            }
        }
    }

    /// These pods, and no others, leave for a workload.
    fn expect(&mut self, workload: &Workload, leaving: &[Uid], now: Moment) {
        self.expect_no_victims(workload);
        for victim in leaving {
            self.victims.entry(victim.clone()).or_default().insert(workload.clone());
        }
        if let Some(audited) = self.audited.get_mut(workload) {
            audited.victims.extend(leaving.iter().cloned());
        }
        // Those that were not bound yet have given back their places.
        if leaving.is_empty() {
            self.note(workload, Event::VictimAllDeleted, now);
        }
    }

    fn expect_no_victims(&mut self, workload: &Workload) {
        let victims = self.audited.get_mut(workload).map(|audited| std::mem::take(&mut audited.victims));
        for victim in victims.unwrap_or_default() {
            if let Some(waiting) = self.victims.get_mut(&victim) {
                waiting.remove(workload);
                if waiting.is_empty() {
                    self.victims.remove(&victim);
                }
            }
        }
    }

    fn gated(&mut self, workload: &Workload, is_gated: bool, now: Moment) {
        let Some(audited) = self.audited.get_mut(workload) else { return };
        if std::mem::replace(&mut audited.is_gated, is_gated) != is_gated {
            let event = if is_gated { Event::GatedByQueueAdmission } else { Event::AdmissionPassed };
            self.note(workload, event, now);
        }
    }

    fn complete(&mut self, workload: &Workload, together: Option<&koord_scheduler_framework::Workload>, now: Moment) {
        let (Some(together), Some(audited)) = (together, self.audited.get_mut(workload)) else { return };
        let had_enough = std::mem::replace(&mut audited.has_enough_pods, together.has_enough_pods);
        if together.has_enough_pods && !had_enough {
            self.note(workload, Event::GangMinMemberSatisfied, now);
        }
    }

    /// A pod belongs to another workload now: its gang is in another group, mostly with all of its pods.
    fn moved(&mut self, uid: &Uid, from: &Workload, to: &Workload) {
        if let Some(known) = self.audited.get_mut(to) {
            known.pods.insert(uid.clone());
            let left = self.audited.get_mut(from).is_some_and(|old| old.pods.remove(uid) && old.pods.is_empty());
            if left {
                self.expect_no_victims(from);
                self.audited.remove(from);
            }
            return;
        }
        let Some(audited) = self.audited.remove(from) else { return };
        for uid in &audited.pods {
            if let Some((workload, _)) = self.pods.get_mut(uid) {
                *workload = to.clone();
            }
        }
        for victim in &audited.victims {
            if let Some(waiting) = self.victims.get_mut(victim) {
                waiting.remove(from);
                waiting.insert(to.clone());
            }
        }
        self.audited.insert(to.clone(), audited);
    }

    fn note(&mut self, workload: &Workload, event: Event, now: Moment) {
        let Some(audited) = self.audited.get_mut(workload) else { return };
        tracing::debug!(%workload, event = event.name(), labels = ?audited.labels, "workload auditor: event");
        let findings = audited.record.note(event, now);
        report(&mut self.reports, workload, &audited.labels, findings);
    }

    fn end(&mut self, workload: &Workload, outcome: Outcome, now: Moment) {
        self.expect_no_victims(workload);
        let Some(audited) = self.audited.remove(workload) else { return };
        for uid in &audited.pods {
            self.pods.remove(uid);
        }
        tracing::debug!(%workload, outcome = outcome.name(), labels = ?audited.labels, "workload auditor: end");
        report(&mut self.reports, workload, &audited.labels, audited.record.end(outcome, now));
    }
}

fn report(reports: &mut Vec<Report>, workload: &Workload, labels: &Arc<[String]>, findings: Vec<Finding>) {
    let of = |finding| Report { workload: workload.clone(), labels: Arc::clone(labels), finding };
    reports.extend(findings.into_iter().map(of));
}
