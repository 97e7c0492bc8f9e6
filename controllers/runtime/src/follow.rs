//! The task of a watch: does what the reflector asks and reports what came.

use std::{pin::pin, sync::Arc};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    Watch,
    api::{Api, Part, first_words, refused},
    clock::SharedClock,
    failures::Failures,
    metrics::Metrics,
    panics::{PanicGuard, Place},
    random::Random,
    reflector::{Ask, Failure, Reflector, WatchError},
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
        let part = self.part();
        // What is wrong with the last answer, if anything is. Then the reflector waits.
        let mut suspect = None;
        loop {
            self.guard.inject(Place::Watch);
            let ask = self.with(|reflector, watch| reflector.ask(self.clock.moment(), &self.random, &*watch.sink));
            match suspect.take() {
                Some(failure) if matches!(ask, Ask::Wait(_)) => self.count(&failure),
                Some(_) => self.recovered(),
                None => {}
            }
            let path = self.watch.path();
            match ask {
                Ask::Wait(span) => self.clock.sleep(span).await,
                Ask::List(query) => suspect = Some(self.list(format!("{path}?{query}"), part).await),
                Ask::Watch { query, idle } => match self.api.watch(format!("{path}?{query}"), part, idle).await {
                    Ok(lines) => {
                        self.served();
                        suspect = self.read(lines).await;
                    }
                    Err(failure) => {
                        self.failed(&failure);
                        suspect = Some(failure);
                    }
                },
            }
        }
    }

    fn part(&self) -> Part {
        if self.watch.metadata_only() { Part::Metadata } else { Part::Whole }
    }

    /// Fetches a page. Gives what is wrong with the answer if the reflector cannot use it.
    async fn list(&self, uri: String, part: Part) -> Failure {
        match self.api.list(uri, part).await {
            Ok(answer) if answer.is_success() => {
                self.served();
                self.with(|reflector, watch| {
                    reflector.page(&answer.body, self.clock.moment(), &self.random, &*watch.sink);
                });
                unusable("a list", &answer.body)
            }
            Ok(answer) => {
                let failure = refused(&answer);
                self.failed(&failure);
                failure
            }
            Err(failure) => {
                self.failed(&failure);
                failure
            }
        }
    }

    /// Reads a watch to its end. Gives what is wrong with it if the reflector waits then; none where the end is our own.
    async fn read(&self, mut lines: crate::api::Events) -> Option<Failure> {
        let received = self.metrics.watch_events.with_label_values(&[self.watch.kind.kind]);
        let mut again = pin!(self.again.notified());
        let mut is_first = true;
        loop {
            let line = tokio::select! {
                biased;
                () = &mut again => {
                    self.with(|reflector, _| reflector.reset());
                    return None;
                }
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
                        return Some(match error {
                            WatchError::Malformed(_) => unusable("an event", line),
                            WatchError::Status(_) => answered(error.to_string()),
                        });
                    }
                    if std::mem::take(&mut is_first) {
                        self.recovered();
                    }
                }
                Ok(None) => {
                    self.with(|reflector, _| reflector.closed(self.clock.moment(), &self.random));
                    return Some(answered("the API server ended the watch too early".to_owned()));
                }
                Err(failure) => {
                    self.failed(&failure);
                    return Some(answered(failure.message));
                }
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

    /// Counts a failure after which the reflector waits. A refusal with a remedy has its own warning.
    fn count(&self, failure: &Failure) {
        let watch = &*self.watch;
        if watch.obstacle().is_none() && self.failures.add(watch.kind, &watch.selection, failure) {
            let (kind, answer) = (watch.kind.kind, first_words(&failure.message));
            tracing::warn!(kind, code = failure.code, answer, "cannot be watched; the program goes on trying");
        }
    }

    fn recovered(&self) {
        if self.failures.end(self.watch.kind, &self.watch.selection) {
            tracing::info!(kind = self.watch.kind.kind, "can be watched again");
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut Reflector, &Watch) -> R) -> R {
        act(&mut self.watch.reflector.lock(), &self.watch)
    }
}

/// The failure of a request that was answered with 200.
fn answered(message: String) -> Failure {
    Failure { code: Some(200), message, ..Failure::default() }
}

/// What is wrong with an answer that is not what was expected. Of objects nothing is shown: they may be Secrets.
fn unusable(expected: &str, answer: &str) -> Failure {
    let words = first_words(answer);
    answered(if words.starts_with('{') {
        format!("{expected} that cannot be used")
    } else {
        format!("this is not {expected}: {words}")
    })
}
