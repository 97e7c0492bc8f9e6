//! The part of an object that is read into a tree: what is not looked at needs no tree.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// A part of an object. A tree of it is the object without the fields that are not part of it, so a change of the
/// part is the same change of the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Excerpt {
    Whole,
    /// These fields of an object. What is no object is read whole.
    Fields(Vec<(String, Excerpt)>),
    /// The same part of every item of a list. What is no list is read whole.
    Items(Box<Excerpt>),
}

impl Excerpt {
    /// These fields of an object, whole.
    pub fn whole_fields(names: &[&str]) -> Self {
        Self::fields(names.iter().map(|name| (*name, Self::Whole)))
    }

    /// Parts of these fields of an object.
    pub fn fields<'n>(fields: impl IntoIterator<Item = (&'n str, Self)>) -> Self {
        Self::Fields(fields.into_iter().map(|(name, excerpt)| (name.to_owned(), excerpt)).collect())
    }

    /// What a strategic merge patch may read or change. An object with directives may change more than it names.
    pub fn touched_by(patch: &Value) -> Self {
        match patch {
            Value::Object(fields) if !fields.keys().any(|name| name.starts_with('$')) => {
                Self::Fields(fields.iter().map(|(name, value)| (name.clone(), Self::touched_by(value))).collect())
            }
            _ => Self::Whole,
        }
    }

    /// Both parts.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fields(mut mine), Self::Fields(theirs)) => {
                for (name, theirs) in theirs {
                    if let Some((_, mine)) = mine.iter_mut().find(|(known, _)| *known == name) {
                        *mine = std::mem::replace(mine, Self::Whole).and(theirs);
                    } else {
                        mine.push((name, theirs));
                    }
                }
                Self::Fields(mine)
            }
            (Self::Items(mine), Self::Items(theirs)) => Self::Items(Box::new(mine.and(*theirs))),
            _ => Self::Whole,
        }
    }

    /// Whether no field belongs to both parts, so that a change of one leaves the other as it is.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let (mine, theirs) = match (self, other) {
            (Self::Fields(mine), Self::Fields(theirs)) => (mine, theirs),
            (Self::Items(mine), Self::Items(theirs)) => return mine.is_apart_from(theirs),
            _ => return false,
        };
        mine.iter().all(|(name, mine)| {
            theirs.iter().filter(|(known, _)| known == name).all(|(_, theirs)| mine.is_apart_from(theirs))
        })
    }

    /// Reads the part of an object's JSON text.
    pub fn read(&self, text: &str) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for &Excerpt {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Excerpt::Whole => Value::deserialize(deserializer),
            part => deserializer.deserialize_any(Reader(part)),
        }
    }
}

struct Reader<'e>(&'e Excerpt);

/// The name of a field; most are skipped, so none is copied.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let part = match self.0 {
                Excerpt::Fields(fields) => fields.iter().find(|(known, _)| *known == name.0).map(|(_, part)| part),
                _ => Some(&Excerpt::Whole),
            };
            if let Some(part) = part {
                read.insert(name.0.into_owned(), map.next_value_seed(part)?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(read))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let part = if let Excerpt::Items(part) = self.0 { part } else { &Excerpt::Whole };
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(part)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_part_is_read() {
        let part = Excerpt::fields([
            ("a", Excerpt::Items(Box::new(Excerpt::whole_fields(&["x"])))),
            ("b", Excerpt::whole_fields(&["y"])),
            ("c", Excerpt::Whole),
        ]);
        let text = json!({"a": [{"x": {"deep": [1, -2, 0.5]}, "z": 1}, "odd"], "b": {"y": null, "z": 1}, "c": {"z": true}, "d": 1});
        let wanted = json!({"a": [{"x": {"deep": [1, -2, 0.5]}}, "odd"], "b": {"y": null}, "c": {"z": true}});
        assert_eq!(part.read(&text.to_string()).unwrap(), wanted);
        let odd = json!({"a": {"x": [1]}, "b": [{"z": 1}], "c": "text"});
        assert_eq!(part.read(&odd.to_string()).unwrap(), odd);
    }

    #[test]
    fn a_patch_touches_what_it_names_and_with_directives_all_around() {
        let patch =
            json!({"spec": {"containers": [{"name": "c"}], "hostNetwork": true, "affinity": {"$patch": "delete"}}});
        let spec = [("affinity", Excerpt::Whole), ("containers", Excerpt::Whole), ("hostNetwork", Excerpt::Whole)];
        assert_eq!(Excerpt::touched_by(&patch), Excerpt::fields([("spec", Excerpt::fields(spec))]));
        let ordered = json!({"spec": {"$setElementOrder/containers": [{"name": "c"}]}});
        assert_eq!(Excerpt::touched_by(&ordered), Excerpt::whole_fields(&["spec"]));
    }

    #[test]
    fn parts_are_apart_when_no_field_is_in_both() {
        let one = Excerpt::fields([("a", Excerpt::whole_fields(&["x", "y"])), ("b", Excerpt::Whole)]);
        let apart = |other: Excerpt| one.is_apart_from(&other) && other.is_apart_from(&one);
        assert!(apart(Excerpt::fields([("a", Excerpt::whole_fields(&["z"])), ("c", Excerpt::Whole)])));
        assert!(!apart(Excerpt::fields([("a", Excerpt::whole_fields(&["z", "y"]))])));
        assert!(!apart(Excerpt::whole_fields(&["a"])), "a whole object holds its fields");
        assert!(!apart(Excerpt::fields([("b", Excerpt::whole_fields(&["x"]))])));
        assert!(!apart(Excerpt::Whole));
        let items = |name| Excerpt::Items(Box::new(Excerpt::whole_fields(&[name])));
        assert!(items("x").is_apart_from(&items("y")) && !items("x").is_apart_from(&items("x")));
    }

    #[test]
    fn two_parts_together_hold_both() {
        let one = Excerpt::fields([("a", Excerpt::whole_fields(&["x"])), ("b", Excerpt::Whole)]);
        let other = Excerpt::fields([("a", Excerpt::whole_fields(&["y"])), ("b", Excerpt::whole_fields(&["z"]))]);
        let both = Excerpt::fields([("a", Excerpt::whole_fields(&["x", "y"])), ("b", Excerpt::Whole)]);
        assert_eq!(one.and(other), both);
    }
}
