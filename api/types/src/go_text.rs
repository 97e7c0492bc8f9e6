//! Numbers and truth values in texts, as Go's `strconv` reads and prints them.

use std::borrow::Cow;

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

/// `ParseFloat(text, 64)`: decimal and hexadecimal (`0x1.8p-1`) numbers with underscores between digits, `NaN`, and
/// `Inf` or `Infinity` with a sign, in any case. Numbers that are too large are none.
pub fn parse_float(text: &str) -> Option<f64> {
    let (sign, magnitude) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match magnitude.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return (magnitude == text).then_some(f64::NAN),
        _ => {}
    }
    let plain = without_underscores(magnitude)?;
    let number = if let Some(hexadecimal) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        hexadecimal_float(hexadecimal)?
    } else {
        let decimal = plain.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        plain.parse().ok().filter(|number: &f64| decimal && number.is_finite() && !plain.starts_with(['+', '-']))?
    };
    Some(sign * number)
}

/// The text without its underscores, each of which stands between two digits, or between `0x` and a digit.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let hexadecimal = text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"));
    let is_digit = |byte: u8| byte.is_ascii_digit() || (hexadecimal && byte.is_ascii_hexdigit());
    let bytes = text.as_bytes();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_') {
        let follows = (hexadecimal && at == 2) || (at > 0 && is_digit(bytes[at - 1]));
        if !follows || !bytes.get(at + 1).is_some_and(|next| is_digit(*next)) {
            return None;
        }
    }
    Some(Cow::Owned(text.replace('_', "")))
}

/// What follows `0x`: digits, perhaps with a point, and a binary exponent, which must be there.
fn hexadecimal_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if (whole.is_empty() && fraction.is_empty()) || unsigned.is_empty() {
        return None;
    }
    // Beyond this, every number is too large or too small.
    let exponent = unsigned
        .bytes()
        .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| (sum * 10 + i64::from(byte - b'0')).min(1 << 32)))?
        * if exponent.starts_with('-') { -1 } else { 1 };

    let (mut mantissa, mut dropped, mut scale) = (0_u64, false, exponent);
    for (digit, of_fraction) in
        whole.chars().map(|digit| (digit, false)).chain(fraction.chars().map(|digit| (digit, true)))
    {
        let value = u64::from(digit.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | value;
            scale -= if of_fraction { 4 } else { 0 };
        } else {
            dropped |= value != 0;
            scale += if of_fraction { 0 } else { 4 };
        }
    }
    nearest_float(mantissa, dropped, scale)
}

/// The float that is nearest to `mantissa * 2^scale`, the even one of two. `dropped`: there is more below the
/// mantissa's last bit. None where that is too large for a float.
fn nearest_float(mantissa: u64, dropped: bool, scale: i64) -> Option<f64> {
    const EXPONENT_MIN: i64 = -1022;
    const EXPONENT_MAX: i64 = 1023;
    if mantissa == 0 {
        return Some(0.0);
    }
    let shift = mantissa.leading_zeros();
    let (mantissa, exponent) = (mantissa << shift, scale - i64::from(shift) + 63);
    // Below the smallest normal number there are fewer bits.
    let kept = 53 - (EXPONENT_MIN - exponent).max(0);
    if exponent > EXPONENT_MAX {
        return None;
    }
    let Ok(kept) = u32::try_from(kept) else { return Some(0.0) };
    let cut = 64 - kept;
    let (rounded, rest) = (mantissa.checked_shr(cut).unwrap_or(0), mantissa << kept);
    let half = 1_u64 << 63;
    let up = rest > half || (rest == half && (dropped || rounded & 1 == 1));
    let rounded = rounded + u64::from(up);
    // A carry out of the mantissa goes on into the exponent.
    let bits = if exponent < EXPONENT_MIN {
        rounded
    } else {
        ((exponent - EXPONENT_MIN + 1).cast_unsigned() << 52) + rounded - (1 << 52)
    };
    Some(f64::from_bits(bits)).filter(|number| number.is_finite())
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
    fn floats_are_read_by_the_grammar_of_go() {
        for (text, number) in [
            ("0.29", 0.29),
            ("-1", -1.0),
            ("+.5", 0.5),
            ("1.", 1.0),
            ("1e3", 1000.0),
            ("1E-2", 0.01),
            ("1_23.50_0_0e+1_2", 1.235e14),
            ("0x1p-1", 0.5),
            ("0X1.8P0", 1.5),
            ("-0x.8p+1", -1.0),
            ("0x_1_2.3_4_5p+1_2", 74565.0),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x0.fffffffffffffp-1022", 2.225_073_858_507_201e-308),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000000001p0", 1.0 + f64::EPSILON),
            ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("0x10000000000000000000p0", 75_557_863_725_914_323_419_136.0),
            ("0x0p99999999999", 0.0),
            ("0x1p-99999999999", 0.0),
            ("1e-999", 0.0),
            ("iNf", f64::INFINITY),
            ("+Infinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_float(text), Some(number), "{text}");
        }
        assert!(parse_float("nan").is_some_and(f64::is_nan));
        for wrong in [
            "",
            "+",
            "-",
            ".",
            "a",
            " 1",
            "1 ",
            "e5",
            "1e",
            "1e+",
            "+-1",
            "1e999",
            "0x1p1024",
            "0x1p99999999999",
            "0x",
            "0x1",
            "0x.p1",
            "0xp1",
            "0x1p",
            "0x1p+",
            "0x1gp1",
            "0x1p1.5",
            "0x-1p1",
            "+nan",
            "infinit",
            "_1",
            "1_",
            "1__0",
            "1_.5",
            "1._5",
            "1e_5",
            "1_e5",
            "0_x1p1",
            "0x1_p1",
            "0x1p_1",
            "é",
        ] {
            assert_eq!(parse_float(wrong), None, "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_float_is_the_same_in_decimal_and_in_hexadecimal(bits in proptest::num::u64::ANY) {
            let number = f64::from_bits(bits & !(1 << 63));
            let (exponent, mantissa) = ((bits >> 52 & 0x7ff).cast_signed(), bits & ((1 << 52) - 1));
            let hexadecimal = match exponent {
                0 => format!("0x0.{mantissa:013x}p-1022"),
                0x7ff => return Ok(()),
                _ => format!("0x1.{mantissa:013x}p{}", exponent - 1023),
            };
            proptest::prop_assert_eq!(parse_float(&hexadecimal), Some(number));
            proptest::prop_assert_eq!(parse_float(&format!("{number:e}")), Some(number));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9a-fxpPeE_.n]{0,24}") {
            parse_float(&text);
        }
    }
}
