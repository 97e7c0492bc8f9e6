//! Which part of the old object a part of the new one is compared with.

use std::collections::HashMap;

use serde_json::Value;

use crate::{ListType, Schema};

/// Which old item a new one is compared with.
pub(crate) enum Correlation<'o> {
    None,
    ByIndex(&'o [Value]),
    ByKeys { keys: &'o [String], items: HashMap<String, &'o Value> },
}

impl<'o> Correlation<'o> {
    /// How items of a list are found again in the old list.
    pub(crate) fn of(schema: &'o Schema, old: Option<&'o Value>) -> Self {
        let Some(Value::Array(old)) = old else { return Correlation::None };
        match schema.list_type {
            None => Correlation::ByIndex(old),
            Some(ListType::Map) => {
                let keys = schema.list_map_keys.as_slice();
                let mut items = HashMap::with_capacity(old.len());
                for item in old {
                    items.entry(key_text(keys, item)).or_insert(item);
                }
                Correlation::ByKeys { keys, items }
            }
            Some(ListType::Set | ListType::Atomic) => Correlation::None,
        }
    }

    /// The old item that a new item, now at `index`, is the same item as.
    pub(crate) fn old_item(&self, index: usize, item: &Value) -> Option<&'o Value> {
        match self {
            Correlation::None => None,
            Correlation::ByIndex(old) => old.get(index),
            Correlation::ByKeys { keys, items } => items.get(&key_text(keys, item)).copied(),
        }
    }
}

fn key_text(keys: &[String], item: &Value) -> String {
    let key: Vec<&Value> = keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null)).collect();
    key.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
