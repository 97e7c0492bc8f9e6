//! How long each part of a decision took: handlers of several parts report it, for metrics.

use std::time::{Duration, Instant};

/// The parts of a decision in their order, with the time that each took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Vec<(&'static str, Duration)>);

impl Steps {
    /// The parts. The last one is where a refusal comes from.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, Duration)> + '_ {
        self.0.iter().copied()
    }

    /// Whether the handler reported nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Measures the parts of a decision, one after the other.
///
/// ```
/// let mut watch = koord_resource::admission::Stopwatch::default();
/// watch.begin("Quota");
/// watch.begin("Devices");
/// let names: Vec<&str> = watch.stop().iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["Quota", "Devices"]);
/// ```
#[derive(Debug, Default)]
pub struct Stopwatch {
    steps: Vec<(&'static str, Duration)>,
    running: Option<(&'static str, Instant)>,
}

impl Stopwatch {
    /// A part begins, and with it ends the one before.
    pub fn begin(&mut self, part: &'static str) {
        let now = Instant::now();
        self.end(now);
        self.running = Some((part, now));
    }

    /// The last part ends.
    pub fn stop(mut self) -> Steps {
        self.end(Instant::now());
        Steps(self.steps)
    }

    fn end(&mut self, now: Instant) {
        if let Some((part, start)) = self.running.take() {
            if self.steps.is_empty() {
                self.steps.reserve(TYPICAL_PARTS);
            }
            self.steps.push((part, now.saturating_duration_since(start)));
        }
    }
}

/// Enough for every handler, so that the list is allocated once.
const TYPICAL_PARTS: usize = 6;
