//! `pattern` means RE2: the expression is translated for the `regex` crate, whose classes are wider.
//!
//! RE2's `\d`, `\w`, `\s` and `\b` know ASCII only, a lone `{` or a `[` inside a class is a literal, `\Q…\E` quotes,
//! and back-references do not exist. Both engines run in linear time.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use regex::Regex;

/// A `pattern` that is no RE2 expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub struct PatternError(String);

/// Compiled patterns are kept; beyond this many the store starts over, so that it cannot grow without end.
const KEPT_MAX: usize = 4096;
/// RE2 refuses a higher repetition count.
const REPEAT_MAX: u32 = 1000;

/// The classes that RE2 knows by name.
const CLASS_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

type Compiled = Result<Arc<Regex>, PatternError>;

static KEPT: LazyLock<RwLock<HashMap<String, Compiled>>> = LazyLock::new(RwLock::default);

/// The compiled form of an RE2 expression, from memory where it was compiled before.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, PatternError> {
    if let Some(known) = KEPT.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return known.clone();
    }
    let compiled = translate(pattern).and_then(|translated| match Regex::new(&translated) {
        Ok(regex) => Ok(Arc::new(regex)),
        Err(error) => Err(PatternError(reason(&error, pattern))),
    });
    let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(pattern.to_owned(), compiled.clone());
    compiled
}

/// The last line of a report, which names the mistake.
fn reason(error: &regex::Error, pattern: &str) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!("{}: `{pattern}`", last.strip_prefix("error: ").unwrap_or(last))
}

/// The expression in the syntax of the `regex` crate.
///
/// ```
/// use koord_schema::pattern::translate;
/// assert_eq!(translate(r"^\d+[\w-]$").unwrap(), r"^[0-9]+[0-9A-Za-z_\-]$");
/// assert_eq!(translate("a{,2}").unwrap(), r"a\{,2\}");
/// assert!(translate(r"(a)\1").is_err());
/// ```
pub fn translate(pattern: &str) -> Result<String, PatternError> {
    Translation { rest: pattern.chars().collect(), at: 0, out: String::with_capacity(pattern.len() + 8) }.run()
}

struct Translation {
    rest: Vec<char>,
    at: usize,
    out: String,
}

impl Translation {
    fn run(mut self) -> Result<String, PatternError> {
        // Whether the last thing written was a repetition operator: RE2 does not repeat a repetition.
        let mut repeated = false;
        while let Some(character) = self.next() {
            let was_repeated = std::mem::take(&mut repeated);
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' => {
                    self.refuse_double(was_repeated)?;
                    self.out.push(character);
                    self.lazy();
                    repeated = true;
                }
                '{' => match self.repetition()? {
                    Some(counts) => {
                        self.refuse_double(was_repeated)?;
                        self.out.push_str(&counts);
                        self.lazy();
                        repeated = true;
                    }
                    None => self.out.push_str("\\{"),
                },
                '}' => self.out.push_str("\\}"),
                other => self.out.push(other),
            }
        }
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn ahead(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, wanted)| self.rest.get(self.at + offset) == Some(&wanted))
    }

    fn fail<T>(&self, what: &str) -> Result<T, PatternError> {
        let pattern: String = self.rest.iter().collect();
        Err(PatternError(format!("{what}: `{pattern}`")))
    }

    fn refuse_double(&self, was_repeated: bool) -> Result<(), PatternError> {
        if was_repeated { self.fail("invalid nested repetition operator") } else { Ok(()) }
    }

    fn lazy(&mut self) {
        if self.peek() == Some('?') {
            self.at += 1;
            self.out.push('?');
        }
    }

    /// `{n}`, `{n,}` or `{n,m}` behind the brace; anything else leaves the brace a literal.
    fn repetition(&mut self) -> Result<Option<String>, PatternError> {
        let Some(length) = self.rest[self.at..].iter().position(|c| *c == '}') else { return Ok(None) };
        let body: String = self.rest[self.at..self.at + length].iter().collect();
        let (low, high) = body.split_once(',').map_or((body.as_str(), None), |(low, high)| (low, Some(high)));
        let is_count = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !is_count(low) || high.is_some_and(|high| !high.is_empty() && !is_count(high)) {
            return Ok(None);
        }
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= REPEAT_MAX);
        let counts = (count(low), high.filter(|high| !high.is_empty()).map(count));
        match counts {
            (Some(low), Some(Some(high))) if low > high => return self.fail("invalid repeat count"),
            (None, _) | (_, Some(None)) => return self.fail("invalid repeat count"),
            _ => {}
        }
        self.at += length + 1;
        Ok(Some(format!("{{{body}}}")))
    }

    /// The opening of a group; only the flags that RE2 knows pass.
    fn group(&mut self) -> Result<(), PatternError> {
        self.out.push('(');
        if self.peek() != Some('?') {
            return Ok(());
        }
        self.at += 1;
        self.out.push('?');
        if self.ahead("P<") || self.ahead("<") {
            return Ok(());
        }
        while let Some(flag) = self.next() {
            self.out.push(flag);
            match flag {
                ':' | ')' => return Ok(()),
                'i' | 'm' | 's' | 'U' | '-' => {}
                _ => {
                    let start = self.rest[..self.at].iter().rposition(|c| *c == '(').unwrap_or(0);
                    let shown: String = self.rest[start..self.at].iter().collect();
                    return Err(PatternError(format!("invalid or unsupported Perl syntax: `{shown}`")));
                }
            }
        }
        self.fail("missing closing )")
    }

    /// What stands behind a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), PatternError> {
        let Some(character) = self.next() else { return self.fail("trailing backslash at end of expression") };
        let class = match character {
            'd' => Some(("0-9", false)),
            'D' => Some(("0-9", true)),
            'w' => Some(("0-9A-Za-z_", false)),
            'W' => Some(("0-9A-Za-z_", true)),
            's' => Some(("\\t\\n\\f\\r\\x20", false)),
            'S' => Some(("\\t\\n\\f\\r\\x20", true)),
            _ => None,
        };
        if let Some((members, negated)) = class {
            match (in_class, negated) {
                (true, false) => self.out.push_str(members),
                (_, true) => self.out.push_str(&format_class("^", members)),
                (false, false) => self.out.push_str(&format_class("", members)),
            }
            return Ok(());
        }
        match character {
            'b' if !in_class => self.out.push_str("(?-u:\\b)"),
            'B' if !in_class => self.out.push_str("\\B"),
            'A' | 'z' if !in_class => {
                self.out.push('\\');
                self.out.push(character);
            }
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'p' | 'P' | 'x' => {
                self.out.push('\\');
                self.out.push(character);
                self.braced_or_short(character);
            }
            '0'..='7' => self.octal(character)?,
            'Q' if !in_class => self.quoted(),
            other if other.is_ascii_punctuation() => self.literal(other),
            _ => return self.fail("invalid escape sequence"),
        }
        Ok(())
    }

    /// The `{…}` of `\p{…}` and `\x{…}` belongs to the escape and is no repetition.
    fn braced_or_short(&mut self, escape: char) {
        if matches!(escape, 'p' | 'P' | 'x') && self.peek() == Some('{') {
            while let Some(character) = self.next() {
                self.out.push(character);
                if character == '}' {
                    break;
                }
            }
        }
    }

    fn octal(&mut self, first: char) -> Result<(), PatternError> {
        if first != '0' && !self.peek().is_some_and(|next| next.is_digit(8)) {
            // A single digit would be a back-reference.
            return self.fail("invalid escape sequence");
        }
        let mut value = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            value = value * 8 + digit;
            self.at += 1;
        }
        let text = format!("\\x{{{value:x}}}");
        self.out.push_str(&text);
        Ok(())
    }

    fn quoted(&mut self) {
        while !self.ahead("\\E") {
            let Some(character) = self.next() else { return };
            self.literal(character);
        }
        self.at += 2;
    }

    fn literal(&mut self, character: char) {
        self.out.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
    }

    /// A bracketed class. What is a set operation for the `regex` crate is a literal for RE2.
    fn class(&mut self) -> Result<(), PatternError> {
        self.out.push('[');
        if self.peek() == Some('^') {
            self.at += 1;
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(character) = self.next() else { return self.fail("missing closing ]") };
            match character {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                ']' => self.out.push_str("\\]"),
                '[' if self.peek() == Some(':') => self.named_class()?,
                '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(character);
                }
                '-' if first || self.peek() == Some(']') || self.peek() == Some('-') => self.out.push_str("\\-"),
                '\\' => self.escape(true)?,
                other => self.out.push(other),
            }
            first = false;
        }
    }

    /// `[:alpha:]` inside a class; without its end the bracket is a literal.
    fn named_class(&mut self) -> Result<(), PatternError> {
        let rest: String = self.rest[self.at..].iter().collect();
        // The colon that begins the class does not end it.
        let Some((name, _)) = rest.strip_prefix(':').and_then(|rest| rest.split_once(":]")) else {
            self.out.push_str("\\[");
            return Ok(());
        };
        if !CLASS_NAMES.contains(&name.trim_start_matches('^')) {
            return self.fail("invalid character class range");
        }
        let text = format!("[:{name}:]");
        self.out.push_str(&text);
        self.at += text.len() - 1;
        Ok(())
    }
}

fn format_class(negation: &str, members: &str) -> String {
    format!("[{negation}{members}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_re2_does() {
        let table: [(&str, &[&str], &[&str]); 16] = [
            (r"^\d+$", &["12"], &["", "\u{661}"]),
            (r"^\w$", &["a", "_"], &["é", "-"]),
            (r"^\s$", &[" ", "\t"], &["\u{a0}", "\u{b}"]),
            (r"^[\w.-]+$", &["a.b-c"], &["a b"]),
            (r"^[^\d]$", &["a"], &["1"]),
            (r"^[\D]$", &["a", "\u{661}"], &["1"]),
            (r"\bfoo\b", &["a foo b", "éfooé"], &["afoo"]),
            (r"^a{2}$", &["aa"], &["a{2}"]),
            (r"^a{$", &["a{"], &["a"]),
            (r"^{a,b}$", &["{a,b}"], &[]),
            (r"^[[]$", &["["], &["]"]),
            (r"^[]a]+$", &["]a"], &["b"]),
            (r"^[[:]]$", &["[]", ":]"], &["[", ":", "]"]),
            (r"^[a&&b]+$", &["a&b"], &["c"]),
            (r"^\Qa.b\E$", &["a.b"], &["axb"]),
            (r"^\x41\101\-[[:digit:]]$", &["AA-1"], &["AA-a"]),
        ];
        for (pattern, accepted, refused) in table {
            let regex = compile(pattern).unwrap();
            for text in accepted {
                assert!(regex.is_match(text), "{pattern} accepts {text:?} ({})", regex.as_str());
            }
            for text in refused {
                assert!(!regex.is_match(text), "{pattern} refuses {text:?} ({})", regex.as_str());
            }
        }
    }

    #[test]
    fn what_is_no_re2_is_refused() {
        for pattern in [r"(a)\1", "a**", "(?=a)", "(?x)a", "[a", "(a", r"\", r"\y", "a{2,1}", "a{1001}", "[[:foo:]]"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        assert_eq!(compile("[a").unwrap_err().to_string(), "error parsing regexp: missing closing ]: `[a`");
    }
}
