//! Durations as Go writes and reads them: `1h30m0s`, `500ms`, `-1.5h`.

use std::{fmt, str::FromStr, time};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time in nanoseconds, possibly negative; at most about 292 years.
///
/// ```
/// use koord_resource::duration::Duration;
/// let duration: Duration = "90s".parse()?;
/// assert_eq!(duration.to_string(), "1m30s");
/// # Ok::<(), koord_resource::duration::ParseDurationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

/// Why a text is no duration; worded as Go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// Not a sequence of numbers with units, or out of range.
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit other than `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// What stands for a unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

impl Duration {
    /// No time.
    pub const ZERO: Self = Self { nanos: 0 };

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// `seconds` seconds, at most as many as fit.
    pub const fn from_secs(seconds: i64) -> Self {
        Self { nanos: seconds.saturating_mul(SECOND.cast_signed()) }
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Seconds with their fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.nanos as f64 / SECOND as f64
    }

    /// Whether it is less than no time.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// As the standard library's duration, which cannot be negative.
    pub fn to_std(self) -> Option<time::Duration> {
        u64::try_from(self.nanos).ok().map(time::Duration::from_nanos)
    }
}

impl From<time::Duration> for Duration {
    /// At most as much as fits.
    fn from(duration: time::Duration) -> Self {
        Self { nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || ParseDurationError::Invalid(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut nanos = 0_u64;
        while !rest.is_empty() {
            let (whole, after) = digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let unit_length = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
            let (unit_text, after) = after.split_at(unit_length);
            if unit_text.is_empty() {
                return Err(ParseDurationError::MissingUnit(text.to_owned()));
            }
            let unit = unit_nanos(unit_text)
                .ok_or_else(|| ParseDurationError::UnknownUnit { unit: unit_text.to_owned(), text: text.to_owned() })?;
            let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
            let part = whole.checked_mul(unit).and_then(|part| part.checked_add(fraction_nanos(fraction, unit)));
            nanos = part.and_then(|part| nanos.checked_add(part)).filter(|sum| *sum <= 1 << 63).ok_or_else(invalid)?;
            rest = after;
        }
        if negative {
            return Ok(Self { nanos: nanos.cast_signed().wrapping_neg() });
        }
        i64::try_from(nanos).map(|nanos| Self { nanos }).map_err(|_| invalid())
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

/// The part of a unit that `0.fraction` is, with the precision that Go keeps: digits beyond 63 bits are dropped, and
/// the product is floating point, so that 0.1 of a unit comes out the same.
fn fraction_nanos(fraction: &str, unit: u64) -> u64 {
    let (mut numerator, mut denominator) = (0_u64, 1_f64);
    for digit in fraction.bytes().map(|digit| u64::from(digit - b'0')) {
        match numerator.checked_mul(10).and_then(|shifted| shifted.checked_add(digit)).filter(|sum| *sum <= 1 << 63) {
            Some(sum) => numerator = sum,
            None => break,
        }
        denominator *= 10.0;
    }
    (numerator as f64 * (unit as f64 / denominator)) as u64
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if nanos == 0 {
            return f.pad("0s");
        }
        let sign = if self.nanos < 0 { "-" } else { "" };
        let text = if nanos < MICROSECOND {
            format!("{sign}{nanos}ns")
        } else if nanos < MILLISECOND {
            format!("{sign}{}µs", decimal(nanos, MICROSECOND))
        } else if nanos < SECOND {
            format!("{sign}{}ms", decimal(nanos, MILLISECOND))
        } else if nanos < MINUTE {
            format!("{sign}{}s", decimal(nanos, SECOND))
        } else if nanos < HOUR {
            format!("{sign}{}m{}s", nanos / MINUTE, decimal(nanos % MINUTE, SECOND))
        } else {
            format!("{sign}{}h{}m{}s", nanos / HOUR, nanos % HOUR / MINUTE, decimal(nanos % MINUTE, SECOND))
        };
        f.pad(&text)
    }
}

/// `nanos` in units of `unit`, without trailing zeros.
fn decimal(nanos: u64, unit: u64) -> String {
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 5m0s, as a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_in_go() {
        for (text, again) in [
            ("0", "0s"),
            ("5m", "5m0s"),
            ("300s", "5m0s"),
            ("24h", "24h0m0s"),
            ("1.5h", "1h30m0s"),
            ("-90s", "-1m30s"),
            ("+1ms", "1ms"),
            ("1500us", "1.5ms"),
            ("1100ns", "1.1µs"),
            ("1h1ns", "1h0m0.000000001s"),
            ("0.1s", "100ms"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
            ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.to_string(), again, "{text}");
            assert_eq!(again.parse::<Duration>().unwrap(), duration, "{again}");
        }
    }

    #[test]
    fn wrong_durations_are_refused_in_gos_words() {
        for (text, error) in [
            ("", r#"time: invalid duration """#),
            ("-", r#"time: invalid duration "-""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("1x", r#"time: unknown unit "x" in duration "1x""#),
            ("1d2h", r#"time: unknown unit "d" in duration "1d2h""#),
            (".s", r#"time: invalid duration ".s""#),
            ("2562047h47m16.854775808s", r#"time: invalid duration "2562047h47m16.854775808s""#),
            ("99999999999999999999h", r#"time: invalid duration "99999999999999999999h""#),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap_err().to_string(), error);
        }
    }
}
