//! How many bytes of request bodies are held, and whose body is given up when others wait for room.
//!
//! A state machine without sockets or a clock.

use std::{cmp::Reverse, collections::BTreeMap, task::Waker};

use tokio::time::Instant;

use crate::{
    BodyLimits,
    memory::{HighWater, Passed},
    table::Peer,
};

/// As many bytes are a flood.
const BYTES: usize = 16 * 1024 * 1024;

pub(crate) type ShareId = u64;

/// The answer to a request for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The bytes are counted.
    Granted,
    /// There is no room yet.
    Wait,
    /// This body is given up, so that others find room.
    GivenUp,
}

#[derive(Debug)]
struct Share {
    peer: Peer,
    since: Instant,
    bytes: usize,
    waits: bool,
    has_arrived: bool,
    is_given_up: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
pub(crate) struct Budget {
    limits: BodyLimits,
    free: usize,
    shares: BTreeMap<ShareId, Share>,
    next: ShareId,
    most: HighWater,
    passed: Passed,
}

impl Budget {
    pub(crate) fn new(limits: BodyLimits) -> Self {
        let (most, passed) = (HighWater::new(BYTES), Passed::default());
        Self { free: limits.bytes_max, limits, shares: BTreeMap::new(), next: 0, most, passed }
    }

    /// A body begins.
    pub(crate) fn open(&mut self, peer: Peer, now: Instant) -> ShareId {
        self.next += 1;
        let share =
            Share { peer, since: now, bytes: 0, waits: false, has_arrived: false, is_given_up: false, waker: None };
        self.shares.insert(self.next, share);
        self.next
    }

    /// Counts more bytes of a body, if there is room. With none to count, remembers only whom to wake.
    pub(crate) fn charge(&mut self, id: ShareId, bytes: usize, now: Instant, waker: &Waker) -> Charge {
        let Some(share) = self.shares.get_mut(&id) else { return Charge::GivenUp };
        if share.is_given_up {
            return Charge::GivenUp;
        }
        if bytes > 0 {
            self.limit_slow(id, bytes, now);
        }
        let Some(share) = self.shares.get_mut(&id) else { return Charge::GivenUp };
        if bytes > 0 && bytes <= self.free {
            self.free -= bytes;
            self.most.rises(self.limits.bytes_max - self.free);
            (share.bytes, share.waits) = (share.bytes + bytes, false);
            return Charge::Granted;
        }
        share.waits = bytes > 0;
        if !share.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            share.waker = Some(waker.clone());
        }
        Charge::Wait
    }

    /// Gives slow bodies up until half of the bytes will be free, or only quick ones are left.
    fn limit_slow(&mut self, id: ShareId, bytes: usize, now: Instant) {
        let used = self.limits.bytes_max - self.free;
        let mut lacking = (used + bytes).saturating_sub(self.limits.bytes_max / 2);
        if lacking > 0 {
            let given_up = self.shares.values().filter(|share| share.is_given_up).map(|share| share.bytes);
            lacking = lacking.saturating_sub(given_up.sum());
        }
        while lacking > 0 {
            let mut of_peer = BTreeMap::<Peer, usize>::new();
            for share in self.shares.values().filter(|share| !share.is_given_up) {
                *of_peer.entry(share.peer).or_default() += share.bytes;
            }
            let slow = self.shares.iter_mut().filter(|(other, share)| {
                **other != id
                    && share.bytes > 0
                    && !share.has_arrived
                    && !share.is_given_up
                    && now.saturating_duration_since(share.since) >= self.limits.patience
            });
            let worst = slow.min_by_key(|(id, share)| (Reverse(of_peer.get(&share.peer)), share.since, **id));
            let Some((_, worst)) = worst else { return };
            worst.is_given_up = true;
            lacking = lacking.saturating_sub(worst.bytes);
            if let Some(waker) = worst.waker.take() {
                waker.wake();
            }
        }
    }

    /// A body is here whole: it can no longer be given up.
    pub(crate) fn arrived(&mut self, id: ShareId) {
        if let Some(share) = self.shares.get_mut(&id) {
            (share.has_arrived, share.waits, share.waker) = (true, false, None);
        }
    }

    /// The request is over: its bytes are free. Whether memory is to be given back: that ends a time of much more bytes, or enough of
    /// them have come and gone.
    pub(crate) fn release(&mut self, id: ShareId) -> bool {
        let Some(share) = self.shares.remove(&id) else { return false };
        self.free += share.bytes;
        if share.bytes > 0 {
            for waiting in self.shares.values_mut().filter(|share| share.waits) {
                if let Some(waker) = waiting.waker.take() {
                    waker.wake();
                }
            }
        }
        let is_enough = self.passed.ends(share.bytes);
        self.most.falls(self.limits.bytes_max - self.free) || is_enough
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn budget(bytes_max: usize) -> (Budget, Instant) {
        (Budget::new(BodyLimits { bytes_max, ..BodyLimits::default() }), Instant::now())
    }

    fn peer(last: u8) -> Peer {
        Peer::of([10, 0, 0, last].into())
    }

    #[test]
    fn bytes_are_counted_until_the_request_ends() {
        let (mut budget, now) = budget(100);
        let (one, two) = (budget.open(peer(1), now), budget.open(peer(2), now));
        assert_eq!(budget.charge(one, 60, now, Waker::noop()), Charge::Granted);
        budget.arrived(one);
        assert_eq!(budget.charge(two, 60, now, Waker::noop()), Charge::Wait);
        assert_eq!(budget.charge(two, 40, now, Waker::noop()), Charge::Granted, "less fits");
        budget.release(one);
        assert_eq!(budget.charge(two, 60, now, Waker::noop()), Charge::Granted);
        budget.release(two);
        assert_eq!(budget.free, 100);
    }

    #[test]
    fn slow_bodies_of_the_greediest_peer_are_given_up_beyond_half_of_the_bytes() {
        let (mut budget, now) = budget(100);
        let slow = now + budget.limits.patience;
        let early = slow - Duration::from_millis(1);
        let [whole, first, second, modest] = [1, 1, 1, 2].map(|last| budget.open(peer(last), now));
        for (share, bytes) in [(whole, 30), (first, 15), (second, 10), (modest, 10)] {
            assert_eq!(budget.charge(share, bytes, early, Waker::noop()), Charge::Granted);
        }
        budget.arrived(whole);
        assert_eq!(budget.charge(first, 0, early, Waker::noop()), Charge::Wait, "nobody is slow yet");
        let late = budget.open(peer(2), early);
        assert_eq!(budget.charge(late, 10, slow, Waker::noop()), Charge::Granted);
        let mut state = |share| budget.charge(share, 0, slow, Waker::noop());
        assert_eq!([first, second, modest].map(&mut state), [Charge::GivenUp, Charge::GivenUp, Charge::Wait]);
        // What those free is enough: no other is given up meanwhile.
        assert_eq!(budget.charge(late, 0, slow, Waker::noop()), Charge::Wait);
        budget.release(first);
        budget.release(second);
        assert_eq!(budget.charge(late, 40, slow, Waker::noop()), Charge::Granted);
    }
}
