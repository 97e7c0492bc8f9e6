//! A field that is an integer or a string, such as a percentage.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// By this name the decoder of [`go_json`](crate::go_json) knows the type, which Go has decode itself.
pub(crate) const NAME: &str = "$koord_resource::IntOrString";

/// `30` or `"30%"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntOrString {
    /// A JSON number without a fraction.
    Int(i32),
    /// A JSON string.
    String(String),
}

/// Why a value is no percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: {0}")]
pub struct PercentError(String);

impl IntOrString {
    /// An integer as it is, or the integer before the sign of `"30%"`.
    ///
    /// The wording of the error is that of Kubernetes, because clients see it.
    pub fn int_or_percent(&self) -> Result<i64, PercentError> {
        match self {
            Self::Int(number) => Ok(i64::from(*number)),
            Self::String(text) => {
                let Some(digits) = text.strip_suffix('%') else {
                    return Err(PercentError("invalid type: string is not a percentage".to_owned()));
                };
                digits.parse().map_err(|_| {
                    PercentError(format!("invalid value {text:?}: strconv.Atoi: parsing {digits:?}: invalid syntax"))
                })
            }
        }
    }
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::String(text) => f.write_str(text),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = IntOrString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer of 32 bits or a string")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
                let number =
                    i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
                Ok(IntOrString::Int(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
                let number =
                    i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
                Ok(IntOrString::Int(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::String(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<IntOrString, D::Error> {
                deserializer.deserialize_any(self)
            }
        }

        deserializer.deserialize_newtype_struct(NAME, Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_need_their_sign() {
        assert_eq!(IntOrString::from(7).int_or_percent(), Ok(7));
        assert_eq!(IntOrString::from("50%").int_or_percent(), Ok(50));
        for wrong in ["50", "99.5%", "%", ""] {
            assert!(IntOrString::from(wrong).int_or_percent().is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_keeps_the_kind() {
        for json in ["5", r#""5""#, r#""5%""#, "-1"] {
            let value: IntOrString = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
        assert!(serde_json::from_str::<IntOrString>("4294967296").is_err());
        assert!(serde_json::from_str::<IntOrString>("1.5").is_err());
    }

    #[test]
    fn gos_decoder_takes_integers_of_32_bits_and_texts() {
        let decode = |json: &str| crate::go_json::from_str::<IntOrString>(json).map_err(|error| error.to_string());
        let [five, less, none] = [5, -1, 0].map(IntOrString::Int);
        for (json, value) in [("5", five), ("-1", less), ("null", none), (r#""5%""#, IntOrString::from("5%"))] {
            assert_eq!(decode(json), Ok(value), "{json}");
        }
        for (json, found) in [
            ("50.5", "number 50.5"),
            ("4294967296", "number 4294967296"),
            ("1e2", "number 1e2"),
            ("true", "bool"),
            ("[]", "array"),
            ("{}", "object"),
        ] {
            assert_eq!(decode(json), Err(format!("json: cannot unmarshal {found} into Go value of type int32")));
        }
    }
}
