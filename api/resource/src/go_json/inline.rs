//! Two structs that share one JSON object, as Go's embedded structs do.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _, SeqAccess, Visitor},
    ser::Error as _,
};
use serde_json::Value;

/// Tells the decoder of [`super::from_str`] to hand out the same value twice.
pub(super) const TWICE: &str = "$koord_resource::go_json::Inline";

/// One JSON object that holds the fields of both structs; those of `first` are written first.
///
/// Unlike serde's `flatten` this keeps Go's rules inside both halves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline<A, B> {
    /// The fields that are written first.
    pub first: A,
    /// The other fields.
    pub second: B,
}

impl<A: Serialize, B: Serialize> Serialize for Inline<A, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = |value: serde_json::Result<Value>| match value.map_err(S::Error::custom)? {
            Value::Object(fields) => Ok(fields),
            _ => Err(S::Error::custom("only structs can share an object")),
        };
        let first = fields(serde_json::to_value(&self.first))?;
        let second = fields(serde_json::to_value(&self.second))?;
        serializer.collect_map(first.iter().chain(second.iter().filter(|(key, _)| !first.contains_key(*key))))
    }
}

impl<'de, A: DeserializeOwned, B: DeserializeOwned> Deserialize<'de> for Inline<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TWICE, Halves(PhantomData))
    }
}

struct Halves<A, B>(PhantomData<(A, B)>);

impl<'de, A: DeserializeOwned, B: DeserializeOwned> Visitor<'de> for Halves<A, B> {
    type Value = Inline<A, B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let first = A::deserialize(&object).map_err(D::Error::custom)?;
        Ok(Inline { first, second: B::deserialize(&object).map_err(D::Error::custom)? })
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut halves: S) -> Result<Self::Value, S::Error> {
        let missing = || S::Error::custom("an object was handed out only once");
        let first = halves.next_element();
        // The other half is decoded even so: its failure may come first in the text.
        let second = halves.next_element()?.ok_or_else(missing)?;
        Ok(Inline { first: first?.ok_or_else(missing)?, second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Name {
        name: String,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Limit {
        limit: i64,
    }

    #[test]
    fn both_halves_read_and_write_one_object() {
        let text = r#"{"name":"a","limit":5}"#;
        let expected = Inline { first: Name { name: "a".to_owned() }, second: Limit { limit: 5 } };
        let decoded: Inline<Name, Limit> = serde_json::from_str(text).unwrap();
        assert_eq!(decoded, expected);
        let decoded: Inline<Name, Limit> = super::super::from_str(r#"{"NAME":"a","Limit":5}"#).unwrap();
        assert_eq!(decoded, expected);
        assert_eq!(super::super::to_string(&expected).unwrap(), text);
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Wait {
        wait: Option<crate::Duration>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Share {
        share: Option<crate::IntOrString>,
    }

    fn error<A: fmt::Debug + DeserializeOwned, B: fmt::Debug + DeserializeOwned>(text: &str) -> String {
        super::super::from_str::<Inline<A, B>>(text).unwrap_err().to_string()
    }

    #[test]
    fn of_errors_in_both_halves_the_first_in_the_text_is_reported() {
        let name = "json: cannot unmarshal number into Go struct field Name.name of type string";
        let limit = "json: cannot unmarshal string into Go struct field Limit.limit of type int64";
        let share = "json: cannot unmarshal bool into Go struct field Share.share of type int32";
        let wait = "json: cannot unmarshal number into Go struct field Wait.wait of type string";
        assert_eq!(error::<Name, Limit>(r#"{"name":5,"limit":"a"}"#), name);
        assert_eq!(error::<Name, Limit>(r#"{"limit":"a","name":5}"#), limit);
        assert_eq!(error::<Wait, Share>(r#"{"wait":5,"share":true}"#), wait);
        assert_eq!(error::<Wait, Share>(r#"{"share":true,"wait":5}"#), share);
        // What its own type refuses counts before what only has the wrong type.
        assert_eq!(error::<Name, Share>(r#"{"name":5,"share":true}"#), share);
        assert_eq!(error::<Share, Name>(r#"{"name":5,"share":true}"#), share);
        assert_eq!(error::<Name, Limit>("[]"), "json: cannot unmarshal array into Go value of type Name");
    }
}
