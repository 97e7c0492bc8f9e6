//! Runs effects (`koord_core::effect`) on the leader.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use koord_core::queue::Bucket;
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::SharedClock,
    effect::{Attempt, EffectCounts, EffectError, Effects, Ended},
    error::Retry,
    key::ObjectKey,
    metrics::Metrics,
    panics::{PanicGuard, Place, Task},
};

/// The effects of one name, whatever their types.
pub(crate) trait AnyEffects: Send + Sync {
    /// The name, for logs.
    fn name(&self) -> &'static str;
    /// The effect of a key is not wanted any more.
    fn forget(&self, key: &ObjectKey);
    /// How many keys there are, by what has become of their effect.
    fn counts(&self) -> EffectCounts;
    /// Runs what is asked for until the lead is over.
    fn run(self: Arc<Self>, guard: PanicGuard, clock: SharedClock, term: CancellationToken) -> BoxFuture<'static, ()>;
}

/// Effects, and how their runner learns that there is something to do.
pub(crate) struct Runner<I, O> {
    effects: Arc<Effects<I, O>>,
    ready: Arc<Notify>,
    metrics: Metrics,
}

impl<I: PartialEq + Send + 'static, O: Send + Sync + 'static> Runner<I, O> {
    pub(crate) fn new(effects: Arc<Effects<I, O>>, metrics: Metrics) -> Self {
        let ready = Arc::new(Notify::new());
        let notify = Arc::clone(&ready);
        effects.on_ready(move || notify.notify_one());
        for result in Outcome::ALL {
            metrics.effects_total.with_label_values(&[effects.name(), result.as_str()]);
        }
        Self { effects, ready, metrics }
    }
}

impl<I: PartialEq + Send + 'static, O: Send + Sync + 'static> AnyEffects for Runner<I, O> {
    fn name(&self) -> &'static str {
        self.effects.name()
    }

    fn forget(&self, key: &ObjectKey) {
        self.effects.forget(key);
    }

    fn counts(&self) -> EffectCounts {
        self.effects.counts()
    }

    fn run(self: Arc<Self>, guard: PanicGuard, clock: SharedClock, term: CancellationToken) -> BoxFuture<'static, ()> {
        let run = async move {
            // What an earlier term or a task that panicked left is unknown.
            self.effects.reset();
            let mut running = JoinSet::new();
            tokio::select! {
                biased;
                () = term.cancelled() => {}
                () = begin(&self, &guard, &clock, &mut running) => {}
            }
            running.shutdown().await;
            self.effects.reset();
        };
        run.boxed()
    }
}

/// Begins attempts, as many and as fast as the limits allow. It does not end.
async fn begin<I: PartialEq + Send + 'static, O: Send + Sync + 'static>(
    runner: &Runner<I, O>,
    guard: &PanicGuard,
    clock: &SharedClock,
    running: &mut JoinSet<()>,
) {
    let effects = &runner.effects;
    let limits = *effects.limits();
    let mut bucket = Bucket::new(f64::from(limits.per_second), f64::from(limits.burst.max(1)));
    loop {
        let has_room = running.len() < limits.concurrency.max(1);
        let Some(attempt) = has_room.then(|| effects.take()).flatten() else {
            tokio::select! {
                biased;
                () = runner.ready.notified() => {}
                Some(_) = running.join_next() => {}
            }
            continue;
        };
        while !bucket.take(clock.moment()) {
            clock.sleep(bucket.wait(clock.moment())).await;
        }
        let (key, number) = (attempt.key.clone(), attempt.number());
        let attempt =
            run_one(Arc::clone(effects), attempt, guard.clone(), SharedClock::clone(clock), runner.metrics.clone());
        let handle = running.spawn(attempt);
        effects.cancel_by(&key, number, move || handle.abort());
    }
}

async fn run_one<I: PartialEq, O>(
    effects: Arc<Effects<I, O>>,
    attempt: Attempt<O>,
    guard: PanicGuard,
    clock: SharedClock,
    metrics: Metrics,
) {
    let (name, timeout, number) = (effects.name(), effects.limits().timeout, attempt.number());
    let Attempt { key, work, .. } = attempt;
    let start = clock.moment();
    let result = tokio::select! {
        biased;
        ended = guard.catch_async(Place::Execution, Task("effect", name), work) => {
            ended.unwrap_or_else(|panicked| Err(EffectError::new(format_args!("the effect {panicked}"))))
        }
        () = clock.sleep(timeout) => Err(EffectError::new(format_args!("no result within {timeout:?}"))),
    };
    let outcome = match &result {
        Ok(_) => Outcome::Success,
        // Something that takes its time says when to ask again.
        Err(EffectError { retry: Retry::After(_), .. }) => Outcome::Later,
        Err(_) => Outcome::Error,
    };
    metrics.effects_total.with_label_values(&[name, outcome.as_str()]).inc();
    metrics.effect_time.with_label_values(&[name]).observe(clock.moment().since(start).as_secs_f64());
    let error = result.as_ref().err().cloned();
    match (effects.ended(&key, number, result), error) {
        (Some(Ended::Failed { again }), Some(EffectError { message, retry: Retry::After(delay) })) => {
            report(
                again,
                &key,
                |key| tracing::info!(effect = name, %key, message, ?delay, "an effect is not done yet"),
            );
        }
        (Some(Ended::Failed { again }), Some(EffectError { message, .. })) => {
            report(again, &key, |key| {
                tracing::warn!(effect = name, %key, message, "an effect failed; it is logged again when the reason changes");
            });
        }
        (Some(Ended::Succeeded { after_failure: true }), _) => {
            tracing::info!(effect = name, %key, "an effect that had failed succeeded");
        }
        _ => {}
    }
}

/// Logs what is news; that the same thing happened once more is for those who look for it.
fn report(again: bool, key: &ObjectKey, log: impl FnOnce(&ObjectKey)) {
    if again {
        tracing::debug!(%key, "an effect ended as the attempt before did");
    } else {
        log(key);
    }
}

/// How attempts end, in metrics.
#[derive(Clone, Copy)]
enum Outcome {
    Success,
    Error,
    Later,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Success, Self::Error, Self::Later];

    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Later => "later",
        }
    }
}
