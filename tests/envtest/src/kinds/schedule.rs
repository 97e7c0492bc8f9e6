//! The schedules of CronJobs: five fields of a moment, or a word that stands for them.

use koord_resource::Duration;

/// One of the five fields: its range, and the names of its numbers.
struct Field {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field { least: 1, most: 12, names: MONTHS },
    Field { least: 0, most: 6, names: DAYS },
];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What is wrong with a schedule.
pub(super) fn mistake(schedule: &str) -> Option<String> {
    if schedule.starts_with('@') {
        return descriptor(schedule).err();
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let ranges = fields
        .iter()
        .zip(&FIELDS)
        .flat_map(|(text, field)| text.split(',').filter(|range| !range.is_empty()).map(move |range| (range, field)));
    ranges.into_iter().find_map(|(range, field)| self::range(range, field).err())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    let length = text.strip_prefix("@every ").ok_or_else(|| format!("unrecognized descriptor: {text}"))?;
    length.parse::<Duration>().map(drop).map_err(|error| format!("failed to parse duration {text}: {error}"))
}

/// `*`, `n`, `n-m`, each with `/step`.
fn range(text: &str, field: &Field) -> Result<(), String> {
    let (bounds, step) = match text.split('/').collect::<Vec<&str>>()[..] {
        [bounds] => (bounds, None),
        [bounds, step] => (bounds, Some(step)),
        _ => return Err(format!("too many slashes: {text}")),
    };
    let (start, mut end) = match bounds.split('-').collect::<Vec<&str>>()[..] {
        ["*" | "?", ..] => (field.least, field.most),
        [one] => (number_or_name(one, field)?, number_or_name(one, field)?),
        [start, end] => (number_or_name(start, field)?, number_or_name(end, field)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    if let Some(step) = step {
        let step = number(step)?;
        if !bounds.contains('-') {
            // A single number with a step counts up to the greatest.
            end = field.most;
        }
        check_bounds(start, end, text, field)?;
        return if step == 0 { Err(format!("step of range should be a positive number: {text}")) } else { Ok(()) };
    }
    check_bounds(start, end, text, field)
}

fn check_bounds(start: u64, end: u64, text: &str, field: &Field) -> Result<(), String> {
    let Field { least, most, .. } = field;
    if start < *least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > *most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, field: &Field) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match field.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(field.least.saturating_add(u64::try_from(index).unwrap_or(u64::MAX))),
        None => number(text),
    }
}

/// A number as Go reads and refuses it.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let wrong = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| wrong("value out of range"))?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_mean_something() {
        for right in [
            "* * * * *",
            "*/5 0-6,12 1 JAN mon-FRI",
            "? ? * * 0",
            ", * * * *",
            "59/2 * * * *",
            "@daily",
            "@every 1h30m",
        ] {
            assert_eq!(mistake(right), None, "{right}");
        }
    }

    #[test]
    fn schedules_that_mean_nothing() {
        let wrong = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("60/2 * * * *", "beginning of range (60) beyond end of range (59): 60/2"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* 24 * * *", "end of range (24) above maximum (23): 24"),
            ("@every", "unrecognized descriptor: @every"),
            ("@every 1", "failed to parse duration @every 1: time: missing unit in duration \"1\""),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ];
        for (schedule, message) in wrong {
            assert_eq!(mistake(schedule).as_deref(), Some(message), "{schedule}");
        }
    }
}
