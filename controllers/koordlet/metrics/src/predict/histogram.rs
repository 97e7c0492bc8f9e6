//! Exponentially decaying histograms.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::checkpoint::HistogramCheckpoint;

/// Buckets that grow by a ratio. The first one begins at 0 and has the width `first`, the second one has the width `first` × `ratio`, and so on up to `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buckets {
    max: f64,
    first: f64,
    ratio: f64,
}

/// Weights of values by bucket, in which a value counts half as much as one that is a half-life younger.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: Buckets,
    half_life: Duration,
    weights: Vec<f64>,
    total: f64,
    /// The lowest and the highest bucket with a weight that counts.
    lowest: usize,
    highest: usize,
    /// Nanoseconds since the beginning of year 1 at which a value has the weight 1.
    reference: i128,
}

/// Why a checkpoint is no histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    #[error("totalWeight is {0}, which is below 0 or no number")]
    Total(String),
    #[error("referenceTimestamp {0} is in the future, so that no new value would count")]
    Reference(Timestamp),
    #[error("bucket {bucket} is outside of the {buckets} buckets")]
    Bucket { bucket: i64, buckets: usize },
}

/// Weights below this are none.
const EPSILON: f64 = 0.0001;
/// After so many half-lives weights are counted from a later time, so that they stay small.
const HALF_LIVES_MAX: i128 = 100;
/// The weight of the heaviest bucket in a checkpoint.
const CHECKPOINT_WEIGHT_MAX: f64 = 10_000.0;
/// Seconds from the beginning of year 1 to that of 1970.
pub(super) const YEAR_1_SECONDS: i64 = 62_135_596_800;
const YEAR_1: i128 = YEAR_1_SECONDS as i128;
const NANOS: i128 = 1_000_000_000;

impl Buckets {
    /// For CPUs: from 0.025 to 1024, each bucket 5 % wider than the one before.
    pub const CPU: Self = Self { max: 1024.0, first: 0.025, ratio: 1.05 };
    /// For bytes of memory: from 5 MiB to 2 TiB, each bucket 5 % wider than the one before.
    pub const MEMORY: Self = Self { max: 2_199_023_255_552.0, first: 5_242_880.0, ratio: 1.05 };

    /// How many there are: ⌈log(max × (ratio − 1) ÷ first + 1)⌉ + 1 with the ratio as base.
    pub fn count(&self) -> usize {
        self.log(self.max).ceil() as usize + 1
    }

    /// The bucket of a value.
    pub fn of(&self, value: f64) -> usize {
        if value < self.first || value.is_nan() { 0 } else { (self.log(value).floor() as usize).min(self.count() - 1) }
    }

    /// Where a bucket begins: first × (ratio ^ bucket − 1) ÷ (ratio − 1).
    pub fn start(&self, bucket: usize) -> f64 {
        if bucket == 0 {
            return 0.0;
        }
        self.first * (self.ratio.powf(bucket as f64) - 1.0) / (self.ratio - 1.0)
    }

    fn log(&self, value: f64) -> f64 {
        (value * (self.ratio - 1.0) / self.first + 1.0).ln() / self.ratio.ln()
    }
}

impl Histogram {
    /// An empty histogram. A half-life of 0 counts as one nanosecond.
    pub fn new(buckets: Buckets, half_life: Duration) -> Self {
        let count = buckets.count();
        let half_life = half_life.max(Duration::from_nanos(1));
        Self { buckets, half_life, weights: vec![0.0; count], total: 0.0, lowest: count - 1, highest: 0, reference: 0 }
    }

    /// Adds a value of weight 1 at a time. A value that is no number is ignored.
    pub fn add(&mut self, value: f64, at: Timestamp) {
        if value.is_nan() {
            return;
        }
        let at = since_year_1(at);
        if at > self.reference + HALF_LIVES_MAX * self.half_life_ns() {
            self.count_from(at);
        }
        let weight = ((at - self.reference) as f64 / self.half_life_ns() as f64).exp2();
        let bucket = self.buckets.of(value);
        let Some(known) = self.weights.get_mut(bucket) else { return };
        *known += weight;
        let counts = *known >= EPSILON;
        self.total += weight;
        if counts {
            self.lowest = self.lowest.min(bucket);
            self.highest = self.highest.max(bucket);
        }
    }

    /// The end of the bucket up to which a share of all weights lies, or the start of the last bucket; 0 of an empty histogram.
    pub fn percentile(&self, share: f64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let threshold = share * self.total;
        let (mut sum, mut bucket) = (0.0, self.lowest);
        while bucket < self.highest {
            sum += self.weight(bucket);
            if sum >= threshold {
                break;
            }
            bucket += 1;
        }
        let is_last = bucket + 1 >= self.weights.len();
        self.buckets.start(if is_last { bucket } else { bucket + 1 })
    }

    /// Whether nothing counts in it.
    pub fn is_empty(&self) -> bool {
        self.weight(self.lowest) < EPSILON
    }

    /// The weights relative to the heaviest one, which is 10000.
    pub fn checkpoint(&self) -> HistogramCheckpoint {
        let heaviest = self.weights.iter().copied().fold(0.0, f64::max);
        let mut bucket_weights = BTreeMap::new();
        if heaviest > 0.0 {
            let scale = CHECKPOINT_WEIGHT_MAX / heaviest;
            for (number, bucket) in (0..).zip(0..=self.highest).skip(self.lowest) {
                let weight = (self.weight(bucket) * scale + 0.5).floor() as u32;
                if weight > 0 {
                    bucket_weights.insert(number, weight);
                }
            }
        }
        HistogramCheckpoint { reference: timestamp(self.reference), bucket_weights, total_weight: self.total }
    }

    /// The histogram of a checkpoint. One whose weights are all 0 gives an empty histogram.
    ///
    /// # Errors
    ///
    /// A bucket is outside of the buckets, the total is below 0, or weights are counted from a time more than a half-life after now.
    pub fn restore(
        buckets: Buckets,
        half_life: Duration,
        checkpoint: &HistogramCheckpoint,
        now: Timestamp,
    ) -> Result<Self, HistogramError> {
        let mut histogram = Self::new(buckets, half_life);
        let is_future = |reference| since_year_1(reference) > since_year_1(now) + histogram.half_life_ns();
        if let Some(reference) = checkpoint.reference.filter(|reference| is_future(*reference)) {
            return Err(HistogramError::Reference(reference));
        }
        let total = checkpoint.total_weight;
        if total < 0.0 || !total.is_finite() {
            return Err(HistogramError::Total(total.to_string()));
        }
        let sum: f64 = checkpoint.bucket_weights.values().copied().map(f64::from).sum();
        for (bucket, weight) in &checkpoint.bucket_weights {
            let buckets = histogram.weights.len();
            let place = usize::try_from(*bucket).ok().and_then(|bucket| histogram.weights.get_mut(bucket));
            let place = place.ok_or(HistogramError::Bucket { bucket: *bucket, buckets })?;
            if sum > 0.0 {
                *place = f64::from(*weight) * (total / sum);
            }
        }
        histogram.total = if sum > 0.0 { total } else { 0.0 };
        histogram.reference = checkpoint.reference.map_or(0, since_year_1);
        histogram.trim();
        Ok(histogram)
    }

    /// Counts weights from the multiple of half-lives that is nearest to a time, the later one of two that are equally near.
    fn count_from(&mut self, at: i128) {
        let half_life = self.half_life_ns();
        let reference = (at + half_life / 2).div_euclid(half_life) * half_life;
        let half_lives = ((self.reference - reference) as f64 / half_life as f64).round();
        let scale = half_lives.exp2();
        self.weights.iter_mut().for_each(|weight| *weight *= scale);
        self.total *= scale;
        self.reference = reference;
        self.trim();
    }

    /// Finds the lowest and the highest bucket with a weight that counts.
    fn trim(&mut self) {
        let counts = |weight: &f64| *weight >= EPSILON;
        self.lowest = self.weights.iter().position(counts).unwrap_or(self.weights.len() - 1);
        self.highest = self.weights.iter().rposition(counts).unwrap_or(0);
    }

    fn weight(&self, bucket: usize) -> f64 {
        self.weights.get(bucket).copied().unwrap_or(0.0)
    }

    fn half_life_ns(&self) -> i128 {
        i128::try_from(self.half_life.as_nanos()).unwrap_or(i128::MAX / (4 * HALF_LIVES_MAX))
    }
}

fn since_year_1(at: Timestamp) -> i128 {
    at.as_nanosecond() + YEAR_1 * NANOS
}

/// `None` at the beginning of year 1, which stands for no time, and outside of the times that there are.
fn timestamp(since_year_1: i128) -> Option<Timestamp> {
    (since_year_1 != 0).then(|| Timestamp::from_nanosecond(since_year_1 - YEAR_1 * NANOS).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cpu(values: &[(f64, &str)]) -> Histogram {
        let mut histogram = Histogram::new(Buckets::CPU, 12 * HOUR);
        for (value, time) in values {
            histogram.add(*value, at(time));
        }
        histogram
    }

    const NOON: &str = "2026-03-01T12:00:00Z";

    #[test]
    fn buckets_grow_by_their_ratio() {
        assert_eq!((Buckets::CPU.count(), Buckets::MEMORY.count()), (158, 205));
        for (value, bucket) in [(0.0, 0), (0.024, 0), (0.025, 1), (0.05, 1), (0.0513, 2), (1e9, 157), (f64::NAN, 0)] {
            assert_eq!(Buckets::CPU.of(value), bucket, "{value}");
        }
        assert!((Buckets::CPU.start(2) - 0.05125).abs() < 1e-12 && Buckets::CPU.start(0) == 0.0);
    }

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        assert_eq!(cpu(&[]).percentile(0.95), 0.0);
        let zero = cpu(&[(0.0, NOON)]);
        assert!((zero.percentile(0.95) - 0.025).abs() < 1e-12);
        let histogram = cpu(&[(0.01, NOON), (0.03, NOON), (0.06, NOON), (0.09, NOON)]);
        for (share, bucket) in [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (1.0, 4)] {
            assert_eq!(histogram.percentile(share), Buckets::CPU.start(bucket), "{share}");
        }
        assert_eq!(cpu(&[(1e9, NOON)]).percentile(1.0), Buckets::CPU.start(157), "the last one has no end");
    }

    #[test]
    fn a_value_counts_half_after_a_half_life() {
        let histogram = cpu(&[(0.01, NOON), (0.03, "2026-03-02T00:00:00Z")]);
        assert!((histogram.weight(1) / histogram.weight(0) - 2.0).abs() < 1e-9);
        assert_eq!(histogram.percentile(0.33), Buckets::CPU.start(1));
        assert_eq!(histogram.percentile(0.34), Buckets::CPU.start(2));
    }

    #[test]
    fn weights_are_counted_from_a_later_time_after_a_hundred_half_lives() {
        let mut histogram = cpu(&[(0.01, "2026-03-01T11:59:00Z")]);
        // 12-hour multiples from year 1 are midnight and noon; half-way goes up.
        assert_eq!(histogram.checkpoint().reference, Some(at(NOON)));
        assert_eq!(cpu(&[(0.01, "2026-03-01T06:00:00Z")]).checkpoint().reference, Some(at(NOON)));
        assert_eq!(cpu(&[(0.01, "2026-03-01T05:59:59Z")]).checkpoint().reference, Some(at("2026-03-01T00:00:00Z")));
        histogram.add(0.03, at("2026-04-20T12:00:00Z"));
        assert_eq!(
            histogram.checkpoint().reference,
            Some(at(NOON)),
            "a hundred half-lives are not more than a hundred"
        );
        histogram.add(0.06, at("2026-04-20T12:00:01Z"));
        assert_eq!(histogram.checkpoint().reference, Some(at("2026-04-20T12:00:00Z")));
        assert_eq!(
            histogram.weight(0),
            (-60.0_f64 / 43_200.0).exp2() * (-100_f64).exp2(),
            "one minute younger than the reference"
        );
        assert_eq!((histogram.lowest, histogram.highest), (1, 2), "what is next to nothing does not count");
    }

    #[test]
    fn a_checkpoint_restores_what_it_was_made_of() {
        let histogram = cpu(&[(0.01, NOON), (0.01, NOON), (0.01, NOON), (4.0, NOON), (700.0, NOON)]);
        let checkpoint = histogram.checkpoint();
        assert_eq!(checkpoint.bucket_weights, BTreeMap::from([(0, 10_000), (45, 3333), (148, 3333)]));
        let restored = Histogram::restore(Buckets::CPU, 12 * HOUR, &checkpoint, at(NOON)).unwrap();
        assert_eq!((restored.total, restored.reference), (histogram.total, histogram.reference));
        for share in [0.5, 0.6, 0.95, 1.0] {
            assert_eq!(restored.percentile(share), histogram.percentile(share), "{share}");
        }
    }

    #[test]
    fn checkpoints_that_are_none_are_refused_and_empty_ones_are_empty() {
        let restore = |weights: &[(i64, u32)], total_weight| {
            let bucket_weights = weights.iter().copied().collect();
            let checkpoint = HistogramCheckpoint { reference: None, bucket_weights, total_weight };
            Histogram::restore(Buckets::CPU, HOUR, &checkpoint, at(NOON))
        };
        assert_eq!(restore(&[(158, 1)], 1.0), Err(HistogramError::Bucket { bucket: 158, buckets: 158 }));
        assert_eq!(restore(&[(-1, 1)], 1.0), Err(HistogramError::Bucket { bucket: -1, buckets: 158 }));
        assert_eq!(restore(&[(1, 1)], -1.0), Err(HistogramError::Total("-1".to_owned())));
        assert!(restore(&[], 5.0).unwrap().is_empty() && restore(&[(1, 0)], 5.0).unwrap().is_empty());
        let future =
            HistogramCheckpoint { reference: Some(at("2026-03-01T13:00:01Z")), ..HistogramCheckpoint::default() };
        let restored = Histogram::restore(Buckets::CPU, HOUR, &future, at(NOON));
        assert_eq!(restored, Err(HistogramError::Reference(at("2026-03-01T13:00:01Z"))));
        assert_eq!(restore(&[(1, 1), (2, 3)], 8.0).unwrap().weights[1..3], [2.0, 6.0]);
    }
}
