//! Panics of code that the runtime calls: each is caught where it can be confined, counted, and logged.
//!
//! What may panic is code of controllers (projections, listeners, decisions, hooks) and a task as a whole. A test may
//! inject panics at each of these places ([`PanicGuard::injecting`]).

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

/// Where a panic is caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The projection of one object, or its terms in an index. The object is quarantined.
    Projection,
    /// A listener of a cache. It is notified of the change again later.
    Listener,
    /// The decision about one key. The key is tried again.
    Reconcile,
    /// A controller's hook that is notified of the result of a write.
    Written,
    /// A controller's hook that makes an event of a failed write.
    Failed,
    /// What a decision wants to remember.
    Remember,
    /// The execution of a plan. The key is tried again.
    Execution,
    /// The task of a watch. It starts again with a new list.
    Watch,
    /// The task of leader election. It starts again without the lead.
    Election,
    /// The task that writes events. The event is dropped.
    Events,
    /// Any other task.
    Task,
}

/// Whose code it is: `watch Pod`, `controller nodeslo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a>(pub &'static str, pub &'a str);

/// A panic that was caught, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {0}; please report it")]
pub struct Panicked(pub String);

/// Panics on purpose, in tests: called at each place, before the code there runs and after it.
pub type Injector = Arc<dyn Fn(Place) + Send + Sync>;

/// Adds to the number of panics of a task at a place.
type Count = Arc<dyn Fn(Place, Task<'_>, u64) + Send + Sync>;

/// Catches panics, counts them by task and place, and logs them.
#[derive(Clone, Default)]
pub struct PanicGuard {
    count: Option<Count>,
    injector: Option<Injector>,
}

impl Place {
    /// The place as a label of the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Projection => "projection",
            Self::Listener => "listener",
            Self::Reconcile => "reconcile",
            Self::Written => "written",
            Self::Failed => "failed",
            Self::Remember => "remember",
            Self::Execution => "execution",
            Self::Watch => "watch",
            Self::Election => "election",
            Self::Events => "events",
            Self::Task => "task",
        }
    }
}

impl fmt::Display for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(role, name) = self;
        if name.is_empty() { f.write_str(role) } else { write!(f, "{role} {name}") }
    }
}

impl PanicGuard {
    /// A guard that counts with this function, such as a metric with the labels `task` and `place`.
    pub fn counting(count: impl Fn(Place, Task<'_>, u64) + Send + Sync + 'static) -> Self {
        Self { count: Some(Arc::new(count)), injector: None }
    }

    /// The same guard with a fault injector.
    pub fn injecting(self, injector: Injector) -> Self {
        Self { injector: Some(injector), ..self }
    }

    /// Serves the counter of a task before anything panics, so that its first panic is an increase.
    pub fn count_from_zero(&self, place: Place, task: Task<'_>) {
        self.count(place, task, 0);
    }

    /// Runs this, unless it panics.
    pub fn catch<R>(&self, place: Place, task: Task<'_>, work: impl FnOnce() -> R) -> Result<R, Panicked> {
        let work = || {
            self.inject(place);
            let result = work();
            self.inject(place);
            result
        };
        catch_unwind(AssertUnwindSafe(work)).map_err(|payload| self.caught(place, task, &*payload))
    }

    /// Runs this to its end, unless it panics.
    pub async fn catch_async<F: Future>(&self, place: Place, task: Task<'_>, work: F) -> Result<F::Output, Panicked> {
        let mut work = pin!(work);
        let ended = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        });
        ended.await.map_err(|payload| self.caught(place, task, &*payload))
    }

    /// A place in a task at which a test may inject a panic.
    pub fn inject(&self, place: Place) {
        if let Some(injector) = &self.injector {
            injector(place);
        }
    }

    fn count(&self, place: Place, task: Task<'_>, panics: u64) {
        if let Some(count) = &self.count {
            count(place, task, panics);
        }
    }

    fn caught(&self, place: Place, task: Task<'_>, payload: &(dyn Any + Send)) -> Panicked {
        let message = payload.downcast_ref::<&str>().map(ToString::to_string);
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        self.count(place, task, 1);
        tracing::error!(%task, place = place.as_str(), message, "a panic was caught");
        Panicked(message)
    }
}

impl fmt::Debug for PanicGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanicGuard").field("injects", &self.injector.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use parking_lot::Mutex;

    use super::*;

    /// What an async function without waits gives.
    fn now<F: Future>(work: F) -> F::Output {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_panic_is_caught_counted_and_reported() {
        let counted = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&counted);
        let guard = PanicGuard::counting(move |place, task, panics| {
            log.lock().push(format!("{task}, {}: {panics}", place.as_str()));
        });
        guard.count_from_zero(Place::Task, Task("events", ""));
        assert_eq!(guard.catch(Place::Listener, Task("watch", "Pod"), || 7), Ok(7));
        let panicked = guard.catch(Place::Listener, Task("watch", "Pod"), || panic!("odd {}", 1)).map(|()| 0);
        assert_eq!(panicked.unwrap_err().to_string(), "panicked: odd 1; please report it");
        let panicked = now(guard.catch_async(Place::Task, Task("export", ""), async { panic!("even") })).map(|()| 0);
        assert_eq!(panicked, Err(Panicked("even".to_owned())));
        assert_eq!(now(guard.catch_async(Place::Task, Task("export", ""), async { 8 })), Ok(8));
        assert_eq!(*counted.lock(), ["events, task: 0", "watch Pod, listener: 1", "export, task: 1"]);
    }

    #[test]
    fn an_injected_panic_is_caught_like_any_other() {
        let injector: Injector = Arc::new(|place| assert_ne!(place, Place::Written));
        let guard = PanicGuard::default().injecting(injector);
        assert!(guard.catch(Place::Written, Task("controller", "a"), || ()).is_err());
        assert!(guard.catch(Place::Failed, Task("controller", "a"), || ()).is_ok());
    }
}
