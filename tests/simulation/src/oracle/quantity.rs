//! Quantities as exact billionths.

use serde_json::Value;

pub(super) const ONE: i128 = 1_000_000_000;
/// A thousandth.
pub(super) const MILLI: i128 = 1_000_000;

/// The amount that a quantity says, in billionths; nothing where it says nothing.
pub(super) fn nano(value: &Value) -> i128 {
    match value {
        Value::String(text) => parse(text).unwrap_or_default(),
        Value::Number(number) => parse(&number.to_string()).unwrap_or_default(),
        _ => 0,
    }
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let exponent = suffix.strip_prefix(['e', 'E']).filter(|digits| !digits.is_empty());
    let unit: i128 = match (suffix, exponent) {
        ("n", _) => 1,
        ("u", _) => 1_000,
        ("m", _) => MILLI,
        ("", _) => ONE,
        ("k", _) => ONE * 1_000,
        ("M", _) => ONE * 1_000_000,
        ("G", _) => ONE * 1_000_000_000,
        ("T", _) => ONE * 1_000_000_000_000,
        ("P", _) => ONE * 1_000_000_000_000_000,
        ("E", _) => ONE * 1_000_000_000_000_000_000,
        ("Ki", _) => ONE << 10,
        ("Mi", _) => ONE << 20,
        ("Gi", _) => ONE << 30,
        ("Ti", _) => ONE << 40,
        ("Pi", _) => ONE << 50,
        ("Ei", _) => ONE << 60,
        (_, Some(digits)) => ONE * 10_i128.checked_pow(digits.parse().ok()?)?,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    digits.checked_mul(unit)?.checked_div(10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?)
}

/// How many whole `unit`s an amount takes.
pub(super) fn up(nano: i128, unit: i128) -> i128 {
    nano.div_euclid(unit) + i128::from(nano.rem_euclid(unit) != 0)
}

/// An amount times a factor as Go computes it: in floating point, cut to thousandths (CPU) or whole units.
pub(super) fn cut(resource: &str, amount: i128, factor: f64) -> i128 {
    let unit = if resource == "cpu" { MILLI } else { ONE };
    (up(amount, unit) as f64 * factor) as i128 * unit
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_quantity_is_read() {
        let forms = [
            (json!("1.5"), 1_500 * MILLI),
            (json!("250m"), 250 * MILLI),
            (json!(7), 7 * ONE),
            (json!("2Gi"), ONE << 31),
            (json!("50k"), 50_000 * ONE),
            (json!("12e2"), 1_200 * ONE),
            (json!("1E"), ONE * 1_000_000_000_000_000_000),
            (json!("-3"), -3 * ONE),
            (json!(null), 0),
        ];
        for (quantity, expected) in forms {
            assert_eq!(nano(&quantity), expected, "{quantity}");
        }
    }

    #[test]
    fn shares_are_cut_as_go_cuts_them() {
        assert_eq!(cut("cpu", 7_910 * MILLI, 0.35), 2_768 * MILLI);
        assert_eq!(cut("memory", 270_582_939_648 * ONE, 0.35), 94_704_028_876 * ONE);
    }
}
