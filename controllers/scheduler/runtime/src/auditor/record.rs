//! The rules of the auditor, for one workload.
//!
//! | rule | begins with | ends with |
//! |---|---|---|
//! | a preemption | `preemptNominated` | `victimAllDeleted`, or before that the next `preemptNominated`, a failure, `scheduled` or the end of the workload |
//! | its use | `preemptNominated` | a failure or the next `preemptNominated`, which invalidates it, once |
//! | the next result | `victimAllDeleted` | `preemptNominated`, a failure or `scheduled`; a gate cancels it |
//! | intervals | `create`, `admissionPassed`, `gangMinMemberSatisfied` | each event after that, which begins the next one; a gate ends them |
//!
//! The deletion of victims is not driven by an attempt, and neither ends an interval nor begins one.

use koord_runtime::clock::Moment;

use super::{
    event::{Event, Outcome},
    finding::Finding,
};

/// What has happened to a workload so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// How often each event has happened, by its number.
    times: [u32; Event::COUNT],
    preemption: Option<Preemption>,
    /// Whether the last preemption has turned out to be of no use.
    is_invalidated: bool,
    /// When the last victim was gone, until the next result.
    victims_gone: Option<Moment>,
    /// When something has happened last, since the intervals began.
    last: Option<Moment>,
}

/// Pods that are evicted for it are still there.
#[derive(Clone, Copy, Debug)]
struct Preemption {
    since: Moment,
    retries: u32,
}

impl Record {
    /// Something happens.
    pub(super) fn note(&mut self, event: Event, now: Moment) -> Vec<Finding> {
        let mut findings = Vec::new();
        let times = &mut self.times[event as usize];
        *times = times.saturating_add(1);
        let times = *times;
        match event {
            Event::PreemptNominated => {
                findings.extend(self.end_preemption(false, Some(event), now));
                if times > 1 {
                    findings.push(Finding::PreemptedAgain(times));
                    findings.extend(self.invalidate(event));
                }
                self.is_invalidated = false;
                self.preemption = Some(Preemption { since: now, retries: 0 });
                findings.extend(self.end_wait(event, now));
            }
            Event::PreemptFailure | Event::ScheduleFailure => {
                findings.extend(self.invalidate(event));
                findings.extend(self.end_wait(event, now));
                findings.extend(self.end_preemption(false, Some(event), now));
            }
            Event::Scheduled => {
                findings.extend(self.end_wait(event, now));
                findings.extend(self.end_preemption(false, Some(event), now));
            }
            Event::VictimAllDeleted => {
                findings.extend(self.end_preemption(true, Some(event), now));
                self.victims_gone = Some(now);
            }
            Event::PreemptVictimDeleting => {
                if let Some(preemption) = &mut self.preemption {
                    preemption.retries += 1;
                }
            }
            // It cannot be tried, so there is no result to wait for.
            Event::GatedByQueueAdmission => self.victims_gone = None,
            Event::Create
            | Event::AdmissionPassed
            | Event::GangMinMemberSatisfied
            | Event::GangAllPodsAlreadyAttempted => {}
        }
        findings.extend(self.interval(event, now));
        findings
    }

    /// It is scheduled or deleted.
    pub(super) fn end(mut self, outcome: Outcome, now: Moment) -> Vec<Finding> {
        let interrupted = self.end_preemption(false, None, now);
        let happened = Event::ALL.into_iter().zip(self.times).filter(|(_, times)| *times > 0);
        let times = happened.map(|(event, times)| Finding::Ended { outcome, event, times });
        interrupted.into_iter().chain(times).collect()
    }

    fn end_preemption(&mut self, is_complete: bool, by: Option<Event>, now: Moment) -> Option<Finding> {
        let Preemption { since, retries } = self.preemption.take()?;
        Some(Finding::PreemptionEnded { lasted: now.since(since), retries, is_complete, by })
    }

    fn invalidate(&mut self, by: Event) -> Option<Finding> {
        if self.times[Event::PreemptNominated as usize] == 0 || self.is_invalidated {
            return None;
        }
        self.is_invalidated = true;
        Some(Finding::PreemptionInvalidated(by))
    }

    fn end_wait(&mut self, by: Event, now: Moment) -> Option<Finding> {
        let gone = self.victims_gone.take()?;
        Some(Finding::Rescheduled { after: now.since(gone), by })
    }

    fn interval(&mut self, event: Event, now: Moment) -> Option<Finding> {
        let last = match event {
            Event::VictimAllDeleted => return None,
            Event::GatedByQueueAdmission => {
                self.last = None;
                return None;
            }
            _ => self.last.replace(now),
        };
        let begins = matches!(event, Event::Create | Event::AdmissionPassed | Event::GangMinMemberSatisfied);
        let lasted = now.since(last.filter(|_| !begins)?);
        Some(Finding::Interval { lasted, until: event })
    }
}
