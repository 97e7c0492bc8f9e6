//! What the server takes from outside: time, identities, generated names.

use std::{
    collections::hash_map::RandomState,
    fmt::Write as _,
    hash::{BuildHasher, Hasher},
};

use jiff::{SignedDuration, Timestamp};

/// Where the server takes time and randomness from; a simulation injects its own.
pub trait Environment: Send {
    /// The present time.
    fn now(&mut self) -> Timestamp;
    /// A fresh random number.
    fn random(&mut self) -> u64;
}

/// Wall clock, and identities from a seed of the operating system.
#[derive(Debug)]
pub struct SystemEnvironment(SplitMix);

impl Default for SystemEnvironment {
    fn default() -> Self {
        // The standard library keys its hashers from the operating system.
        Self(SplitMix(RandomState::new().build_hasher().finish()))
    }
}

impl Environment for SystemEnvironment {
    fn now(&mut self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&mut self) -> u64 {
        self.0.next()
    }
}

/// A clock that stands still until it is moved, and a seeded source: the same seed gives the same identities.
#[derive(Clone, Debug)]
pub struct SeededEnvironment {
    now: Timestamp,
    source: SplitMix,
}

impl SeededEnvironment {
    /// Starts at `now`.
    pub fn new(seed: u64, now: Timestamp) -> Self {
        Self { now, source: SplitMix(seed) }
    }

    /// Moves the clock forward.
    pub fn advance(&mut self, by: SignedDuration) {
        self.now = self.now.saturating_add(by).unwrap_or(self.now);
    }
}

impl Environment for SeededEnvironment {
    fn now(&mut self) -> Timestamp {
        self.now
    }

    fn random(&mut self) -> u64 {
        self.source.next()
    }
}

/// The time of somebody else, and a seeded source.
#[derive(Clone, Debug)]
pub struct TimedEnvironment<N> {
    now: N,
    source: SplitMix,
}

impl<N: FnMut() -> Timestamp + Send> TimedEnvironment<N> {
    /// `now` says the time.
    pub fn new(seed: u64, now: N) -> Self {
        Self { now, source: SplitMix(seed) }
    }
}

impl<N: FnMut() -> Timestamp + Send> Environment for TimedEnvironment<N> {
    fn now(&mut self) -> Timestamp {
        (self.now)()
    }

    fn random(&mut self) -> u64 {
        self.source.next()
    }
}

/// The generator SplitMix64.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// A random (version 4) UUID.
pub fn uid(environment: &mut dyn Environment) -> String {
    let (high, low) = (environment.random(), environment.random());
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The letters that generated names are made of: no vowels, nothing that reads like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The suffix of a generated name: five characters.
pub fn name_suffix(environment: &mut dyn Environment) -> String {
    let mut random = environment.random();
    let mut suffix = String::with_capacity(5);
    for _ in 0..5 {
        let index = random % ALPHABET.len() as u64;
        random /= ALPHABET.len() as u64;
        suffix.push(char::from(ALPHABET[index as usize]));
    }
    suffix
}

/// A time as `metav1.Time` prints it: whole seconds, `Z`.
pub fn time_text(time: Timestamp) -> String {
    let mut text = String::with_capacity(20);
    let civil = jiff::tz::Offset::UTC.to_datetime(time);
    let (date, clock) = (civil.date(), civil.time());
    let _ = write!(
        text,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        date.year(),
        date.month(),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_identities() {
        let mut one = SeededEnvironment::new(7, Timestamp::UNIX_EPOCH);
        let mut two = one.clone();
        assert_eq!(uid(&mut one), uid(&mut two));
        assert_eq!(name_suffix(&mut one), name_suffix(&mut two));
        assert_ne!(uid(&mut one), uid(&mut one));
    }

    #[test]
    fn times_have_whole_seconds() {
        let time: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(time_text(time), "2026-01-02T03:04:05Z");
    }
}
