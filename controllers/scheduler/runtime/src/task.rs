//! The tasks around the scheduler: the one of the leader, which sends what it decides, and the one of every other replica,
//! which only follows the cluster.

use std::{pin::pin, sync::Arc, time::Duration};

use koord_runtime::{
    api::Api,
    changes::ChangeStream,
    clock::{Moment, SharedClock},
    error::ReconcileError,
    manager::Manager,
};
use tokio::{
    sync::{Mutex, watch},
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    agreement::agree,
    feed::Delta,
    metrics::Measures,
    scheduler::{FinishedCall, Next, Scheduler, Work},
};

/// Writes on their way at one time; further attempts wait. More of them bind no more pods a second on a busy API server, and an API server allows
/// a hundred on a connection.
const WRITES_MAX: usize = 64;
/// Attempts in a row before other work of the process gets its turn.
const ATTEMPTS_MAX: usize = 64;

/// How long deltas are left alone after others came, so that a task which each of them would wake takes many at once: while pods are
/// scheduled, and while nothing is decided.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_OF_FOLLOWER: Duration = Duration::from_millis(5);

type Written = (Work, Result<(), ReconcileError>);

/// Runs a scheduler with a manager: it schedules on the leader, and follows the cluster on every replica.
pub fn install(scheduler: Scheduler, clock: SharedClock, manager: &mut Manager) {
    let scheduler = Arc::new(Mutex::new(scheduler));
    let (leader, standby) = (Arc::clone(&scheduler), Arc::clone(&clock));
    manager.while_leading("scheduling", move |api, end| {
        let (scheduler, clock) = (Arc::clone(&leader), Arc::clone(&clock));
        async move { schedule(&mut *scheduler.lock().await, &clock, api, end).await }
    });
    let leading = manager.leading();
    manager.on_every_replica("scheduler standby", move |_, end| {
        let (scheduler, clock, mut leading) = (Arc::clone(&scheduler), Arc::clone(&standby), leading.clone());
        async move {
            let follow = async {
                loop {
                    until(&mut leading, false).await;
                    follow_until(&mut *scheduler.lock().await, &clock, until(&mut leading, true)).await;
                }
            };
            tokio::select! { biased; () = end.cancelled() => {}, () = follow => {} }
        }
    });
}

/// Schedules until `end`, and waits then for the writes that are on their way.
async fn schedule(scheduler: &mut Scheduler, clock: &SharedClock, api: Api, end: CancellationToken) {
    // Questions that have no answer when the lead ends are dropped with this.
    let (mut writes, mut extender_calls) = (JoinSet::new(), JoinSet::new());
    let (caches, barrier, within) = (scheduler.feed.watched(), scheduler.barrier.clone(), scheduler.agrees_within);
    let agreed = async {
        if let Some(barrier) = &barrier {
            barrier.pass(&caches.pods, clock, &api, &end).await;
        }
        match within {
            Some(limit) => agree(&caches, clock, &api, &end, limit).await,
            None => true,
        }
    };
    if !follow_until(scheduler, clock, agreed).await {
        scheduler.disagreed();
    }
    scheduler.lead();
    let _watched = scheduler.watch();
    let mut arrivals = Arrivals::default();
    while !end.is_cancelled() {
        let is_behind = scheduler.catch_up();
        scheduler.observe();
        scheduler.report_ignored();
        while let Ok(request) = scheduler.read_requests.try_recv() {
            request.answer(Some(scheduler.known()));
        }
        while let Some(ended) = writes.try_join_next() {
            written(scheduler, ended);
        }
        while let Some(ended) = extender_calls.try_join_next() {
            answered(scheduler, ended);
        }
        // Decisions wait for the whole picture.
        if is_behind {
            continue;
        }
        if attempt_some(scheduler, &api, &mut writes, &mut extender_calls) {
            tokio::task::yield_now().await;
        } else {
            wait(scheduler, clock, &mut arrivals, (&mut writes, &mut extender_calls), &end).await;
        }
    }
    while let Some(ended) = writes.join_next().await {
        written(scheduler, ended);
    }
    scheduler.follow();
}

/// Makes attempts while there are any and writes are not at their limit. Returns whether more may follow at once.
fn attempt_some(
    scheduler: &mut Scheduler,
    api: &Api,
    writes: &mut JoinSet<Written>,
    extender_calls: &mut JoinSet<FinishedCall>,
) -> bool {
    for _ in 0..ATTEMPTS_MAX {
        if writes.len() >= WRITES_MAX {
            return false;
        }
        match scheduler.step() {
            Next::Rest => return false,
            Next::Attempted => {}
            Next::CallExtenders(call) => _ = extender_calls.spawn(call.send()),
            Next::Send(work) => {
                let (api, kind) = (api.clone(), scheduler.feed.served(work.write.kind));
                writes.spawn(async move {
                    let result = work.send(&api, kind).await;
                    (work, result)
                });
            }
        }
    }
    true
}

fn written(scheduler: &mut Scheduler, ended: Result<Written, JoinError>) {
    match ended {
        Ok((work, result)) => scheduler.written(work, result),
        Err(error) => {
            tracing::error!(%error, "the task of a write ended");
            scheduler.write_lost();
        }
    }
}

fn answered(scheduler: &mut Scheduler, ended: Result<FinishedCall, JoinError>) {
    match ended {
        Ok(finished) => scheduler.extender_call_finished(finished),
        Err(error) => {
            tracing::error!(%error, "the task of a question ended");
            scheduler.extender_call_lost();
        }
    }
}

/// Waits for a delta, the end of a write, a pause that is over, or the end.
async fn wait(
    scheduler: &mut Scheduler,
    clock: &SharedClock,
    arrivals: &mut Arrivals,
    (writes, extender_calls): (&mut JoinSet<Written>, &mut JoinSet<FinishedCall>),
    end: &CancellationToken,
) {
    const LONG: Duration = Duration::from_secs(1);
    /// A cache becomes complete without a delta, such as one of a kind that has no object.
    const INCOMPLETE: Duration = Duration::from_millis(20);
    let (longest, after) = if scheduler.knows_all() { (LONG, PAUSE) } else { (INCOMPLETE, PAUSE_OF_FOLLOWER) };
    let pause = scheduler.wake_at().map_or(longest, |at| at.since(clock.moment()).min(longest));
    let moment = clock.sleep(pause);
    tokio::select! {
        biased;
        () = end.cancelled() => {}
        Some(ended) = writes.join_next() => written(scheduler, ended),
        Some(ended) = extender_calls.join_next() => answered(scheduler, ended),
        Some(request) = scheduler.read_requests.recv() => request.answer(Some(scheduler.known())),
        deltas = arrivals.next(&mut scheduler.feed.stream, clock, after) => scheduler.apply(deltas),
        () = moment => {}
    }
}

/// When deltas came last.
#[derive(Default)]
struct Arrivals {
    last: Option<Moment>,
}

impl Arrivals {
    /// The deltas that have come, at the earliest this long after those before.
    async fn next(&mut self, stream: &mut ChangeStream<Delta>, clock: &SharedClock, after: Duration) -> Vec<Delta> {
        if let Some(left) = self.last.and_then(|last| after.checked_sub(clock.moment().since(last))) {
            clock.sleep(left).await;
        }
        let deltas = stream.next(Scheduler::DELTAS_MAX).await;
        self.last = Some(clock.moment());
        deltas
    }
}

/// Follows the cluster, and decides nothing, until this is over: a standby until it leads, a leader until it may decide. The engine fills
/// while the caches do, and no deltas pile up.
async fn follow_until<T>(scheduler: &mut Scheduler, clock: &SharedClock, over: impl Future<Output = T>) -> T {
    let mut over = pin!(over);
    let mut arrivals = Arrivals::default();
    loop {
        let moment = clock.sleep(Measures::INTERVAL);
        tokio::select! {
            biased;
            ended = &mut over => return ended,
            Some(request) = scheduler.read_requests.recv() => request.answer(None),
            deltas = arrivals.next(&mut scheduler.feed.stream, clock, PAUSE_OF_FOLLOWER) => scheduler.apply(deltas),
            () = moment => {}
        }
        scheduler.observe();
    }
}

/// Waits until this replica leads, or does not lead.
async fn until(leading: &mut watch::Receiver<bool>, expected: bool) {
    if leading.wait_for(|leads| *leads == expected).await.is_err() {
        // The manager is gone; its tasks are ended by their tokens.
        std::future::pending::<()>().await;
    }
}
