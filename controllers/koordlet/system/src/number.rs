//! Files that hold one number: counters, switches, limits.

use crate::{
    parse_error::ParseError,
    text::{Field, NUMBER, fields, unsigned},
    value::CFS_PERIOD_US,
};

/// From here on a memory limit of cgroup v1 means that there is none: the kernel counts in pages and rounds `-1` down to the largest
/// multiple of the page size, which is smaller with larger pages.
const UNLIMITED_FROM: u64 = 0x7FFF_FFFF_FFFF_0000;

/// A counter such as `cpuacct.usage` or `memory.current`.
///
/// Fails where the text is not one number from 0 to `u64::MAX`.
pub fn parse_counter(file: &'static str, text: &[u8]) -> Result<u64, ParseError> {
    let text = text.trim_ascii();
    unsigned(text).ok_or_else(|| value(file).malformed(text, NUMBER))
}

/// A number that may be negative, such as `cpu.bvt_warp_ns`. Numbers beyond `i64` become its largest or smallest one.
///
/// Fails where the text is not one number.
pub fn parse_number(file: &'static str, text: &[u8]) -> Result<i64, ParseError> {
    let text = text.trim_ascii();
    signed(text).ok_or_else(|| value(file).malformed(text, "a number"))
}

/// A limit; `None` means that there is none: `max`, a negative number, or the largest number of pages.
///
/// Fails where the text is neither `max` nor one number.
pub fn parse_limit(file: &'static str, text: &[u8]) -> Result<Option<u64>, ParseError> {
    let text = text.trim_ascii();
    limit(value(file), text)
}

/// The microseconds of CPU in each period that a cgroup may use: `cpu.max` of cgroup v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMax {
    /// `None` means that there is no limit.
    pub quota_us: Option<u64>,
    /// The length of a period.
    pub period_us: u64,
}

impl CpuMax {
    /// Reads `max 100000` or `50000 100000`.
    ///
    /// A quota alone, as a tree of plain files shows one after it was written, has the usual period. Fails where the text has other fields.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        const FILE: &str = "cpu.max";
        let mut fields = fields(text);
        let (quota, period) = (fields.next(), fields.next());
        if fields.next().is_some() {
            return Err(value(FILE).malformed(text.trim_ascii(), "a quota and a period"));
        }
        let field = Field { file: FILE, field: "quota" };
        let quota = quota.ok_or_else(|| field.missing())?;
        let period_us = match period {
            None => CFS_PERIOD_US.unsigned_abs(),
            period => Field { file: FILE, field: "period" }.unsigned(period)?,
        };
        Ok(Self { quota_us: limit(field, quota)?, period_us })
    }
}

impl std::fmt::Display for CpuMax {
    /// As the kernel takes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.quota_us {
            Some(quota) => write!(f, "{quota} {}", self.period_us),
            None => write!(f, "max {}", self.period_us),
        }
    }
}

fn value(file: &'static str) -> Field {
    Field { file, field: "value" }
}

/// `max`, negative numbers and the largest number of pages are no limit.
fn limit(field: Field, text: &[u8]) -> Result<Option<u64>, ParseError> {
    if text == b"max" {
        return Ok(None);
    }
    let number = signed(text).ok_or_else(|| field.malformed(text, "a number or max"))?;
    Ok(u64::try_from(number).ok().filter(|number| *number < UNLIMITED_FROM))
}

/// Saturates.
fn signed(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = unsigned(digits).and_then(|number| i64::try_from(number).ok());
    Some(match (number, is_negative) {
        (Some(number), true) => -number,
        (Some(number), false) => number,
        (None, true) => i64::MIN,
        (None, false) => i64::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_numbers_and_limits_are_one_number() {
        for (text, counter, number, limit) in [
            ("0\n", Some(0), Some(0), Some(Some(0))),
            ("1000000000000\n", Some(1_000_000_000_000), Some(1_000_000_000_000), Some(Some(1_000_000_000_000))),
            ("-1\n", None, Some(-1), Some(None)),
            ("max\n", None, None, Some(None)),
            ("9223372036854771712\n", Some(9_223_372_036_854_771_712), Some(9_223_372_036_854_771_712), Some(None)),
            ("9223372036854710272\n", Some(9_223_372_036_854_710_272), Some(9_223_372_036_854_710_272), Some(None)),
            ("18446744073709551615", Some(u64::MAX), Some(i64::MAX), Some(None)),
            ("-99999999999999999999", None, Some(i64::MIN), Some(None)),
            ("", None, None, None),
            ("-", None, None, None),
            ("1 2", None, None, None),
            ("0x1", None, None, None),
        ] {
            assert_eq!(parse_counter("f", text.as_bytes()).ok(), counter, "{text:?}");
            assert_eq!(parse_number("f", text.as_bytes()).ok(), number, "{text:?}");
            assert_eq!(parse_limit("f", text.as_bytes()).ok(), limit, "{text:?}");
        }
        let error = parse_limit("memory.max", b"much\n").unwrap_err();
        assert_eq!(error.to_string(), r#"memory.max: value is "much", not a number or max"#);
    }

    #[test]
    fn cpu_max_is_a_quota_and_a_period() {
        let texts = [
            ("max 100000\n", None),
            ("100000 100000\n", Some(100_000)),
            ("100000", Some(100_000)),
            ("-1 100000", None),
        ];
        for (text, quota_us) in texts {
            let max = CpuMax::parse(text.as_bytes()).unwrap();
            assert_eq!(max, CpuMax { quota_us, period_us: 100_000 });
            assert_eq!(CpuMax::parse(max.to_string().as_bytes()), Ok(max));
        }
        assert_eq!(CpuMax { quota_us: Some(2000), period_us: 100_000 }.to_string(), "2000 100000");
        for (text, error) in [
            ("", "cpu.max lacks quota"),
            ("max max", "cpu.max: period is \"max\", not a number from 0 to 18446744073709551615"),
            ("a 100000", "cpu.max: quota is \"a\", not a number or max"),
            ("1 2 3\n", "cpu.max: value is \"1 2 3\", not a quota and a period"),
        ] {
            assert_eq!(CpuMax::parse(text.as_bytes()).unwrap_err().to_string(), error, "{text:?}");
        }
    }
}
