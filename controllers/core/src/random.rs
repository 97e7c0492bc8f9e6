//! Randomness from a seed, so that a run can be repeated.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};

/// A seeded source of randomness that parts of a program share.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<SmallRng>>);

impl Random {
    /// The source that this seed always gives.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))))
    }

    /// A source that differs from run to run: the seed is taken from the operating system once, when a program starts.
    pub fn from_os() -> Self {
        Self(Arc::new(Mutex::new(SmallRng::from_os_rng())))
    }

    /// Any number.
    pub fn number(&self) -> u64 {
        self.0.lock().next_u64()
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.0.lock().random_range(0..end) }
    }

    /// A span from `base` up to `base × (1 + factor)`.
    pub fn jitter(&self, base: Duration, factor: f64) -> Duration {
        let share: f64 = self.0.lock().random_range(0.0..=1.0);
        Duration::try_from_secs_f64(base.as_secs_f64() * (1.0 + share * factor.max(0.0))).unwrap_or(base)
    }

    /// A UUID of version 4.
    pub fn uuid(&self) -> String {
        let (high, low) = (self.number(), self.number());
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// `length` characters of those that Kubernetes appends to generated names.
    pub fn suffix(&self, length: usize) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut source = self.0.lock();
        (0..length).map(|_| char::from(ALPHABET[source.random_range(0..ALPHABET.len())])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let random = Random::seeded(seed);
            (random.number(), random.below(10), random.suffix(5))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_uuid_says_that_it_is_random() {
        let uuid = Random::seeded(1).uuid();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }

    #[test]
    fn jitter_stays_within_its_factor() {
        let random = Random::seeded(1);
        let base = Duration::from_secs(10);
        assert!((0..100).map(|_| random.jitter(base, 0.5)).all(|span| span >= base && span <= base * 3 / 2));
    }
}
