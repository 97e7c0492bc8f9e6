//! What is logged while a test runs.

use std::{collections::VecDeque, fmt, io, sync::Arc};

use koord_runtime::clock::SharedClock;
use parking_lot::Mutex;
use tracing::{Level, subscriber::DefaultGuard};
use tracing_subscriber::fmt::{format::Writer, time::FormatTime};

/// Lines that are kept.
const LINES_MAX: usize = 200;

/// The last lines that were logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<VecDeque<String>>>);

/// The time that the cluster shows.
struct ClusterTime(SharedClock);

// === impl Log ===

impl Log {
    /// Keeps what this thread logs until the guard is dropped.
    pub(crate) fn capture(&self, clock: SharedClock) -> DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::INFO)
            .with_ansi(false)
            .with_timer(ClusterTime(clock))
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock();
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl io::Write for Log {
    /// Every line comes as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(line).trim_end().to_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl ClusterTime ===

impl FormatTime for ClusterTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", self.0.now())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut log = Log::default();
        for number in 0..=LINES_MAX {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        let text = log.text();
        assert_eq!((text.lines().count(), text.lines().next()), (LINES_MAX, Some("line 1")));
    }
}
