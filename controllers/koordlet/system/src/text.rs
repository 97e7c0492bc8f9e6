//! Lines, fields and numbers of kernel texts, read in place: nothing here allocates memory.

use crate::parse_error::{Excerpt, ParseError};

/// What is said to be expected where a number is.
pub(crate) const NUMBER: &str = "a number from 0 to 18446744073709551615";

/// The lines of a text, without their ends. A text that ends with a newline has an empty last line.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (line, behind) = split_once(text, b'\n').map_or((text, None), |(line, behind)| (line, Some(behind)));
        rest = behind;
        Some(line)
    })
}

/// The fields of a line, between blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// What stands before and after the first of a byte.
pub(crate) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(separator, text)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Decimal digits without a sign, up to `u64::MAX`.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Hexadecimal digits of either case without a prefix, up to `u64::MAX`.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| Some(number << 4 | u64::from(char::from(*byte).to_digit(16)?)))
}

/// A number from 0 to `u32::MAX`.
pub(crate) fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text).and_then(|number| u32::try_from(number).ok())
}

/// A kind of file with the field that is read: it makes the errors.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) file: &'static str,
    pub(crate) field: &'static str,
}

impl Field {
    pub(crate) fn missing(self) -> ParseError {
        ParseError::Missing { file: self.file, field: self.field }
    }

    pub(crate) fn malformed(self, text: &[u8], expected: &'static str) -> ParseError {
        ParseError::Malformed { file: self.file, field: self.field, text: Excerpt::new(text), expected }
    }

    pub(crate) fn unsigned(self, text: Option<&[u8]>) -> Result<u64, ParseError> {
        let text = text.ok_or_else(|| self.missing())?;
        unsigned(text).ok_or_else(|| self.malformed(text, NUMBER))
    }
}

/// Values of lines such as `nr_periods 12` or `MemTotal: 16 kB`, in the order of the keys; what follows the number is ignored.
/// The first line of a key counts; reading ends when all keys are found.
///
/// Fails where the line of a key has no number.
pub(crate) fn keyed_if_present<const N: usize>(
    file: &'static str,
    text: &[u8],
    keys: [&'static str; N],
) -> Result<[Option<u64>; N], ParseError> {
    keyed_fields(file, keys, lines(text).map(fields))
}

/// Like [`keyed_if_present`], of lines whose fields are given.
pub(crate) fn keyed_fields<'a, const N: usize>(
    file: &'static str,
    keys: [&'static str; N],
    lines: impl Iterator<Item = impl Iterator<Item = &'a [u8]>>,
) -> Result<[Option<u64>; N], ParseError> {
    let mut values = [None; N];
    let mut missing = N;
    for mut line in lines {
        if missing == 0 {
            break;
        }
        let Some(key) = line.next() else { continue };
        let key = key.strip_suffix(b":").unwrap_or(key);
        let place = keys.iter().zip(&mut values).find(|(known, _)| known.as_bytes() == key);
        if let Some((field, value @ None)) = place {
            *value = Some(Field { file, field }.unsigned(line.next())?);
            missing -= 1;
        }
    }
    Ok(values)
}

/// The values of keys all of which must be there.
pub(crate) fn all_present<const N: usize>(
    file: &'static str,
    keys: [&'static str; N],
    values: [Option<u64>; N],
) -> Result<[u64; N], ParseError> {
    let mut present = [0; N];
    for ((place, value), field) in present.iter_mut().zip(values).zip(keys) {
        *place = value.ok_or(ParseError::Missing { file, field })?;
    }
    Ok(present)
}

/// Like [`keyed_if_present`]; fails where a key is missing.
pub(crate) fn keyed<const N: usize>(
    file: &'static str,
    text: &[u8],
    keys: [&'static str; N],
) -> Result<[u64; N], ParseError> {
    all_present(file, keys, keyed_if_present(file, text, keys)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_alone() {
        for (text, number) in [
            ("0", Some(0)),
            ("0012", Some(12)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("+1", None),
            ("-1", None),
            ("1 ", None),
            ("1.0", None),
            ("", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), number, "{text:?}");
        }
        for (text, number) in [("7ff", Some(0x7ff)), ("FFFFF", Some(0xf_ffff)), ("0x1", None), ("", None)] {
            assert_eq!(hexadecimal(text.as_bytes()), number, "{text:?}");
        }
        assert_eq!(hexadecimal(b"ffffffffffffffff"), Some(u64::MAX));
        assert_eq!(hexadecimal(b"10000000000000000"), None);
    }

    #[test]
    fn the_first_line_of_a_key_counts_and_lines_of_other_keys_may_hold_anything() {
        let text = b"other x\n\na 1 kB\nb: 2\na 3\n";
        assert_eq!(keyed("f", text, ["b", "a"]), Ok([2, 1]));
        assert_eq!(keyed_if_present("f", text, ["c", "a"]), Ok([None, Some(1)]));
        assert_eq!(keyed("f", text, ["c"]), Err(ParseError::Missing { file: "f", field: "c" }));
        assert_eq!(keyed("f", b"a", ["a"]), Err(ParseError::Missing { file: "f", field: "a" }));
        let error = keyed("f", text, ["other"]).unwrap_err();
        assert_eq!(error.to_string(), format!("f: other is \"x\", not {NUMBER}"));
    }
}
