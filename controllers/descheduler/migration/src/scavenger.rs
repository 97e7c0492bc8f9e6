//! When a job is over: its time limit, and when it is deleted (`spec/descheduler.md` 5.6 and 5.10).

use jiff::{SignedDuration, Timestamp};
use koord_resource::Duration;

/// How long a job with a time limit stays after it.
const AFTER_TTL: SignedDuration = SignedDuration::from_mins(5);
/// How long a job without one stays.
const WITHOUT_TTL: SignedDuration = SignedDuration::from_mins(30);

/// The time limit of a job; `None` without one, for `0s`, and for a text that is no duration.
pub fn ttl(text: Option<&str>) -> Option<Duration> {
    text.and_then(|text| text.parse::<Duration>().ok()).filter(|ttl| ttl.as_nanos() > 0)
}

/// When a job is given up; `None` for never.
pub fn deadline(created: Timestamp, ttl: Option<Duration>) -> Option<Timestamp> {
    ttl.map(|ttl| after(created, SignedDuration::from_nanos(ttl.as_nanos())))
}

/// When a job is deleted, whatever its phase.
pub fn end(created: Timestamp, ttl: Option<Duration>) -> Timestamp {
    match deadline(created, ttl) {
        Some(deadline) => after(deadline, AFTER_TTL),
        None => after(created, WITHOUT_TTL),
    }
}

fn after(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_stays_five_minutes_after_its_limit_and_thirty_without_one() {
        let table: [(Option<&str>, Option<i64>, i64); 6] = [
            (Some("15m"), Some(900), 1200),
            (Some("1s"), Some(1), 301),
            (Some("0s"), None, 1800),
            (Some("-1s"), None, 1800),
            (Some("soon"), None, 1800),
            (None, None, 1800),
        ];
        for (text, limit, end_at) in table {
            let seconds = |at: Timestamp| at.as_second();
            assert_eq!(deadline(Timestamp::UNIX_EPOCH, ttl(text)).map(seconds), limit, "{text:?}");
            assert_eq!(seconds(end(Timestamp::UNIX_EPOCH, ttl(text))), end_at, "{text:?}");
        }
        assert_eq!(end(Timestamp::MAX, None), Timestamp::MAX);
    }
}
