//! Time as a dependency: nothing else in the house asks the operating system what time it is.

use std::{
    ops::Add,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
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

/// Tells the time and waits.
pub trait Clock: Send + Sync + 'static {
    /// The time of day: for what is written into objects. It may jump.
    fn now(&self) -> Timestamp;
    /// The time for measuring and waiting. It never goes back.
    fn moment(&self) -> Moment;
    /// Waits on the same scale as [`Clock::moment`].
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;
}

/// The clock that a program hands to its parts.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose origin is this moment.
    pub fn shared() -> SharedClock {
        Arc::new(Self { origin: Instant::now() })
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn moment(&self) -> Moment {
        Moment(self.origin.elapsed())
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A clock on tokio's time, at a chosen speed from a chosen start. Paused tokio time stops it too.
#[derive(Debug)]
pub struct ScaledClock {
    origin: tokio::time::Instant,
    start: Timestamp,
    speed: f64,
}

impl ScaledClock {
    /// A clock that shows `start` now and then runs `speed` times as fast as tokio's.
    /// A speed that is not a positive number counts as 1.
    pub fn shared(start: Timestamp, speed: f64) -> SharedClock {
        let speed = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Arc::new(Self { origin: tokio::time::Instant::now(), start, speed })
    }
}

impl Clock for ScaledClock {
    fn now(&self) -> Timestamp {
        later(self.start, self.moment().0)
    }

    fn moment(&self) -> Moment {
        Moment(scale(self.origin.elapsed(), self.speed))
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(scale(span, self.speed.recip())))
    }
}

/// A clock that stands still until it is told to advance: for tests and simulations.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ManualState>,
    ticks: tokio::sync::watch::Sender<Moment>,
}

#[derive(Debug)]
struct ManualState {
    now: Timestamp,
    moment: Moment,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(ManualState { now: start, moment: Moment::default() }),
            ticks: tokio::sync::watch::Sender::new(Moment::default()),
        })
    }

    /// Lets time pass and wakes whoever waited for it.
    pub fn advance(&self, span: Duration) {
        let moment = {
            let mut state = self.state.lock();
            state.now = later(state.now, span);
            state.moment = state.moment + span;
            state.moment
        };
        self.ticks.send_replace(moment);
    }

    /// Sets the time of day, forwards or backwards, as an administrator may do; waiting is not affected.
    pub fn jump_to(&self, now: Timestamp) {
        self.state.lock().now = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state.lock().now
    }

    fn moment(&self) -> Moment {
        self.state.lock().moment
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        let mut ticks = self.ticks.subscribe();
        let until = self.moment() + span;
        Box::pin(async move {
            // The sender lives as long as the clock; when it is gone nobody can let time pass any more.
            let _ = ticks.wait_for(|moment| *moment >= until).await;
        })
    }
}

fn later(start: Timestamp, span: Duration) -> Timestamp {
    start.checked_add(span).unwrap_or(Timestamp::MAX)
}

fn scale(span: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_their_time_has_come() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let mut sleep = clock.sleep(Duration::from_secs(10));
        clock.advance(Duration::from_secs(9));
        assert!(futures::poll!(&mut sleep).is_pending());
        clock.jump_to(Timestamp::UNIX_EPOCH);
        clock.advance(Duration::from_secs(1));
        assert!(futures::poll!(&mut sleep).is_ready());
        assert_eq!(clock.now().as_second(), 1);
        assert_eq!(clock.moment(), Moment::at(Duration::from_secs(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_follows_paused_time() {
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 60.0);
        let before = tokio::time::Instant::now();
        clock.sleep(Duration::from_mins(10)).await;
        assert_eq!(before.elapsed().as_secs(), 10);
        assert_eq!(clock.now().as_second() / 10, 60);
    }
}
