//! Spreads periodic work of many nodes evenly over the period, so that a fleet of thousands is a steady trickle and no burst.

use std::{ops::Range, time::Duration};

/// Turns of `count` nodes, each once per `period`.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    count: u32,
    period: Duration,
    /// Turns taken or missed so far, over all nodes and periods.
    taken: u64,
    /// Whose turn is next: always whoever had none for the longest time.
    next: u64,
}

impl Pace {
    /// Nobody has had a turn yet.
    pub fn new(count: u32, period: Duration) -> Self {
        Self { count, period: period.max(Duration::from_millis(1)), taken: 0, next: 0 }
    }

    /// The nodes whose turn has come since the last call, when this much time has passed since the start. After a long pause every node has
    /// one turn, not one for each period that was missed, and the turns go on in the same order: where a round takes longer than the period,
    /// nobody waits for two of them.
    pub fn due(&mut self, since_start: Duration) -> impl Iterator<Item = u32> + use<> {
        let count = u64::from(self.count);
        let due = since_start.as_nanos().saturating_mul(u128::from(count)) / self.period.as_nanos();
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let turns: Range<u64> = self.next..self.next + due.saturating_sub(self.taken).min(count);
        self.taken = self.taken.max(due);
        self.next = turns.end % count.max(1);
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

    /// 5 000 leases on a machine that needs 18 seconds for a round of them.
    #[test]
    fn on_a_machine_that_is_too_slow_nobody_waits_for_two_rounds() {
        const COUNT: u32 = 5000;
        const ROUND_S: f64 = 18.0;
        let mut pace = Pace::new(COUNT, Duration::from_secs(10));
        let mut last_s = vec![0.0; COUNT as usize];
        let (mut now_s, mut age_s_max) = (0.0, 0.0_f64);
        let mut round: Vec<u32> = (0..COUNT).collect();
        while now_s < 600.0 {
            for node in round {
                now_s += ROUND_S / f64::from(COUNT);
                age_s_max = age_s_max.max(now_s - last_s[node as usize]);
                last_s[node as usize] = now_s;
            }
            now_s += pace.tick().as_secs_f64();
            round = pace.due(Duration::from_secs_f64(now_s)).collect();
        }
        assert!(age_s_max < ROUND_S + 1.0, "{age_s_max} s");
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
