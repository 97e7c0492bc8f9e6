//! Spreads periodic work of many nodes evenly over the period, so that a fleet of thousands is a steady trickle and no burst.

use std::{ops::Range, time::Duration};

/// Turns of `count` nodes, each once per `period`.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    count: u32,
    period: Duration,
    /// Turns taken so far, over all nodes and periods.
    taken: u64,
}

impl Pace {
    /// Nobody has had a turn yet.
    pub fn new(count: u32, period: Duration) -> Self {
        Self { count, period: period.max(Duration::from_millis(1)), taken: 0 }
    }

    /// The nodes whose turn has come since the last call, when this much time has passed since the start. After a long pause every node has
    /// one turn, not one for each period that was missed.
    pub fn due(&mut self, since_start: Duration) -> impl Iterator<Item = u32> + use<> {
        let count = u64::from(self.count);
        let due = since_start.as_nanos().saturating_mul(u128::from(count)) / self.period.as_nanos();
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let turns: Range<u64> = self.taken.max(due.saturating_sub(count))..due;
        self.taken = self.taken.max(due);
        turns.filter_map(move |turn| u32::try_from(turn % count.max(1)).ok())
    }

    /// How long to wait between two calls of [`Pace::due`]: a turn, but neither so short that waking up costs more than the work nor so long
    /// that turns come in lumps.
    pub fn tick(&self) -> Duration {
        (self.period / self.count.max(1)).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_one_turn_per_period_evenly_spread() {
        let mut pace = Pace::new(4, Duration::from_secs(10));
        let mut turns = Vec::new();
        for second in 1..=20 {
            turns.extend(pace.due(Duration::from_secs(second)).map(|node| (second, node)));
        }
        assert_eq!(turns, [(3, 0), (5, 1), (8, 2), (10, 3), (13, 0), (15, 1), (18, 2), (20, 3)]);
    }

    #[test]
    fn a_long_pause_is_made_up_for_once() {
        let mut pace = Pace::new(3, Duration::from_secs(10));
        let after_a_day: Vec<u32> = pace.due(Duration::from_hours(24)).collect();
        assert_eq!(after_a_day.len(), 3);
        assert_eq!(pace.due(Duration::from_hours(24)).count(), 0);
    }

    #[test]
    fn no_nodes_have_no_turns() {
        assert_eq!(Pace::new(0, Duration::from_secs(10)).due(Duration::from_hours(1)).count(), 0);
    }

    #[test]
    fn a_tick_is_neither_a_flood_nor_a_lump() {
        assert_eq!(Pace::new(5000, Duration::from_secs(10)).tick(), Duration::from_millis(20));
        assert_eq!(Pace::new(1, Duration::from_secs(10)).tick(), Duration::from_secs(1));
    }
}
