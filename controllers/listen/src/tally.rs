//! What any client can cause, and as often as it likes, is logged once per period with a count.

use std::time::Duration;

use tokio::time::Instant;

/// How often the log says it.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Counts, and says when a line of the log is due: the first time at once, then with the sum of a period.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How often it has happened since the last line.
    count: u64,
    logged: Option<Instant>,
}

impl Tally {
    /// It has happened. Gives what the line says that is due now.
    pub(crate) fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_EVERY) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_one_line_per_minute_with_a_count() {
        let (mut tally, begin) = (Tally::default(), Instant::now());
        let lines = (0..600).filter_map(|second| Some((second, tally.add(begin + Duration::from_secs(second))?)));
        let lines: Vec<(u64, u64)> = lines.collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[..3], [(0, 1), (60, 60), (120, 60)]);
    }
}
