//! Values as kubectl's columns show them.

use jiff::Timestamp;
use serde_json::Value;

/// An absent value.
pub(super) const NONE: &str = "<none>";
/// A value that nobody knows.
pub(super) const UNKNOWN: &str = "<unknown>";

/// A length of time, in the two units that matter: `45s`, `2m5s`, `3h`, `5d4h`.
pub fn duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => with(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => with(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// The time since a moment that a field holds.
pub fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) => duration(now.duration_since(time).as_secs()),
        None => UNKNOWN.to_owned(),
    }
}

/// The time since a moment that a user's text names, as strictly as Go reads it: no text, `null` and Go's zero time are unknown
/// moments, and what is no RFC 3339 is invalid.
pub(super) fn since_text(text: &str, now: Timestamp) -> String {
    let bytes = text.as_bytes();
    let has_form = bytes.len() >= 20
        && bytes.get(10) == Some(&b'T')
        && bytes.get(17..19) != Some(b"60")
        && (bytes.last() == Some(&b'Z') || matches!(bytes.get(bytes.len() - 6), Some(b'+' | b'-')));
    match text.parse::<Timestamp>() {
        _ if matches!(text, "" | "null" | "0001-01-01T00:00:00Z") => UNKNOWN.to_owned(),
        // Go counts nanoseconds, which end after 292 years.
        Ok(time) if has_form => duration(now.duration_since(time).as_secs().clamp(-NANOSECONDS_END, NANOSECONDS_END)),
        _ => "<invalid>".to_owned(),
    }
}

/// The seconds after which Go's durations end.
const NANOSECONDS_END: i64 = i64::MAX / 1_000_000_000;

/// The time since the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(object.pointer("/metadata/creationTimestamp"), now).into()
}

/// The object's name; a bookmark has none.
pub(super) fn name(object: &Value) -> Value {
    object["metadata"]["name"].as_str().unwrap_or_default().into()
}

/// A text field, or `absent` when it is not there or empty.
pub(super) fn text(object: &Value, pointer: &str, absent: &str) -> String {
    match object.pointer(pointer).and_then(Value::as_str) {
        None | Some("") => absent.to_owned(),
        Some(text) => text.to_owned(),
    }
}

/// A whole number; zero when it is not there.
pub(super) fn integer(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The items of a list; none when it is not there.
pub(super) fn items<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl DoubleEndedIterator<Item = &'a Value> + ExactSizeIterator {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

/// One text field of every item, joined by commas.
pub(super) fn join(object: &Value, pointer: &str, field: &str) -> String {
    items(object, pointer).filter_map(|item| item[field].as_str()).collect::<Vec<_>>().join(",")
}

/// A label selector, or a plain map of labels, as one line.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return NONE.to_owned() };
    let mut parts: Vec<String> = labels(&selector["matchLabels"]);
    for expression in items(selector, "/matchExpressions") {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = items(expression, "/values").filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            Some("DoesNotExist") => format!("!{key}"),
            _ => continue,
        });
    }
    or_none(parts.join(","))
}

/// `key=value` of every entry of a map.
pub(super) fn labels(map: &Value) -> Vec<String> {
    let entries = map.as_object().into_iter().flatten();
    entries.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect()
}

/// `<none>` instead of nothing.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { NONE.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_two_units_at_most() {
        let table = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (30_000, "8h"),
            (200_000, "2d7h"),
            (86_400 * 30, "30d"),
            (86_400 * 800, "2y70d"),
            (86_400 * 4000, "10y"),
        ];
        for (seconds, expected) in table {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn selectors_are_one_line() {
        let value = serde_json::json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["y", "x"]}, {"key": "gone", "operator": "DoesNotExist"}]});
        assert_eq!(selector(Some(&value)), "a=1,b=2,k in (x,y),!gone");
        assert_eq!(selector(None), "<none>");
    }
}
