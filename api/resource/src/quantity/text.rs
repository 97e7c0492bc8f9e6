//! Reading and printing quantities.

use std::borrow::Cow;

use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::{
    Format, ParseQuantityError, Quantity,
    amount::{Amount, Decimal, times_power_of_ten, without_factors},
};

/// The most decimal digits that are surely within 64 bits.
const SMALL_DIGITS: i32 = 18;
/// The same with a binary suffix, of which each 10 bits take three of them.
const BINARY_DIGITS: i32 = 15;
/// The smallest part that exists, as a power of ten.
const NANO: i32 = -9;
/// Longer texts are no amounts of anything.
const TEXT_LENGTH_MAX: usize = 8192;
/// The most digits before the zeros at the end. The canonical text has as many, so that it can be read whenever it was written.
const DIGITS_MAX: i32 = 4096;
/// With more than 18 digits before the zeros, the power of ten of the last of them must leave a number that can be written out.
const BIG_EXPONENT_MAX: i64 = 4096;

/// The parts of a text.
struct Split<'a> {
    negative: bool,
    /// The number with its sign.
    number: &'a str,
    /// Digits before the point, without leading zeros; `0` when there are none.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn is_plain_text(text: &str) -> bool {
    !text.is_empty() && split(text).is_ok_and(|split| is_plainly_canonical(&split))
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Form);
    }
    if text.len() > TEXT_LENGTH_MAX {
        return Err(ParseQuantityError::Number);
    }
    let split = split(text)?;
    let (exponent, format) = interpret(split.suffix).ok_or(ParseQuantityError::Suffix)?;
    match small(&split, exponent, format) {
        Some((amount, keeps_text)) => {
            let other_form = || !is_plainly_canonical(&split) && canonical(&amount, format) != text;
            let written = (keeps_text && other_form()).then(|| text.to_owned().into_boxed_str());
            Ok(Quantity { amount, format, written, keeps_text: keeps_text || text == "0" })
        }
        None => big(&split, exponent, format),
    }
}

/// Whether a text is canonical at first sight, as nearly all are: digits that no larger suffix would shorten.
fn is_plainly_canonical(split: &Split<'_>) -> bool {
    let plain = !split.negative && split.fraction.is_empty() && split.number == split.whole && split.whole.len() <= 15;
    let Ok(digits) = split.whole.parse::<u64>() else { return false };
    plain
        && match split.suffix {
            "" | "m" | "k" | "M" | "G" | "T" => digits % 1000 != 0,
            "Ki" | "Mi" | "Gi" | "Ti" => digits % 1024 != 0,
            _ => false,
        }
}

pub(super) fn canonical(amount: &Amount, format: Format) -> String {
    if amount.is_zero() {
        return "0".to_owned();
    }
    let below_kilo = || {
        let kilo = Amount::Small { value: 1024, scale: 0 };
        amount.compare(&kilo).is_lt() && amount.compare(&kilo.negated()).is_gt()
    };
    if format == Format::BinarySI && !below_kilo() {
        let (whole, exact) = amount.rounded_up(0);
        if exact {
            return binary(&whole);
        }
    }
    let (digits, exponent) = thousands(amount);
    match format {
        Format::DecimalExponent if exponent == 0 => digits,
        Format::DecimalExponent => format!("{digits}e{exponent}"),
        // QUIRK: beyond exa there is no suffix and Go prints none, so 1000E reads as 1 (quantity.tsv).
        _ => digits + decimal_suffix(exponent),
    }
}

/// Splits where Go's scanner splits: it is laxer than the regular expression in its own error message.
fn split(text: &str) -> Result<Split<'_>, ParseQuantityError> {
    let bytes = text.as_bytes();
    let run = |from: usize, accept: &dyn Fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| accept(**byte)).count()
    };
    let digit = |byte: u8| byte.is_ascii_digit();

    let negative = bytes[0] == b'-';
    let start = usize::from(matches!(bytes[0], b'-' | b'+'));
    let start = run(start, &|byte| byte == b'0');
    if start == bytes.len() {
        return Ok(Split { negative, number: "0", whole: "0", fraction: "", suffix: "" });
    }
    let point = run(start, &digit);
    let whole = if point == start { "0" } else { &text[start..point] };
    let (fraction, end) = if bytes.get(point) == Some(&b'.') {
        let end = run(point + 1, &digit);
        (&text[point + 1..end], end)
    } else {
        ("", point)
    };
    let letters = run(end, &|byte| b"eEinumkKMGTP".contains(&byte));
    let sign = letters + usize::from(matches!(bytes.get(letters), Some(b'-' | b'+')));
    if run(sign, &digit) != bytes.len() {
        return Err(ParseQuantityError::Form);
    }
    Ok(Split { negative, number: &text[..end], whole, fraction, suffix: &text[end..] })
}

/// Texts are shorter than [`TEXT_LENGTH_MAX`].
fn length(digits: &str) -> i32 {
    i32::try_from(digits.len()).unwrap_or(i32::MAX)
}

/// The power of ten (or, for BinarySI, of two) that a suffix stands for.
fn interpret(suffix: &str) -> Option<(i32, Format)> {
    let decimal = |exponent| Some((exponent, Format::DecimalSI));
    let binary = |exponent| Some((exponent, Format::BinarySI));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // QUIRK: Go cuts the exponent to 32 bits: 1e4294967297 is 10.
            Some((exponent as i32, Format::DecimalExponent))
        }
    }
}

fn decimal_suffix(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

/// The number when it surely fits 64 bits, and whether Go keeps the text as it was written.
fn small(split: &Split<'_>, exponent: i32, format: Format) -> Option<(Amount, bool)> {
    let (whole, fraction) = (length(split.whole), length(split.fraction));
    let (scale, factor, spare) = match format {
        Format::BinarySI if fraction == 0 => {
            (0, 1_i64.checked_shl(exponent as u32)?, BINARY_DIGITS - whole - exponent * 3 / 10 - 1)
        }
        Format::BinarySI => return None,
        _ => (exponent, 1, SMALL_DIGITS - whole - fraction),
    };
    let scale = scale.checked_sub(fraction)?;
    if spare < 0 || scale < NANO {
        return None;
    }
    let digits: Cow<'_, str> = match split.fraction {
        "" => Cow::Borrowed(split.whole),
        fraction => Cow::Owned(format!("{}{fraction}", split.whole)),
    };
    let value: i64 = digits.parse().ok()?;
    let product = value.checked_mul(factor)?;
    let keeps_text = match format {
        Format::BinarySI => value & 7 != 0,
        _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    };
    Some((Amount::Small { value: if split.negative { -product } else { product }, scale }, keeps_text))
}

fn big(split: &Split<'_>, exponent: i32, mut format: Format) -> Result<Quantity, ParseQuantityError> {
    let number = split.number.strip_prefix(['-', '+']).unwrap_or(split.number);
    let digits: String = number.chars().filter(|digit| *digit != '.').collect();
    let significant = digits.trim_end_matches('0');
    if length(significant) > DIGITS_MAX {
        return Err(ParseQuantityError::Number);
    }
    let unscaled: BigInt = digits.parse().map_err(|_| ParseQuantityError::Number)?;
    let places = i64::from(length(split.fraction));
    let last = i64::from(exponent) - places + i64::from(length(&digits) - length(significant));
    let decimal = match format {
        Format::BinarySI => Decimal { unscaled: unscaled << exponent, places },
        _ if last > BIG_EXPONENT_MAX && !unscaled.is_zero() => {
            return huge(split.negative, significant, last).ok_or(ParseQuantityError::Number);
        }
        _ => Decimal { unscaled, places: places - i64::from(exponent) },
    };
    // Whoever asks for less than the smallest part gets the smallest part.
    let nanos = -i64::from(NANO);
    let mut decimal = if decimal.unscaled.is_zero() { decimal } else { decimal.rounded_up(nanos) };
    if format == Format::BinarySI {
        let in_nanos = |value: i64| BigInt::from(value) * 1_000_000_000;
        if decimal.places == nanos && decimal.unscaled > in_nanos(i64::MAX) {
            decimal = Decimal { unscaled: BigInt::from(i64::MAX), places: 0 };
        }
        if decimal.places == nanos && decimal.unscaled < in_nanos(1) && decimal.unscaled.is_positive() {
            format = Format::DecimalSI;
        }
    }
    if split.negative {
        decimal.unscaled = -decimal.unscaled;
    }
    Ok(Quantity { amount: Amount::Big(Box::new(decimal)), format, written: None, keeps_text: false })
}

/// A number with an exponent that cannot be written out, when it has few digits before its zeros. Canonical texts are such:
/// they have up to two zeros more than the number that was read.
fn huge(negative: bool, significant: &str, last: i64) -> Option<Quantity> {
    if length(significant) > SMALL_DIGITS {
        return None;
    }
    let value: i64 = significant.parse().ok()?;
    let amount = Amount::Small { value: if negative { -value } else { value }, scale: i32::try_from(last).ok()? };
    Some(Quantity { amount, format: Format::DecimalExponent, written: None, keeps_text: false })
}

/// Digits and an exponent that is a multiple of three.
fn thousands(amount: &Amount) -> (String, i64) {
    if let Amount::Small { value, scale } = *amount {
        let (mut value, mut exponent) = (value, i64::from(scale));
        while value % 10 == 0 && value.unsigned_abs() >= 10 && value != i64::MIN {
            value /= 10;
            exponent += 1;
        }
        let surplus = exponent.rem_euclid(3);
        if let (value, true) = times_power_of_ten(value, surplus as i32) {
            return (value.to_string(), exponent - surplus);
        }
    }
    let decimal = amount.decimal();
    let (digits, zeros) = without_factors(decimal.unscaled, 10);
    let exponent = zeros - decimal.places;
    let surplus = exponent.rem_euclid(3);
    ((digits * 10_i64.pow(surplus as u32)).to_string(), exponent - surplus)
}

/// A whole number with the largest power of 1024 that divides it.
fn binary(whole: &Amount) -> String {
    let (number, times) = if let Some(mut value) = whole.as_i64() {
        let mut times = 0;
        while value % 1024 == 0 && value.unsigned_abs() >= 1024 && value != i64::MIN {
            value /= 1024;
            times += 1;
        }
        (value.to_string(), times)
    } else {
        let (number, times) = without_factors(whole.decimal().rounded_up(0).unscaled, 1024);
        (number.to_string(), times)
    };
    let suffix = match times {
        1 => "Ki",
        2 => "Mi",
        3 => "Gi",
        4 => "Ti",
        5 => "Pi",
        6 => "Ei",
        _ => "",
    };
    number + suffix
}
