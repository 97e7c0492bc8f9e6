//! Whether the API server serves requests at all, as all requests of a program see it together.
//!
//! Whoever has failed waits longer and longer: after an outage of a quarter of a minute a watch may be half a minute away from its next
//! try. The first request that succeeds shows to all others that the outage is over. So that there is one soon, one of those that wait
//! asks every second; the others add no load to a server that cannot bear it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use koord_core::clock::SharedClock;
use tokio::sync::Notify;

/// So many failures in a row, with no success of any request between them, are an outage.
const FAILURES: u32 = 3;
/// How often one of those that wait asks during an outage.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// What the requests of a program tell each other. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Outage(Arc<State>);

#[derive(Debug, Default)]
struct State {
    failures: AtomicU32,
    is_probed: AtomicBool,
    over: Notify,
}

/// The one that asks every second, until this is dropped.
struct Probe<'o>(&'o AtomicBool);

impl Outage {
    /// Whether an answer with this status is none about the request itself: the server, its store or its limits are in the way.
    pub(crate) fn is_sign(code: u16) -> bool {
        code == 429 || code >= 500
    }

    /// A request got no answer, or one that is a sign of an outage.
    pub(crate) fn failed(&self) {
        let known = self.0.failures.load(Ordering::Relaxed);
        self.0.failures.store(known.saturating_add(1), Ordering::Relaxed);
    }

    /// A request was served.
    pub(crate) fn served(&self) {
        if self.0.failures.load(Ordering::Relaxed) > 0 && self.0.failures.swap(0, Ordering::Relaxed) >= FAILURES {
            tracing::debug!("the API server serves requests again; what has failed is tried at once");
            self.0.over.notify_waiters();
        }
    }

    fn is_on(&self) -> bool {
        self.0.failures.load(Ordering::Relaxed) >= FAILURES
    }

    /// Waits until an outage ends.
    pub async fn over(&self) {
        self.0.over.notified().await;
    }

    /// Waits for this time after a failure, or less: until an outage is over, and during one not for long where this is the one
    /// that asks. Says whether it was less.
    pub async fn wait(&self, clock: &SharedClock, span: Duration) -> bool {
        let over = self.0.over.notified();
        let probe = self.is_on().then(|| Probe::begin(&self.0.is_probed)).flatten();
        let longest = if probe.is_some() { span.min(PROBE_EVERY) } else { span };
        tokio::select! {
            biased;
            () = over => true,
            () = clock.sleep(longest) => longest < span,
        }
    }
}

impl<'o> Probe<'o> {
    fn begin(is_probed: &'o AtomicBool) -> Option<Self> {
        (!is_probed.swap(true, Ordering::Relaxed)).then(|| Self(is_probed))
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use jiff::Timestamp;

    use super::*;
    use crate::clock::ScaledClock;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn during_an_outage_one_asks_every_second_and_all_are_woken_by_its_success() {
        let (outage, clock) = (Outage::default(), ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0));
        let waits = |count: usize| join_all((0..count).map(|_| outage.wait(&clock, LONG)));
        outage.failed();
        outage.failed();
        assert_eq!(waits(3).await, [false; 3], "two failures are none");
        outage.failed();
        let begin = clock.moment();
        let asked = async {
            let first = outage.wait(&clock, LONG).await;
            let took = clock.moment().since(begin);
            outage.failed();
            (first, took)
        };
        let ((first, took), others) = tokio::join!(asked, waits(2));
        assert!(first && took == PROBE_EVERY, "{took:?}");
        assert_eq!(others, [false; 2], "the others wait as long as they would");
        let begin = clock.moment();
        let served = async {
            clock.sleep(Duration::from_millis(500)).await;
            outage.served();
        };
        let (woken, ()) = tokio::join!(waits(3), served);
        assert_eq!((woken, clock.moment().since(begin)), (vec![true; 3], Duration::from_millis(500)));
        outage.failed();
        outage.served();
        assert!(!outage.is_on());
    }
}
