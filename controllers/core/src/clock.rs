//! Time as a dependency. The clocks that read the operating system's time are in `koord-client`.

use std::{
    future::poll_fn,
    ops::Add,
    pin::Pin,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;

/// A point on a clock that never goes back; only differences mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// A point this long after the clock's origin.
    pub const fn at(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(span))
    }
}

/// `2026-01-02T03:04:05.000006Z`: the text of a MicroTime of the API.
pub fn micro_time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A wait that ends when its time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Gives the time and waits.
pub trait Clock: Send + Sync + 'static {
    /// The time of day: for what is written into objects. It may jump.
    fn now(&self) -> Timestamp;
    /// The time for measuring and waiting. It never goes back.
    fn moment(&self) -> Moment;
    /// Waits on the same scale as [`Clock::moment`].
    fn sleep(&self, span: Duration) -> Sleep;
}

/// The clock that a program hands to its parts.
pub type SharedClock = Arc<dyn Clock>;

/// A clock that stands still until [`ManualClock::advance`]: for tests and simulations.
#[derive(Debug)]
pub struct ManualClock(Arc<Mutex<ManualState>>);

#[derive(Debug)]
struct ManualState {
    now: Timestamp,
    moment: Moment,
    sleepers: Vec<Waker>,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Arc<Self> {
        let state = ManualState { now: start, moment: Moment::default(), sleepers: Vec::new() };
        Arc::new(Self(Arc::new(Mutex::new(state))))
    }

    /// Lets time pass and wakes whoever waited for it.
    pub fn advance(&self, span: Duration) {
        let sleepers = {
            let mut state = self.0.lock();
            state.now = state.now.checked_add(span).unwrap_or(Timestamp::MAX);
            state.moment = state.moment + span;
            std::mem::take(&mut state.sleepers)
        };
        sleepers.into_iter().for_each(Waker::wake);
    }

    /// Sets the time of day, forwards or backwards, as an administrator may do; waiting is not affected.
    pub fn jump_to(&self, now: Timestamp) {
        self.0.lock().now = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().now
    }

    fn moment(&self) -> Moment {
        self.0.lock().moment
    }

    fn sleep(&self, span: Duration) -> Sleep {
        let (state, until) = (Arc::clone(&self.0), self.moment() + span);
        Box::pin(poll_fn(move |context| {
            let mut state = state.lock();
            if state.moment >= until {
                return Poll::Ready(());
            }
            if !state.sleepers.iter().any(|sleeper| sleeper.will_wake(context.waker())) {
                state.sleepers.push(context.waker().clone());
            }
            Poll::Pending
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        task::{Context, Wake},
    };

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_manual_clock_wakes_sleepers_when_their_time_has_come() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut sleep = clock.sleep(Duration::from_secs(10));
        let mut is_over = || sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        assert!(!is_over() && !is_over());
        clock.advance(Duration::from_secs(9));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "once for each advance");
        assert!(!is_over());
        clock.jump_to(Timestamp::UNIX_EPOCH);
        clock.advance(Duration::from_secs(1));
        assert!(is_over());
        assert_eq!(clock.now().as_second(), 1);
        assert_eq!(clock.moment(), Moment::at(Duration::from_secs(10)));
    }
}
