//! Observers: metrics, traces, the monitor, the workload auditor and the logs of attempts. They hear what happens, may read the engine, and
//! write nothing into the cluster.

use std::time::Duration;

use koord_runtime::{
    clock::{Moment, SharedClock},
    uid::Uid,
};
use koord_scheduler_engine::{Attempt, Ended as JobEnded, Engine};
use koord_scheduler_framework::{cluster::Mismatch, timing::PluginLatency};

use crate::{feed::Delta, timeouts::TimeoutReports};

/// Hears what happens in the scheduler.
pub(crate) trait Observer: Send + Sync {
    /// This has happened, and this is how things stand.
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>);
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The pod is bound.
    Scheduled,
    /// No node takes it.
    Unschedulable,
    /// Something has failed.
    Failed,
}

/// What happens in the scheduler.
pub(crate) enum Occurrence<'a> {
    /// Time has passed: comes at least once a second.
    Tick,
    /// This replica leads from now on.
    Leads,
    /// It only follows from now on.
    Follows,
    /// The engine has begun again with what the caches hold.
    Restarted,
    /// It leads with caches that did not agree with the API server in time.
    CachesDisagree,
    /// A change is about to be applied.
    Changing(&'a Delta),
    /// The same change was applied, which began then; it may be an operation on an ElasticQuota.
    Changed { quota_operation: Option<&'static str>, began: Moment },
    /// The node of a pod of this scheduler has rejected it because it lacks the resource.
    NodeRejected { scheduler: &'a str, resource: &'a str },
    /// A pod that waits here has got its node from another program.
    BoundElsewhere { scheduler: &'a str },
    /// The engine has tried a pod, or has none to try; jobs have begun and ended with it.
    Attempted { attempt: Option<&'a Attempt>, begun: &'a [String], ended: &'a [JobEnded] },
    /// A part of an attempt for a pod of this scheduler is over.
    PartEnded { point: &'static str, is_success: bool, scheduler: &'a str, took: Duration },
    /// A plugin has answered at an extension point.
    PluginAnswered(&'a PluginLatency),
    /// The engine has decided about a pod, or the wait of a pod after Permit is over. It worked on it from `began` to `decided`.
    Decided { attempt: &'a Attempt, began: Moment, decided: Moment },
    /// An attempt has ended, with its binding if there was one.
    Ended { attempt: &'a Attempt, how: Ended },
    /// A victim could not be evicted.
    EvictionFailed(&'a Uid),
    /// The status of an ElasticQuota is written, this long after it was first sent.
    QuotaWritten { lasted: Duration },
    /// A sum of the engine was wrong, and is corrected.
    SumCorrected(&'a Mismatch),
    /// The audit of the sums has looked at all of them.
    AuditCompleted,
}

/// What observers may read.
pub(crate) struct Observed<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) clock: &'a SharedClock,
    pub(crate) timeouts: &'a TimeoutReports,
    pub(crate) is_leading: bool,
    /// Whether all objects are known.
    pub(crate) knows_all: bool,
}
