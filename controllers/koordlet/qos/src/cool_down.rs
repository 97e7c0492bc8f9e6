//! The time between evictions of one strategy.

use std::time::Duration;

use koord_core::clock::Moment;

/// Lets a strategy evict again when its last accepted eviction is long enough ago, and when its last round has come back.
#[derive(Debug)]
pub(crate) struct CoolDown {
    span: Duration,
    last: Option<Moment>,
    /// When a round was handed out that has not come back.
    out: Option<Moment>,
}

/// A round that does not come back for this long is given up.
const ROUND_MAX: Duration = Duration::from_mins(1);

impl CoolDown {
    pub(crate) fn new(span: Duration, last: Option<Moment>) -> Self {
        Self { span, last, out: None }
    }

    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.last.is_none_or(|last| now.since(last) >= self.span)
            && self.out.is_none_or(|out| now.since(out) >= ROUND_MAX)
    }

    /// A round was handed out.
    pub(crate) fn hand_out(&mut self, now: Moment) {
        self.out = Some(now);
    }

    /// A round came back. The time begins anew only when something was evicted.
    pub(crate) fn finish(&mut self, is_evicted: bool, now: Moment) {
        self.out = None;
        if is_evicted {
            self.last = Some(now);
        }
    }
}
