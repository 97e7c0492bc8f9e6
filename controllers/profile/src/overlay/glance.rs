//! Looking at single fields of a JSON text, without making a tree of it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use smallvec::{SmallVec, smallvec};

use super::Fields;

/// What stands in the fields that a patch names.
pub(super) type Glance<'a> = SmallVec<[Option<&'a RawValue>; 8]>;

/// The texts of these fields of an object.
pub(super) fn glance<'a>(text: &'a str, fields: &Fields) -> Result<Glance<'a>, serde_json::Error> {
    let looker = Looker { find: |name: &str| fields.iter().position(|(known, _)| known == name), count: fields.len() };
    serde_json::Deserializer::from_str(text).deserialize_map(looker)
}

/// The keys of a list's items, as JSON text. None where that does not distinguish items as the merge does: an item
/// without the key, two with the same, or a key that could be written in another way.
pub(super) fn keys<'a>(items: &[&'a RawValue], key: &str) -> Option<SmallVec<[&'a str; 16]>> {
    let mut keys = SmallVec::with_capacity(items.len());
    for item in items {
        let looker = Looker { find: |name: &str| (name == key).then_some(0), count: 1 };
        let found = serde_json::Deserializer::from_str(item.get()).deserialize_map(looker).ok()?;
        let key = found.first().copied().flatten()?.get();
        let plain = match key.as_bytes() {
            [b'"', inside @ .., b'"'] => !inside.contains(&b'\\'),
            digits => digits.iter().all(u8::is_ascii_digit),
        };
        if !plain || keys.contains(&key) {
            return None;
        }
        keys.push(key);
    }
    Some(keys)
}

/// The name of a field; most are skipped, so none is copied.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Looker<F> {
    /// The place of a field that is looked for.
    find: F,
    count: usize,
}

impl<'de, F: Fn(&str) -> Option<usize>> Visitor<'de> for Looker<F> {
    type Value = Glance<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Glance<'de> = smallvec![None; self.count];
        while let Some(Name(name)) = map.next_key()? {
            match (self.find)(&name).and_then(|place| found.get_mut(place)) {
                Some(place) => *place = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// Whether a JSON text says the same as a value.
pub(super) fn equals(value: &Value, text: &str) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Same(value).deserialize(&mut deserializer).unwrap_or_default() && deserializer.end().is_ok()
}

/// Compares what is read with a value, and reads on when it differs: an error would cost allocations.
struct Same<'v>(&'v Value);

impl<'de> DeserializeSeed<'de> for Same<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Same<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(*self.0 == value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<bool, E> {
        Ok(*self.0 == value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<bool, E> {
        Ok(*self.0 == value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<bool, E> {
        Ok(self.0.is_f64() && *self.0 == value)
    }

    fn visit_str<E>(self, value: &str) -> Result<bool, E> {
        Ok(self.0 == value)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.0.is_null())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let items = self.0.as_array();
        let mut same = items.is_some();
        for item in items.into_iter().flatten() {
            same &= list.next_element_seed(Same(item))?.unwrap_or_default();
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            same = false;
        }
        Ok(same)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let fields = self.0.as_object();
        let (mut same, mut count) = (fields.is_some(), 0);
        while let Some(Name(name)) = map.next_key()? {
            count += 1;
            if let Some(field) = fields.and_then(|fields| fields.get(name.as_ref())) {
                same &= map.next_value_seed(Same(field))?;
            } else {
                map.next_value::<IgnoredAny>()?;
                same = false;
            }
        }
        Ok(same && fields.is_some_and(|fields| count == fields.len()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_equals_the_value_that_it_says() {
        let value = json!({"a": [1, -2, 0.5, "x\n", null, true, {"b": {}}], "c": []});
        assert!(equals(&value, &value.to_string()));
        assert!(equals(&value, r#" {"c": [], "a":[1,-2,5e-1,"\u0078\n",null,true,{"b":{}}]} "#));
        for other in [
            json!({"a": [1, -2, 0.5, "x\n", null, true, {"b": {}}]}),
            json!({"a": [1, -2, 0.5, "x\n", null, true, {"b": {}}], "c": [], "d": 1}),
            json!({"a": [1, -2, 0.5, "x\n", null, true], "c": []}),
            json!({"a": [1, -2, 0.5, "x\n", null, false, {"b": {}}], "c": []}),
            json!({"a": [1, -2, 0.5, "x\n", null, true, {"b": {}}, 1], "c": []}),
            json!({"a": [1, -2, 0.5, "x\n", null, true, {"b": []}], "c": []}),
            json!({"a": [1.0, -2, 0.5, "x\n", null, true, {"b": {}}], "c": []}),
            json!(null),
        ] {
            assert!(!equals(&value, &other.to_string()), "{other}");
        }
        assert!(!equals(&json!(1), "1 2") && !equals(&json!(1), "x"));
    }

    #[test]
    fn keys_tell_items_apart_or_are_not_given() {
        let keys = |text: &str| {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            keys(&items, "name").map(|keys| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(keys(r#"[{"name": "a", "x": 1}, {"x": {"name": "c"}, "name": 80}]"#).unwrap(), ["\"a\"", "80"]);
        for odd in [
            r#"[{"x": 1}]"#,
            r#"[{"name": "a"}, {"name": "a"}]"#,
            r#"[{"name": "\u0061"}]"#,
            "[1]",
            r#"[{"name": null}]"#,
        ] {
            assert_eq!(keys(odd), None, "{odd}");
        }
    }
}
