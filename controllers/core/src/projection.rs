//! What a program keeps of an object: a small owned value read from borrowed JSON.
//!
//! A typed Pod costs 55 KB of heap, a projection with interned strings a few hundred bytes. What a projection does
//! not read cannot wake a controller either: a change that leaves the projection equal is no change.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

use jiff::Timestamp;
use koord_resource::{Time, controller::ResourceKind};
use serde::{
    Deserialize,
    de::{self, IntoDeserializer as _},
};
use serde_json::value::RawValue;

use crate::{index::Index, intern::Interner, key::ObjectKey, uid::Uid};

/// A small value that stands for an object in a cache.
pub trait Projection: PartialEq + Sized + Send + Sync + 'static {
    /// The kind that is projected.
    const KIND: ResourceKind;
    /// What is read of the object's JSON, borrowed from the text.
    type Wire<'a>: Deserialize<'a> + Metadata<'a>;
    /// The secondary indexes of the cache; `()` for none.
    type Index: Index<Self>;

    /// Keeps what is needed. An error quarantines the object.
    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError>;

    /// Puts the value where a cache holds it, of the object with this key and uid. Where many objects show the same,
    /// `strings.share(self)` keeps it once.
    fn shared(self, _key: &ObjectKey, _uid: &Uid, _strings: &mut Interner) -> Arc<Self> {
        Arc::new(self)
    }
}

/// Gives the metadata of what was read.
pub trait Metadata<'a> {
    /// Whether nothing else is read. Of such objects the API server is asked to send the metadata alone.
    const ONLY: bool = false;

    /// The object's metadata.
    fn metadata(&self) -> &WireMetadata<'a>;
}

/// Why an object cannot be projected: the field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct DecodeError {
    /// Path of the field, such as `metadata.labels`; empty when the text does not even parse.
    pub field: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl DecodeError {
    /// A field that cannot be read.
    pub fn new(field: &'static str, reason: impl fmt::Display) -> Self {
        Self { field, reason: reason.to_string() }
    }
}

/// The metadata of an object as it stands in the text. Maps and lists stay undecoded until somebody wants them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WireMetadata<'a> {
    /// Name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Namespace; empty for cluster scope.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// Unique id.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Revision of the store, a decimal number.
    #[serde(borrow)]
    pub resource_version: Cow<'a, str>,
    /// Counts changes of the spec.
    pub generation: i64,
    /// When it was created, in RFC 3339.
    #[serde(borrow)]
    pub creation_timestamp: Option<Text<'a>>,
    /// Present while the object is being deleted.
    #[serde(borrow)]
    pub deletion_timestamp: Option<&'a RawValue>,
    /// Labels.
    #[serde(borrow)]
    pub labels: Option<&'a RawValue>,
    /// Annotations.
    #[serde(borrow)]
    pub annotations: Option<&'a RawValue>,
    /// Finalizers.
    #[serde(borrow)]
    pub finalizers: Option<&'a RawValue>,
    /// Owners.
    #[serde(borrow)]
    pub owner_references: Option<&'a RawValue>,
    /// Which manager owns which fields.
    #[serde(borrow)]
    pub managed_fields: Option<&'a RawValue>,
}

impl WireMetadata<'_> {
    /// When the object was created; none where the metadata does not say it. What is no time is an error.
    pub fn created(&self) -> Result<Option<Timestamp>, DecodeError> {
        let time = self.creation_timestamp.as_ref().map(|text| text.parse::<Time>().map(Time::at));
        time.transpose().map_err(|error| DecodeError::new("metadata.creationTimestamp", error))
    }
}

/// An object of which the metadata is read, and those of its other members that `M` names, in one pass over the text.
#[derive(Debug, Default)]
pub struct WireObject<'a, M> {
    /// The object's metadata.
    pub metadata: WireMetadata<'a>,
    /// What is read beside the metadata, such as `spec` and `status`.
    pub members: M,
}

impl<'a, M> Metadata<'a> for WireObject<'a, M> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<'de: 'a, 'a, M: Deserialize<'de>> Deserialize<'de> for WireObject<'a, M> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Reads a [`WireObject`].
struct ObjectVisitor<'a, M>(PhantomData<WireObject<'a, M>>);

impl<'de: 'a, 'a, M: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<'a, M> {
    type Value = WireObject<'a, M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        let mut metadata = None;
        let others = OtherMembers { object, metadata: &mut metadata };
        let members = M::deserialize(de::value::MapAccessDeserializer::new(others))?;
        Ok(WireObject { metadata: metadata.unwrap_or_default(), members })
    }
}

/// The members of an object without its metadata, which is put aside when it comes.
struct OtherMembers<'m, 'a, A> {
    object: A,
    metadata: &'m mut Option<WireMetadata<'a>>,
}

impl<'de: 'a, 'a, A: de::MapAccess<'de>> de::MapAccess<'de> for OtherMembers<'_, 'a, A> {
    type Error = A::Error;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(Text(key)) = self.object.next_key()? else { return Ok(None) };
            if key != "metadata" {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            if self.metadata.replace(self.object.next_value()?).is_some() {
                return Err(de::Error::duplicate_field("metadata"));
            }
        }
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.object.next_value_seed(seed)
    }
}

/// An object of which nothing but the metadata is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MetadataOnly<'a> {
    /// The object's metadata.
    #[serde(borrow)]
    pub metadata: WireMetadata<'a>,
}

impl<'a> Metadata<'a> for MetadataOnly<'a> {
    const ONLY: bool = true;

    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

/// Labels or annotations with interned keys and values, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// Reads a JSON object of strings; none and `null` give no labels.
    pub fn read(field: &'static str, raw: Option<&RawValue>, strings: &mut Interner) -> Result<Self, DecodeError> {
        Self::read_some(field, raw, strings, |_| true)
    }

    /// Reads only the keys that are wanted.
    pub fn read_some(
        field: &'static str,
        raw: Option<&RawValue>,
        strings: &mut Interner,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, DecodeError> {
        let Some(raw) = raw else { return Ok(Self::default()) };
        let map: Option<BTreeMap<Text<'_>, Text<'_>>> =
            serde_json::from_str(raw.get()).map_err(|error| DecodeError::new(field, error))?;
        let pairs = map.unwrap_or_default();
        let wanted = pairs.iter().filter(|(key, _)| wanted(&key.0));
        Ok(Self(wanted.map(|(key, value)| (strings.intern(&key.0), strings.intern(&value.0))).collect()))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All pairs in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// A map of its own, for functions that want one.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

/// A projection that keeps labels of its objects.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep the labels of its objects",
    note = "add the field `labels: Labels` to the projection"
)]
pub trait Labelled: Projection {
    /// The labels.
    fn labels(&self) -> &Labels;
}

/// A text that is borrowed from the JSON where it has no escapes. In an `Option`, a `Cow` alone would be a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A member of an object as a projection keeps it; an absent one is read as `null`.
pub fn part<T: de::DeserializeOwned>(field: &'static str, raw: Option<&RawValue>) -> Result<T, DecodeError> {
    serde_json::from_str(text(raw)).map_err(|error| DecodeError::new(field, error))
}

/// A member of an object as JSON text; an absent one is `null`.
pub fn text(raw: Option<&RawValue>) -> &str {
    raw.map_or("null", RawValue::get)
}

/// Decodes what a projection reads, and says where it stopped.
pub(crate) fn decode<'a, W: Deserialize<'a>>(raw: &'a str) -> Result<W, DecodeError> {
    serde_json::from_str(raw).map_err(|error| DecodeError::new("object", error))
}

/// Reads an optional string that may be `null`.
pub fn nullable<'de, D: de::Deserializer<'de>>(from: D) -> Result<Cow<'de, str>, D::Error> {
    Ok(Option::<Text<'de>>::deserialize(from)?.map(|text| text.0).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_and_shared() {
        let raw: &RawValue = serde_json::from_str(r#"{"b":"2","a":"\u0031"}"#).unwrap();
        let mut strings = Interner::default();
        let labels = Labels::read("metadata.labels", Some(raw), &mut strings).unwrap();
        assert_eq!((labels.get("a"), labels.get("b"), labels.get("c")), (Some("1"), Some("2"), None));
        assert_eq!(labels.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b"]);
        let again = Labels::read("metadata.labels", Some(raw), &mut strings).unwrap();
        assert_eq!((labels == again, strings.len()), (true, 4));
    }

    #[test]
    fn metadata_is_read_wherever_it_stands_among_the_other_members() {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            #[serde(borrow)]
            spec: &'a RawValue,
            #[serde(default)]
            preemption_policy: Option<String>,
        }
        let read = |text: &'static str| decode::<WireObject<'_, Members<'_>>>(text);
        for text in [
            r#"{"metadata":{"name":"a"},"kind":"X","spec":{"b": 1},"preemptionPolicy":"Never"}"#,
            r#"{"kind":"X","spec":{"b": 1},"\u006detadata":{"name":"a"},"preemptionPolicy":"Never"}"#,
            r#"{"preemptionPolicy":"Never","other":{"metadata":{"name":"b"}},"spec":{"b": 1},"metadata":{"name":"a"}}"#,
        ] {
            let object = read(text).unwrap();
            assert_eq!((&*object.metadata.name, object.members.spec.get()), ("a", r#"{"b": 1}"#), "{text}");
            assert_eq!(object.members.preemption_policy.as_deref(), Some("Never"), "{text}");
        }
        let reason = |text| read(text).map(|_| ()).unwrap_err().reason;
        assert_eq!(reason(r#"{"metadata":{}}"#), "missing field `spec` at line 1 column 15");
        assert_eq!(
            reason(r#"{"metadata":{},"metadata":{},"spec":0}"#),
            "duplicate field `metadata` at line 1 column 28"
        );
        assert_eq!(reason("[]"), "invalid type: sequence, expected an object at line 1 column 0");
        assert_eq!(read(r#"{"spec":0}"#).unwrap().metadata.name, "");
    }

    #[test]
    fn the_time_of_creation_is_read_and_what_is_none_names_its_field() {
        let created = |text| decode::<MetadataOnly<'_>>(text).unwrap().metadata.created();
        let time = Timestamp::from_second(1_767_225_600).unwrap();
        assert_eq!(created(r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}}"#), Ok(Some(time)));
        let late = r#"{"metadata":{"creationTimestamp":"9999-12-31T23:59:59Z"}}"#;
        assert_eq!(created(late), Ok(Some(Timestamp::MAX)), "users write it");
        for none in ["{}", r#"{"metadata":{"creationTimestamp":null}}"#] {
            assert_eq!(created(none), Ok(None), "{none}");
        }
        let error = created(r#"{"metadata":{"creationTimestamp":"yesterday"}}"#).unwrap_err();
        assert_eq!(error.field, "metadata.creationTimestamp");
    }

    #[test]
    fn a_wrong_label_names_its_field() {
        let raw: &RawValue = serde_json::from_str(r#"{"a":1}"#).unwrap();
        let error = Labels::read("metadata.labels", Some(raw), &mut Interner::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "metadata.labels: invalid type: integer `1`, expected a string at line 1 column 6"
        );
    }
}
