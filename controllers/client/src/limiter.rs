//! How fast requests are sent: a token bucket for which only the first in line waits, and in which urgent requests overtake others.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_core::{clock::SharedClock, queue::Bucket};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a request may wait behind others. Requests of one priority are sent in the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Others wait for it: the binding of a pod, and what is written before it.
    Urgent,
    /// Lists, and writes of controllers.
    #[default]
    Normal,
    /// What is reported to people: conditions of pods that wait, and events.
    Background,
}

/// So many requests may overtake one of a lower priority that waits; then it is its turn. No priority waits for ever.
const OVERTAKERS_MAX: u32 = 8;

/// Lets requests through one after the other, no faster than allowed. Nothing is reserved ahead: whoever waits behind
/// the first in line costs no timer, and a request that is given up takes no token.
#[derive(Clone)]
pub(crate) struct Limiter {
    line: Arc<Mutex<Line>>,
    clock: SharedClock,
}

struct Line {
    bucket: Bucket,
    /// Who waits, by priority and in the order in which they came.
    waiting: BTreeMap<(Priority, u64), Arc<Notify>>,
    tickets: u64,
    /// Requests in a row that have overtaken one of a lower priority.
    overtakers: u32,
}

/// The place of a request in the line, until it is let through or given up.
struct Ticket<'l> {
    line: &'l Mutex<Line>,
    place: (Priority, u64),
    is_first: Arc<Notify>,
}

// === impl Limiter ===

impl Limiter {
    /// A limit of zero or less per second is none.
    pub(crate) fn new((per_second, burst): (f32, u32), clock: SharedClock) -> Self {
        let bucket = Bucket::new(f64::from(per_second), f64::from(burst.max(1)));
        let line = Line { bucket, waiting: BTreeMap::new(), tickets: 0, overtakers: 0 };
        Self { line: Arc::new(Mutex::new(line)), clock }
    }

    /// Waits until a request may be sent. Gives how long that took.
    pub(crate) async fn acquire(&self, priority: Priority) -> Duration {
        let start = self.clock.moment();
        let ticket = {
            let mut line = self.line.lock();
            if line.waiting.is_empty() && line.bucket.take(start) {
                return Duration::ZERO;
            }
            let (place, is_first) = line.enter(priority);
            Ticket { line: &self.line, place, is_first }
        };
        loop {
            let now = self.clock.moment();
            let pause = {
                let mut line = self.line.lock();
                let is_first = line.first() == Some(ticket.place);
                if is_first && line.bucket.take(now) {
                    line.let_through(ticket.place);
                    return now.since(start);
                }
                is_first.then(|| line.bucket.wait(now))
            };
            match pause {
                Some(pause) => self.clock.sleep(pause).await,
                None => ticket.is_first.notified().await,
            }
        }
    }
}

// === impl Line ===

impl Line {
    fn enter(&mut self, priority: Priority) -> ((Priority, u64), Arc<Notify>) {
        let (place, is_first) = ((priority, self.tickets), Arc::new(Notify::new()));
        self.tickets += 1;
        self.waiting.insert(place, Arc::clone(&is_first));
        (place, is_first)
    }

    /// Whose turn it is: the most urgent one, or after some of those the one of the lower priorities that waits for longest.
    fn first(&self) -> Option<(Priority, u64)> {
        let (first, _) = self.waiting.first_key_value()?;
        let lower = (self.overtakers >= OVERTAKERS_MAX).then(|| self.longest_below(first.0)).flatten();
        Some(lower.unwrap_or(*first))
    }

    fn longest_below(&self, priority: Priority) -> Option<(Priority, u64)> {
        let of = |lower: Priority| self.waiting.range((lower, 0)..=(lower, u64::MAX)).next().map(|(place, _)| *place);
        let lower = [Priority::Normal, Priority::Background].into_iter().filter(|lower| *lower > priority);
        lower.filter_map(of).min_by_key(|(_, ticket)| *ticket)
    }

    fn let_through(&mut self, place: (Priority, u64)) {
        let overtakes = self.longest_below(place.0).is_some_and(|(_, ticket)| ticket < place.1);
        self.overtakers = if overtakes { self.overtakers + 1 } else { 0 };
        self.waiting.remove(&place);
    }

    fn wake_first(&self) {
        if let Some(is_first) = self.first().and_then(|place| self.waiting.get(&place)) {
            is_first.notify_one();
        }
    }
}

// === impl Ticket ===

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.waiting.remove(&self.place);
        line.wake_first();
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
        let mut waiting: FuturesUnordered<_> = (0..105).map(|_| limiter.acquire(Priority::Normal)).collect();
        while waiting.next().await.is_some() {}
        let elapsed = clock.moment().since(Moment::default());
        assert!((Duration::from_secs(10)..Duration::from_millis(10_200)).contains(&elapsed), "{elapsed:?}");
        assert_eq!(clock.timers(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_takes_no_token() {
        let limiter = Limiter::new((1.0, 1), ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0));
        limiter.acquire(Priority::Normal).await;
        for _ in 0..50 {
            assert!(limiter.acquire(Priority::Normal).now_or_never().is_none());
        }
        assert!(limiter.acquire(Priority::Normal).await <= Duration::from_millis(1001));
    }

    /// How long requests of these priorities wait, that come at once when no token is left, of which ten come a second.
    async fn waits(priorities: &[Priority]) -> Vec<(Priority, u128)> {
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let limiter = Limiter::new((10.0, 1), Arc::clone(&clock));
        limiter.acquire(Priority::Urgent).await;
        let wait = |priority: Priority| {
            let limiter = limiter.clone();
            async move { (priority, limiter.acquire(priority).await.as_millis() / 100) }
        };
        priorities.iter().map(|priority| wait(*priority)).collect::<FuturesUnordered<_>>().collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_requests_overtake_others_that_came_first() {
        use Priority::{Background, Normal, Urgent};
        let mut line = vec![Background; 300];
        line.extend([Normal, Urgent]);
        let waits = waits(&line).await;
        assert_eq!(waits[..3], [(Urgent, 1), (Normal, 2), (Background, 3)]);
        assert_eq!(waits.last(), Some(&(Background, 302)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_priority_waits_for_ever() {
        use Priority::{Background, Normal, Urgent};
        let mut line = vec![Background, Background, Normal];
        line.extend([Urgent; 40]);
        let waits = waits(&line).await;
        let of =
            |wanted: Priority| waits.iter().filter(move |(priority, _)| *priority == wanted).map(|(_, wait)| *wait);
        assert_eq!(of(Background).collect::<Vec<_>>(), [9, 18]);
        assert_eq!(of(Normal).collect::<Vec<_>>(), [27]);
    }
}
