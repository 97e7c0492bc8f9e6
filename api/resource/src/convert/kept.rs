//! What a version has no room for, and how it finds its place again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Convert, ConvertError, Place, Way};

/// What one version of an object has no room for, as a tree beside the object.
///
/// Fields and entries of maps are found by their names. An item of a list is found by what a client of the version sees of it:
/// by its keys where the list has `list_map_key`, and by its whole content elsewhere. So an item keeps its values
/// wherever a client moves it, and nothing is ever given to another item. Among items that look the same, which a
/// client could not distinguish either, the order decides; an item of a list without keys that was edited is a new item.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Fields that the older version does not have, in the newest form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Value>,
    /// Values that the older type says less exactly, by version and name of the change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    changed: BTreeMap<String, Changed>,
    /// Values of fields that newer versions do not have, by version and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    removed: BTreeMap<String, Value>,
    /// Moved fields, by version and name, whose parent was not there before they were put into it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    made: BTreeSet<String>,
    /// Inside of fields and of entries of maps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    inside: BTreeMap<String, Kept>,
    /// Inside of items of a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    items: Vec<Item>,
}

/// A value whose translation cannot be undone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Changed {
    /// Its older form; a client that changes it means the change.
    was: Value,
    value: Value,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Item {
    /// The values of its keys, or the fingerprint of its content.
    is: Value,
    /// How many that look the same stand before it.
    #[serde(default, skip_serializing_if = "is_first")]
    nth: usize,
    #[serde(flatten)]
    kept: Kept,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_first(nth: &usize) -> bool {
    *nth == 0
}

static NOTHING: Kept = Kept {
    fields: BTreeMap::new(),
    changed: BTreeMap::new(),
    removed: BTreeMap::new(),
    made: BTreeSet::new(),
    inside: BTreeMap::new(),
    items: Vec::new(),
};

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        *self == NOTHING
    }

    /// What goes on to the next form until it is taken: it belongs to neither of the two.
    pub(super) fn carried(&self) -> Self {
        Kept { removed: self.removed.clone(), made: self.made.clone(), ..Kept::default() }
    }

    pub(super) fn keep_removed(&mut self, key: String, value: Value) {
        self.removed.insert(key, value);
    }

    pub(super) fn take_removed(&mut self, key: &str) -> Option<Value> {
        self.removed.remove(key)
    }

    pub(super) fn keep_made(&mut self, key: &str) {
        self.made.insert(key.to_owned());
    }

    pub(super) fn take_made(&mut self, key: &str) -> bool {
        self.made.remove(key)
    }

    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    pub(super) fn keep_field(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// The exact value of a change, if the older form is still as it was.
    pub(super) fn exact(&self, change: &str, older: &Value) -> Option<&Value> {
        self.changed.get(change).filter(|changed| changed.was == *older).map(|changed| &changed.value)
    }

    pub(super) fn keep_exact(&mut self, change: String, older: Value, value: Value) {
        self.changed.insert(change, Changed { was: older, value });
    }

    pub(super) fn inside(&self, name: &str) -> &Kept {
        self.inside.get(name).unwrap_or(&NOTHING)
    }

    pub(super) fn keep_inside(&mut self, name: &str, kept: Kept) {
        if !kept.is_empty() {
            self.inside.insert(name.to_owned(), kept);
        }
    }
}

/// Brings the items of a list up; `keys` are the names of its map keys in the newest form.
pub fn items_up<T: Convert>(
    list: &mut Value,
    keys: &[&str],
    from: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    items::<T>(Way::UpFrom(from), list, keys, at, was, kept)
}

/// Brings the items of a list down.
pub fn items_down<T: Convert>(
    list: &mut Value,
    keys: &[&str],
    to: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    items::<T>(Way::DownTo(to), list, keys, at, was, kept)
}

fn items<T: Convert>(
    way: Way<'_>,
    list: &mut Value,
    keys: &[&str],
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    let Some(list) = list.as_array_mut() else { return Ok(()) };
    let (mut seen, mut insides) = (Seen::default(), Vec::with_capacity(list.len()));
    for (index, item) in list.iter_mut().enumerate() {
        let mut of_item = &NOTHING;
        if !was.items.is_empty() {
            let (is, nth) = seen.next(identity(item, keys.iter().map(|key| way.name_before::<T>(key))));
            let found = was.items.iter().find(|item| item.nth == nth && item.is == is);
            of_item = found.map_or(&NOTHING, |item| &item.kept);
        }
        let mut inside = of_item.carried();
        way.convert::<T>(item, &at.child(&index.to_string()), of_item, &mut inside)?;
        insides.push(inside);
    }
    if insides.iter().all(Kept::is_empty) {
        return Ok(());
    }
    let mut seen = Seen::default();
    for (item, inside) in list.iter().zip(insides) {
        let (is, nth) = seen.next(identity(item, keys.iter().map(|key| way.name_after::<T>(key))));
        if !inside.is_empty() {
            kept.items.push(Item { is, nth, kept: inside });
        }
    }
    Ok(())
}

/// Counts the items that look the same.
#[derive(Default)]
struct Seen(HashMap<String, usize>);

impl Seen {
    fn next(&mut self, is: Value) -> (Value, usize) {
        let count = self.0.entry(is.to_string()).or_default();
        *count += 1;
        (is, *count - 1)
    }
}

/// What an item is known by in one form: a list of its keys, of which the names are given, or a text.
fn identity<'n>(item: &Value, names: impl Iterator<Item = Option<&'n str>>) -> Value {
    let keys = names.map(|name| item.get(name?).cloned());
    match keys.collect::<Option<Vec<Value>>>() {
        Some(values) if !values.is_empty() => Value::Array(values),
        _ => Value::String(format!("{:016x}", fingerprint(item))),
    }
}

/// A number that depends on the content alone: neither on the order of members, nor on members that are null, nor on
/// how a whole number is written. FNV-1a; who finds two contents with one number moves values about in an object of
/// their own.
pub(crate) fn fingerprint(value: &Value) -> u64 {
    let mut print = Fingerprint(0xcbf2_9ce4_8422_2325);
    print.value(value);
    print.0
}

struct Fingerprint(u64);

impl Fingerprint {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&mut self, text: &str) {
        // No text of JSON holds this byte, so that what ends is distinguished from what goes on.
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.text("[");
                for item in items {
                    self.value(item);
                }
                self.text("]");
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().filter(|(_, value)| !value.is_null()).collect();
                members.sort_by_key(|(name, _)| *name);
                self.text("{");
                for (name, value) in members {
                    self.text(name);
                    self.value(value);
                }
                self.text("}");
            }
            Value::String(text) => {
                self.bytes(b"\"");
                self.text(text);
            }
            Value::Number(number) => {
                let text = number.to_string();
                self.text(text.strip_suffix(".0").unwrap_or(&text));
            }
            Value::Bool(_) | Value::Null => self.text(&value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fingerprint;

    #[test]
    fn content_is_known_however_it_is_written() {
        let content = json!({"a": [1, {"b": null, "c": "x"}], "d": 2});
        let written_otherwise = json!({"d": 2.0, "e": null, "a": [1.0, {"c": "x"}]});
        assert_eq!(fingerprint(&content), fingerprint(&written_otherwise));
        let others = [
            json!({"a": [1, {"c": "y"}], "d": 2}),
            json!({"a": [{"c": "x"}, 1], "d": 2}),
            json!({"a": [1], "d": 2}),
            json!({"a": [[1], {"c": "x"}], "d": 2}),
            json!({"a": [1, {"c": "x", "d": 2}]}),
            json!([1, {"c": "x"}]),
        ];
        for other in others {
            assert_ne!(fingerprint(&content), fingerprint(&other), "{other}");
        }
    }
}
