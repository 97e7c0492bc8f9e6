//! What is found out about a workload, and what of it is worth a warning.

use std::time::Duration;

use super::event::{Event, Outcome};

/// What is found out about a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Pods are evicted for it once more; so often by now.
    PreemptedAgain(u32),
    /// Pods were evicted for it, and it was not scheduled with that: it was refused, or others are evicted.
    PreemptionInvalidated(Event),
    /// The first result since the pods that were evicted for it are gone.
    Rescheduled { after: Duration, by: Event },
    /// Nobody is waited for any more: the pods that were evicted for it are gone (`is_complete`), or something else came first.
    PreemptionEnded {
        lasted: Duration,
        /// How often it was tried meanwhile.
        retries: u32,
        is_complete: bool,
        /// What has happened; nothing where the workload itself is gone.
        by: Option<Event>,
    },
    /// So long nothing has happened before this.
    Interval { lasted: Duration, until: Event },
    /// It is scheduled or deleted, and this has happened so often before.
    Ended { outcome: Outcome, event: Event, times: u32 },
}

/// What is not worth a warning yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the deletion of the last victim to the next result.
    pub reschedule: Duration,
    /// From an eviction to the deletion of the last victim.
    pub deletion: Duration,
    /// Attempts meanwhile.
    pub retries: u32,
    /// Between two events.
    pub interval: Duration,
}

impl Default for Limits {
    /// Those of the original.
    fn default() -> Self {
        Self {
            reschedule: Duration::from_secs(10),
            deletion: Duration::from_secs(30),
            retries: 3,
            interval: Duration::from_mins(5),
        }
    }
}

impl Limits {
    /// What is wrong with what was found.
    pub(crate) fn warnings(&self, finding: &Finding) -> Vec<String> {
        match *finding {
            Finding::PreemptedAgain(times) => vec![format!("pods were evicted for it {times} times")],
            Finding::PreemptionInvalidated(by) => {
                vec![format!("pods were evicted for it, and it could not use that: {}", by.name())]
            }
            Finding::Rescheduled { after, by } if after > self.reschedule => {
                let limit = self.reschedule;
                vec![format!("it was tried {after:?} after its victims were gone, more than {limit:?}: {}", by.name())]
            }
            Finding::PreemptionEnded { lasted, retries, is_complete, by: Some(by) } => {
                let (by, mut warnings) = (by.name(), Vec::new());
                if retries > self.retries {
                    let limit = self.retries;
                    warnings
                        .push(format!("it was tried {retries} times while its victims left, more than {limit}: {by}"));
                }
                if lasted > self.deletion {
                    let limit = self.deletion;
                    warnings.push(if is_complete {
                        format!("its victims were gone after {lasted:?}, more than {limit:?}")
                    } else {
                        format!("its victims were not gone after {lasted:?}, more than {limit:?}: {by}")
                    });
                }
                warnings
            }
            Finding::Interval { lasted, until } if lasted > self.interval => {
                vec![format!("nothing happened for {lasted:?}, more than {:?}, until {}", self.interval, until.name())]
            }
            Finding::Rescheduled { .. }
            | Finding::PreemptionEnded { .. }
            | Finding::Interval { .. }
            | Finding::Ended { .. } => Vec::new(),
        }
    }
}
