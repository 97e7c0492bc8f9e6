//! What the workload auditor is shown: pods that come and go, attempts and what comes of them. It is shown nothing where it is switched off,
//! and on replicas that only follow.

use std::{any::TypeId, sync::Arc};

use koord_api::{
    pod_group::PodGroup,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    reservation::Reservation,
};
use koord_runtime::{clock::Moment, metrics::Registries, uid::Uid};
use koord_scheduler_engine::{Attempt, Ended, Engine, Outcome, PreemptionOutcome, Refused};
use koord_scheduler_framework::pod::Pod;
use prometheus::Result;

use super::Scheduler;
use crate::{
    auditor::{Auditor, Event, Limits, Subject},
    feed::Delta,
    metrics::OfWorkloads,
};

/// Why a job has ended whose pods were all tried, as metrics say it.
const ALL_ATTEMPTED: &str = "all pending pods is already been attempted";

/// How workloads are audited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditorSettings {
    /// Labels of the metrics beside `priority`, and the labels of pods that give their values.
    pub labels: Vec<(String, String)>,
    /// What is not worth a warning.
    pub limits: Limits,
}

/// The auditor, with what becomes of what it finds out.
pub(super) struct Workloads {
    auditor: Auditor,
    settings: AuditorSettings,
    measures: OfWorkloads,
}

/// What a change means to workloads, as far as it can only be seen before it is applied.
#[derive(Default)]
pub(super) struct OfChange {
    /// Pods that are gone.
    gone: Vec<Uid>,
    /// The pod, or the Reservation, that it is about.
    pod: Option<Uid>,
    /// Whether that was not known before.
    is_new: bool,
    /// Whether the node that it has was chosen here.
    is_ours: bool,
    /// Whether pods may be together that were not, or a gang group have enough of them.
    changes_groups: bool,
}

impl Workloads {
    /// Has the auditor record something, and shows what it finds out.
    fn note(
        &mut self,
        engine: &Engine,
        method: &'static str,
        now: impl Fn() -> Moment,
        note: impl FnOnce(&mut Auditor, &Engine, Moment),
    ) {
        let began = now();
        note(&mut self.auditor, engine, began);
        for report in self.auditor.take_reports() {
            self.measures.observe(&report);
            for warning in self.settings.limits.warnings(&report.finding) {
                tracing::warn!(workload = %report.workload, labels = ?report.labels, "workload auditor: {warning}");
            }
        }
        self.measures.recorded(method, now().since(began));
    }
}

impl Scheduler {
    /// The same, which audits workloads and shows what it finds out there.
    pub fn auditing_workloads(self, settings: AuditorSettings, metrics: &Registries) -> Result<Self> {
        let names: Vec<String> = settings.labels.iter().map(|(name, _)| name.clone()).collect();
        let measures = OfWorkloads::new(metrics, &names)?;
        let workloads = Workloads { auditor: Auditor::default(), settings, measures };
        Ok(Self { workloads: Some(Box::new(workloads)), ..self })
    }

    /// What is shown from now on is all that counts: this replica leads, or leads no longer, or the engine has begun again.
    pub(super) fn audit_workloads_anew(&mut self) {
        let Some(workloads) = &mut self.workloads else { return };
        workloads.auditor.clear();
        if !self.is_leading() {
            return;
        }
        let cluster = self.engine.cluster();
        let waiting = cluster.pending().filter(|pod| cluster.pod(&pod.uid).is_none());
        for pod in waiting.cloned().collect::<Vec<_>>() {
            self.audit_created(&pod);
        }
    }

    /// What a change means to workloads, before it is applied.
    pub(super) fn before_change(&self, delta: &Delta) -> Option<OfChange> {
        self.audits()?;
        let cluster = self.engine.cluster();
        let is_new = |uid: &Uid| cluster.pod(uid).is_none() && cluster.pending_pod(uid).is_none();
        let of_pod = |pod: &Pod, gone| {
            let assumed = cluster.pod(&pod.uid).and_then(|placed| cluster.name(placed.row));
            let is_ours = pod.node.is_some() && assumed == pod.node.as_ref();
            OfChange { gone, pod: Some(pod.uid.clone()), is_new: is_new(&pod.uid), is_ours, ..OfChange::default() }
        };
        Some(match delta {
            Delta::Node(_) | Delta::NodeGone(_) => return None,
            Delta::Pod { pod, replaced } => of_pod(pod, replaced.iter().cloned().collect()),
            Delta::PodGone(uid) | Delta::PodRejected { uid, .. } => {
                OfChange { gone: vec![uid.clone()], ..OfChange::default() }
            }
            Delta::PodAgain { key, pod } => {
                let but = pod.as_ref().map(|pod| &pod.uid);
                let others = cluster.known_pods().filter(|known| known.key == *key && Some(&known.uid) != but);
                let gone = others.map(|other| other.uid.clone()).collect();
                match pod {
                    Some(pod) => of_pod(pod, gone),
                    None => OfChange { gone, ..OfChange::default() },
                }
            }
            Delta::Object(object) => {
                let uid = object.get::<Reservation>().map(|_| object.uid.clone());
                let is_new = uid.as_ref().is_some_and(is_new);
                let is_ours = uid.as_ref().is_some_and(|uid| cluster.pod(uid).is_some());
                let changes_groups = object.get::<PodGroup>().is_some();
                OfChange { gone: Vec::new(), pod: uid, is_new, is_ours, changes_groups }
            }
            Delta::ObjectGone(type_, key) => {
                let reservation = cluster.objects().entry::<Reservation>(key.as_str());
                let reservation = reservation.filter(|_| *type_ == TypeId::of::<Reservation>());
                let gone = reservation.map(|entry| entry.uid.clone()).into_iter().collect();
                OfChange { gone, changes_groups: *type_ == TypeId::of::<PodGroup>(), ..OfChange::default() }
            }
        })
    }

    /// The same change was applied.
    pub(super) fn after_change(&mut self, change: Option<OfChange>) {
        let Some(OfChange { gone, pod, is_new, is_ours, changes_groups }) = change else { return };
        for uid in gone {
            self.record("DeletePod", |auditor, _, now| {
                auditor.gone(&uid, now);
                auditor.left(&uid, now);
            });
        }
        if let Some(uid) = pod {
            self.audit_changed(&uid, is_new, is_ours);
        }
        if changes_groups {
            let pods = self.audits().map(|workloads| workloads.auditor.incomplete());
            pods.into_iter().flatten().for_each(|uid| self.audit_changed(&uid, false, false));
        }
    }

    fn audit_changed(&mut self, uid: &Uid, is_new: bool, is_ours: bool) {
        let is_known = self.audits().is_some_and(|workloads| workloads.auditor.knows(uid));
        let cluster = self.engine.cluster();
        let has_node = cluster.pod(uid).is_some_and(|placed| placed.pod.node.is_some());
        match cluster.pending_pod(uid).filter(|_| !has_node).cloned() {
            Some(pod) if is_new => self.audit_created(&pod),
            Some(pod) if is_known => self.record("RecordPodGating", |auditor, engine, now| {
                let together = engine.workload(&pod);
                auditor.changed(&subject(&pod, together.as_ref()), now);
            }),
            None if is_known && is_ours => {
                self.record("RecordPodScheduleResult", |auditor, _, now| auditor.scheduled(uid, now));
            }
            None if is_known => self.record("DeletePod", |auditor, _, now| auditor.gone(uid, now)),
            Some(_) | None => {}
        }
    }

    fn audit_created(&mut self, pod: &Arc<Pod>) {
        if self.engine.profile(&pod.template.scheduler).is_none() {
            return;
        }
        let Some(workloads) = self.audits() else { return };
        let labels = labels(pod, &workloads.settings);
        self.record("AddPod", |auditor, engine, now| {
            let together = engine.workload(pod);
            auditor.created(&subject(pod, together.as_ref()), || labels, now);
        });
    }

    /// An attempt was made, and these jobs have begun and ended with it.
    pub(super) fn audit_attempt(&mut self, attempt: Option<&Attempt>, begun: &[String], ended: &[Ended]) {
        if self.audits().is_none() {
            return;
        }
        for job in begun {
            self.record("RecordGangGroup", |auditor, _, _| auditor.tried(job));
        }
        if let Some(Attempt { pod, outcome: Outcome::Refused(refused), .. }) = attempt {
            let (event, leaving) = event(refused);
            self.record("RecordDiagnosis", |auditor, _, now| auditor.refused(&pod.uid, event, &leaving, now));
        }
        for Ended { job, is_complete, reason, .. } in ended {
            let attempted = (*reason == ALL_ATTEMPTED).then_some(Event::GangAllPodsAlreadyAttempted);
            let why = if *is_complete { Some(Event::Scheduled) } else { attempted };
            self.record("RecordGangScheduleResult", |auditor, _, now| auditor.tried_no_more(job, why, now));
        }
    }

    /// A pod is bound.
    pub(super) fn audit_scheduled(&mut self, pod: &Pod) {
        self.record("RecordPodScheduleResult", |auditor, _, now| auditor.scheduled(&pod.uid, now));
    }

    /// The binding of a pod has failed.
    pub(super) fn audit_bind_failed(&mut self, pod: &Pod) {
        self.record("RecordPodScheduleResult", |auditor, _, now| {
            auditor.refused(&pod.uid, Event::ScheduleFailure, &[], now);
        });
    }

    /// A pod could not be evicted.
    pub(super) fn audit_eviction_failed(&mut self, victim: &Uid) {
        self.record("RecordPod", |auditor, _, _| auditor.stays(victim));
    }

    /// The auditor, where there is something to audit.
    fn audits(&self) -> Option<&Workloads> {
        self.workloads.as_deref().filter(|_| self.is_leading())
    }

    /// Has the auditor record something. Methods have the names that the original has for the same.
    fn record(&mut self, method: &'static str, note: impl FnOnce(&mut Auditor, &Engine, Moment)) {
        let is_leading = self.is_leading();
        if let Some(workloads) = self.workloads.as_deref_mut().filter(|_| is_leading) {
            workloads.note(&self.engine, method, || self.clock.moment(), note);
        }
    }
}

fn subject<'a>(pod: &'a Pod, together: Option<&'a koord_scheduler_framework::Workload>) -> Subject<'a> {
    Subject { key: &pod.key, uid: &pod.uid, is_gated: !pod.gates.is_empty(), together }
}

/// The class of the pod's priority, and the values of its labels.
fn labels(pod: &Pod, settings: &AuditorSettings) -> Arc<[String]> {
    let template = &pod.template;
    let class = PriorityClass::declared(template.labels.get(PRIORITY_CLASS_LABEL), Some(template.priority));
    let further = settings.labels.iter().map(|(_, label)| template.labels.get(label).unwrap_or_default());
    std::iter::once(class.map_or("", PriorityClass::as_str)).chain(further).map(str::to_owned).collect()
}

/// What the refusal of a pod is, and the pods that leave for it.
fn event(refused: &Refused) -> (Event, Vec<Uid>) {
    match &refused.preemption {
        PreemptionOutcome::NotSought => (Event::ScheduleFailure, Vec::new()),
        PreemptionOutcome::None => (Event::PreemptFailure, Vec::new()),
        PreemptionOutcome::Awaited => (Event::PreemptVictimDeleting, Vec::new()),
        PreemptionOutcome::Found(victims) => {
            let withdrawn = |uid: &Uid| refused.withdrawn.iter().any(|pod| pod.uid == *uid);
            (Event::PreemptNominated, victims.iter().filter(|uid| !withdrawn(uid)).cloned().collect())
        }
    }
}
