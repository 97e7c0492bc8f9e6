//! One call of a handler: on a thread for blocking work, within a time, with a panic kept to that call.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

/// Why a handler refuses a request; the text reaches the runtime and its events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HandlerError(pub String);

/// What is answered when a handler does not answer: when it panics, takes too long, has too many calls to do, or is given a request
/// that cannot be decoded. An error that a handler returns is always passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// Nothing is changed; the container starts without what the handler would have set.
    #[default]
    Ignore,
    /// An error; the runtime does not create the container.
    Fail,
}

/// Why a handler did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("the handler did not answer within {0:?}")]
    TooLate(Duration),
    #[error("the handler panicked")]
    Panicked,
    #[error("the handler has too many calls to do")]
    TooMany,
}

/// Limits of the calls of one handler.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    permits: Arc<Semaphore>,
}

impl Calls {
    /// At most `max` calls run at a time, those included that were given up and have not ended.
    pub(crate) fn new(max: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(max.clamp(1, Semaphore::MAX_PERMITS))) }
    }

    pub(crate) async fn call<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Unanswered::TooMany)?;
        let running = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        match timeout(limit, running).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Unanswered::Panicked),
            Err(_) => Err(Unanswered::TooLate(limit)),
        }
    }
}
