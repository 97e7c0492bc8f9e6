//! The task of the leader: deltas into the engine, attempts out of it, and what follows from them to the API server.

use std::{sync::Arc, time::Duration};

use koord_engine::engine::{Attempt, Engine, Outcome};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    clock::SharedClock,
    error::ReconcileError,
    events::EventSink,
    manager::Manager,
    write::{Action, Write},
};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    feed::{Delta, Feed},
    report,
};

/// The component of its events.
const COMPONENT: &str = "koord-scheduler";

/// A scheduler with hands.
pub struct Scheduler {
    engine: Engine,
    feed: Feed,
    events: Arc<dyn EventSink>,
    clock: SharedClock,
}

/// A write that has ended.
enum Written {
    Bound(Box<Attempt>, Result<(), ReconcileError>),
    /// Nothing follows from it.
    Reported,
}

impl Scheduler {
    /// Bindings and reports on their way at one time; further attempts wait.
    const WRITES_MAX: usize = 256;
    /// Deltas that are applied before the next attempt.
    const DELTAS_MAX: usize = 4096;
    /// Attempts in a row before other work of the process gets its turn.
    const ATTEMPTS_MAX: usize = 64;

    /// A scheduler of the objects that the feed brings.
    pub fn new(engine: Engine, feed: Feed, events: Arc<dyn EventSink>, clock: SharedClock) -> Self {
        Self { engine, feed, events, clock }
    }

    /// Runs it with a manager: it schedules on the leader, and follows the cluster on every replica.
    pub fn install(self, manager: &mut Manager) {
        let scheduler = Arc::new(Mutex::new(self));
        let leader = Arc::clone(&scheduler);
        manager.while_leading("scheduling", move |api, end| {
            let scheduler = Arc::clone(&leader);
            async move { scheduler.lock().await.run(api, end).await }
        });
        let leading = manager.leading();
        manager.on_every_replica("scheduler standby", move |_, end| {
            let (scheduler, mut leading) = (Arc::clone(&scheduler), leading.clone());
            async move {
                let follow = async {
                    loop {
                        until(&mut leading, false).await;
                        scheduler.lock().await.follow(&mut leading).await;
                    }
                };
                tokio::select! { biased; () = end.cancelled() => {}, () = follow => {} }
            }
        });
    }

    /// Follows the cluster until this replica leads.
    async fn follow(&mut self, leading: &mut watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                () = until(leading, true) => return,
                deltas = self.feed.stream.next(Self::DELTAS_MAX) => self.apply(deltas),
            }
        }
    }

    /// Schedules until `end`, and waits then for the writes that are on their way.
    async fn run(&mut self, api: Api, end: CancellationToken) {
        let mut writes = JoinSet::new();
        while !end.is_cancelled() {
            let deltas = self.feed.stream.take(Self::DELTAS_MAX);
            let is_behind = deltas.len() == Self::DELTAS_MAX;
            self.apply(deltas);
            while let Some(written) = writes.try_join_next() {
                self.written(written);
            }
            // Decisions wait for the whole picture.
            if !is_behind && self.feed.is_complete() && self.attempt_some(&api, &mut writes) {
                tokio::task::yield_now().await;
                continue;
            }
            if is_behind {
                continue;
            }
            self.wait(&mut writes, &end).await;
        }
        while let Some(written) = writes.join_next().await {
            self.written(written);
        }
    }

    /// Makes attempts while there are any, and a place for what follows from them. Says whether more may follow at once.
    fn attempt_some(&mut self, api: &Api, writes: &mut JoinSet<Written>) -> bool {
        for _ in 0..Self::ATTEMPTS_MAX {
            if writes.len() >= Self::WRITES_MAX {
                return false;
            }
            let Some(attempt) = self.engine.attempt(self.clock.moment()) else { return false };
            self.carry_out(attempt, api, writes);
        }
        true
    }

    fn carry_out(&self, attempt: Attempt, api: &Api, writes: &mut JoinSet<Written>) {
        let api = api.clone();
        match &attempt.outcome {
            Outcome::Bind { node, .. } => {
                let action = Action::Bind { uid: attempt.pod.uid.clone(), node: node.to_string() };
                let write = Write { kind: ResourceKind::POD, key: attempt.pod.key.clone(), action };
                writes.spawn(async move {
                    let result = api.write(&write).await.map(drop);
                    Written::Bound(Box::new(attempt), result)
                });
            }
            Outcome::Refused { message } => self.report(&attempt, "Unschedulable", message, &api, writes),
        }
    }

    /// Records why a pod has no node, where its condition does not say so already.
    fn report(&self, attempt: &Attempt, reason: &str, message: &str, api: &Api, writes: &mut JoinSet<Written>) {
        self.events.record(COMPONENT, report::failed(&attempt.pod, message));
        let pods = self.feed.pods.read();
        let known = pods.get(attempt.pod.key.as_str()).filter(|entry| entry.uid == attempt.pod.uid);
        if known.is_some_and(|entry| entry.value.unscheduled.as_deref() != Some(message)) {
            let (write, api) = (report::unscheduled(&attempt.pod, reason, message, self.clock.now()), api.clone());
            writes.spawn(async move {
                if let Err(error) = api.write(&write).await {
                    tracing::debug!(%error, "the condition of a pod could not be written");
                }
                Written::Reported
            });
        }
    }

    fn apply(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            delta.apply(&mut self.engine, self.clock.moment());
        }
    }

    fn written(&mut self, written: Result<Written, tokio::task::JoinError>) {
        match written {
            Ok(Written::Bound(attempt, Ok(()))) => {
                if let Outcome::Bind { node, .. } = &attempt.outcome {
                    self.events.record(COMPONENT, report::scheduled(&attempt.pod, node));
                }
            }
            Ok(Written::Bound(attempt, Err(error))) => {
                tracing::debug!(pod = %attempt.pod.key, %error, "a binding failed");
                self.events.record(COMPONENT, report::failed(&attempt.pod, &format!("binding rejected: {error}")));
                self.engine.bind_failed(&attempt, self.clock.moment());
            }
            Ok(Written::Reported) => {}
            Err(error) => tracing::error!(%error, "the task of a write ended"),
        }
    }

    /// Waits for a delta, the end of a write, a pause that is over, or the end.
    async fn wait(&mut self, writes: &mut JoinSet<Written>, end: &CancellationToken) {
        const LONG: Duration = Duration::from_mins(1);
        let now = self.clock.moment();
        let pause = self.engine.wake_at().map_or(LONG, |at| at.since(now).min(LONG));
        let room = writes.len() < Self::WRITES_MAX;
        let (moment, is_complete) = (self.clock.sleep(pause), self.feed.is_complete());
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            Some(written) = writes.join_next() => self.written(written),
            deltas = self.feed.stream.next(Self::DELTAS_MAX) => self.apply(deltas),
            () = moment, if room && is_complete => {}
        }
    }
}

/// Waits until this replica leads, or does not lead.
async fn until(leading: &mut watch::Receiver<bool>, wanted: bool) {
    if leading.wait_for(|leads| *leads == wanted).await.is_err() {
        // The manager is gone; its tasks are ended by their tokens.
        std::future::pending::<()>().await;
    }
}
