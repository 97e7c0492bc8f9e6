//! A reader that keeps what Go's rules need and other readers drop: repeated keys, their order, the text of numbers.
//! It refuses a text in Go's words, because those reach clients.

/// Deeper nesting is refused, as by Go.
const DEPTH_MAX: usize = 10_000;
/// Nesting that the recursion below can bear on any thread's stack.
const DEPTH_BEARABLE: usize = 512;

/// A JSON value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'a> {
    /// Its first byte in the text.
    pub(super) at: usize,
    pub(super) json: Json<'a>,
}

/// One JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    String(String),
    Array(Vec<Node<'a>>),
    /// Every pair in the order of the text, repeated keys included.
    Object(Vec<(String, Node<'a>)>),
}

/// Why a text is not JSON; worded as Go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The text stops in the middle of a value.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A character that cannot stand where it stands.
    #[error("invalid character {character} {context}")]
    InvalidCharacter {
        /// The character in quotes.
        character: String,
        /// Where it stands, such as `after top-level value`.
        context: String,
    },
    /// More nesting than any configuration has.
    #[error("exceeded max depth")]
    TooDeep,
}

/// Whether a text is JSON; if not, Go's words for it.
pub fn check(text: &str) -> Result<(), SyntaxError> {
    parse(text).map(drop)
}

pub(super) fn parse(text: &str) -> Result<Node<'_>, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value("looking for beginning of value", 0)?;
    match reader.next_token() {
        None => Ok(node),
        Some(byte) => Err(refused(byte, "after top-level value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte under the cursor, which it must be for the text to go on.
    fn here(&self) -> Result<u8, SyntaxError> {
        self.peek().ok_or(SyntaxError::UnexpectedEnd)
    }

    /// The first byte that is not white space.
    fn next_token(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.peek()
    }

    fn token(&mut self) -> Result<u8, SyntaxError> {
        self.next_token().ok_or(SyntaxError::UnexpectedEnd)
    }

    fn value(&mut self, context: &str, depth: usize) -> Result<Node<'a>, SyntaxError> {
        if depth > DEPTH_BEARABLE.min(DEPTH_MAX) {
            return Err(SyntaxError::TooDeep);
        }
        let first = self.token()?;
        let at = self.at;
        let json = match first {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => Json::String(self.string()?),
            b't' => self.literal("true", Json::Bool(true))?,
            b'f' => self.literal("false", Json::Bool(false))?,
            b'n' => self.literal("null", Json::Null)?,
            b'-' | b'0'..=b'9' => self.number()?,
            byte => return Err(refused(byte, context)),
        };
        Ok(Node { at, json })
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, SyntaxError> {
        self.at += 1;
        let mut pairs = Vec::new();
        if self.token()? == b'}' {
            self.at += 1;
            return Ok(Json::Object(pairs));
        }
        loop {
            match self.token()? {
                b'"' => {}
                byte => return Err(refused(byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            match self.token()? {
                b':' => self.at += 1,
                byte => return Err(refused(byte, "after object key")),
            }
            pairs.push((key, self.value("looking for beginning of value", depth + 1)?));
            match self.token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Json::Object(pairs));
                }
                byte => return Err(refused(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, SyntaxError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.token()? == b']' {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value("looking for beginning of value", depth + 1)?);
            match self.token()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                byte => return Err(refused(byte, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &'static str, json: Json<'a>) -> Result<Json<'a>, SyntaxError> {
        for expected in word.bytes() {
            let byte = self.here()?;
            if byte != expected {
                let context = format!("in literal {word} (expecting {})", quoted(expected));
                return Err(refused(byte, &context));
            }
            self.at += 1;
        }
        Ok(json)
    }

    fn number(&mut self) -> Result<Json<'a>, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.here()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            byte => return Err(refused(byte, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            match self.here()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(refused(byte, "after decimal point in numeric literal")),
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            match self.here()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(refused(byte, "in exponent of numeric literal")),
            }
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let plain = self.at;
            while matches!(self.peek(), Some(byte) if byte >= b' ' && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            string.push_str(&self.text[plain..self.at]);
            match self.here()? {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => {
                    self.at += 1;
                    string.push(self.escape()?);
                }
                byte => return Err(refused(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let byte = self.here()?;
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape();
            }
            byte => return Err(refused(byte, "in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    /// Half of a surrogate pair without its other half becomes U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let unit = self.hexadecimal()?;
        if (0xD800..0xDC00).contains(&unit) && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.hexadecimal()?;
            if let Some(Ok(character)) = char::decode_utf16([unit, low]).next() {
                return Ok(character);
            }
            self.at = before;
        }
        Ok(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hexadecimal(&mut self) -> Result<u16, SyntaxError> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.here()?;
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(refused(byte, "in \\u hexadecimal character escape"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}

fn refused(byte: u8, context: &str) -> SyntaxError {
    SyntaxError::InvalidCharacter { character: quoted(byte), context: context.to_owned() }
}

/// A byte in single quotes, as Go's scanner shows it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = koord_schema::go_text::quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_texts_are_refused_in_gos_words() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            (" ", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a":"#, "unexpected end of JSON input"),
            (r#"{"a":1"#, "unexpected end of JSON input"),
            ("tru", "unexpected end of JSON input"),
            ("invalid", "invalid character 'i' looking for beginning of value"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            (r#"{"a"}"#, "invalid character '}' after object key"),
            (r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{}}", "invalid character '}' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (r#""\u12x4""#, "invalid character 'x' in \\u hexadecimal character escape"),
            ("'", "invalid character '\\'' looking for beginning of value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
        }
        assert_eq!(parse(&"[".repeat(20_000)).unwrap_err(), SyntaxError::TooDeep);
    }

    #[test]
    fn every_value_knows_where_it_begins() {
        let Json::Object(pairs) = parse(r#" {"a": [1, "b"], "c":null}"#).unwrap().json else { unreachable!() };
        let Json::Array(items) = &pairs[0].1.json else { unreachable!() };
        assert_eq!([&pairs[0].1, &items[0], &items[1], &pairs[1].1].map(|node| node.at), [7, 8, 11, 21]);
    }

    #[test]
    fn strings_are_unescaped_as_in_go() {
        for (text, string) in [
            (r#""\u00e9\/\ud83d\ude00""#, "é/😀"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ud83dx""#, "\u{fffd}x"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
        ] {
            assert_eq!(parse(text).unwrap().json, Json::String(string.to_owned()));
        }
    }
}
