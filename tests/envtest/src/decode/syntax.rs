//! The mistakes in JSON text, as Go's scanner words them.

/// What is wrong with the text; none when it is one JSON value.
pub(super) fn mistake(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.space();
    let result = scanner.value().and_then(|()| {
        scanner.space();
        if scanner.at < text.len() { Err(scanner.unexpected("after top-level value")) } else { Ok(()) }
    });
    result.err()
}

/// Deeper nesting is refused, as by Go.
const DEPTH_MAX: usize = 10_000;

/// An object or array whose end is still to come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

impl Open {
    fn end(self) -> u8 {
        match self {
            Open::Object => b'}',
            Open::Array => b']',
        }
    }

    fn context(self) -> &'static str {
        match self {
            Open::Object => "after object key:value pair",
            Open::Array => "after array element",
        }
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(b'\'') => format!("invalid character '\\'' {context}"),
            Some(b'"') => format!("invalid character '\"' {context}"),
            Some(byte) if byte.is_ascii_graphic() || byte == b' ' => {
                format!("invalid character '{}' {context}", char::from(byte))
            }
            Some(b'\n') => format!("invalid character '\\n' {context}"),
            Some(b'\t') => format!("invalid character '\\t' {context}"),
            Some(b'\r') => format!("invalid character '\\r' {context}"),
            Some(byte) if byte < 0x80 => format!("invalid character '\\x{byte:02x}' {context}"),
            Some(byte) => format!("invalid character '{}' {context}", char::from(byte)),
        }
    }

    /// One value with all that is in it. The open objects and arrays are kept in a list, not on the stack.
    fn value(&mut self) -> Result<(), String> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let opened = match self.peek() {
                Some(b'{') => Some(Open::Object),
                Some(b'[') => Some(Open::Array),
                _ => None,
            };
            if let Some(opened) = opened {
                if open.len() >= DEPTH_MAX {
                    return Err("exceeded max depth".to_owned());
                }
                self.at += 1;
                self.space();
                if self.peek() != Some(opened.end()) {
                    open.push(opened);
                    self.key(opened)?;
                    continue;
                }
                self.at += 1;
            } else {
                self.scalar()?;
            }
            loop {
                let Some(&innermost) = open.last() else { return Ok(()) };
                self.space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.space();
                        self.key(innermost)?;
                        break;
                    }
                    Some(end) if end == innermost.end() => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return Err(self.unexpected(innermost.context())),
                }
            }
        }
    }

    /// What stands before a value: in an object its key, in an array nothing.
    fn key(&mut self, within: Open) -> Result<(), String> {
        if within == Open::Array {
            return Ok(());
        }
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return Err(self.unexpected("in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.unexpected("in string escape code")),
                    }
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            // Go's scanner reads the end of the text as a space.
            if self.peek().is_none() {
                return Err(format!("invalid character ' ' in literal {word} (expecting '{}')", char::from(expected)));
            }
            if self.peek() != Some(expected) {
                return Err(self.unexpected(&format!("in literal {word} (expecting '{}')", char::from(expected))));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.unexpected(context));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn mistakes_have_gos_words() {
        for (text, words) in [
            ("", "unexpected end of JSON input"),
            ("{nope", "invalid character 'n' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("[1,tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("{\"a\":12", "unexpected end of JSON input"),
            ("{\"a\":\"b", "unexpected end of JSON input"),
        ] {
            assert_eq!(mistake(text.as_bytes()).as_deref(), Some(words), "{text}");
        }
        for (text, words) in [
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[[1}", "invalid character '}' after array element"),
            ("{\"a\":{\"b\":[]]", "invalid character ']' after object key:value pair"),
        ] {
            assert_eq!(mistake(text.as_bytes()).as_deref(), Some(words), "{text}");
        }
        assert_eq!(mistake(br#"[[], {}, {"a": {}}]"#), None);
        assert_eq!(mistake(br#" {"a": [1, -2.5e3, "x\u00e9", null]} "#), None);
    }

    #[test]
    fn nesting_needs_no_stack() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(mistake(nested(10_000).as_bytes()), None);
        for depth in [10_001, 2_000_000] {
            assert_eq!(mistake(nested(depth).as_bytes()).as_deref(), Some("exceeded max depth"));
        }
    }
}
