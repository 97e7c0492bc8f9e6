//! Status updates of plugins.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{clock::Moment, error::ReconcileError, write::Write};
use koord_scheduler_framework::StatusUpdates;
use koord_types::elastic_quota::ElasticQuota;

use super::{
    Scheduler,
    ended::may_have_arrived,
    repeated::{PAUSE, Repeated},
    work::{Purpose, Subject, Work, subject},
};

use crate::observer::Occurrence;

/// How often status writers are called at most.
const PERIOD: Duration = Duration::from_secs(1);

/// What is on its way, and what was sent lately.
#[derive(Default)]
pub(super) struct StatusUpdateWrites {
    sent: Repeated<Write>,
    /// Whether something has changed since they were called.
    is_due: bool,
    collected_at: Option<Moment>,
    again: Option<Timestamp>,
}

impl StatusUpdateWrites {
    /// Something has changed.
    pub(super) fn changed(&mut self) {
        self.is_due = true;
    }

    fn period_ends(&self) -> Option<Moment> {
        self.collected_at.map(|collected_at| collected_at + PERIOD)
    }

    /// When status writers are due, if not for a change.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        let due = self.is_due.then(|| self.period_ends().unwrap_or_default());
        self.sent.wake_at().into_iter().chain(due).min()
    }

    /// When the time of day matters next.
    pub(super) fn again(&self) -> Option<Timestamp> {
        self.again
    }

    /// Whether status writers are due now.
    pub(super) fn has_work(&self, now: Moment, time: Timestamp) -> bool {
        self.wake_at().is_some_and(|at| at <= now) || self.again.is_some_and(|at| at <= time)
    }

    /// The needed writes that are sent now. A write that is in flight already is no reason to collect
    /// again at once.
    fn take(&mut self, StatusUpdates { writes, again }: StatusUpdates, now: Moment, time: Timestamp) -> Vec<Write> {
        let soonest = time.saturating_add(PERIOD).unwrap_or(Timestamp::MAX);
        (self.is_due, self.collected_at, self.again) = (false, Some(now), again.map(|at| at.max(soonest)));
        let updates: BTreeMap<Subject, Write> = writes.into_iter().map(|write| (subject(&write), write)).collect();
        self.sent.keep(|subject| updates.contains_key(subject));
        self.pick(updates, now)
    }

    /// The needed writes that are sent now.
    fn pick(&mut self, updates: BTreeMap<Subject, Write>, now: Moment) -> Vec<Write> {
        let begun = updates.into_iter().filter(|(subject, write)| self.sent.begins(subject, write, now));
        begun.map(|(_, write)| write).collect()
    }

    /// Gives how long it took, from when it was first sent.
    fn ended(&mut self, write: &Write, is_done: bool, now: Moment) -> Option<Duration> {
        self.is_due = true;
        self.sent.ended(&subject(write), is_done, now)
    }
}

impl Scheduler {
    /// Collects the urgent writes of plugins.
    pub(super) fn hurry(&mut self, now: Moment) {
        self.is_working = true;
        let writes = self.engine.urgent_of(|plugin| self.controllers.runs(plugin));
        self.is_working = false;
        if !writes.is_empty() {
            let updates = writes.into_iter().map(|write| (subject(&write), write)).collect();
            let writes = self.writes.status_updates.pick(updates, now).into_iter();
            self.writes.follow_ups.extend(writes.map(|write| Work { write, purpose: Purpose::Hurry }));
        }
    }

    /// Collects the status updates of plugins, where these may have changed.
    pub(super) fn keep_up(&mut self, now: Moment) {
        if !self.writes.status_updates.has_work(now, self.clock.now()) {
            return;
        }
        let time = self.clock.now();
        self.is_working = true;
        self.engine.tick(time);
        let mut status_updates = self.engine.status_updates_of(|plugin| self.controllers.runs(plugin));
        self.is_working = false;
        let updates = status_updates.writes.len();
        status_updates.writes.retain(|write| !self.feed.is_absent(write.kind));
        if status_updates.writes.len() < updates {
            // A kind that appears without objects is not seen as a change.
            status_updates.again = status_updates.again.into_iter().chain(time.checked_add(PAUSE.1).ok()).min();
        }
        let writes = self.writes.status_updates.take(status_updates, now, time).into_iter();
        for write in writes {
            self.write_in_background(Work { write, purpose: Purpose::Keep });
        }
    }

    /// A write beside attempts has ended.
    pub(super) fn status_update_ended(&mut self, write: &Write, result: &Result<(), ReconcileError>) {
        if let Err(error) = result
            && !error.stale
        {
            tracing::warn!(%error, kind = write.kind.kind, key = %write.key, "an object could not be written");
        }
        let now = self.clock.moment();
        if result.as_ref().is_err_and(may_have_arrived) {
            self.writes.status_updates.is_due = true;
            return self.writes.status_updates.sent.unserved(&subject(write), now);
        }
        let lasted = self.writes.status_updates.ended(write, result.is_ok(), now);
        if let Some(lasted) = lasted.filter(|_| write.kind == ResourceKind::typed::<ElasticQuota>()) {
            self.notify(&Occurrence::QuotaWritten { lasted });
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::{key::ObjectKey, write::Action};
    use serde_json::json;

    use super::*;

    fn at(second: u64) -> Moment {
        Moment::default() + Duration::from_secs(second)
    }

    fn time(second: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn write(value: u64) -> Write {
        let action = Action::Patch { subresource: "status", patch: json!({ "status": value }) };
        Write { kind: ResourceKind::NODE, key: ObjectKey::cluster("n"), action }
    }

    fn sent(pending_updates: &mut StatusUpdateWrites, values: &[u64], second: u64) -> usize {
        let writes = values.iter().map(|value| write(*value)).collect();
        pending_updates.take(StatusUpdates { writes, again: None }, at(second), time(second)).len()
    }

    #[test]
    fn an_object_has_one_write_on_its_way_and_the_same_is_not_repeated_at_once() {
        let mut pending_updates = StatusUpdateWrites::default();
        assert_eq!((sent(&mut pending_updates, &[1], 0), sent(&mut pending_updates, &[2], 1)), (1, 0));
        assert_eq!(pending_updates.ended(&write(1), true, at(2)), Some(Duration::from_secs(2)));
        assert_eq!(
            (sent(&mut pending_updates, &[1], 3), sent(&mut pending_updates, &[2], 4)),
            (0, 1),
            "it has not been seen yet"
        );
        pending_updates.ended(&write(2), true, at(5));
        assert_eq!(
            (sent(&mut pending_updates, &[2], 14), sent(&mut pending_updates, &[2], 15)),
            (0, 1),
            "it was never seen"
        );
        pending_updates.ended(&write(2), false, at(16));
        assert_eq!(
            (sent(&mut pending_updates, &[2], 16), sent(&mut pending_updates, &[2], 17)),
            (0, 1),
            "it has failed"
        );
        pending_updates.ended(&write(2), false, at(18));
        assert_eq!(
            (sent(&mut pending_updates, &[2], 19), sent(&mut pending_updates, &[2], 20)),
            (0, 1),
            "it has failed again"
        );
        pending_updates.ended(&write(2), true, at(21));
        assert_eq!(
            (sent(&mut pending_updates, &[], 22), sent(&mut pending_updates, &[2], 23)),
            (0, 1),
            "it has helped before"
        );
        for failure in 0..40 {
            pending_updates.ended(&write(2), false, at(100 * failure));
            assert_eq!(sent(&mut pending_updates, &[2], 100 * failure + 60), 1, "after a minute at the latest");
        }
    }

    #[test]
    fn an_urgent_write_waits_for_the_write_in_flight_and_leaves_those_of_others_alone() {
        let mut pending_updates = StatusUpdateWrites::default();
        let other = |value: u64| Write { key: ObjectKey::cluster("other"), ..write(value) };
        let picked = |pending_updates: &mut StatusUpdateWrites, updates: Write, second: u64| {
            pending_updates.pick([(subject(&updates), updates)].into(), at(second)).len()
        };
        assert_eq!(sent(&mut pending_updates, &[1], 0), 1);
        pending_updates.ended(&write(1), false, at(0));
        assert_eq!([picked(&mut pending_updates, other(1), 0), picked(&mut pending_updates, other(2), 0)], [1, 0]);
        pending_updates.ended(&other(1), true, at(0));
        assert_eq!(
            [picked(&mut pending_updates, other(1), 0), picked(&mut pending_updates, other(2), 0)],
            [0, 1],
            "it was not seen yet"
        );
        assert_eq!(picked(&mut pending_updates, write(1), 0), 0, "it has failed, and waits");
    }

    #[test]
    fn status_writers_are_called_after_changes_and_at_their_times() {
        let mut pending_updates = StatusUpdateWrites::default();
        assert!(!pending_updates.has_work(at(9), time(9)));
        pending_updates.changed();
        assert!(pending_updates.has_work(at(0), time(0)), "for the first time at once");
        pending_updates.take(StatusUpdates { writes: Vec::new(), again: Some(time(7)) }, at(0), time(0));
        pending_updates.changed();
        assert_eq!((pending_updates.wake_at(), pending_updates.has_work(at(0), time(0))), (Some(at(1)), false));
        pending_updates.take(StatusUpdates { writes: Vec::new(), again: Some(time(7)) }, at(1), time(1));
        assert_eq!((pending_updates.wake_at(), pending_updates.has_work(at(6), time(6))), (None, false));
        assert!(pending_updates.has_work(at(7), time(7)));
        pending_updates.take(StatusUpdates { writes: Vec::new(), again: Some(time(7)) }, at(7), time(7));
        assert!(!pending_updates.has_work(at(7), time(7)), "its time has come, and it has been asked");
        assert!(pending_updates.has_work(at(8), time(8)));
    }
}
