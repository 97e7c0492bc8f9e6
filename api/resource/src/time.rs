//! Times as the API has them.

use std::{fmt, str::FromStr};

use k8s_openapi::jiff::{Error, SignedDuration, Timestamp, civil::DateTime, fmt::temporal::Pieces, tz::Offset};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time of the API (`metav1.Time`, `metav1.MicroTime`) of a year up to 9999, with whatever offset it is written.
///
/// Users write `9999-12-31T23:59:59Z` for what never happens; a [`Timestamp`] ends a day before. A time is kept as exact as it was
/// written, and written in whole seconds, as `metav1.Time` is.
///
/// ```
/// use koord_resource::Time;
/// let never: Time = "9999-12-31T23:59:59Z".parse()?;
/// assert_eq!(never.to_string(), "9999-12-31T23:59:59Z");
/// assert_eq!(never.at(), koord_resource::k8s_openapi::jiff::Timestamp::MAX);
/// # Ok::<(), koord_resource::k8s_openapi::jiff::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(DateTime);

impl Time {
    /// The time as one that can be counted with: the last one for all that are later.
    pub fn at(self) -> Timestamp {
        let last = if self.0.year() < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Offset::UTC.to_timestamp(self.0).unwrap_or(last)
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(Offset::UTC.to_datetime(at))
    }
}

impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.parse::<Timestamp>() {
            Ok(at) => Ok(at.into()),
            Err(error) => beyond(text).map(Self).ok_or(error),
        }
    }
}

/// A time that is too late for a timestamp, in UTC; none where the text is no time.
fn beyond(text: &str) -> Option<DateTime> {
    let pieces = Pieces::parse(text).ok()?;
    let (date, time, offset) = (pieces.date(), pieces.time()?, pieces.to_numeric_offset()?);
    if date.year() < 0 {
        return None;
    }
    let to_utc = SignedDuration::from_secs(-i64::from(offset.seconds()));
    Some(date.to_datetime(time).saturating_add(to_utc))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as 2026-01-02T03:04:05Z, as a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
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
    fn every_time_of_go_is_read_kept_and_compared() {
        let time = |text: &str| text.parse::<Time>().unwrap();
        for (text, again, second) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0),
            ("2026-01-02T03:04:05.987654Z", "2026-01-02T03:04:05Z", 1_767_323_045),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z", 1_767_315_845),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", -62_167_219_200),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", -62_135_596_800),
            ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00Z", 253_402_207_200),
            ("9999-12-30T22:00:01Z", "9999-12-30T22:00:01Z", 253_402_207_200),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", 253_402_207_200),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59Z", 253_402_207_200),
            ("9999-12-31T23:59:59+14:00", "9999-12-31T09:59:59Z", 253_402_207_200),
            // The year 10000 in UTC has no text that could be read again.
            ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z", 253_402_207_200),
        ] {
            let read = time(text);
            assert_eq!((read.to_string().as_str(), read.at().as_second()), (again, second), "{text}");
            let written = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&written).unwrap().to_string(), again);
        }
        let in_order = ["0000-01-01T00:00:00Z", "2026-01-02T03:04:05Z", "9999-12-31T23:59:58Z", "9999-12-31T23:59:59Z"];
        assert!(in_order.map(time).is_sorted_by(|one, next| one < next));
        assert_eq!(Time::from(Timestamp::MAX).at(), Timestamp::MAX);
        assert_eq!(Time::from(Timestamp::MIN).at(), Timestamp::MIN);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "soon", "2026-01-02", "9999-12-31T23:59:59", "9999-13-31T23:59:59Z", "10000-01-01T00:00:00Z"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
        let error = serde_json::from_str::<Time>("5").unwrap_err().to_string();
        assert!(error.contains("a time such as"), "{error}");
    }
}
