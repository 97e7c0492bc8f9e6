//! Values as the API server prints them.
//!
//! Its messages show strings in Go's `%q`, numbers in `%v`, and everything else as JSON with `<`, `>` and `&`
//! escaped. Clients compare these texts, so they are reproduced here to the letter.

use serde_json::{Number, Value};

/// A string in double quotes, escaped as Go's `%q` escapes it.
///
/// ```
/// assert_eq!(koord_schema::go_text::quote("a\"b\n\u{0}é"), r#""a\"b\n\x00é""#);
/// assert_eq!(koord_schema::go_text::quote("it's"), r#""it's""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if c.is_ascii_control() => push_code(&mut out, 'x', 2, c),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x1_0000 => push_code(&mut out, 'u', 4, c),
            c => push_code(&mut out, 'U', 8, c),
        }
    }
    out.push('"');
    out
}

/// Appends an escape of `width` hexadecimal digits.
fn push_code(out: &mut String, marker: char, width: usize, character: char) {
    let code = format!("{:0width$x}", u32::from(character));
    out.push('\\');
    out.push(marker);
    out.push_str(&code);
}

/// Whether a character stands for itself in `%q`: no control, no space but the ASCII one, nothing unassigned.
pub fn is_printable(character: char) -> bool {
    // Rust would escape an apostrophe too.
    if matches!(character, ' '..='~') {
        return true;
    }
    if character.is_whitespace() || character.is_control() {
        return false;
    }
    // Rust also escapes combining characters, which Go prints.
    let escaped_alone = character.escape_debug().len() > 1;
    !escaped_alone || character.is_alphanumeric() || matches!(u32::from(character), 0x300..=0x36f)
}

/// JSON text as Go's encoder writes it: keys in order of their bytes, `<`, `>`, `&` and line separators escaped.
///
/// ```
/// assert_eq!(koord_schema::go_text::json(&serde_json::json!({"b": 1.0, "a": "x<y"})), r#"{"a":"x\u003cy","b":1}"#);
/// ```
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&self::number(number)),
        Value::String(text) => write_json_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(name, out);
                out.push(':');
                write_json(field, out);
            }
            out.push('}');
        }
    }
}

fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => push_code(out, 'u', 4, character),
            c if u32::from(c) < 0x20 => push_code(out, 'u', 4, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number in the shortest text that reads back: no fraction for whole numbers, an exponent from 1e21 on.
///
/// ```
/// use serde_json::Number;
/// let float = |value| Number::from_f64(value).unwrap();
/// assert_eq!(koord_schema::go_text::number(&float(2.0)), "2");
/// assert_eq!(koord_schema::go_text::number(&float(1e21)), "1e+21");
/// assert_eq!(koord_schema::go_text::number(&float(0.000_000_1)), "1e-07");
/// ```
pub fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{float}")
}

/// A value in Go's `%v`: bare strings, `map[key:value]`, `[item item]` and `<nil>`.
///
/// ```
/// let value = serde_json::json!({"name": "a", "ports": [80, null]});
/// assert_eq!(koord_schema::go_text::plain(&value), "map[name:a ports:[80 <nil>]]");
/// ```
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, field)| format!("{name}:{}", plain(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A value as it stands in a message: quoted text, a plain number, or JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => json(other),
    }
}

/// The Go type that a decoder without a schema reads a JSON value into.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What a decoder of Go calls the kind of a JSON value.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
