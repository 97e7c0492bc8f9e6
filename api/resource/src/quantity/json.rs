//! Quantities in JSON.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{ParseQuantityError, Quantity, text};

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.written {
            Some(written) => serializer.serialize_str(written),
            None => serializer.serialize_str(&text::canonical(&self.amount, self.format)),
        }
    }
}

/// A JSON string, a JSON number, or `null` for nothing. A number with an exponent is read as its value, because decoders of JSON do not keep its text.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 500m or 2Gi, as a string or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.trim().parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
                self.visit_str(&crate::go_json::float_text(value))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }

            // Go parses the JSON text of whatever is there, and of these none is a quantity.
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Quantity, E> {
                Err(E::custom(ParseQuantityError::Form))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<Quantity, A::Error> {
                Err(de::Error::custom(ParseQuantityError::Form))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Quantity, A::Error> {
                Err(de::Error::custom(ParseQuantityError::Form))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_the_written_form() {
        for (json, again) in [
            (r#""1.500""#, r#""1.500""#),
            (r#"" 2Gi ""#, r#""2Gi""#),
            (r#""1024Mi""#, r#""1Gi""#),
            ("5", r#""5""#),
            ("0.5", r#""500m""#),
            (r#""12e6""#, r#""12e6""#),
            ("null", r#""0""#),
        ] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&quantity).unwrap(), again, "{json}");
        }
        for json in [r#""1Gb""#, r#""""#, "true", "[]", r#"["1"]"#, "{}"] {
            let error = serde_json::from_str::<Quantity>(json).unwrap_err().to_string();
            assert!(error.starts_with("quantities must match the regular expression"), "{json}: {error}");
        }
    }
}
