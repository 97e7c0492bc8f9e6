//! What comes before a binding: writes of other objects, such as claims and volumes, and the wait until they have taken effect.

use std::collections::BTreeMap;

use koord_runtime::{clock::Moment, uid::Uid};
use koord_scheduler_engine::{Attempt, Outcome};
use koord_scheduler_framework::{Patch, PreBindProgress};

use super::{
    Scheduler,
    work::{Purpose, Subject, Work, give, given_with_binding, subject},
};
use crate::{feed::Delta, report};

/// Bindings that wait until what was written before them has taken effect.
#[derive(Default)]
pub(super) struct Preparing {
    waiting: BTreeMap<Uid, (Box<Attempt>, Moment)>,
    /// Objects that were written for one of them, which has not taken effect.
    sent: BTreeMap<Uid, Subject>,
    /// Whether something has happened since they were looked at.
    pub(super) is_due: bool,
}

impl Preparing {
    /// Whether they are to be looked at now.
    pub(super) fn has_work(&self, now: Moment) -> bool {
        !self.waiting.is_empty() && (self.is_due || self.wake_at().is_some_and(|at| at <= now))
    }

    /// When the time of the first of them runs out.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        self.waiting.values().map(|(_, until)| *until).min()
    }
}

impl Scheduler {
    /// The next step of a binding before which so many other objects have been written.
    pub(super) fn prepare(&mut self, attempt: Box<Attempt>, written: usize) -> Option<Work> {
        let patch = patch(&attempt)?;
        if let Some((_, write)) = patch.writes.get(written) {
            let write = write.clone();
            return Some(Work { write, purpose: Purpose::Prepare(attempt, written) });
        }
        let Some(limit) = patch.wait else { return Some(self.give_or_bind(attempt)) };
        if let Outcome::Bind { node, .. } = &attempt.outcome
            && attempt.pod.nominated.as_ref() != Some(node)
        {
            let write = report::expected(&attempt.pod, node);
            self.writes.follow_ups.push_back(Work { write, purpose: Purpose::Expect });
        }
        self.writes.preparing.is_due = true;
        self.writes.preparing.waiting.insert(attempt.pod.uid.clone(), (attempt, self.clock.moment() + limit));
        None
    }

    /// Goes on with the bindings for which everything is prepared, and gives up those for which it will not be.
    pub(super) fn check_prepared(&mut self, now: Moment) {
        if !self.writes.preparing.has_work(now) {
            return;
        }
        self.writes.preparing.is_due = false;
        self.is_working = true;
        for (uid, (attempt, until)) in std::mem::take(&mut self.writes.preparing.waiting) {
            let prepared = self.engine.prepared(&attempt);
            if !matches!(prepared, Some(PreBindProgress::Pending(_) | PreBindProgress::Write(..)))
                && self.writes.preparing.sent.remove(&uid).is_some()
            {
                self.writes.preparing.is_due = true;
            }
            match prepared {
                // The pod is gone, or was bound by another scheduler.
                None => {}
                Some(PreBindProgress::Done) => {
                    let work = self.give_or_bind(attempt);
                    self.writes.follow_ups.push_back(work);
                }
                Some(PreBindProgress::Pending(_)) if now < until => {
                    _ = self.writes.preparing.waiting.insert(uid, (attempt, until));
                }
                Some(PreBindProgress::Write(plugin, write)) if now < until => {
                    let is_free = !self.writes.preparing.sent.contains_key(&uid);
                    if is_free && self.writes.preparing.sent.values().all(|sent| *sent != subject(&write)) {
                        self.writes.preparing.sent.insert(uid.clone(), subject(&write));
                        self.writes.follow_ups.push_back(Work { write, purpose: Purpose::Lock(plugin, uid.clone()) });
                    }
                    self.writes.preparing.waiting.insert(uid, (attempt, until));
                }
                Some(PreBindProgress::Write(plugin, write)) => {
                    self.writes.preparing.sent.remove(&uid);
                    let words =
                        format!("running PreBind plugin {plugin:?}: what is written to {} is not seen", write.key);
                    self.not_bound(&attempt, words);
                }
                Some(PreBindProgress::Pending(message) | PreBindProgress::Failed(message)) => {
                    self.writes.preparing.sent.remove(&uid);
                    self.not_bound(&attempt, message);
                }
            }
        }
        self.is_working = false;
    }

    /// What was to be written for a binding that is prepared was not.
    pub(super) fn not_prepared(&mut self, uid: &Uid, message: String) {
        self.writes.preparing.sent.remove(uid);
        self.writes.preparing.is_due = true;
        if let Some((attempt, _)) = self.writes.preparing.waiting.remove(uid) {
            self.not_bound(&attempt, message);
        }
    }

    pub(super) fn give_or_bind(&self, attempt: Box<Attempt>) -> Work {
        let is_whole = match &attempt.outcome {
            Outcome::Bind { patch, instead: None, .. } if self.binder(&attempt).is_none() => {
                given_with_binding(patch).is_some()
            }
            // The write of another object, and the request to a webhook, carry no annotations of the pod.
            Outcome::Bind { patch, .. } => patch.is_empty(),
            _ => true,
        };
        if is_whole { self.bind(attempt) } else { give(attempt) }
    }
}

/// Whether what was written before a binding may have taken effect with this change, or be of no use any more.
pub(super) fn may_take_effect(delta: &Delta) -> bool {
    !matches!(delta, Delta::Pod { .. })
}

/// The plugin that needs a write before the binding of this attempt.
pub(super) fn plugin_of(attempt: &Attempt, index: usize) -> &'static str {
    patch(attempt).and_then(|patch| patch.writes.get(index)).map(|(plugin, _)| *plugin).unwrap_or_default()
}

fn patch(attempt: &Attempt) -> Option<&Patch> {
    match &attempt.outcome {
        Outcome::Bind { patch, .. } => Some(patch),
        _ => None,
    }
}
