//! One step of a path.

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    go_text,
    typed::{ListKey, Shape, TypeNode},
};

/// One step of a path, kept in the form in which FieldsV1 writes it, with keys sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(Box<str>);

impl Step {
    /// A field of an object, or an entry of a map.
    pub fn field(name: &str) -> Self {
        Step(format!("f:{name}").into())
    }

    /// The item of a keyed list with these keys.
    pub fn keys(keys: Map<String, Value>) -> Self {
        Step(format!("k:{}", Value::Object(keys)).into())
    }

    /// The item of a set.
    pub fn value(value: &Value) -> Self {
        Step(format!("v:{}", canonical(value)).into())
    }

    /// The item of a list with this index.
    pub(super) fn index(index: usize) -> Self {
        Step(format!("i:{index}").into())
    }

    /// The keys of the item, where the step leads into a keyed list.
    pub(super) fn item_keys(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(self.0.strip_prefix("k:")?).ok()
    }

    /// Whether the step leads to the item of a set.
    pub(super) fn is_value(&self) -> bool {
        self.0.starts_with("v:")
    }

    /// Reads a step from FieldsV1; keys and values are brought into canonical form.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Step::field(rest)),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(keys) => Some(Step::keys(keys)),
                _ => None,
            },
            "v" => Some(Step::value(&serde_json::from_str(rest).ok()?)),
            "i" => rest.parse::<i64>().ok().map(|index| Step(format!("i:{index}").into())),
            _ => None,
        }
    }

    /// The step that leads to an item of a list; `None` where the item lacks its identity.
    pub(super) fn of_item<N: TypeNode>(list: &N, item: &Value) -> Option<Self> {
        match list.shape() {
            Shape::SetList => (!item.is_null()).then(|| Step::value(item)),
            Shape::KeyedList => {
                let fields = item.as_object()?;
                // A key that is left out and has no default is no part of the identity, as long as there is another.
                let given =
                    |key: &ListKey<'_>| Some((key.name.to_owned(), fields.get(key.name).or(key.default)?.clone()));
                let keys: Map<String, Value> = list.list_keys().iter().filter_map(given).collect();
                (!keys.is_empty()).then(|| Step::keys(keys))
            }
            _ => None,
        }
    }

    /// The step as conflicts show it.
    pub(super) fn shown(&self) -> String {
        let (kind, rest) = self.0.split_once(':').unwrap_or(("f", &self.0));
        let parsed = || serde_json::from_str::<Value>(rest).unwrap_or_default();
        match kind {
            "k" => {
                let keys = parsed();
                let keys: Vec<String> = keys
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| format!("{name}={}", go_text::shown(value)))
                    .collect();
                format!("[{}]", keys.join(","))
            }
            "v" => format!("[={}]", go_text::shown(&parsed())),
            "i" => format!("[{rest}]"),
            _ => format!(".{rest}"),
        }
    }

    /// The field's name, where the step is a field.
    pub(super) fn field_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// JSON text in which 80 and 80.0 are the same.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => go_text::number(number),
        other => other.to_string(),
    }
}
