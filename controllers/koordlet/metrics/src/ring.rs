//! Samples of one series in a ring: it holds what is younger than its span, and allocates nothing once it has grown to that.

use std::time::Duration;

use koord_core::clock::Moment;

/// A value and the time at which it was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub at: Moment,
    pub value: f64,
}

/// The samples of one series, oldest first.
#[derive(Clone, Debug)]
pub struct Ring {
    samples: Vec<Sample>,
    /// Where the oldest sample is, once the ring is full.
    oldest: usize,
    /// How long a sample is kept at least, while samples are not taken more often than [`SAMPLES_MAX`] allow.
    span: Duration,
}

/// Most samples of one series: an hour of two each second.
pub const SAMPLES_MAX: usize = 7200;
const SAMPLES_MIN: usize = 8;

impl Ring {
    /// An empty ring that keeps samples for this long.
    pub fn new(span: Duration) -> Self {
        Self { samples: Vec::new(), oldest: 0, span }
    }

    /// Adds a sample, which is younger than all others; one that is not is ignored.
    pub fn push(&mut self, sample: Sample) {
        if self.last().is_some_and(|last| last.at >= sample.at) || !sample.value.is_finite() {
            return;
        }
        let is_oldest_done = self.first().is_some_and(|first| sample.at.since(first.at) > self.span)
            || self.samples.len() >= SAMPLES_MAX;
        if is_oldest_done && self.samples.len() >= SAMPLES_MIN {
            if let Some(slot) = self.samples.get_mut(self.oldest) {
                *slot = sample;
            }
            self.oldest = (self.oldest + 1) % self.samples.len();
        } else {
            // The ring grows: what is oldest comes first again.
            self.samples.rotate_left(self.oldest);
            self.oldest = 0;
            self.samples.push(sample);
        }
    }

    /// Keeps samples for longer, or shorter, from now on.
    pub fn keep_for(&mut self, span: Duration) {
        if span < self.span {
            let newest = self.last();
            self.samples.rotate_left(self.oldest);
            self.oldest = 0;
            self.samples.retain(|sample| newest.is_some_and(|newest| newest.at.since(sample.at) <= span));
            self.samples.shrink_to_fit();
        }
        self.span = span;
    }

    /// All samples, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Sample> + '_ {
        let (older, newer) = self.halves();
        older.iter().chain(newer).copied()
    }

    /// The samples from one time to another, both inclusive, oldest first.
    pub fn window(&self, from: Moment, to: Moment) -> Window<'_> {
        let (older, newer) = self.halves();
        Window { older: within(older, from, to), newer: within(newer, from, to) }
    }

    /// The youngest sample.
    pub fn last(&self) -> Option<Sample> {
        self.iter().next_back()
    }

    fn first(&self) -> Option<Sample> {
        self.iter().next()
    }

    /// The samples behind the oldest up to the end of the memory, and those that follow them at its start. Each is in the order of time.
    fn halves(&self) -> (&[Sample], &[Sample]) {
        let (newer, older) = self.samples.split_at(self.oldest.min(self.samples.len()));
        (older, newer)
    }
}

/// The samples from one time to another, of samples in the order of time: two binary searches.
fn within(samples: &[Sample], from: Moment, to: Moment) -> &[Sample] {
    let first = samples.partition_point(|sample| sample.at < from);
    let end = samples.partition_point(|sample| sample.at <= to);
    samples.get(first..end).unwrap_or_default()
}

/// The samples of a series in a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    older: &'a [Sample],
    newer: &'a [Sample],
}

impl Window<'_> {
    /// The samples, oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = Sample> + '_ {
        self.older.iter().chain(self.newer).copied()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.older.len() + self.newer.len()
    }

    /// The arithmetic mean; `None` without samples.
    pub fn average(&self) -> Option<f64> {
        let (sum, count) = self.samples().fold((0.0, 0_u32), |(sum, count), sample| (sum + sample.value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The value of the youngest sample.
    pub fn last(&self) -> Option<f64> {
        self.samples().next_back().map(|sample| sample.value)
    }

    /// How far the youngest sample is from the oldest; zero without two samples.
    pub fn span(&self) -> Duration {
        let mut samples = self.samples();
        match (samples.next(), samples.next_back()) {
            (Some(first), Some(last)) => last.at.since(first.at),
            _ => Duration::ZERO,
        }
    }

    /// The values in ascending order, from which [`percentile`] takes several.
    pub fn sorted(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples().map(|sample| sample.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }
}

/// The percentile of ascending values, as Koordinator computes it: the value at ⌊n·p⌋ − 1 with 32-bit floats, and the first one where that is negative. With
/// one value each percentile is that value; of 10 values the 90th is the ninth.
pub fn percentile(sorted: &[f64], share: f32) -> Option<f64> {
    let index = (sorted.len() as f32 * share).floor() as usize;
    sorted.get(index.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn ring(span_s: u64, samples: impl IntoIterator<Item = u64>) -> Ring {
        let mut ring = Ring::new(Duration::from_secs(span_s));
        for second in samples {
            ring.push(Sample { at: at(second), value: second as f64 });
        }
        ring
    }

    #[test]
    fn a_ring_keeps_its_span_and_stops_growing() {
        let ring = ring(20, 0..1000);
        let kept: Vec<u64> = ring.iter().map(|sample| sample.value as u64).collect();
        assert_eq!(kept, (979..1000).collect::<Vec<_>>());
        assert!(ring.samples.capacity() <= 32);
    }

    #[test]
    fn windows_are_inclusive_and_have_means_and_spans() {
        let ring = ring(100, 0..50);
        let window = ring.window(at(10), at(20));
        assert_eq!((window.count(), window.average(), window.last()), (11, Some(15.0), Some(20.0)));
        assert_eq!(window.span(), Duration::from_secs(10));
        assert_eq!(ring.window(at(60), at(70)).average(), None);
    }

    proptest::proptest! {
        #[test]
        fn a_window_holds_what_a_scan_of_the_ring_finds(
            steps in proptest::collection::vec(1_u64..5, 0..60),
            span in 1_u64..60,
            from in 0_u64..200,
            to in 0_u64..200,
        ) {
            let times = steps.into_iter().scan(0, |at, step| {
                *at += step;
                Some(*at)
            });
            let ring = ring(span, times);
            let (from, to) = (at(from), at(to));
            let scanned: Vec<Sample> = ring.iter().filter(|sample| from <= sample.at && sample.at <= to).collect();
            let window = ring.window(from, to);
            assert_eq!(window.samples().collect::<Vec<_>>(), scanned);
            assert_eq!((window.count(), window.last()), (scanned.len(), scanned.last().map(|sample| sample.value)));
        }
    }

    #[test]
    fn a_sample_that_is_not_younger_or_no_number_is_ignored() {
        let mut ring = ring(100, [5]);
        ring.push(Sample { at: at(5), value: 1.0 });
        ring.push(Sample { at: at(4), value: 1.0 });
        ring.push(Sample { at: at(6), value: f64::NAN });
        assert_eq!(ring.iter().count(), 1);
    }

    #[test]
    fn a_shorter_span_drops_what_is_older() {
        let mut ring = ring(100, 0..50);
        ring.keep_for(Duration::from_secs(10));
        assert_eq!(ring.iter().count(), 11);
    }

    #[test]
    fn percentiles_are_koordinators() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        for (share, value) in [(0.5, 5.0), (0.9, 9.0), (0.95, 9.0), (0.99, 9.0)] {
            assert_eq!(percentile(&values, share), Some(value), "{share}");
        }
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
