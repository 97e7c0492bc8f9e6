//! How fast requests are sent.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Lets so many requests a second begin, and so many at once after a pause.
pub(crate) struct Pace {
    /// None where there is no limit.
    every: Option<Duration>,
    burst: u32,
    next: Mutex<Instant>,
}

impl Pace {
    /// `per_second` of 0 means no limit.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let every = (per_second > 0).then(|| Duration::from_secs(1) / per_second);
        let now = Instant::now();
        // The burst is there from the beginning.
        let spare = every.unwrap_or_default() * burst.saturating_sub(1);
        Self { every, burst, next: Mutex::new(now.checked_sub(spare).unwrap_or(now)) }
    }

    /// Waits until a further request may begin.
    pub(crate) async fn turn(&self) {
        let Some(every) = self.every else { return };
        let at = {
            let now = Instant::now();
            let spare = every * self.burst.saturating_sub(1);
            let mut next = self.next.lock();
            let at = (*next).max(now.checked_sub(spare).unwrap_or(now));
            *next = at + every;
            at
        };
        sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn taken(pace: &Pace, turns: u32) -> u128 {
        let begin = Instant::now();
        for _ in 0..turns {
            pace.turn().await;
        }
        begin.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_requests_come_evenly() {
        // Paused time begins at its origin: there is nothing before it to begin with.
        tokio::time::advance(Duration::from_secs(10)).await;
        let pace = Pace::new(100, 5);
        assert_eq!(taken(&pace, 5).await, 0);
        assert_eq!(taken(&pace, 10).await, 100);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(taken(&pace, 6).await, 10, "a pause brings no more than the burst");
        assert_eq!(taken(&Pace::new(0, 1), 1000).await, 0);
    }
}
