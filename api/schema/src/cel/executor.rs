//! Where rules run: on threads with a large stack, which are kept, and for no longer than a limit.
//!
//! An interpreter of nested expressions needs a deep stack, and cannot be interrupted. A thread that overruns its limit
//! is left behind; it ends with its rule. When too many are left behind, nothing is evaluated until one of them ends.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use kube_cel::{KubeCelExt, cel::Context};

use super::library;

/// The stack of an evaluating thread.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;
/// How many threads may be left behind before evaluation is refused.
pub const STUCK_MAX: usize = 8;

type Job = Box<dyn FnOnce(&Context<'_>) + Send>;

struct Worker {
    jobs: mpsc::Sender<Job>,
}

/// The threads that evaluate.
#[derive(Default)]
pub(super) struct Executor {
    waiting: Mutex<Vec<Worker>>,
    stuck: Arc<AtomicUsize>,
}

/// The executor of the process.
pub(super) static SHARED: LazyLock<Executor> = LazyLock::new(Executor::default);

/// Why nothing came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceError {
    /// The limit passed, or too many threads are stuck.
    OutOfTime,
    /// The evaluation broke down, or no thread could be had.
    Broken,
}

impl Executor {
    /// Runs a function on an evaluating thread and waits for its answer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        function: impl FnOnce(&Context<'_>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if self.stuck.load(Ordering::Acquire) >= STUCK_MAX {
            return Err(ServiceError::OutOfTime);
        }
        let kept = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let worker = kept.or_else(spawn).ok_or(ServiceError::Broken)?;
        let (answer, receiver) = mpsc::channel();
        // Whoever comes second, the thread with its answer or the caller who stops waiting, settles the count.
        let settled = Arc::new(AtomicBool::new(false));
        let (of_job, stuck) = (Arc::clone(&settled), Arc::clone(&self.stuck));
        let job: Job = Box::new(move |context| {
            let result = catch_unwind(AssertUnwindSafe(|| function(context)));
            if of_job.swap(true, Ordering::AcqRel) {
                stuck.fetch_sub(1, Ordering::AcqRel);
            }
            // The caller may have stopped waiting.
            let _ = answer.send(result.ok());
        });
        worker.jobs.send(job).map_err(|_| ServiceError::Broken)?;
        let outcome = match receiver.recv_timeout(limit) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.stuck.fetch_add(1, Ordering::AcqRel);
                if settled.swap(true, Ordering::AcqRel) {
                    self.stuck.fetch_sub(1, Ordering::AcqRel);
                }
                return Err(ServiceError::OutOfTime);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(ServiceError::Broken),
            Ok(outcome) => outcome,
        };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        outcome.ok_or(ServiceError::Broken)
    }
}

fn spawn() -> Option<Worker> {
    let (jobs, receiver) = mpsc::channel::<Job>();
    let builder = thread::Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES);
    let started = builder.spawn(move || {
        let mut context = Context::default().with_all();
        library::register(&mut context);
        // Ends when the worker is dropped.
        for job in receiver {
            job(&context);
        }
    });
    started.is_ok().then_some(Worker { jobs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_kept_and_an_overrun_is_left_behind() {
        let executor = Executor::default();
        let long = Duration::from_secs(20);
        let first = executor.run(long, |_| thread::current().id()).unwrap();
        assert_eq!(executor.run(long, |_| thread::current().id()), Ok(first), "the thread is kept");
        let (release, held) = mpsc::channel::<()>();
        let overrun = executor.run(Duration::from_millis(10), move |_| held.recv().is_ok());
        assert_eq!(overrun, Err(ServiceError::OutOfTime));
        assert_eq!(executor.stuck.load(Ordering::Acquire), 1);
        let second = executor.run(long, |_| thread::current().id()).unwrap();
        assert_ne!(second, first, "another thread takes over");
        drop(release);
        assert_eq!(executor.run(long, |_| -> u8 { panic!("a rule broke") }), Err(ServiceError::Broken));
        assert_eq!(executor.run(long, |_| 1), Ok(1), "a rule that breaks takes nothing with it");
    }

    #[test]
    fn too_many_overruns_refuse_everything_until_one_ends() {
        let executor = Executor::default();
        let releases: Vec<mpsc::Sender<()>> = (0..STUCK_MAX)
            .map(|_| {
                let (release, held) = mpsc::channel::<()>();
                assert!(executor.run(Duration::from_millis(5), move |_| held.recv().is_ok()).is_err());
                release
            })
            .collect();
        assert_eq!(executor.run(Duration::from_secs(20), |_| 1), Err(ServiceError::OutOfTime));
        drop(releases);
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while executor.run(Duration::from_secs(20), |_| 1).is_err() {
            assert!(std::time::Instant::now() < deadline, "the threads end with their rules");
            thread::yield_now();
        }
    }
}
