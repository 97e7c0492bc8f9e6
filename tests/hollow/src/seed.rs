//! Numbers that look random and are functions of a seed and a name: nothing is stored, any of them can be asked for at any time.

/// A seed, or a seed's descendant under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed of a whole fleet.
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The seed of a part: of a node by its name, of a property by its word.
    pub fn child(self, name: &str) -> Self {
        // FNV-1a over the name, stirred into the seed
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(mix(self.0 ^ hash))
    }

    /// The seed of a moment or of a number in a row.
    pub const fn at(self, index: i64) -> Self {
        Self(mix(self.0 ^ mix(index.cast_unsigned())))
    }

    /// A share from 0 up to, but never, 1.
    pub fn share(self) -> f64 {
        // the 53 bits that a double holds exactly
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `end`; 0 when `end` is 0.
    pub const fn below(self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.0 % end }
    }
}

/// The finalizer of SplitMix64: every bit of the input changes half of the bits of the output.
const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_seed_decide_the_number() {
        let number = |seed, name| Seed::new(seed).child(name).below(u64::MAX);
        assert_eq!(number(1, "node-1"), number(1, "node-1"));
        assert_ne!(number(1, "node-1"), number(2, "node-1"));
        assert_ne!(number(1, "node-1"), number(1, "node-2"));
    }

    #[test]
    fn shares_are_spread_evenly() {
        let mut tenths = [0; 10];
        for index in 0..10_000 {
            tenths[(Seed::new(5).at(index).share() * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }
}
