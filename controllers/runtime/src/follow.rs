//! The task that keeps one cache equal to the API server: does what the reflector asks and tells it what came.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    api::{Api, Part, refused},
    clock::SharedClock,
    core::Watch,
    metrics::Metrics,
    random::Random,
    reflector::{Ask, Failure, Reflector},
};

/// Follows a collection until `stop`. The clock must run in real time.
pub(crate) async fn follow(
    watch: Arc<Watch>,
    api: Api,
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let follower = Follower { watch, api, clock, random, metrics };
    tokio::select! { biased; () = stop.cancelled() => {}, () = follower.run() => {} }
}

struct Follower {
    watch: Arc<Watch>,
    api: Api,
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
}

impl Follower {
    async fn run(&self) {
        let path = self.watch.path();
        let part = self.part();
        loop {
            let ask = self.watch.reflector.lock().ask(self.clock.moment(), &self.random);
            match ask {
                Ask::Wait(span) => self.clock.sleep(span).await,
                Ask::List(query) => self.list(format!("{path}?{query}"), part).await,
                Ask::Watch { query, idle } => match self.api.watch(format!("{path}?{query}"), part, idle).await {
                    Ok(lines) => self.read(lines).await,
                    Err(failure) => self.failed(&failure),
                },
            }
        }
    }

    fn part(&self) -> Part {
        if self.watch.metadata_only { Part::Metadata } else { Part::Whole }
    }

    async fn list(&self, uri: String, part: Part) {
        match self.api.list(uri, part).await {
            Ok(answer) if answer.is_success() => {
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
        loop {
            match lines.next().await {
                Ok(Some("")) => {}
                Ok(Some(line)) => {
                    received.inc();
                    let heard = self
                        .with(|reflector, watch| reflector.line(line, self.clock.moment(), &self.random, &*watch.sink));
                    if let Err(hang_up) = heard {
                        tracing::debug!(kind = self.watch.kind.kind, %hang_up, "watch ended");
                        return;
                    }
                }
                Ok(None) => return self.with(|reflector, _| reflector.closed(self.clock.moment(), &self.random)),
                Err(failure) => return self.failed(&failure),
            }
        }
    }

    fn failed(&self, failure: &Failure) {
        let kind = self.watch.kind.kind;
        if failure.code == Some(404) {
            tracing::warn!(kind, "the API server does not know this kind; is its CRD installed?");
        } else {
            tracing::debug!(kind, code = failure.code, reason = failure.message, "watch failed");
        }
        self.with(|reflector, _| reflector.failed(failure, self.clock.moment(), &self.random));
    }

    fn with<R>(&self, act: impl FnOnce(&mut Reflector, &Watch) -> R) -> R {
        act(&mut self.watch.reflector.lock(), &self.watch)
    }
}
