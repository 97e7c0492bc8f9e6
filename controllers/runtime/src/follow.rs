//! The task of a watch: does what the reflector asks and reports what came.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    Watch,
    api::{Api, Events, Part, excerpt, refused},
    clock::SharedClock,
    failures::{Failures, RequestFailure},
    metrics::Metrics,
    panics::{PanicGuard, Place},
    random::Random,
    reflector::{Ask, Failure, Phase, Reflector},
};

/// A watch that is open for so long works, although nothing has changed yet.
const WORKS_AFTER: Duration = Duration::from_secs(10);

/// Follows a collection. The clock must run in real time.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) watch: Arc<Watch>,
    pub(crate) api: Api,
    pub(crate) clock: SharedClock,
    pub(crate) random: Random,
    pub(crate) metrics: Metrics,
    pub(crate) guard: PanicGuard,
    pub(crate) failures: Arc<Failures>,
    /// Somebody wants the collection to be fetched anew.
    pub(crate) again: Arc<Notify>,
}

impl Follower {
    /// Follows the collection until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::select! { biased; () = stop.cancelled() => {}, () = self.follow() => {} }
    }

    async fn follow(&self) {
        self.begun().await;
        let part = self.part();
        // The failure of the last request. It counts where the reflector waits because of it.
        let mut failure = None;
        loop {
            self.guard.inject(Place::Watch);
            let ask = self.with(|reflector, watch| reflector.ask(self.clock.moment(), &self.random, &*watch.sink));
            if let Some(failure) = failure.take()
                && matches!(ask, Ask::Wait(_))
            {
                self.count(&failure);
            }
            let path = self.watch.path();
            match ask {
                Ask::Wait(span) => {
                    if self.api.outage().wait(&self.clock, span).await {
                        self.with(|reflector, _| reflector.hasten(self.clock.moment()));
                    }
                }
                Ask::List(query) => failure = self.list(format!("{path}?{query}"), part).await.err(),
                Ask::Watch { query, idle } => {
                    failure = self.watch(format!("{path}?{query}"), part, idle).await.err();
                }
            }
        }
    }

    /// Waits while the watch is deferred.
    async fn begun(&self) {
        loop {
            let again = self.again.notified();
            if !self.watch.is_deferred() {
                return;
            }
            again.await;
        }
    }

    fn part(&self) -> Part {
        if self.watch.metadata_only() { Part::Metadata } else { Part::Whole }
    }

    /// Fetches a page.
    async fn list(&self, uri: String, part: Part) -> Result<(), RequestFailure> {
        let answer = match self.api.list(uri, part).await {
            Ok(answer) if answer.is_success() => answer,
            Ok(answer) => return Err(self.failed(refused(&answer))),
            Err(failure) => return Err(self.failed(failure)),
        };
        self.served();
        let (page, phase) = self.with(|reflector, watch| {
            let page = reflector.page(&answer.body, self.clock.moment(), &self.random, &*watch.sink);
            (page, reflector.phase())
        });
        page.map_err(|error| RequestFailure::of_list(&error, answer.code, &answer.body))?;
        if phase == Phase::Watch {
            self.recovered(Phase::List);
        }
        Ok(())
    }

    /// Opens a watch and reads it to its end.
    async fn watch(&self, uri: String, part: Part, idle: Duration) -> Result<(), RequestFailure> {
        let lines = self.api.watch(uri, part, idle).await.map_err(|failure| self.failed(failure))?;
        self.served();
        self.read(lines).await
    }

    async fn read(&self, mut lines: Events) -> Result<(), RequestFailure> {
        let received = self.metrics.watch_events.with_label_values(&[self.watch.kind.kind]);
        let mut again = pin!(self.again.notified());
        let mut open_for_long = pin!(self.clock.sleep(WORKS_AFTER));
        let (mut phase, mut works) = (self.phase(), false);
        loop {
            let line = tokio::select! {
                biased;
                () = &mut again => {
                    self.with(|reflector, _| reflector.reset());
                    return Ok(());
                }
                () = &mut open_for_long, if phase == Phase::Watch && !works => {
                    works = true;
                    self.recovered(Phase::Watch);
                    continue;
                }
                line = lines.next() => line,
            };
            match line {
                Ok(Some("")) => {}
                Ok(Some(line)) => {
                    received.inc();
                    let (read, next) = self.with(|reflector, watch| {
                        let read = reflector.line(line, self.clock.moment(), &self.random, &*watch.sink);
                        (read, reflector.phase())
                    });
                    if let Err(error) = read {
                        tracing::debug!(kind = self.watch.kind.kind, %error, "watch ended");
                        return Err(RequestFailure::of_watch(phase, &error, line));
                    }
                    match (phase, next) {
                        (Phase::List, Phase::Watch) => self.recovered(Phase::List),
                        (Phase::Watch, _) if !works => {
                            works = true;
                            self.recovered(Phase::Watch);
                        }
                        _ => {}
                    }
                    phase = next;
                }
                Ok(None) => {
                    let closed = self.with(|reflector, _| reflector.closed(self.clock.moment(), &self.random));
                    closed.map_err(|error| RequestFailure::of_watch(phase, &error, ""))?;
                    self.recovered(Phase::Watch);
                    return Ok(());
                }
                Err(failure) => {
                    self.reject(&failure);
                    return Err(RequestFailure::broken(phase, failure));
                }
            }
        }
    }

    fn served(&self) {
        if self.watch.served() {
            tracing::info!(kind = self.watch.kind.kind, "can be watched again");
        }
    }

    /// Reports a request that was refused, or not answered.
    fn failed(&self, failure: Failure) -> RequestFailure {
        let phase = self.phase();
        self.reject(&failure);
        RequestFailure::refused(phase, failure)
    }

    fn reject(&self, failure: &Failure) {
        let kind = self.watch.kind.kind;
        if let Some(reason) = self.watch.refused(failure) {
            let meanwhile = self.watch.idle().map(|idle| format!("{idle} is idle until it can"));
            let meanwhile = meanwhile.as_deref().unwrap_or("the program waits until it can");
            tracing::warn!(kind, reason, "cannot be watched; {meanwhile}");
        } else {
            tracing::debug!(kind, code = failure.code, reason = failure.message, "watch failed");
        }
        self.with(|reflector, _| reflector.failed(failure, self.clock.moment(), &self.random));
    }

    /// Counts a failure after which the reflector waits. A refusal with a remedy has its own warning.
    fn count(&self, failure: &RequestFailure) {
        let watch = &*self.watch;
        if watch.obstacle().is_none() && self.failures.add(watch.kind, &watch.selection, failure) {
            let (kind, verb, reason) = (watch.kind.kind, verb(failure.phase), excerpt(&failure.reason));
            tracing::warn!(kind, code = failure.code, reason, "cannot be {verb}; the program goes on trying");
        }
    }

    fn recovered(&self, phase: Phase) {
        if self.failures.end(self.watch.kind, &self.watch.selection, phase) {
            tracing::info!(kind = self.watch.kind.kind, "can be {} again", verb(phase));
        }
    }

    fn phase(&self) -> Phase {
        self.with(|reflector, _| reflector.phase())
    }

    fn with<R>(&self, act: impl FnOnce(&mut Reflector, &Watch) -> R) -> R {
        act(&mut self.watch.reflector.lock(), &self.watch)
    }
}

/// What is done in a phase, for messages.
const fn verb(phase: Phase) -> &'static str {
    match phase {
        Phase::List => "listed",
        Phase::Watch => "watched",
    }
}

#[cfg(test)]
mod tests;
