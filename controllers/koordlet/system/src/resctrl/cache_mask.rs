//! Which ways of the L3 cache a group may have.

use crate::{
    parse_error::ParseError,
    text::{Field, hexadecimal},
};

/// All ways of the L3 cache, as `info/L3/cbm_mask` gives them: a bit for each way, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMask(u64);

/// Why a range is no part of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheMaskError {
    /// The range is empty, reversed, or reaches beyond the cache.
    #[error(
        "a cache range from {start_percent} % to {end_percent} % is not within 0 to 100 with its start below its end"
    )]
    Range {
        /// Where the range begins.
        start_percent: i64,
        /// Where the range ends.
        end_percent: i64,
    },
    /// The range is between two ways.
    #[error("a cache range from {start_percent} % to {end_percent} % holds none of the {ways} ways of the cache")]
    NoWay {
        /// Where the range begins.
        start_percent: i64,
        /// Where the range ends.
        end_percent: i64,
        /// Ways of the whole cache.
        ways: u32,
    },
}

impl CacheMask {
    /// Reads hexadecimal digits such as `7ff`.
    ///
    /// Fails where the text is no such number, is 0, or has a gap among its bits.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let text = text.trim_ascii();
        let mask = hexadecimal(text).filter(|mask| *mask != 0 && mask & mask.wrapping_add(1) == 0);
        let field = Field { file: "info/L3/cbm_mask", field: "value" };
        mask.map(Self).ok_or_else(|| field.malformed(text, "a hexadecimal number with all bits set, such as 7ff"))
    }

    /// How many ways the cache has.
    pub fn ways(self) -> u32 {
        self.0.count_ones()
    }

    /// The bits of the ways in a range of the cache: those from ⌈ways·start/100⌉ up to, but without, ⌈ways·end/100⌉.
    ///
    /// # Errors
    ///
    /// The range is not within the cache, is empty, or holds no way.
    pub fn range(self, start_percent: i64, end_percent: i64) -> Result<u64, CacheMaskError> {
        if start_percent < 0 || end_percent > 100 || start_percent >= end_percent {
            return Err(CacheMaskError::Range { start_percent, end_percent });
        }
        let ways = self.ways();
        let below = |percent: i64| {
            let ways = (u64::from(ways) * percent.unsigned_abs()).div_ceil(100);
            u64::MAX.checked_shr(64 - ways.min(64) as u32).unwrap_or(0)
        };
        match below(end_percent) & !below(start_percent) {
            0 => Err(CacheMaskError::NoWay { start_percent, end_percent, ways }),
            bits => Ok(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_up_to_whole_ways() {
        for (mask, start, end, bits) in [
            ("7ff", 0, 30, 0xf),
            ("7ff", 0, 100, 0x7ff),
            ("3ff", 10, 80, 0xfe),
            ("fffff", 0, 100, 0xf_ffff),
            ("fffff", 0, 35, 0x7f),
            ("fffff", 11, 95, 0x7_fff8),
            ("ffffffffffffffff", 0, 100, u64::MAX),
            ("ffffffffffffffff", 50, 100, 0xffff_ffff_0000_0000),
            ("1", 0, 1, 1),
        ] {
            let mask = CacheMask::parse(mask.as_bytes()).unwrap();
            assert_eq!(mask.range(start, end), Ok(bits), "{mask:?} {start} {end}");
        }
    }

    #[test]
    fn masks_have_no_gaps() {
        for text in ["7fd", "7fe", "0", "", "0x7ff", "1ffffffffffffffff", "7ff,7ff"] {
            assert!(CacheMask::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert_eq!(CacheMask::parse(b"7FF\n").map(CacheMask::ways), Ok(11));
        let error = CacheMask::parse(b"7fd\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"info/L3/cbm_mask: value is "7fd", not a hexadecimal number with all bits set, such as 7ff"#
        );
    }

    #[test]
    fn ranges_hold_at_least_one_way() {
        let mask = CacheMask::parse(b"7ff").unwrap();
        for (start, end) in [(30, 30), (40, 30), (-1, 30), (0, 101), (i64::MIN, i64::MAX)] {
            let error = CacheMaskError::Range { start_percent: start, end_percent: end };
            assert_eq!(mask.range(start, end), Err(error));
        }
        let error = mask.range(1, 2).unwrap_err();
        assert_eq!(error.to_string(), "a cache range from 1 % to 2 % holds none of the 11 ways of the cache");
    }
}
