//! The small path language of the recordings: `a.b[0].c`, `a.b[k=v].c`, with `\.` for a dot inside a name.

use serde_json::Value;

/// What the path leads to, if anything.
pub(crate) fn lookup<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut here = value;
    for step in steps(path) {
        here = match step.strip_prefix('[') {
            None => here.get(&step)?,
            Some(inner) => match inner.split_once('=') {
                None => here.get(inner.parse::<usize>().ok()?)?,
                Some((key, wanted)) => {
                    here.as_array()?.iter().find(|item| lookup(item, key).is_some_and(|found| text(found) == wanted))?
                }
            },
        };
    }
    Some(here)
}

/// A value as the recordings compare it: strings without quotes.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut name = String::new();
    let mut chars = path.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.peek() == Some(&'.') => name.extend(chars.next()),
            '.' => flush(&mut name, &mut steps),
            '[' => {
                flush(&mut name, &mut steps);
                steps.push(std::iter::once('[').chain(chars.by_ref().take_while(|&char| char != ']')).collect());
            }
            other => name.push(other),
        }
    }
    flush(&mut name, &mut steps);
    steps
}

fn flush(name: &mut String, steps: &mut Vec<String>) {
    if !name.is_empty() {
        steps.push(std::mem::take(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_through_names_indexes_and_keys() {
        let value = json!({"a": {"b.c": [{"k": "v", "n": 1}, {"k": "w", "n": true}]}});
        assert_eq!(lookup(&value, r"a.b\.c[0].n"), Some(&json!(1)));
        assert_eq!(lookup(&value, r"a.b\.c[k=w].n").map(text).as_deref(), Some("True"));
        assert_eq!(lookup(&value, "a.x"), None);
    }
}
