//! Replaces what differs between two servers by symbols.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::path::text as shown;

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        #[allow(clippy::expect_used, reason = "a constant pattern of this file")]
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect(stringify!($name)));
    };
}

// Times that a recording's author wrote lie before 2025 and are compared as they are.
pattern!(UUID, r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b");
pattern!(MICRO_TIME, r"\b(?:202[5-9]|20[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z");
pattern!(TIME, r"\b(?:202[5-9]|20[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)");
pattern!(TOKEN, r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+");
pattern!(AGE, r"^\d+[smhd](\d+[smhd])?$");
pattern!(AGO, r"\(\d+[smhd]\d*[smhd]? ago\)");
pattern!(GENERATED, r"^[a-z0-9]{5}$");
pattern!(REVISION, r"^\d+$");
pattern!(RV_IN_PRECONDITION, r"(ResourceVersion in (?:precondition|object meta): )(\d+)()");
pattern!(RV_IN_RECORD, r"(ResourceVersion in (?:the precondition|record) \()(\d+)()");
pattern!(RV_IN_JSON, r#"(resourceVersion\\?":\\?")(\d+)(\\?")"#);
pattern!(RV_IN_TEXT, r#"(resourceVersion: ")(\d+)(")"#);
pattern!(TOO_OLD, r"(too old resource version: \d+ \()\d+");
pattern!(TOO_LARGE, r"(Too large resource version: \d+, current: )\d+");
pattern!(CONTINUE_TOO_OLD, r#"(provided continue parameter is too old[^"]*: )\d+"#);

/// Gives symbols to what differs, the same symbol to the same value throughout one conversation.
pub struct Normaliser {
    unique: String,
    revisions: HashMap<String, usize>,
    generated: Vec<(String, String)>,
    columns: Vec<Value>,
    names_own_group: bool,
}

impl Normaliser {
    /// `unique` is the text that makes the names of one conversation its own.
    pub fn new(unique: &str) -> Self {
        Self {
            unique: unique.to_owned(),
            revisions: HashMap::new(),
            generated: Vec::new(),
            columns: Vec::new(),
            names_own_group: false,
        }
    }

    /// Forgets the column definitions of the answer before.
    pub fn next_answer(&mut self) {
        self.columns.clear();
    }

    pub fn body(&mut self, body: &Value) -> Value {
        self.learn_generated_names(body);
        self.names_own_group = body.to_string().contains(&self.unique);
        if body.get("kind") == Some(&Value::from("Table"))
            && let Some(columns) = body.get("columnDefinitions").and_then(Value::as_array)
        {
            self.columns.clone_from(columns);
        }
        self.walk(body, "")
    }

    /// One watch event.
    pub fn event(&mut self, event: &Value) -> Value {
        let mut event = event.clone();
        let bookmark = event.get("type") == Some(&Value::from("BOOKMARK"));
        let Some(fields) = event.as_object_mut() else { return event };
        if let Some(object) = fields.get_mut("object") {
            if bookmark {
                hide_bookmark_revisions(object);
            }
            *object = self.body(object);
        }
        event
    }

    /// A text in an answer.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.replace(&self.unique, "{UNIQ}");
        for (name, symbol) in &self.generated {
            text = text.replace(name, symbol);
        }
        for (pattern, symbol) in
            [(&UUID, "<uid>"), (&MICRO_TIME, "<microtime>"), (&TIME, "<time>"), (&TOKEN, "<token>")]
        {
            text = pattern.replace_all(&text, symbol).into_owned();
        }
        for pattern in [&RV_IN_PRECONDITION, &RV_IN_RECORD, &RV_IN_JSON, &RV_IN_TEXT] {
            text = pattern
                .replace_all(&text, |found: &Captures<'_>| {
                    format!("{}{}{}", &found[1], self.revision(&found[2]), &found[3])
                })
                .into_owned();
        }
        for pattern in [&TOO_OLD, &TOO_LARGE, &CONTINUE_TOO_OLD] {
            text = pattern.replace_all(&text, "${1}<rv>").into_owned();
        }
        text
    }

    fn revision(&mut self, revision: &str) -> String {
        if revision == "0" || !REVISION.is_match(revision) {
            return revision.to_owned();
        }
        let next = self.revisions.len() + 1;
        format!("<rv{}>", self.revisions.entry(revision.to_owned()).or_insert(next))
    }

    fn learn_generated_names(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(metadata) = fields.get("metadata")
                    && let (Some(prefix), Some(name)) = (str_of(metadata, "generateName"), str_of(metadata, "name"))
                    && let Some(suffix) = name.strip_prefix(prefix)
                    && GENERATED.is_match(suffix)
                    && !self.generated.iter().any(|(known, _)| known == name)
                {
                    self.generated.push((
                        name.replace(&self.unique, "{UNIQ}"),
                        format!("{}<rand>", prefix.replace(&self.unique, "{UNIQ}")),
                    ));
                }
                fields.values().for_each(|value| self.learn_generated_names(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.learn_generated_names(value)),
            _ => {}
        }
    }

    fn walk(&mut self, value: &Value, field: &str) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.walk(item, "")).collect();
                if field == "managedFields" {
                    items.sort_by_cached_key(|entry| {
                        ["operation", "manager", "apiVersion", "subresource"]
                            .map(|key| entry.get(key).map(shown).unwrap_or_default())
                    });
                }
                Value::Array(items)
            }
            Value::Object(_) => {
                let marked = mark_list_revision(value);
                let fields = marked.as_object().into_iter().flatten();
                Value::Object(fields.map(|(key, value)| self.field(field, key, value)).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn field(&mut self, parent: &str, key: &str, value: &Value) -> (String, Value) {
        let symbol = match (key, value) {
            ("resourceVersion", Value::String(revision)) => Value::String(self.revision(revision)),
            ("storageVersionHash", _) if self.names_own_group => Value::from("<hash>"),
            ("continue", Value::String(token))
                if token.starts_with("eyJ") || (!token.is_empty() && parent == "metadata") =>
            {
                Value::from("<continue>")
            }
            ("uid", Value::String(uid)) if UUID.find(uid).is_some_and(|found| found.as_str() == uid) => {
                Value::from("<uid>")
            }
            ("clusterIP", Value::String(address)) if !matches!(address.as_str(), "" | "None") => {
                Value::from("<clusterip>")
            }
            ("clusterIPs", Value::Array(addresses)) => addresses
                .iter()
                .map(|address| if address == "None" { address.clone() } else { Value::from("<clusterip>") })
                .collect(),
            ("nodePort", Value::Number(port)) if port.as_i64().is_some_and(|port| (30000..32768).contains(&port)) => {
                Value::from("<nodeport>")
            }
            ("cells", Value::Array(cells)) => {
                cells.iter().enumerate().map(|(index, cell)| self.cell(index, cell)).collect()
            }
            _ => return (self.text(key), self.walk(value, key)),
        };
        (key.to_owned(), symbol)
    }

    fn cell(&mut self, index: usize, cell: &Value) -> Value {
        let Value::String(text) = cell else { return self.walk(cell, "") };
        let column = self.columns.get(index);
        let ages = column.is_none_or(|column| {
            str_of(column, "type") == Some("date")
                || matches!(str_of(column, "name"), Some("Age" | "Last Seen" | "First Seen" | "Duration"))
        });
        if ages && AGE.is_match(text) && (column.is_some() || self.columns.is_empty()) {
            return Value::from("<age>");
        }
        let text = AGO.replace_all(text, "(<age> ago)").into_owned();
        Value::String(self.text(&text))
    }
}

/// A list's own revision is not compared, only checked not to be older than its items.
pub(crate) fn mark_list_revision(value: &Value) -> Value {
    let items = value.get("items").or_else(|| value.get("rows"));
    let (Some(items), Some(revision)) = (items, list_revision(value)) else { return value.clone() };
    let newest = items
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| str_of(item.get("object").unwrap_or(item).get("metadata")?, "resourceVersion")?.parse().ok())
        .max()
        .unwrap_or(0_u64);
    let mut marked = value.clone();
    marked["metadata"]["resourceVersion"] =
        Value::from(if revision >= newest { "<listrv>" } else { "<listrv older than an item>" });
    marked
}

fn list_revision(value: &Value) -> Option<u64> {
    str_of(value.get("metadata")?, "resourceVersion")?.parse().ok()
}

fn hide_bookmark_revisions(object: &mut Value) {
    let hide = |metadata: Option<&mut Value>| {
        if let Some(revision) = metadata.and_then(|metadata| metadata.get_mut("resourceVersion"))
            && revision.as_str().is_some_and(|revision| REVISION.is_match(revision))
        {
            *revision = Value::from("<bookmarkrv>");
        }
    };
    for row in object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        hide(row.get_mut("object").and_then(|object| object.get_mut("metadata")));
    }
    hide(object.get_mut("metadata"));
}

fn str_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_revisions_get_equal_symbols() {
        let mut normaliser = Normaliser::new("bcdfgh");
        let object = |revision: &str| json!({"metadata": {"name": "x-bcdfgh", "resourceVersion": revision}});
        assert_eq!(
            normaliser.body(&object("7")),
            json!({"metadata": {"name": "x-{UNIQ}", "resourceVersion": "<rv1>"}})
        );
        assert_eq!(normaliser.body(&object("9"))["metadata"]["resourceVersion"], "<rv2>");
        assert_eq!(normaliser.body(&object("7"))["metadata"]["resourceVersion"], "<rv1>");
    }

    #[test]
    fn a_list_must_not_be_older_than_its_items() {
        let list = |own: &str| json!({"metadata": {"resourceVersion": own}, "items": [{"metadata": {"resourceVersion": "5"}}]});
        assert_eq!(mark_list_revision(&list("5"))["metadata"]["resourceVersion"], "<listrv>");
        assert_eq!(mark_list_revision(&list("4"))["metadata"]["resourceVersion"], "<listrv older than an item>");
    }

    #[test]
    fn authored_times_stay() {
        let mut normaliser = Normaliser::new("bcdfgh");
        assert_eq!(normaliser.text("2020-01-01T00:00:00Z and 2026-01-01T00:00:00Z"), "2020-01-01T00:00:00Z and <time>");
    }
}
