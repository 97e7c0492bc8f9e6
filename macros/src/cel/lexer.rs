//! The tokens of a CEL expression.

use super::Mistake;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A name or a keyword.
    Word(&'t str),
    /// A name in backticks.
    Quoted(&'t str),
    Integer,
    Float,
    Text,
    Bytes,
    /// Operators and brackets.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*",
    "/", "%", "!", "<", ">", "=",
];

/// The tokens with the places where they begin; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, Mistake> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some((token, length)) = literal(at, rest)? {
            tokens.push((at, token));
            at += length;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length =
                rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
            tokens.push((at, Token::Word(&rest[..length])));
            at += length;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            // `a ?.5 : 1` is rare, `[?` and `.?` are optional entries.
            tokens.push((at, Token::Sign(sign)));
            at += sign.len();
        } else {
            return Err(Mistake::new(at, format!("`{first}` has no meaning")));
        }
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// A literal or a name in backticks, with its length.
fn literal(at: usize, rest: &str) -> Result<Option<(Token<'_>, usize)>, Mistake> {
    if let Some(quoted) = rest.strip_prefix('`') {
        let end = quoted.find('`').ok_or_else(|| Mistake::new(at, "a backtick without its other"))?;
        return Ok(Some((Token::Quoted(&quoted[..end]), end + 2)));
    }
    let prefix = rest.find(|letter: char| !matches!(letter, 'r' | 'R' | 'b' | 'B')).unwrap_or(rest.len());
    if prefix <= 2 && rest[prefix..].starts_with(['"', '\'']) {
        let letters = rest[..prefix].to_ascii_lowercase();
        let length = prefix + text_length(at, &rest[prefix..], letters.contains('r'))?;
        return Ok(Some((if letters.contains('b') { Token::Bytes } else { Token::Text }, length)));
    }
    let is_number = rest.starts_with(|letter: char| letter.is_ascii_digit())
        || (rest.starts_with('.') && rest[1..].starts_with(|letter: char| letter.is_ascii_digit()));
    if is_number { number(at, rest).map(Some) } else { Ok(None) }
}

/// The length of a text with its quotes.
fn text_length(at: usize, rest: &str, is_raw: bool) -> Result<usize, Mistake> {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let (quote, is_long) = if rest.starts_with(&triple) { (triple.as_str(), true) } else { (quote, false) };
    let mut position = quote.len();
    while position < rest.len() {
        let inside = &rest[position..];
        if inside.starts_with(quote) {
            return Ok(position + quote.len());
        }
        if inside.starts_with('\n') && !is_long {
            break;
        }
        let Some(letter) = inside.chars().next() else { break };
        position += letter.len_utf8();
        if letter == '\\' && !is_raw {
            let escaped = inside[1..].chars().next();
            if !escaped.is_some_and(|letter| "abfnrtv\\?\"'`xXuU01234567".contains(letter)) {
                return Err(Mistake::new(at, "a text with an escape that CEL does not know"));
            }
            position += escaped.map_or(0, char::len_utf8);
        }
    }
    Err(Mistake::new(at, "a text without its end"))
}

fn number(at: usize, rest: &str) -> Result<(Token<'_>, usize), Mistake> {
    let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (mut length, mut is_float) = (0, false);
    if let Some(hexadecimal) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let count = hexadecimal.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(hexadecimal.len());
        if count == 0 {
            return Err(Mistake::new(at, "a number without digits"));
        }
        length = 2 + count;
    } else {
        length += digits(rest);
        let fraction = rest[length..].strip_prefix('.').map_or(0, digits);
        if fraction > 0 {
            (length, is_float) = (length + 1 + fraction, true);
        }
        if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let count = digits(&exponent[sign..]);
            if count > 0 {
                (length, is_float) = (length + 1 + sign + count, true);
            }
        }
    }
    if !is_float && rest[length..].starts_with(['u', 'U']) {
        length += 1;
    }
    if rest[length..].starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(Mistake::new(at, "a name that begins with a digit"));
    }
    Ok((if is_float { Token::Float } else { Token::Integer }, length))
}
