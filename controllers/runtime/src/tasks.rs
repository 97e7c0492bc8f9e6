//! Keeps tasks alive: one that panics starts again, one that cannot go on ends the program with a message.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Moment, SharedClock},
    panics::{PanicGuard, Panicked, Place, Task},
    random::Random,
};

/// A task that panics waits before it starts again: the first time this long, then twice as long each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A task that has run this long without a panic starts again as if it were the first time.
const QUIET: Duration = Duration::from_mins(1);
/// A task that panics this often, with no quiet time between, is given up.
const PANICS_MAX: u32 = 8;

/// Why a program cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// It panicked again and again.
    #[error("the task {task:?} was given up after {PANICS_MAX} panics; it {last}")]
    GivenUp {
        /// Its name.
        task: String,
        /// Its last panic.
        last: Panicked,
    },
    /// It ended although nobody had stopped it.
    #[error("the task {task:?} ended although nothing had stopped it; please report it")]
    Ended {
        /// Its name.
        task: String,
    },
}

/// Supervises the tasks of a program. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    guard: PanicGuard,
    clock: SharedClock,
    random: Random,
    /// Tasks that are given up.
    failed: Arc<Mutex<BTreeMap<String, TaskError>>>,
}

/// How often a task panicked lately.
#[derive(Debug, Default)]
struct Panics {
    count: u32,
    last: Option<Moment>,
}

impl Panics {
    /// Counts a panic. Gives the pause before the next start; none when the task is to be given up.
    fn next(&mut self, now: Moment) -> Option<Duration> {
        if self.last.is_some_and(|last| now.since(last) >= QUIET) {
            self.count = 0;
        }
        (self.count, self.last) = (self.count + 1, Some(now));
        let doubled = PAUSE_MIN.saturating_mul(1 << (self.count - 1).min(16));
        (self.count < PANICS_MAX).then(|| doubled.min(PAUSE_MAX))
    }
}

impl Tasks {
    /// No task runs yet.
    pub fn new(guard: PanicGuard, clock: SharedClock, random: Random) -> Self {
        Self { guard, clock, random, failed: Arc::default() }
    }

    /// Runs a task until `stop`, and starts it again when it panics. `start` brings what outlives the task into a state
    /// with which it can begin. An error means that the program cannot go on.
    pub async fn supervise<F: Future<Output = ()>>(
        &self,
        task: Task<'_>,
        stop: &CancellationToken,
        mut start: impl FnMut() -> F,
    ) -> Result<(), TaskError> {
        self.guard.count_from_zero(Place::Task, task);
        let mut panics = Panics::default();
        loop {
            let run = async {
                self.guard.inject(Place::Task);
                start().await;
            };
            let error = match self.guard.catch_async(Place::Task, task, run).await {
                Ok(()) if stop.is_cancelled() => return Ok(()),
                Ok(()) => TaskError::Ended { task: task.to_string() },
                Err(last) => match panics.next(self.clock.moment()) {
                    Some(pause) => {
                        let pause = self.clock.sleep(self.random.jitter(pause, 0.2));
                        tokio::select! { biased; () = stop.cancelled() => return Ok(()), () = pause => continue }
                    }
                    None => TaskError::GivenUp { task: task.to_string(), last },
                },
            };
            self.failed.lock().insert(task.to_string(), error.clone());
            return Err(error);
        }
    }

    /// Whether every task goes on; else the first that was given up.
    pub fn alive(&self) -> Result<(), TaskError> {
        self.failed.lock().values().next().map_or(Ok(()), |error| Err(error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use jiff::Timestamp;

    use super::*;
    use crate::clock::ScaledClock;

    fn tasks() -> Tasks {
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        Tasks::new(PanicGuard::default(), clock, Random::seeded(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_starts_again() {
        let (tasks, stop, starts) = (tasks(), CancellationToken::new(), AtomicU32::new(0));
        let ended = tasks.supervise(Task("watch", "Pod"), &stop, || async {
            match starts.fetch_add(1, Ordering::Relaxed) {
                0..3 => panic!("at first"),
                _ => stop.cancel(),
            }
        });
        assert_eq!(ended.await, Ok(()));
        assert_eq!((starts.into_inner(), tasks.alive()), (4, Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_again_and_again_is_given_up() {
        let (tasks, stop) = (tasks(), CancellationToken::new());
        let ended = tasks.supervise(Task("events", ""), &stop, || async { panic!("always") }).await;
        let message = ended.clone().unwrap_err().to_string();
        assert_eq!(message, r#"the task "events" was given up after 8 panics; it panicked: always; please report it"#);
        assert_eq!(tasks.alive(), ended);
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_time_forgives_panics() {
        let (tasks, stop, starts) = (tasks(), CancellationToken::new(), AtomicU32::new(0));
        let clock = SharedClock::clone(&tasks.clock);
        let ended = tasks.supervise(Task("events", ""), &stop, || async {
            clock.sleep(QUIET).await;
            assert!(starts.fetch_add(1, Ordering::Relaxed) >= 20, "now and then");
            stop.cancel();
        });
        assert_eq!(ended.await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_by_itself_is_an_error() {
        let (tasks, stop) = (tasks(), CancellationToken::new());
        let ended = tasks.supervise(Task("watch", "Pod"), &stop, async || ()).await;
        assert_eq!(ended, Err(TaskError::Ended { task: "watch Pod".to_owned() }));
    }
}
