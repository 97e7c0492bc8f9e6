//! Members of JSON annotations for which their type has no field.

use std::{cell::RefCell, iter::Enumerate, slice};

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Value, map};

/// A member of an object for which the type of the object has no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    /// Its path in the text.
    pub(super) path: String,
    /// The field whose name differs in one letter.
    pub(super) meant: Option<&'static str>,
}

/// The members of a value for which a type has no field, as far as the value can be read as that type. As in Go the case of a name does
/// not matter, and `null` sets nothing.
pub(super) fn unknown<T: DeserializeOwned>(value: &Value) -> Vec<Unknown> {
    let found = RefCell::new(Vec::new());
    // A value that cannot be read as this type is an error of its key, and is reported as that.
    let _ = T::deserialize(Reader { value, path: String::new(), found: &found });
    found.into_inner()
}

/// The path of a member.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The word that differs from a text in case, in one letter, or in the order of two.
pub(super) fn nearest(text: &str, words: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    words.into_iter().find(|word| !word.is_empty() && is_near(text, word))
}

fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while let ([first, one_left @ ..], [other_first, other_left @ ..]) = (one, other)
        && first == other_first
    {
        (one, other) = (one_left, other_left);
    }
    while let ([one_left @ .., last], [other_left @ .., other_last]) = (one, other)
        && last == other_last
    {
        (one, other) = (one_left, other_left);
    }
    match (one, other) {
        ([a, b], [c, d]) => a == d && b == c,
        (one, other) => one.len() <= 1 && other.len() <= 1,
    }
}

/// Reads a value, and notes what nobody asks for.
struct Reader<'r> {
    value: &'r Value,
    path: String,
    found: &'r RefCell<Vec<Unknown>>,
}

/// The items of a list.
struct Items<'r> {
    left: Enumerate<slice::Iter<'r, Value>>,
    path: String,
    found: &'r RefCell<Vec<Unknown>>,
}

/// The members of an object.
struct Members<'r> {
    left: map::Iter<'r>,
    /// The fields of the type; none of a map, whose members may have any name.
    fields: Option<&'static [&'static str]>,
    path: String,
    found: &'r RefCell<Vec<Unknown>>,
    /// The value of the member whose name was read last.
    value: Option<Reader<'r>>,
}

impl<'r> Reader<'r> {
    fn members(self, members: &'r Map<String, Value>, fields: Option<&'static [&'static str]>) -> Members<'r> {
        Members { left: members.iter(), fields, path: self.path, found: self.found, value: None }
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = self.value;
        match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => {
                visitor.visit_seq(Items { left: items.iter().enumerate(), path: self.path, found: self.found })
            }
            Value::Object(members) => visitor.visit_map(self.members(members, None)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let value = self.value;
        match value {
            Value::Object(members) => visitor.visit_map(self.members(members, Some(fields))),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((index, value)) = self.left.next() else { return Ok(None) };
        let path = format!("{}[{index}]", self.path);
        seed.deserialize(Reader { value, path, found: self.found }).map(Some)
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        for (name, value) in self.left.by_ref() {
            if value.is_null() {
                continue;
            }
            let path = member(&self.path, name);
            let known = match self.fields {
                None => Some(name.as_str()),
                Some(fields) => fields.iter().copied().find(|field| field.eq_ignore_ascii_case(name)),
            };
            let Some(known) = known else {
                let meant = nearest(name, self.fields.unwrap_or_default().iter().copied());
                self.found.borrow_mut().push(Unknown { path, meant });
                continue;
            };
            self.value = Some(Reader { value, path, found: self.found });
            return seed.deserialize(known.into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.value.take().ok_or_else(|| Error::custom("a value without a name"))?;
        seed.deserialize(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        device_protocol::DeviceAllocateHints, numa::ResourceStatus, reservation_protocol::ReservationAffinity,
    };

    #[test]
    fn members_without_a_field_are_found_at_any_depth() {
        let found = |found: Vec<Unknown>| -> Vec<(String, Option<&str>)> {
            found.into_iter().map(|unknown| (unknown.path, unknown.meant)).collect()
        };
        let hints =
            json!({"rdma": {"allocateStrategi": "ApplyForAll", "selector": {"matchLabel": {"a": "b"}}}, "x": {}});
        assert_eq!(
            found(unknown::<DeviceAllocateHints>(&hints)),
            [
                ("rdma.allocateStrategi".to_owned(), Some("allocateStrategy")),
                ("rdma.selector.matchLabel".to_owned(), Some("matchLabels")),
            ]
        );
        let status = json!({"CPUSET": "0-3", "numaNodeResources": [{"node": 0, "resources": {"cpu": 4}}, {"size": 1}]});
        assert_eq!(
            found(unknown::<ResourceStatus>(&status)),
            [("numaNodeResources[1].size".to_owned(), None)],
            "case does not matter, and names of resources are no fields"
        );
        let affinity =
            json!({"name": null, "nmae": "r", "tolerations": [{"key": "k", "operater": "Exists"}], "labels": null});
        assert_eq!(
            found(unknown::<ReservationAffinity>(&affinity)),
            [("nmae".to_owned(), Some("name")), ("tolerations[0].operater".to_owned(), Some("operator"))]
        );
        assert_eq!(unknown::<ResourceStatus>(&json!([])), [], "it is an error of the key");
    }

    #[test]
    fn a_word_is_near_to_another_that_differs_in_one_letter() {
        for (one, other, expected) in [
            ("FullPCPUs", "fullpcpus", true),
            ("FullPCPU", "FullPCPUs", true),
            ("FulPCPUs", "FullPCPUs", true),
            ("FullPPCUs", "FullPCPUs", true),
            ("FulPCPU", "FullPCPUs", false),
            ("Strict", "NonStrict", false),
            ("a", "b", true),
            ("", "ab", false),
        ] {
            assert_eq!((is_near(one, other), is_near(other, one)), (expected, expected), "{one} {other}");
        }
        assert_eq!(nearest("x", ["", "Honor"]), None);
    }
}
