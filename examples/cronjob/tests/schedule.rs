//! When runs are due.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use cronjob::schedule::Schedule;
use koord::jiff::Timestamp;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[track_caller]
fn schedule(text: &str) -> Schedule {
    text.parse::<Schedule>().unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn the_next_run_is_strictly_after_a_time() {
    let cases = [
        ("1 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
        ("1 * * * *", "2026-01-01T00:01:00Z", "2026-01-01T01:01:00Z"),
        ("1 * * * *", "2026-01-01T00:00:59.5Z", "2026-01-01T00:01:00Z"),
        ("*/15 9-17 * * MON-FRI", "2026-01-02T17:45:00Z", "2026-01-05T09:00:00Z"),
        ("0 0 ? * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("0 0 L * *", "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"),
        // Either of both days, unless one of them is any day.
        ("0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("0 0 */2 * FRI", "2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@annually", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("@midnight", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@every 1h30m", "2026-01-01T00:00:00.25Z", "2026-01-01T01:30:00Z"),
        ("@every 10ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
    ];
    for (text, time, next) in cases {
        assert_eq!(schedule(text).next_after(at(time)), Some(at(next)), "{text} after {time}");
    }
    assert_eq!(schedule("0 0 30 2 *").next_after(at("2026-01-01T00:00:00Z")), None, "no such day");
}

#[test]
fn what_is_no_schedule_is_refused() {
    let cases = [
        ("invalid-cron-schedule", "expected exactly 5 fields, found 1: invalid-cron-schedule"),
        ("* * * *", "expected exactly 5 fields, found 4: * * * *"),
        ("0 3 * * * Europe/Paris", "expected exactly 5 fields, found 6: 0 3 * * * Europe/Paris"),
        ("@fortnightly", "expected exactly 5 fields, found 1: @fortnightly"),
        ("@every day", "time: invalid duration \"day\""),
    ];
    for (text, wanted) in cases {
        assert_eq!(text.parse::<Schedule>().err().as_deref(), Some(wanted), "{text}");
    }
    let out_of_range = "60 * * * *".parse::<Schedule>().err().unwrap();
    assert!(out_of_range.contains("0..=59; found 60") && !out_of_range.contains('\n'), "{out_of_range}");
}

#[test]
fn of_missed_runs_the_latest_counts_and_a_hundred_are_enough() {
    let minutely = schedule("* * * * *");
    let since = at("2026-01-01T00:00:30Z");
    assert_eq!(minutely.latest(since, at("2026-01-01T00:00:59Z")), Ok(None));
    assert_eq!(minutely.latest(since, at("2026-01-01T00:01:00Z")), Ok(Some(at("2026-01-01T00:01:00Z"))));
    assert_eq!(minutely.latest(since, at("2026-01-01T01:40:59Z")), Ok(Some(at("2026-01-01T01:40:00Z"))), "a hundred");
    let too_many = minutely.latest(since, at("2026-01-01T01:41:00Z")).unwrap_err();
    assert_eq!(
        too_many,
        "more than 100 runs were missed; set or decrease spec.startingDeadlineSeconds, or check the clocks"
    );
    assert_eq!(minutely.latest(at("2026-01-02T00:00:00Z"), since), Ok(None), "a clock that was set back");
}
