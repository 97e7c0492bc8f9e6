//! Places in the text of an expression: the parser keeps none, and messages point at them.

/// Finds where things stand in an expression's text.
pub(super) struct Source<'t> {
    text: &'t str,
    tokens: Vec<(usize, &'t str)>,
}

impl<'t> Source<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Source { text, tokens: tokens(text) }
    }

    /// The place of the `nth` selection of a field: that of its dot.
    pub(super) fn selection(&self, field: &str, nth: usize) -> usize {
        let mut places = self.tokens.windows(2).filter(|pair| pair[0].1 == "." && pair[1].1 == field);
        places.nth(nth).map_or(0, |pair| pair[0].0)
    }

    /// The place of the `nth` selection of a field that may be absent: that of its dot.
    pub(super) fn optional_selection(&self, field: &str, nth: usize) -> usize {
        let mut places =
            self.tokens.windows(3).filter(|three| three[0].1 == "." && three[1].1 == "?" && three[2].1 == field);
        places.nth(nth).map_or(0, |three| three[0].0)
    }

    /// The place of the `nth` use of an identifier that is no field.
    pub(super) fn identifier(&self, name: &str, nth: usize) -> usize {
        let is_use = |index: usize| self.tokens[index].1 == name && (index == 0 || self.tokens[index - 1].1 != ".");
        (0..self.tokens.len()).filter(|index| is_use(*index)).nth(nth).map_or(0, |index| self.tokens[index].0)
    }

    /// The place of the `nth` operator of a kind.
    pub(super) fn operator(&self, operator: &str, nth: usize) -> usize {
        self.tokens.iter().filter(|(_, token)| *token == operator).nth(nth).map_or(0, |(place, _)| *place)
    }

    /// The place of the `nth` string literal.
    pub(super) fn string(&self, nth: usize) -> usize {
        let mut places = self.tokens.iter().filter(|(_, token)| token.starts_with(['\'', '"']));
        places.nth(nth).map_or(0, |(place, _)| *place)
    }

    /// The place of the `nth` call of a function: that of its parenthesis.
    pub(super) fn call(&self, function: &str, nth: usize) -> usize {
        let mut places = self.tokens.windows(2).filter(|pair| pair[0].1 == function && pair[1].1 == "(");
        places.nth(nth).map_or(0, |pair| pair[1].0)
    }

    /// Where unary operators are repeated: `--x`, `! !x`.
    pub(super) fn repeated_unary(&self) -> impl Iterator<Item = usize> {
        let operator =
            |index: usize| self.tokens.get(index).map(|(_, token)| *token).filter(|token| ["-", "!"].contains(token));
        let begins = move |index: &usize| {
            let token = operator(*index);
            token.is_some() && token == operator(index + 1) && index.checked_sub(1).and_then(operator) != token
        };
        (0..self.tokens.len()).filter(begins).map(|index| self.tokens[index].0)
    }

    /// Where an expression begins that lies in more than `most` others: brackets, and what follows the colon of `a ? b : c`.
    pub(super) fn nested_deeper_than(&self, most: usize) -> Option<usize> {
        // By open bracket: the conditionals whose last part is being read.
        let mut open = vec![0_usize];
        let mut depth = 1_usize;
        for (index, (place, token)) in self.tokens.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| self.tokens[before].1);
            let is_optional = matches!(before, Some("." | "[" | "{" | ","));
            match *token {
                "(" | "[" | "{" => {
                    open.push(0);
                    depth += 1;
                }
                ")" | "]" | "}" if open.len() > 1 => depth -= open.pop().unwrap_or_default() + 1,
                "," => depth -= open.last_mut().map(std::mem::take).unwrap_or_default(),
                "?" if !is_optional => {
                    if let Some(conditionals) = open.last_mut() {
                        *conditionals += 1;
                        depth += 1;
                    }
                }
                _ => {}
            }
            if depth > most {
                return Some(*place);
            }
        }
        None
    }

    /// A message with the line it speaks about and a mark below the place.
    pub(super) fn report(&self, place: usize, message: &str) -> String {
        let before = &self.text[..place.min(self.text.len())];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let shown = self.text.lines().nth(line).unwrap_or_default();
        format!("ERROR: <input>:{}:{}: {message}\n | {shown}\n | {}^", line + 1, column + 1, ".".repeat(column))
    }
}

/// The characters that are tokens by themselves; a back quote holds a name.
const PUNCTUATION: &[u8] = b"[]{}().,-!?:+*/%<>_`";

fn tokens(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let start = at;
        at = match byte {
            b'\'' | b'"' => string_end(text, at, is_raw(&found, at)).unwrap_or(at + 1),
            b'/' if bytes.get(at + 1) == Some(&b'/') => text[at..].find('\n').map_or(bytes.len(), |length| at + length),
            b if b.is_ascii_alphabetic() || b == b'_' => {
                at + bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
            }
            b if b.is_ascii_digit() => {
                at + bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'.').count()
            }
            b'<' | b'>' | b'=' | b'!' if bytes.get(at + 1) == Some(&b'=') => at + 2,
            b'&' | b'|' if bytes.get(at + 1) == Some(&byte) => at + 2,
            _ => at + text[at..].chars().next().map_or(1, char::len_utf8),
        };
        let token = &text[start..at];
        let is_token = match byte {
            b'\'' | b'"' => token.len() > 1,
            _ => token.len() > 1 && token.is_ascii() || byte.is_ascii_alphanumeric() || PUNCTUATION.contains(&byte),
        };
        // What is no token the parser leaves out, and reads on as if it were not there.
        if is_token && !token.starts_with("//") {
            found.push((start, token));
        }
    }
    found
}

/// Whether the prefix of a string literal says that its backslashes are letters.
fn is_raw(before: &[(usize, &str)], quote: usize) -> bool {
    let prefix = before.last().filter(|(start, token)| start + token.len() == quote).map(|(_, token)| *token);
    prefix.is_some_and(|prefix| ["r", "br", "rb"].iter().any(|raw| prefix.eq_ignore_ascii_case(raw)))
}

/// Where a string literal ends; none when it is no literal: it is not closed, or has an escape that does not exist. The
/// parser goes on inside of such a one.
fn string_end(text: &str, start: usize, raw: bool) -> Option<usize> {
    let rest = &text[start..];
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let is_triple = rest.starts_with(&triple);
    let delimiter = if is_triple { triple.as_str() } else { quote };
    let mut at = delimiter.len();
    loop {
        let here = &rest[at..];
        if here.starts_with(delimiter) {
            return Some(start + at + delimiter.len());
        }
        at += match here.chars().next()? {
            '\n' | '\r' if !is_triple => return None,
            '\\' if !raw => 1 + escape_length(&here[1..])?,
            letter => letter.len_utf8(),
        };
    }
}

/// How long an escape is, behind its backslash.
fn escape_length(text: &str) -> Option<usize> {
    let digits = |skipped: usize, count: usize, radix: u32| {
        let digits = text.get(skipped..skipped + count)?;
        digits.chars().all(|digit| digit.is_digit(radix)).then_some(skipped + count)
    };
    match text.chars().next()? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Some(1),
        'x' | 'X' => digits(1, 2, 16),
        'u' => digits(1, 4, 16),
        'U' => digits(1, 8, 16),
        '0'..='3' => digits(0, 3, 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_skip_literals_and_comments() {
        let text = "self.a == '.b' && // .b\n  self.b > 1";
        let source = Source::of(text);
        assert_eq!(&text[source.selection("b", 0)..][..2], ".b");
        assert_eq!(
            source.report(source.selection("b", 0), "undefined field 'b'"),
            "ERROR: <input>:2:7: undefined field 'b'\n |   self.b > 1\n | ......^"
        );
        assert_eq!(source.identifier("self", 1), text.rfind("self").unwrap());
        assert_eq!(source.operator(">", 0), text.rfind('>').unwrap());
    }

    #[test]
    fn nesting_is_counted_by_brackets_and_conditionals() {
        for (text, depth) in [
            ("a + b", 1),
            ("(a) + (b)", 2),
            ("[[a], {'k': f(b)}]", 4),
            ("a ? b : c ? d : e", 3),
            ("[a ? b : c, d ? e : f]", 3),
            ("a.?b[?c] + {?'d': e}['(('] // ((", 2),
            (")))((", 3),
        ] {
            let source = Source::of(text);
            assert_eq!(source.nested_deeper_than(depth), None, "{text}");
            assert!(source.nested_deeper_than(depth - 1).is_some(), "{text}");
        }
    }

    #[test]
    fn repeated_unary_operators_are_found_outside_of_literals() {
        for (text, places) in [
            ("--a + ! !b - -1 != 2", vec![0, 6, 11]),
            ("----a", vec![0]),
            ("-a - b == '--' && r'\\' != '!!' // --", vec![]),
            (r"r'\' + --a", vec![7]),
            ("'--a", vec![1]),
            ("-\u{265}-a", vec![0]),
            ("-;-a && 'é' == -~'\n-b'", vec![0, 16]),
            ("'\n--a'", vec![2]),
            (r"'\q--a'", vec![3]),
            (r#"'\x41--\u0041\'\\--' + """-- "-- """"#, vec![]),
        ] {
            assert_eq!(Source::of(text).repeated_unary().collect::<Vec<_>>(), places, "{text}");
        }
    }
}
