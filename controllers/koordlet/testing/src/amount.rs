//! Amounts of the case files: `500m`, `4Gi`, `1.5`, as exact integers.

use serde_json::Value;

/// What a suffix multiplies an amount by, in thousandths.
const SUFFIXES: [(&str, i128); 10] = [
    ("Ki", 1000 << 10),
    ("Mi", 1000 << 20),
    ("Gi", 1000 << 30),
    ("Ti", 1000 << 40),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("", 1000),
];

/// The thousandths of an amount, rounded down; `None` of a text that is none.
pub(crate) fn thousandths(text: &str) -> Option<i128> {
    let (suffix, factor) = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let number = text.strip_suffix(suffix)?;
    let (is_negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let amount = digits.parse::<i128>().ok()?.checked_mul(*factor)? / 10_i128.pow(fraction.len() as u32);
    Some(if is_negative { -amount } else { amount })
}

/// The thousandths of a member that is a number or a text; 0 where it is missing.
pub(crate) fn thousandths_of(value: &Value) -> i128 {
    let text = match value {
        Value::Null => return 0,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    thousandths(&text).unwrap_or_else(|| panic!("not an amount: {text}"))
}

/// The whole units of a member: the bytes of `4Gi`.
pub(crate) fn units_of(value: &Value) -> i128 {
    thousandths_of(value) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        let table = [
            ("1", Some(1000)),
            ("500m", Some(500)),
            ("1.5", Some(1500)),
            ("0.29", Some(290)),
            ("-2", Some(-2000)),
            ("1k", Some(1_000_000)),
            ("4Gi", Some(4000 << 30)),
            ("1.5Ki", Some(1_536_000)),
            ("Gi", None),
            ("1x", None),
            ("", None),
        ];
        for (text, wanted) in table {
            assert_eq!(thousandths(text), wanted, "{text}");
        }
    }
}
