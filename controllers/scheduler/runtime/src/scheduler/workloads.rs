//! What the workload auditor hears of: pods that come and go, attempts and what comes of them. On replicas that only follow it hears
//! nothing.

use std::{any::TypeId, sync::Arc};

use koord_runtime::{clock::Moment, metrics::Registries, uid::Uid};
use koord_scheduler_engine::{Attempt, Ended as JobEnded, Outcome, PreemptionOutcome, Refused};
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};
use koord_types::{
    pod_group::PodGroup,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    reservation::Reservation,
};
use prometheus::Result;

use crate::{
    auditor::{Auditor, Event, Limits, Subject},
    feed::Delta,
    metrics::OfWorkloads,
    observer::{Ended, Observed, Observer, Occurrence},
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
    /// The change that is being applied.
    change: Option<Change>,
}

/// What a change means to workloads, as far as it can only be seen before it is applied.
#[derive(Default)]
struct Change {
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
    pub(super) fn new(settings: AuditorSettings, metrics: &Registries) -> Result<Self> {
        let names: Vec<String> = settings.labels.iter().map(|(name, _)| name.clone()).collect();
        let measures = OfWorkloads::new(metrics, &names)?;
        Ok(Self { auditor: Auditor::default(), settings, measures, change: None })
    }

    /// Has the auditor record something, and shows what it finds. Methods have the names that the original has for the same.
    fn record(&mut self, method: &'static str, observed: &Observed<'_>, record: impl FnOnce(&mut Auditor, Moment)) {
        let began = observed.clock.moment();
        record(&mut self.auditor, began);
        for report in self.auditor.take_reports() {
            self.measures.observe(&report);
            for warning in self.settings.limits.warnings(&report.finding) {
                tracing::warn!(workload = %report.workload, labels = ?report.labels, "workload auditor: {warning}");
            }
        }
        self.measures.recorded(method, observed.clock.moment().since(began));
    }
}

impl Workloads {
    /// What is heard from now on is all that counts: this replica leads, or leads no longer, or the engine has begun again.
    fn begin_again(&mut self, observed: &Observed<'_>) {
        self.auditor.clear();
        self.change = None;
        if !observed.is_leading {
            return;
        }
        let cluster = observed.engine.cluster();
        for pod in cluster.pending().filter(|pod| cluster.pod(&pod.uid).is_none()) {
            self.created(pod, observed);
        }
    }

    /// The same change was applied.
    fn changed(&mut self, observed: &Observed<'_>) {
        let Some(Change { gone, pod, is_new, is_ours, changes_groups }) = self.change.take() else { return };
        for uid in gone {
            self.record("DeletePod", observed, |auditor, now| {
                auditor.gone(&uid, now);
                auditor.left(&uid, now);
            });
        }
        if let Some(uid) = pod {
            self.pod_changed(&uid, (is_new, is_ours), observed);
        }
        if changes_groups {
            for uid in self.auditor.incomplete() {
                self.pod_changed(&uid, (false, false), observed);
            }
        }
    }

    fn pod_changed(&mut self, uid: &Uid, (is_new, is_ours): (bool, bool), observed: &Observed<'_>) {
        let is_known = self.auditor.knows(uid);
        let (engine, cluster) = (observed.engine, observed.engine.cluster());
        let has_node = cluster.pod(uid).is_some_and(|placed| placed.pod.node.is_some());
        match cluster.pending_pod(uid).filter(|_| !has_node) {
            Some(pod) if is_new => self.created(pod, observed),
            Some(pod) if is_known => self.record("RecordPodGating", observed, |auditor, now| {
                let together = engine.workload(pod);
                auditor.changed(&subject(pod, together.as_ref()), now);
            }),
            None if is_known && is_ours => {
                self.record("RecordPodScheduleResult", observed, |auditor, now| auditor.scheduled(uid, now));
            }
            None if is_known => self.record("DeletePod", observed, |auditor, now| auditor.gone(uid, now)),
            Some(_) | None => {}
        }
    }

    fn created(&mut self, pod: &Pod, observed: &Observed<'_>) {
        let engine = observed.engine;
        if engine.profile(&pod.template.scheduler).is_none() {
            return;
        }
        let labels = labels(pod, &self.settings);
        self.record("AddPod", observed, |auditor, now| {
            let together = engine.workload(pod);
            auditor.created(&subject(pod, together.as_ref()), || labels, now);
        });
    }

    /// An attempt was made, and these jobs have begun and ended with it.
    fn attempted(
        &mut self,
        (attempt, begun, ended): (Option<&Attempt>, &[String], &[JobEnded]),
        observed: &Observed<'_>,
    ) {
        for job in begun {
            self.record("RecordGangGroup", observed, |auditor, _| auditor.tried(job));
        }
        if let Some(Attempt { pod, outcome: Outcome::Refused(refused), .. }) = attempt {
            let (event, leaving) = event(refused);
            self.record("RecordDiagnosis", observed, |auditor, now| auditor.refused(&pod.uid, event, &leaving, now));
        }
        for JobEnded { job, is_complete, reason, .. } in ended {
            let attempted = (*reason == ALL_ATTEMPTED).then_some(Event::GangAllPodsAlreadyAttempted);
            let why = if *is_complete { Some(Event::Scheduled) } else { attempted };
            self.record("RecordGangScheduleResult", observed, |auditor, now| auditor.tried_no_more(job, why, now));
        }
    }

    /// A pod is bound, or its binding has failed; that it was refused is known from the attempt.
    fn ended(&mut self, attempt: &Attempt, how: Ended, observed: &Observed<'_>) {
        if matches!(attempt.outcome, Outcome::Refused(_)) {
            return;
        }
        let uid = &attempt.pod.uid;
        self.record("RecordPodScheduleResult", observed, |auditor, now| match how {
            Ended::Scheduled => auditor.scheduled(uid, now),
            Ended::Unschedulable | Ended::Failed => auditor.refused(uid, Event::ScheduleFailure, &[], now),
        });
    }
}

impl Observer for Workloads {
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>) {
        if matches!(occurrence, Occurrence::Leads | Occurrence::Follows | Occurrence::Restarted) {
            return self.begin_again(observed);
        }
        if !observed.is_leading {
            return;
        }
        match occurrence {
            Occurrence::Changing(delta) => self.change = Change::of(delta, observed.engine.cluster()),
            Occurrence::Changed { .. } => self.changed(observed),
            Occurrence::Attempted { attempt, begun, ended } => self.attempted((*attempt, begun, ended), observed),
            Occurrence::Ended { attempt, how } => self.ended(attempt, *how, observed),
            Occurrence::EvictionFailed(victim) => {
                self.record("RecordPod", observed, |auditor, _| auditor.stays(victim));
            }
            _ => {}
        }
    }
}

impl Change {
    /// What a change means to workloads, before it is applied.
    fn of(delta: &Delta, cluster: &Cluster) -> Option<Self> {
        let is_new = |uid: &Uid| cluster.pod(uid).is_none() && cluster.pending_pod(uid).is_none();
        let of_pod = |pod: &Pod, gone| {
            let assumed = cluster.pod(&pod.uid).and_then(|placed| cluster.name(placed.row));
            let is_ours = pod.node.is_some() && assumed == pod.node.as_ref();
            Change { gone, pod: Some(pod.uid.clone()), is_new: is_new(&pod.uid), is_ours, ..Change::default() }
        };
        Some(match delta {
            Delta::Node(_) | Delta::NodeGone(_) => return None,
            Delta::Pod { pod, replaced } => of_pod(pod, replaced.iter().cloned().collect()),
            Delta::PodGone(uid) | Delta::PodRejected { uid, .. } => {
                Change { gone: vec![uid.clone()], ..Change::default() }
            }
            Delta::PodAgain { key, pod } => {
                let but = pod.as_ref().map(|pod| &pod.uid);
                let others = cluster.known_pods().filter(|known| known.key == *key && Some(&known.uid) != but);
                let gone = others.map(|other| other.uid.clone()).collect();
                match pod {
                    Some(pod) => of_pod(pod, gone),
                    None => Change { gone, ..Change::default() },
                }
            }
            Delta::Object(object) => {
                let uid = object.get::<Reservation>().map(|_| object.uid.clone());
                let is_new = uid.as_ref().is_some_and(is_new);
                let is_ours = uid.as_ref().is_some_and(|uid| cluster.pod(uid).is_some());
                let changes_groups = object.get::<PodGroup>().is_some();
                Change { gone: Vec::new(), pod: uid, is_new, is_ours, changes_groups }
            }
            Delta::ObjectGone(type_, key) => {
                let reservation = cluster.objects().entry::<Reservation>(key.as_str());
                let reservation = reservation.filter(|_| *type_ == TypeId::of::<Reservation>());
                let gone = reservation.map(|entry| entry.uid.clone()).into_iter().collect();
                Change { gone, changes_groups: *type_ == TypeId::of::<PodGroup>(), ..Change::default() }
            }
        })
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
