//! Clocks that run: the operating system's, and one on tokio's time. Nothing else asks what time it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
pub use koord_core::clock::{Clock, ManualClock, Moment, SharedClock, Sleep};

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
        Moment::at(self.origin.elapsed())
    }

    fn sleep(&self, span: Duration) -> Sleep {
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

    fn elapsed(&self) -> Duration {
        scale(self.origin.elapsed(), self.speed)
    }
}

impl Clock for ScaledClock {
    fn now(&self) -> Timestamp {
        self.start.checked_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn moment(&self) -> Moment {
        Moment::at(self.elapsed())
    }

    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(scale(span, self.speed.recip())))
    }
}

/// A clock that counts the timers that are set by it: for measuring what waiting costs.
pub struct CountingClock {
    clock: SharedClock,
    timers: AtomicU64,
}

impl CountingClock {
    /// Counts the timers of this clock from now on.
    pub fn new(clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { clock, timers: AtomicU64::new(0) })
    }

    /// Timers that were set.
    pub fn timers(&self) -> u64 {
        self.timers.load(Ordering::Relaxed)
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn moment(&self) -> Moment {
        self.clock.moment()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.timers.fetch_add(1, Ordering::Relaxed);
        self.clock.sleep(span)
    }
}

fn scale(span: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_follows_paused_time() {
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 60.0);
        let before = tokio::time::Instant::now();
        clock.sleep(Duration::from_mins(10)).await;
        assert_eq!(before.elapsed().as_secs(), 10);
        assert_eq!(clock.now().as_second() / 10, 60);
    }
}
