//! YAML bodies, in and out.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What the parser says of a quoted text that goes on no further right than its key. Go's YAML, and so every file that
/// controller-gen ever wrote, allows that.
const SHALLOW_CONTINUATION: &str = "invalid indentation in multiline quoted scalar";
/// Most lines of one text that are moved for it.
const MOVED_LINES_MAX: usize = 1_000;

/// Reads one YAML document.
pub fn parse(text: &str) -> Result<Value, serde_saphyr::Error> {
    as_go_reads(text, |text| serde_saphyr::from_str(text))
}

/// Reads every document of a file; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let documents: Vec<Value> = as_go_reads(text, |text| serde_saphyr::from_multiple(text))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Moves lines of quoted texts to the right where the parser wants them there. The blanks before such a line are no part
/// of the text, so nothing changes its meaning.
fn as_go_reads<T>(text: &str, read: impl Fn(&str) -> Result<T, serde_saphyr::Error>) -> Result<T, serde_saphyr::Error> {
    let mut error = match read(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut moved = text.to_owned();
    for _ in 0..MOVED_LINES_MAX {
        let Some(start) = shallow_line(&error, &moved) else { break };
        moved.insert_str(start, "    ");
        match read(&moved) {
            Ok(value) => return Ok(value),
            Err(next) => error = next,
        }
    }
    Err(error)
}

/// Where the line begins that is not far enough right for the parser.
fn shallow_line(error: &serde_saphyr::Error, text: &str) -> Option<usize> {
    let serde_saphyr::Error::ExternalMessage { msg, location, .. } = error.without_snippet() else { return None };
    if msg != SHALLOW_CONTINUATION {
        return None;
    }
    let before = usize::try_from(location.line()).ok()?.checked_sub(1)?;
    let lines = text.split_inclusive('\n');
    let start = lines.take(before).map(str::len).sum();
    (start < text.len()).then_some(start)
}

/// Writes an object with sorted keys, as kubectl and the API server do.
pub fn to_text(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).unwrap_or_default();
    match &*FIELD_KEYS {
        Some(keys) => keys.replace_all(&text, "$1$2:").into_owned(),
        None => text,
    }
}

/// Keys of `fieldsV1`: the library quotes them, Go's YAML does not.
static FIELD_KEYS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?m)^( *(?:- )?)"(\.|f:[A-Za-z0-9_./-]+)":"#).ok());

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quoted_texts_may_go_on_below_their_key() {
        let text = "a:\n  description: 'one\n  two\n  three'\n  other: \"four\n\n  five\"\nb: 'six\nseven'\n";
        let expected = json!({"a": {"description": "one two three", "other": "four\nfive"}, "b": "six seven"});
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(documents(&format!("---\n{text}---\n{text}")).unwrap(), [expected.clone(), expected]);
    }

    #[test]
    fn other_mistakes_are_reported_where_they_are() {
        let error = parse("a: 'one\ntwo'\nb: [1\nc: 2\n").unwrap_err();
        assert!(error.location().is_some_and(|at| at.line() >= 3), "{error}");
    }
}
