//! The scheduler as a state machine: deltas go into the engine, attempts come out of it as writes, and their results go back.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_engine::{
    engine::{Attempt, Engine, Outcome},
    pod::Pod,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    clock::{Moment, SharedClock},
    error::{Fault, ReconcileError},
    events::EventSink,
    write::{Action, Write},
};

use crate::{
    feed::{Delta, Feed},
    report,
};

/// The component of its events.
const COMPONENT: &str = "koord-scheduler";

/// What decides, without what sends.
pub struct Scheduler {
    engine: Engine,
    pub(crate) feed: Feed,
    events: Arc<dyn EventSink>,
    clock: SharedClock,
    /// Bindings of which it is not known whether they have arrived. Their pods stay where they are assumed to be.
    doubtful: BTreeMap<(Moment, u64), Box<Attempt>>,
    doubts: u64,
    /// Set while the engine works: where it is found set, the work has ended in a panic.
    is_working: bool,
}

/// A write that follows from an attempt.
#[derive(Debug)]
pub struct Work {
    /// What is to be sent.
    pub write: Write,
    /// The attempt that a binding belongs to; none for a condition.
    binding: Option<Box<Attempt>>,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// This is to be sent, and reported to [`Scheduler::written`].
    Send(Work),
    /// An attempt was made from which no write follows.
    Attempted,
    /// Nothing, until a delta comes or the time of [`Scheduler::wake_at`].
    Rest,
}

impl Scheduler {
    /// How long a binding is left alone whose answer was lost.
    const DOUBT: Duration = Duration::from_secs(1);
    /// Deltas that are applied at once.
    pub(crate) const DELTAS_MAX: usize = 4096;

    /// A scheduler of the objects that the feed brings.
    pub fn new(engine: Engine, feed: Feed, events: Arc<dyn EventSink>, clock: SharedClock) -> Self {
        Self { engine, feed, events, clock, doubtful: BTreeMap::new(), doubts: 0, is_working: false }
    }

    /// What it knows.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Applies the deltas that are there already. Says whether there may be more.
    pub fn catch_up(&mut self) -> bool {
        let deltas = self.feed.stream.take(Self::DELTAS_MAX);
        let is_behind = deltas.len() == Self::DELTAS_MAX;
        self.apply(deltas);
        is_behind
    }

    pub(crate) fn apply(&mut self, deltas: Vec<Delta>) {
        self.recover();
        self.is_working = true;
        for delta in deltas {
            delta.apply(&mut self.engine, self.clock.moment());
        }
        self.is_working = false;
    }

    /// The next write, or attempt. Decisions wait until all objects are known.
    pub fn next(&mut self) -> Next {
        if !self.feed.is_complete() {
            return Next::Rest;
        }
        self.recover();
        let now = self.clock.moment();
        if let Some(first) = self.doubtful.first_entry().filter(|first| first.key().0 <= now) {
            return Next::Send(bind(first.remove()));
        }
        self.is_working = true;
        let attempt = self.engine.attempt(now);
        self.is_working = false;
        let Some(attempt) = attempt else { return Next::Rest };
        match &attempt.outcome {
            Outcome::Bind { .. } => Next::Send(bind(Box::new(attempt))),
            Outcome::Refused { message } => self.refused(&attempt.pod, message),
        }
    }

    /// Whether there is something to do now.
    pub fn has_work(&self) -> bool {
        let now = self.clock.moment();
        let is_due = self.doubtful.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        self.feed.stream.backlog() > 0 || self.feed.is_complete() && (is_due || self.engine.has_work(now))
    }

    /// When there may be something to do without a delta; none where only a delta helps.
    pub fn wake_at(&self) -> Option<Moment> {
        let doubtful = self.doubtful.first_key_value().map(|((at, _), _)| *at);
        doubtful.into_iter().chain(self.engine.wake_at()).min()
    }

    /// A write has ended.
    pub fn written(&mut self, work: Work, result: Result<(), ReconcileError>) {
        let now = self.clock.moment();
        let Some(attempt) = work.binding else {
            if let Err(error) = result {
                tracing::debug!(%error, "the condition of a pod could not be written");
            }
            return;
        };
        let Outcome::Bind { node, .. } = &attempt.outcome else { return };
        match result {
            Ok(()) => self.events.record(COMPONENT, report::scheduled(&attempt.pod, node)),
            // The answer to an earlier try was lost, and this is what it was.
            Err(error) if error.stale && error.message.contains(&format!("is already assigned to node {node:?}")) => {
                self.events.record(COMPONENT, report::scheduled(&attempt.pod, node));
            }
            Err(error) if is_doubtful(&error) => {
                self.doubts += 1;
                let after = error.retry.wished().unwrap_or(Self::DOUBT);
                self.doubtful.insert((now + after, self.doubts), attempt);
            }
            Err(error) => {
                self.events.record(COMPONENT, report::failed(&attempt.pod, &format!("binding rejected: {error}")));
                self.engine.bind_failed(&attempt, now);
            }
        }
    }

    /// Records why a pod has no node. The condition is written where it does not say so already.
    fn refused(&self, pod: &Pod, message: &str) -> Next {
        self.events.record(COMPONENT, report::failed(pod, message));
        let pods = self.feed.pods.read();
        let known = pods.get(pod.key.as_str()).filter(|entry| entry.uid == pod.uid && !entry.deleting);
        if known.is_none_or(|entry| entry.value.unscheduled.as_deref() == Some(message)) {
            return Next::Attempted;
        }
        let write = report::unscheduled(pod, "Unschedulable", message, self.clock.now());
        Next::Send(Work { write, binding: None })
    }

    /// After a panic in the engine nobody knows what it has left: the engine begins again with what the caches hold.
    fn recover(&mut self) {
        if !std::mem::take(&mut self.is_working) {
            return;
        }
        tracing::warn!("the scheduling engine begins again with what the caches hold");
        self.engine.clear();
        self.doubtful.clear();
        while !self.feed.stream.take(Self::DELTAS_MAX).is_empty() {}
        let now = self.clock.moment();
        for delta in self.feed.everything() {
            delta.apply(&mut self.engine, now);
        }
    }
}

/// Whether the write may have arrived all the same.
fn is_doubtful(error: &ReconcileError) -> bool {
    error.fault == Fault::Api && !error.stale
}

fn bind(attempt: Box<Attempt>) -> Work {
    let node = match &attempt.outcome {
        Outcome::Bind { node, .. } => node.to_string(),
        Outcome::Refused { .. } => String::new(),
    };
    let action = Action::Bind { uid: attempt.pod.uid.clone(), node };
    Work { write: Write { kind: ResourceKind::POD, key: attempt.pod.key.clone(), action }, binding: Some(attempt) }
}
