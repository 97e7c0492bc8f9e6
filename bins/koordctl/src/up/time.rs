//! The cluster's time: how fast it runs, and where it goes on after a restart.
//!
//! Time in a cluster never runs backwards, or reports and leases of the run before would lie in the future. With a data directory a file therefore
//! holds a mark that the clock has not reached yet; the next run starts there. While nothing runs, the cluster's time stands still.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use koord_runtime::clock::{ScaledClock, SharedClock, SystemClock};

/// The file with the mark, in the data directory.
const FILE: &str = "clock";

/// How far ahead of the clock, in real time, the mark is set.
const AHEAD: Duration = Duration::from_secs(10);

/// How often, in real time, the mark is moved: before the clock reaches it, even when this process is slow.
const MOVE_EVERY: Duration = Duration::from_secs(2);

/// A clock, and where it is remembered.
pub struct ClusterTime {
    pub clock: SharedClock,
    speed: f64,
    file: Option<PathBuf>,
}

impl ClusterTime {
    /// A fast clock starts so far in the past that it meets the present after a day; any clock starts no earlier than the last one of this data
    /// directory could have shown.
    pub fn begin(speed: f64, data_dir: Option<&Path>) -> Result<Self> {
        let file = data_dir.map(|folder| folder.join(FILE));
        let mark = file.as_deref().map(read).transpose()?.flatten();
        let system = SystemClock::shared();
        let now = system.now();
        let start = start_of_time(now, speed).max(mark.unwrap_or(Timestamp::MIN));
        let real = (speed - 1.0).abs() < f64::EPSILON && start <= now;
        let clock = if real { system } else { ScaledClock::shared(start, speed) };
        Ok(Self { clock, speed, file })
    }

    /// Whether the clock shows a time that real clocks have yet to show.
    pub fn is_ahead(&self) -> bool {
        self.clock.now() > SystemClock::shared().now() + SignedDuration::from_secs(1)
    }

    /// Sets the mark, for as long as it is polled. A disk that takes no mark takes no objects either; the server says so.
    pub async fn remember(self: Arc<Self>) {
        loop {
            self.mark(AHEAD);
            tokio::time::sleep(MOVE_EVERY).await;
        }
    }

    /// Sets the mark to the present: nobody reads the clock any more.
    pub fn stop(&self) {
        self.mark(Duration::ZERO);
    }

    fn mark(&self, ahead: Duration) {
        let Some(file) = &self.file else { return };
        // Real time passes between two runs as well; what counts is how much faster the cluster's is.
        let ahead = ahead.mul_f64((self.speed - 1.0).max(0.0));
        let mark = self.clock.now().checked_add(ahead).unwrap_or(Timestamp::MAX);
        // In one piece, so that a power failure leaves the old mark or the new.
        let next = file.with_extension("next");
        let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next);
        let written = written.and_then(|mut next| writeln!(next, "{mark}"));
        let _ = written.and_then(|()| fs::rename(&next, file));
    }
}

fn read(file: &Path) -> Result<Option<Timestamp>> {
    // A folder without a mark is new; what else is wrong with it, the server finds and says.
    let Ok(text) = fs::read_to_string(file) else { return Ok(None) };
    let time = text.trim().parse();
    time.map(Some).with_context(|| {
        format!("{} holds no time; write the latest time of the cluster into it, or remove it", file.display())
    })
}

fn start_of_time(now: Timestamp, speed: f64) -> Timestamp {
    const DAY_S: f64 = 86_400.0;
    let ahead_s = DAY_S * (speed - 1.0).max(0.0);
    now.checked_sub(SignedDuration::from_secs(ahead_s as i64)).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_meets_the_present_after_a_day() {
        let now: Timestamp = "2026-03-04T00:00:00Z".parse().unwrap();
        for speed in [1.0, 2.0, 60.0] {
            let start = start_of_time(now, speed);
            let shown_after_a_day = start + SignedDuration::from_secs((86_400.0 * speed) as i64);
            assert_eq!(shown_after_a_day, now + SignedDuration::from_hours(24), "{speed}");
        }
        assert_eq!(start_of_time(now, 0.5), now);
        assert!(start_of_time(now, 10_000.0) < now);
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_where_it_stopped_and_past_what_a_killed_run_has_shown() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |speed| ClusterTime::begin(speed, Some(folder.path())).unwrap();
        let first = Arc::new(begin(60.0));
        let started = first.clock.now();
        let remembering = tokio::spawn(Arc::clone(&first).remember());
        tokio::time::sleep(Duration::from_secs(31)).await;
        // killed: nothing more is written
        remembering.abort();
        let shown = first.clock.now();
        assert_eq!(shown.duration_since(started).as_secs(), 31 * 60);
        let second = begin(60.0);
        let skipped = second.clock.now().duration_since(shown);
        assert!((0..10 * 60).contains(&skipped.as_secs()), "{skipped}");
        second.stop();
        assert_eq!(begin(60.0).clock.now(), second.clock.now());
        // the present is later than both
        assert!(begin(1.0).clock.now() > second.clock.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_in_the_present_does_not_go_back_to_the_past() {
        let folder = tempfile::tempdir().unwrap();
        let present = ClusterTime::begin(1.0, Some(folder.path())).unwrap();
        present.stop();
        let fast = ClusterTime::begin(60.0, Some(folder.path())).unwrap();
        assert!(fast.clock.now().duration_since(present.clock.now()).abs() < SignedDuration::from_mins(1));
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert!(fast.is_ahead() && !present.is_ahead());
    }

    #[test]
    fn a_file_without_a_time_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "yesterday").unwrap();
        let error = format!("{:#}", ClusterTime::begin(1.0, Some(folder.path())).map(drop).unwrap_err());
        assert!(error.contains("/clock holds no time"), "{error}");
    }
}
