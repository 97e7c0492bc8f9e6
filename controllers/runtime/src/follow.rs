//! The task of a watch: does what the reflector asks and reports what came.

use std::{pin::pin, sync::Arc};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    Watch,
    api::{Api, Part, refused},
    clock::SharedClock,
    metrics::Metrics,
    panics::{PanicGuard, Place},
    random::Random,
    reflector::{Ask, Failure, Reflector},
};

/// Follows a collection. The clock must run in real time.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) watch: Arc<Watch>,
    pub(crate) api: Api,
    pub(crate) clock: SharedClock,
    pub(crate) random: Random,
    pub(crate) metrics: Metrics,
    pub(crate) guard: PanicGuard,
    /// Somebody wants the collection to be fetched anew.
    pub(crate) again: Arc<Notify>,
}

impl Follower {
    /// Follows the collection until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::select! { biased; () = stop.cancelled() => {}, () = self.follow() => {} }
    }

    async fn follow(&self) {
        let part = self.part();
        loop {
            self.guard.inject(Place::Watch);
            let ask = self.with(|reflector, watch| reflector.ask(self.clock.moment(), &self.random, &*watch.sink));
            let path = self.watch.path();
            match ask {
                Ask::Wait(span) => self.clock.sleep(span).await,
                Ask::List(query) => self.list(format!("{path}?{query}"), part).await,
                Ask::Watch { query, idle } => match self.api.watch(format!("{path}?{query}"), part, idle).await {
                    Ok(lines) => {
                        self.served();
                        self.read(lines).await;
                    }
                    Err(failure) => self.failed(&failure),
                },
            }
        }
    }

    fn part(&self) -> Part {
        if self.watch.metadata_only() { Part::Metadata } else { Part::Whole }
    }

    async fn list(&self, uri: String, part: Part) {
        match self.api.list(uri, part).await {
            Ok(answer) if answer.is_success() => {
                self.served();
                self.with(|reflector, watch| {
                    reflector.page(&answer.body, self.clock.moment(), &self.random, &*watch.sink);
                });
            }
            Ok(answer) => self.failed(&refused(&answer)),
            Err(failure) => self.failed(&failure),
        }
    }

    async fn read(&self, mut lines: crate::api::Events) {
        let received = self.metrics.watch_events.with_label_values(&[self.watch.kind.kind]);
        let mut again = pin!(self.again.notified());
        loop {
            let line = tokio::select! {
                biased;
                () = &mut again => return self.with(|reflector, _| reflector.reset()),
                line = lines.next() => line,
            };
            match line {
                Ok(Some("")) => {}
                Ok(Some(line)) => {
                    received.inc();
                    let read = self
                        .with(|reflector, watch| reflector.line(line, self.clock.moment(), &self.random, &*watch.sink));
                    if let Err(error) = read {
                        tracing::debug!(kind = self.watch.kind.kind, %error, "watch ended");
                        return;
                    }
                }
                Ok(None) => return self.with(|reflector, _| reflector.closed(self.clock.moment(), &self.random)),
                Err(failure) => return self.failed(&failure),
            }
        }
    }

    fn served(&self) {
        if self.watch.served() {
            tracing::info!(kind = self.watch.kind.kind, "can be watched again");
        }
    }

    fn failed(&self, failure: &Failure) {
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

    fn with<R>(&self, act: impl FnOnce(&mut Reflector, &Watch) -> R) -> R {
        act(&mut self.watch.reflector.lock(), &self.watch)
    }
}
