//! The JSON paths that printer columns, scale subresources and selectable fields use.
//!
//! Fields, quoted fields, indexes, `[*]` and filters that compare one field with a literal; no recursion, unions or slices.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter { field: JsonPath, equal: bool, literal: Value },
}

/// Why a path is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// It does not start as a path must.
    #[error("must start with `.`, such as `.spec.replicas`")]
    Start,
    /// It looks for a field at any depth.
    #[error("recursion with `..` is not supported")]
    Recursion,
    /// A bracket is not closed.
    #[error("unterminated array")]
    Unterminated,
    /// Something between brackets is not understood.
    #[error("invalid array index {0}")]
    Bracket(String),
}

// === impl JsonPath ===

impl JsonPath {
    /// Reads a path; the surrounding `{…}` may be left out.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let text = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        if !text.is_empty() && !text.starts_with(['.', '[']) {
            return Err(JsonPathError::Start);
        }
        let mut steps = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '.' if rest.starts_with("..") => return Err(JsonPathError::Recursion),
                '.' => {
                    let (field, tail) = take_field(&rest[1..]);
                    if field == "*" {
                        steps.push(Step::All);
                    } else if !field.is_empty() {
                        steps.push(Step::Field(field));
                    }
                    rest = tail;
                }
                '[' => {
                    let end = closing_bracket(rest).ok_or(JsonPathError::Unterminated)?;
                    steps.push(bracket(rest[1..end].trim())?);
                    rest = &rest[end + 1..];
                }
                _ => return Err(JsonPathError::Start),
            }
        }
        Ok(Self(steps))
    }

    /// Whether the path names single fields only.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|step| matches!(step, Step::Field(_)))
    }

    /// The fields of a plain path.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|step| if let Step::Field(field) = step { Some(field.as_str()) } else { None })
    }

    /// The path as a JSON pointer, where it names single fields only.
    pub fn to_pointer(&self) -> Option<String> {
        self.is_plain().then(|| {
            self.fields().fold(String::new(), |mut pointer, field| {
                pointer.push('/');
                pointer.push_str(&field.replace('~', "~0").replace('/', "~1"));
                pointer
            })
        })
    }

    /// All values that the path leads to, in order.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found
    }
}

// === impl Step ===

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { index.saturating_add(length) } else { *index };
                usize::try_from(index).ok().and_then(|index| items.get(index)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            (Self::Filter { field, equal, literal }, Value::Array(items)) => items
                .iter()
                .filter(|item| field.find(item).first().is_some_and(|value| (*value == literal) == *equal))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// A field name up to the next `.` or `[`; a backslash takes the next character as it is.
fn take_field(text: &str) -> (String, &str) {
    let mut field = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => field.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (field, &text[at..]),
            other => field.push(other),
        }
    }
    (field, "")
}

/// Where the bracket that `text` starts with is closed, quotes and inner brackets skipped.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_usize);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 1 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Result<Step, JsonPathError> {
    let invalid = || JsonPathError::Bracket(inner.to_owned());
    if inner == "*" {
        return Ok(Step::All);
    }
    if let Some(field) = unquote(inner) {
        return Ok(Step::Field(field));
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (equal, at) = match (condition.find("=="), condition.find("!=")) {
            (Some(at), _) => (true, at),
            (None, Some(at)) => (false, at),
            (None, None) => return Err(invalid()),
        };
        let field = condition[..at].trim().strip_prefix('@').ok_or_else(invalid)?;
        let literal = condition[at + 2..].trim();
        let literal = match unquote(literal) {
            Some(text) => Value::String(text),
            None => serde_json::from_str(literal).map_err(|_| invalid())?,
        };
        return Ok(Step::Filter { field: JsonPath::parse(field)?, equal, literal });
    }
    inner.parse().map(Step::Index).map_err(|_| invalid())
}

fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    text.strip_prefix(quote)?.strip_suffix(quote).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({"spec": {"n": 1, "list": [{"type": "A", "s": "x"}, {"type": "B", "s": "y"}]},
            "metadata": {"labels": {"a.b/c": "v"}}});
        let table = [
            (".spec.n", json!([1])),
            (".spec.list[0].s", json!(["x"])),
            (".spec.list[-1].s", json!(["y"])),
            (".spec.list[*].s", json!(["x", "y"])),
            (".spec.list[?(@.type==\"B\")].s", json!(["y"])),
            (".spec.list[?(@.type!='B')].s", json!(["x"])),
            (".metadata.labels.a\\.b/c", json!(["v"])),
            (".metadata.labels['a.b/c']", json!(["v"])),
            (".spec.absent.deeper", json!([])),
        ];
        for (path, expected) in table {
            assert_eq!(json!(JsonPath::parse(path).unwrap().find(&object)), expected, "{path}");
        }
    }

    #[test]
    fn broken_paths_are_refused() {
        assert_eq!(JsonPath::parse("spec.n"), Err(JsonPathError::Start));
        assert_eq!(JsonPath::parse(".spec..n"), Err(JsonPathError::Recursion));
        assert_eq!(JsonPath::parse(".spec[0"), Err(JsonPathError::Unterminated));
        assert_eq!(JsonPath::parse(".spec[x]"), Err(JsonPathError::Bracket("x".to_owned())));
    }
}
