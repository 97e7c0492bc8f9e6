//! Where rules run: on threads with a large stack, which are kept, and for no longer than a limit.
//!
//! An interpreter of nested expressions needs a deep stack, and cannot be interrupted. A thread that overruns its limit
//! is left behind; it ends with its rule. When too many are left behind, nothing is evaluated until one of them ends.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, extractors::This},
};

use crate::pattern;

/// The stack of an evaluating thread.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;
/// How many threads may be left behind before evaluation is refused.
pub const STUCK_MAX: usize = 8;

type Job = Box<dyn FnOnce(&Context<'_>) + Send>;

struct Worker {
    jobs: mpsc::Sender<Job>,
}

static WAITING: LazyLock<Mutex<Vec<Worker>>> = LazyLock::new(Mutex::default);
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Why nothing came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The limit passed, or too many threads are stuck.
    OutOfTime,
    /// The evaluation broke down, or no thread could be had.
    Broken,
}

/// Runs a function on an evaluating thread and waits for its answer.
pub(super) fn run<T: Send + 'static>(
    limit: Duration,
    function: impl FnOnce(&Context<'_>) -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    if STUCK.load(Ordering::Acquire) >= STUCK_MAX {
        return Err(NoAnswer::OutOfTime);
    }
    let kept = WAITING.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let worker = kept.or_else(spawn).ok_or(NoAnswer::Broken)?;
    let (answer, receiver) = mpsc::channel();
    // 0: running, 1: answered, 2: left behind. Whoever comes second knows that the thread was stuck.
    let state = Arc::new(AtomicUsize::new(0));
    let of_job = Arc::clone(&state);
    let job: Job = Box::new(move |context| {
        let result = catch_unwind(AssertUnwindSafe(|| function(context)));
        if of_job.swap(1, Ordering::AcqRel) == 2 {
            STUCK.fetch_sub(1, Ordering::AcqRel);
        }
        // The caller may have stopped waiting.
        let _ = answer.send(result.ok());
    });
    worker.jobs.send(job).map_err(|_| NoAnswer::Broken)?;
    let outcome = match receiver.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            STUCK.fetch_add(1, Ordering::AcqRel);
            if state.swap(2, Ordering::AcqRel) == 1 {
                STUCK.fetch_sub(1, Ordering::AcqRel);
            }
            return Err(NoAnswer::OutOfTime);
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => return Err(NoAnswer::Broken),
        Ok(outcome) => outcome,
    };
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    outcome.ok_or(NoAnswer::Broken)
}

/// `matches` means RE2, as `pattern` does.
fn matches(This(text): This<Arc<String>>, expression: Arc<String>) -> Result<bool, ExecutionError> {
    let compiled = pattern::compile(&expression).map_err(|error| ExecutionError::function_error("matches", error))?;
    Ok(compiled.is_match(&text))
}

fn spawn() -> Option<Worker> {
    let (jobs, receiver) = mpsc::channel::<Job>();
    let builder = thread::Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES);
    let started = builder.spawn(move || {
        let mut context = Context::default().with_all();
        context.add_function("matches", matches);
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
        let name = || thread::current().id();
        let first = run(Duration::from_secs(5), move |_| name()).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let overrun = run(Duration::from_millis(10), move |_| {
            let _ = held.recv();
        });
        assert_eq!(overrun, Err(NoAnswer::OutOfTime));
        assert_eq!(STUCK.load(Ordering::Acquire), 1);
        drop(release);
        assert!(run(Duration::from_secs(5), move |_| name()).is_ok(), "another thread takes over from {first:?}");
        assert_eq!(run(Duration::from_secs(5), |_| -> u8 { panic!("a rule broke") }), Err(NoAnswer::Broken));
    }
}
