//! Writing with Go's escapes and Go's numbers.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// The JSON text of a value as Go's `json.Marshal` writes it: no spaces, fields in declaration order, keys of maps
/// sorted where the map is, and `<`, `>`, `&` and the two Unicode line separators escaped.
///
/// ```
/// assert_eq!(koord_resource::go_json::to_string(&["a<b", "é"])?, r#"["a\u003cb","é"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut text = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(&mut text, GoFormatter))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// A number as Go's `json.Marshal` writes it: digits, or an exponent below 1e-6 and from 1e21 on.
pub fn float_text(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    format!("{value}")
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // The first byte of the two separators is 0xE2. Hardly any text has one of these, and bytes are looked at faster than characters.
        if !fragment.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xE2)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            let mut characters = from.chars();
            let escaped = characters.next().map_or(0, u32::from);
            write!(writer, "{before}\\u{escaped:04x}")?;
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let text = match escape {
            CharEscape::Quote => "\\\"",
            CharEscape::ReverseSolidus => "\\\\",
            CharEscape::Solidus => "/",
            CharEscape::Backspace => "\\b",
            CharEscape::FormFeed => "\\f",
            CharEscape::LineFeed => "\\n",
            CharEscape::CarriageReturn => "\\r",
            CharEscape::Tab => "\\t",
            CharEscape::AsciiControl(byte) => return write!(writer, "\\u{byte:04x}"),
        };
        writer.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_in_go() {
        let text = to_string("<a&b>\u{2028}\u{1}\u{7f}\"\\/\n\u{8}é").unwrap();
        assert_eq!(text, "\"\\u003ca\\u0026b\\u003e\\u2028\\u0001\u{7f}\\\"\\\\/\\n\\bé\"");
    }

    #[test]
    fn floats_are_written_as_in_go() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1.22, "1.22"),
            (-2.5, "-2.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (1e-6, "0.000001"),
            (0.0, "0"),
        ] {
            assert_eq!(to_string(&value).unwrap(), text);
        }
    }
}
