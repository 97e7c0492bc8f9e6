//! `'…'.format([…])`: whether a text that is written out agrees with the values that it is given.

use super::types::Type;

/// What is wrong with a text, and which of the values it is about.
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    pub value: Option<usize>,
    pub message: String,
}

/// Checks a text with clauses such as `%s` and `%.2f` against the types of its values.
pub(super) fn check(text: &str, values: &[Type]) -> Result<(), Mistake> {
    let whole = |message: String| Mistake { value: None, message };
    let mut used = 0;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        if after.is_empty() {
            return Err(whole("unexpected end of string".to_owned()));
        }
        let value = values.get(used).ok_or_else(|| whole(format!("index {used} out of range")))?;
        let clause = precision(after)
            .map_err(|why| whole(format!("could not parse formatting clause: error while parsing precision: {why}")))?;
        let letter = clause.chars().next();
        let Some((clause_letter, fits, what)) = letter.and_then(clause_of) else {
            let letter = letter.unwrap_or_default();
            return Err(whole(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{letter}\""
            )));
        };
        if *value != Type::Dyn && !fits(value) {
            let name = value.name();
            let kind = name.split('(').next().unwrap_or_default();
            let message = format!("error during formatting: {what}, was given {kind}");
            return Err(Mistake { value: Some(used), message });
        }
        used += 1;
        rest = &clause[clause_letter.len_utf8()..];
    }
    if values.len() > used {
        let count = values.len();
        return Err(whole(format!("too many arguments supplied to string.format (expected {used}, got {count})")));
    }
    Ok(())
}

/// What follows the precision of a clause.
fn precision(clause: &str) -> Result<&str, String> {
    let Some(digits) = clause.strip_prefix('.') else { return Ok(clause) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let end = end.ok_or_else(|| "could not find end of precision specifier".to_owned())?;
    if end == 0 {
        let why = "error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax";
        return Err(why.to_owned());
    }
    Ok(&digits[end..])
}

type Clause = (char, fn(&Type) -> bool, &'static str);

/// The values that a clause takes, and how to say so.
fn clause_of(letter: char) -> Option<Clause> {
    let (fits, what): (fn(&Type) -> bool, _) = match letter {
        's' => (
            |type_| !matches!(type_, Type::Optional(_) | Type::Object(_) | Type::Library(_) | Type::Error),
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
        ),
        'd' => (|type_| matches!(type_, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
        'f' => (|type_| matches!(type_, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
        'e' => (|type_| matches!(type_, Type::Double | Type::String), "scientific clause can only be used on doubles"),
        'b' => (
            |type_| matches!(type_, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'x' | 'X' => (
            |type_| matches!(type_, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        'o' => (|type_| matches!(type_, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        _ => return None,
    };
    Some((letter, fits, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_take_values_of_their_types() {
        let values = [Type::String, Type::Int, Type::Double, Type::Dyn];
        assert_eq!(check("%s: %d %% %.2f %x", &values), Ok(()));
        for (text, value, why) in [
            ("%d", Some(0), "error during formatting: decimal clause can only be used on integers, was given string"),
            ("%s %q", None, "could not parse formatting clause: unrecognized formatting clause \"q\""),
            ("%s", None, "too many arguments supplied to string.format (expected 1, got 4)"),
            ("%s%d%f%s%s", None, "index 4 out of range"),
            ("a%", None, "unexpected end of string"),
            (
                "%.2",
                None,
                "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
            ),
        ] {
            assert_eq!(check(text, &values), Err(Mistake { value, message: why.to_owned() }), "{text}");
        }
    }
}
