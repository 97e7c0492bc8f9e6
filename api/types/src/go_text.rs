//! Numbers and truth values in texts, as Go's `strconv` reads and prints them.

/// `ParseInt(text, 0, 32)`: decimal, or `0x`, `0o`, `0b` and a leading `0`, with underscores between digits.
pub fn parse_int32(text: &str) -> Option<i32> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits, prefixed) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..], true),
        Some("0o") => (8, &digits[2..], true),
        Some("0b") => (2, &digits[2..], true),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..], true),
        _ => (10, digits, false),
    };
    // An underscore stands between two digits, or between the prefix and a digit.
    let mut plain = String::with_capacity(digits.len());
    let mut after_digit = prefixed;
    for character in digits.chars() {
        match character {
            '_' if after_digit => after_digit = false,
            '_' | '+' | '-' => return None,
            digit => {
                plain.push(digit);
                after_digit = true;
            }
        }
    }
    if !after_digit {
        return None;
    }
    let magnitude = i64::from_str_radix(&plain, radix).ok()?;
    i32::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// `ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `ParseFloat` of a finite decimal number. (Go also reads hexadecimal floats, which nobody writes.)
pub fn parse_float(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// `%.2f`.
pub fn two_decimals(number: f64) -> String {
    format!("{number:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_prefixes_and_underscores() {
        for (text, number) in [
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("1_000", Some(1000)),
            ("0x_1", Some(1)),
            ("0_7", Some(7)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("0", Some(0)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("08", None),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("1.5", None),
            ("+-1", None),
            ("é", None),
        ] {
            assert_eq!(parse_int32(text), number, "{text}");
        }
    }

    #[test]
    fn truth_is_spelt_in_twelve_ways() {
        assert_eq!(["1", "t", "T", "TRUE", "true", "True"].map(parse_bool), [Some(true); 6]);
        assert_eq!(["0", "f", "F", "FALSE", "false", "False"].map(parse_bool), [Some(false); 6]);
        assert_eq!(["yes", "on", "", "tRUE"].map(parse_bool), [None; 4]);
    }

    #[test]
    fn ratios_round_to_even() {
        for (number, text) in [(1.125, "1.12"), (1.005, "1.00"), (2.675, "2.67"), (1.2 * 1.5, "1.80"), (1.2, "1.20")] {
            assert_eq!(two_decimals(number), text);
        }
    }

    #[test]
    fn floats_are_decimal() {
        assert_eq!(parse_float("0.29"), Some(0.29));
        assert_eq!(parse_float("-1"), Some(-1.0));
        for wrong in ["", "inf", "NaN", "1e999", "a", " 1", "1_0"] {
            assert_eq!(parse_float(wrong), None, "{wrong}");
        }
    }
}
