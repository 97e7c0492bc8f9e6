//! How fast requests are sent: a token bucket for which only the first in line waits.

use std::{sync::Arc, time::Duration};

use koord_core::{clock::SharedClock, queue::Bucket};
use tokio::sync::Mutex;

/// Lets requests through one after the other, no faster than allowed. Nothing is reserved ahead: whoever waits behind
/// the first in line costs no timer, and a request that is given up takes no token.
#[derive(Clone)]
pub(crate) struct Limiter {
    line: Arc<Mutex<Bucket>>,
    clock: SharedClock,
}

impl Limiter {
    /// A limit of zero or less per second is none.
    pub(crate) fn new((per_second, burst): (f32, u32), clock: SharedClock) -> Self {
        Self { line: Arc::new(Mutex::new(Bucket::new(f64::from(per_second), f64::from(burst.max(1))))), clock }
    }

    /// Waits until a request may be sent. Gives how long that took.
    pub(crate) async fn acquire(&self) -> Duration {
        let start = self.clock.moment();
        let mut bucket = self.line.lock().await;
        loop {
            let now = self.clock.moment();
            if bucket.take(now) {
                return now.since(start);
            }
            self.clock.sleep(bucket.wait(now)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
    use jiff::Timestamp;
    use koord_core::clock::{Clock, Moment};

    use super::*;
    use crate::clock::{CountingClock, ScaledClock};

    #[tokio::test(start_paused = true)]
    async fn requests_come_at_the_rate_and_each_sets_one_timer_at_most() {
        let clock = CountingClock::new(ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0));
        let limiter = Limiter::new((10.0, 5), clock.clone());
        let mut waiting: FuturesUnordered<_> = (0..105).map(|_| limiter.acquire()).collect();
        while waiting.next().await.is_some() {}
        let elapsed = clock.moment().since(Moment::default());
        assert!((Duration::from_secs(10)..Duration::from_millis(10_200)).contains(&elapsed), "{elapsed:?}");
        assert_eq!(clock.timers(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_takes_no_token() {
        let limiter = Limiter::new((1.0, 1), ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0));
        limiter.acquire().await;
        for _ in 0..50 {
            assert!(limiter.acquire().now_or_never().is_none());
        }
        assert!(limiter.acquire().await <= Duration::from_millis(1001));
    }
}
