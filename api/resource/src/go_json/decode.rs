//! Decoding into a Rust type by Go's rules.

use std::str::FromStr;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
    value::{StrDeserializer, StringDeserializer},
};

use super::{
    error::{DecodeError, Failure, FirstTypeError},
    inline,
    parse::{Json, Node, parse},
};
use crate::int_or_string;

/// What Go calls our types, for messages; everything that it does not know goes by its Rust name.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The qualified Go type of a Rust struct: `CpuBurstCfg` is `configuration.CPUBurstCfg`.
    pub structs: &'static [(&'static str, &'static str)],
    /// The Go type of a field, where it is neither plain nor a struct: of (Rust struct, JSON name) `[]string`.
    pub fields: &'static [(&'static str, &'static str, &'static str)],
    /// The struct that Go embeds for a field: of (Rust struct, JSON name), `*` standing for all other names.
    pub embedded: &'static [(&'static str, &'static str, &'static str)],
    /// The struct that Go embeds where a Rust struct is one half of an [`Inline`](super::Inline) inside of a field.
    pub halves: &'static [(&'static str, &'static str)],
}

impl Names {
    /// No other names.
    pub const NONE: Self = Self { structs: &[], fields: &[], embedded: &[], halves: &[] };

    fn qualified(&self, rust: &'static str) -> &'static str {
        self.structs.iter().find(|(name, _)| *name == rust).map_or(rust, |(_, go)| go)
    }

    fn field_type(&self, rust: &str, field: &str) -> Option<&'static str> {
        self.fields.iter().find(|row| row.0 == rust && row.1 == field).map(|row| row.2)
    }

    fn half(&self, rust: &str) -> Option<&'static str> {
        self.halves.iter().find(|(name, _)| *name == rust).map(|(_, go)| *go)
    }

    fn embedding(&self, rust: &str, field: &str) -> Option<&'static str> {
        let find = |name: &str| self.embedded.iter().find(|row| row.0 == rust && row.1 == name).map(|row| row.2);
        find(field).or_else(|| find("*")).filter(|embedded| !embedded.is_empty())
    }
}

/// Without the package.
fn unqualified(go: &'static str) -> &'static str {
    go.rsplit_once('.').map_or(go, |(_, name)| name)
}

/// Decodes a text by Go's rules.
///
/// ```
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default, rename_all = "camelCase")]
/// struct Limits { cpu_percent: Option<i64> }
///
/// let limits: Limits = koord_resource::go_json::from_str(r#"{"CPUPercent": 1, "cpupercent": 65, "other": []}"#)?;
/// assert_eq!(limits.cpu_percent, Some(65));
/// # Ok::<(), koord_resource::go_json::DecodeError>(())
/// ```
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    from_str_named(text, &Names::NONE)
}

/// Decodes a text by Go's rules, with Go's names in error messages.
pub fn from_str_named<T: DeserializeOwned>(text: &str, names: &Names) -> Result<T, DecodeError> {
    let node = parse(text)?;
    let type_error = FirstTypeError::default();
    let place = Place { names, type_error: &type_error, owner: None, step: None, depth: 0, whole: None };
    let value = T::deserialize(Decoder { node: &node, place }).map_err(|failure| failure.error)?;
    type_error.into_error().map_or(Ok(value), Err)
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    names: &'p Names,
    type_error: &'p FirstTypeError,
    /// The struct of the last field.
    owner: Option<Owner>,
    step: Option<&'p Step<'p>>,
    /// How many lists and maps lie between the last field and the value.
    depth: u8,
    /// What Go calls the whole of which the value is one half.
    whole: Option<&'static str>,
}

#[derive(Clone, Copy)]
struct Owner {
    rust: &'static str,
    /// Without the package.
    go: &'static str,
}

/// The last field on the way to a value.
struct Step<'p> {
    before: Option<&'p Step<'p>>,
    half: Option<&'static str>,
    embedded: Option<&'static str>,
    field: &'static str,
}

impl Place<'_> {
    fn type_error(&self, node: &Node<'_>, plain_type: &str) -> DecodeError {
        let value = match &node.json {
            Json::Null => "null".to_owned(),
            Json::Bool(_) => "bool".to_owned(),
            Json::Number(text) if plain_type.trim_start_matches('u').starts_with("int") => format!("number {text}"),
            Json::Number(_) => "number".to_owned(),
            Json::String(_) => "string".to_owned(),
            Json::Array(_) => "array".to_owned(),
            Json::Object(_) => "object".to_owned(),
        };
        let Some(owner) = self.owner else {
            return DecodeError::Type { value, place: "value".to_owned(), go_type: plain_type.to_owned() };
        };
        let mut fields = Vec::new();
        let mut next = self.step;
        while let Some(step) = next {
            fields.push(step.field);
            fields.extend(step.embedded);
            fields.extend(step.half);
            next = step.before;
        }
        fields.reverse();
        let place = format!("struct field {}.{}", owner.go, fields.join("."));
        let go_type = self.go_type().unwrap_or(plain_type);
        DecodeError::Type { value, place, go_type: go_type.to_owned() }
    }

    /// What Go calls the type of the value, where the table says it of the field.
    fn go_type(&self) -> Option<&'static str> {
        let of_field = self.names.field_type(self.owner?.rust, self.step?.field)?;
        (0..self.depth)
            .try_fold(of_field, |type_, _| {
                let inside = match type_.strip_prefix("map[") {
                    Some(map) => map.split_once(']')?.1,
                    None => type_.strip_prefix("[]")?,
                };
                Some(inside.trim_start_matches('*'))
            })
            // A duration decodes itself, from a text.
            .filter(|go_type| *go_type != "v1.Duration")
    }

    /// The place of what stands in a list or map here.
    fn inside(self) -> Self {
        Place { depth: self.depth.saturating_add(1), ..self }
    }
}

#[derive(Clone, Copy)]
struct Decoder<'n, 't, 'p> {
    node: &'n Node<'t>,
    place: Place<'p>,
}

/// What takes the place of a value of the wrong type.
static NULL: Node<'static> = Node { at: 0, json: Json::Null };

impl Decoder<'_, '_, '_> {
    /// The number, if it is written as one of this type.
    fn number<N: FromStr + Default>(&self) -> Option<N> {
        match &self.node.json {
            Json::Null => Some(N::default()),
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The value has another type than its field.
    fn type_failure(&self, go_type: &str) -> Failure {
        Failure { at: Some(self.node.at), error: self.place.type_error(self.node, go_type) }
    }

    /// Records that the value has another type than its field, and decodes on as if it were null.
    fn mismatch<T>(self, go_type: &str, decode_null: impl FnOnce(Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let failure = self.type_failure(go_type);
        // A type that has no value for null cannot be decoded on.
        let Ok(value) = decode_null(Decoder { node: &NULL, ..self }) else { return Err(failure) };
        self.place.type_error.add(self.node.at, failure.error);
        Ok(value)
    }

    /// Decodes the value. A failure of its type gets its place.
    fn read<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failure> {
        let at = self.node.at;
        seed.deserialize(self).map_err(|failure| Failure { at: failure.at.or(Some(at)), ..failure })
    }

    /// Go's type for this decodes itself, so that a value it refuses ends the decoding.
    fn int_or_string<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if let Json::String(text) = &self.node.json {
            return visitor.visit_str(text);
        }
        visitor.visit_i32(self.number().ok_or_else(|| self.type_failure("int32"))?)
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $go:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            let Some(number) = self.number::<$type>() else {
                return self.mismatch($go, |null| null.$method(visitor));
            };
            visitor.$visit(number)
        }
    )*};
}

impl<'de> Deserializer<'de> for Decoder<'_, '_, '_> {
    type Error = Failure;

    integers! {
        deserialize_i8 visit_i8 i8, "int8";
        deserialize_i16 visit_i16 i16, "int16";
        deserialize_i32 visit_i32 i32, "int32";
        deserialize_i64 visit_i64 i64, "int64";
        deserialize_u8 visit_u8 u8, "uint8";
        deserialize_u16 visit_u16 u16, "uint16";
        deserialize_u32 visit_u32 u32, "uint32";
        deserialize_u64 visit_u64 u64, "uint64";
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::Number(text) => match (text.parse(), text.parse(), text.parse()) {
                (Ok(number), _, _) => visitor.visit_i64(number),
                (_, Ok(number), _) => visitor.visit_u64(number),
                (_, _, Ok(number)) => visitor.visit_f64(number),
                _ => Err(self.type_failure("float64")),
            },
            Json::String(text) => visitor.visit_str(text),
            Json::Array(_) => self.deserialize_seq(visitor),
            Json::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null => visitor.visit_bool(false),
            Json::Bool(value) => visitor.visit_bool(*value),
            _ => self.mismatch("bool", |null| null.deserialize_bool(visitor)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let Some(number) = self.number::<f64>().filter(|number| number.is_finite()) else {
            return self.mismatch("float64", |null| null.deserialize_f64(visitor));
        };
        visitor.visit_f64(number)
    }

    /// Of a type that reads its own text: Go has such types decode themselves, so that another value ends the decoding.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null => visitor.visit_str(""),
            Json::String(text) => visitor.visit_str(text),
            _ => Err(self.type_failure("string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null | Json::String(_) => self.deserialize_str(visitor),
            _ => self.mismatch("string", |null| null.deserialize_str(visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        match name {
            inline::TWICE => {
                let whole = self.place.go_type().map(unqualified);
                let decoder = Decoder { place: Place { whole, ..self.place }, ..self };
                visitor.visit_seq(Twice { decoder, failure: None, left: 2 })
            }
            int_or_string::NAME => self.int_or_string(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::Null => visitor.visit_seq(Items { items: [].iter(), place: self.place.inside() }),
            Json::Array(items) => visitor.visit_seq(Items { items: items.iter(), place: self.place.inside() }),
            _ => self.mismatch("[]string", |null| null.deserialize_seq(visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut entries: Vec<(&str, &Node<'_>)> = Vec::new();
        match &self.node.json {
            Json::Null => {}
            Json::Object(pairs) => {
                for (key, value) in pairs {
                    match entries.iter_mut().find(|(known, _)| known == key) {
                        Some(entry) => entry.1 = value,
                        None => entries.push((key, value)),
                    }
                }
            }
            _ => return self.mismatch("map[string]string", |null| null.deserialize_map(visitor)),
        }
        visitor.visit_map(Entries { left: entries.into_iter(), value: None, place: self.place.inside() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let mut found: Vec<(&'static str, Node<'_>)> = Vec::new();
        match &self.node.json {
            Json::Null => {}
            Json::Object(pairs) => {
                for (key, value) in pairs {
                    let Some(field) = field_of(fields, key) else { continue };
                    match found.iter_mut().find(|(known, _)| *known == field) {
                        Some((_, earlier)) => decode_again(earlier, value),
                        None => found.push((field, value.clone())),
                    }
                }
            }
            _ => {
                let go_type = self.place.names.qualified(name);
                return self.mismatch(go_type, |null| null.deserialize_struct(name, fields, visitor));
            }
        }
        visitor.visit_map(Fields { left: found.iter(), value: None, owner: name, place: self.place })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match &self.node.json {
            Json::String(text) => visitor.visit_enum(IntoDeserializer::<Failure>::into_deserializer(text.as_str())),
            _ => Err(self.type_failure("string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { char bytes byte_buf unit unit_struct tuple_struct identifier }
}

/// The declared field that a key means: the one of this very name, else one that differs only in case.
fn field_of(fields: &'static [&'static str], key: &str) -> Option<&'static str> {
    let exact = fields.iter().find(|field| **field == key);
    exact.or_else(|| fields.iter().find(|field| same_but_case(field, key))).copied()
}

/// Simple case folding; of the letters beyond ASCII only the long s and the Kelvin sign fold to ASCII.
fn same_but_case(a: &str, b: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    a.chars().map(fold).eq(b.chars().map(fold))
}

/// A key that occurs again is decoded over what the earlier one left.
fn decode_again<'t>(earlier: &mut Node<'t>, again: &Node<'t>) {
    match (&mut earlier.json, &again.json) {
        (Json::Object(pairs), Json::Object(more)) => pairs.extend(more.iter().cloned()),
        (Json::Array(items), Json::Array(others)) => {
            items.truncate(others.len());
            for (index, other) in others.iter().enumerate() {
                match items.get_mut(index) {
                    Some(item) => decode_again(item, other),
                    None => items.push(other.clone()),
                }
            }
        }
        (json, other) => {
            *json = other.clone();
            earlier.at = again.at;
        }
    }
}

struct Items<'n, 't, 'p> {
    items: std::slice::Iter<'n, Node<'t>>,
    place: Place<'p>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let place = self.place;
        self.items.next().map(|node| Decoder { node, place }.read(seed)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'n, 't, 'p> {
    left: std::vec::IntoIter<(&'n str, &'n Node<'t>)>,
    value: Option<&'n Node<'t>>,
    place: Place<'p>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some(value);
        let key: StringDeserializer<Failure> = key.to_owned().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let node = self.value.take().unwrap_or(&NULL);
        Decoder { node, place: self.place }.read(seed)
    }
}

struct Fields<'n, 't, 'p> {
    left: std::slice::Iter<'n, (&'static str, Node<'t>)>,
    value: Option<&'n (&'static str, Node<'t>)>,
    owner: &'static str,
    place: Place<'p>,
}

impl<'de> MapAccess<'de> for Fields<'_, '_, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(field) = self.left.next() else { return Ok(None) };
        self.value = Some(field);
        let key: StrDeserializer<'_, Failure> = field.0.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Some((field, node)) = self.value.take() else {
            return Err(de::Error::invalid_type(Unexpected::Map, &"a field before its value"));
        };
        let Place { names, type_error, step: before, whole, .. } = self.place;
        let half = whole.and_then(|_| names.half(self.owner));
        let step = Step { before, half, embedded: names.embedding(self.owner, field), field };
        let owner = Owner { rust: self.owner, go: whole.unwrap_or_else(|| unqualified(names.qualified(self.owner))) };
        let place = Place { names, type_error, owner: Some(owner), step: Some(&step), depth: 0, whole: None };
        Decoder { node, place }.read(seed)
    }
}

/// The same value for both halves of an [`super::Inline`]. Of failures of both, the second time gives the one that comes first
/// in the text.
struct Twice<'n, 't, 'p> {
    decoder: Decoder<'n, 't, 'p>,
    failure: Option<Failure>,
    left: u8,
}

impl<'de> SeqAccess<'de> for Twice<'_, '_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let failure = match self.decoder.read(seed) {
            Ok(value) => return Ok(Some(value)),
            Err(failure) => failure,
        };
        let first = match self.failure.take() {
            Some(earlier) if earlier.at <= failure.at => earlier,
            _ => failure,
        };
        self.failure = Some(first.clone());
        Err(first)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Strategy {
        enable: Option<bool>,
        cpu_percent: Option<i64>,
        small: i32,
        policy: String,
        nested: Option<Nested>,
        features: BTreeMap<String, bool>,
        names: Vec<String>,
        limit: Option<crate::Quantity>,
        wait: Option<crate::Duration>,
        share: Option<crate::IntOrString>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Nested {
        x: Option<i64>,
        y: Option<i64>,
    }

    const NAMES: Names = Names {
        structs: &[("Strategy", "config.GoStrategy")],
        fields: &[("Strategy", "policy", "config.Policy"), ("Strategy", "features", "map[string]bool")],
        embedded: &[("Nested", "x", "Embedded")],
        halves: &[],
    };

    fn decode(text: &str) -> Strategy {
        from_str_named(text, &NAMES).unwrap()
    }

    #[test]
    fn keys_match_whatever_their_case_and_the_last_wins() {
        let strategy = decode(r#"{"CPUPERCENT":1,"cpuPercent":2,"Enable":true,"unknown":{"a":[1]}}"#);
        assert_eq!((strategy.cpu_percent, strategy.enable), (Some(2), Some(true)));
        let merged = decode(r#"{"nested":{"x":1},"NESTED":{"y":2}}"#);
        assert_eq!(merged.nested, Some(Nested { x: Some(1), y: Some(2) }));
        let items = decode(r#"{"names":["a","b"],"names":["c"]}"#);
        assert_eq!(items.names, ["c"]);
    }

    #[test]
    fn null_means_unset() {
        let text = r#"{"enable":null,"small":null,"policy":null,"nested":null,"features":null,"names":null,"limit":null,"share":null}"#;
        assert_eq!(decode(text), Strategy::default());
        assert_eq!(decode("null"), Strategy::default());
        assert!(!decode(r#"{"features":{"a":null}}"#).features["a"]);
        assert_eq!(decode(r#"{"enable":true,"enable":null}"#).enable, None);
    }

    #[test]
    fn wrong_types_are_refused_in_gos_words() {
        for (text, error) in [
            ("[]", "json: cannot unmarshal array into Go value of type config.GoStrategy"),
            (
                r#"{"cpuPercent":"a"}"#,
                "json: cannot unmarshal string into Go struct field GoStrategy.cpuPercent of type int64",
            ),
            (
                r#"{"small":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field GoStrategy.small of type int32",
            ),
            (
                r#"{"small":4294967296}"#,
                "json: cannot unmarshal number 4294967296 into Go struct field GoStrategy.small of type int32",
            ),
            (
                r#"{"policy":5}"#,
                "json: cannot unmarshal number into Go struct field GoStrategy.policy of type config.Policy",
            ),
            (
                r#"{"nested":{"x":true}}"#,
                "json: cannot unmarshal bool into Go struct field Nested.nested.Embedded.x of type int64",
            ),
            (
                r#"{"features":[]}"#,
                "json: cannot unmarshal array into Go struct field GoStrategy.features of type map[string]bool",
            ),
            (
                r#"{"limit":"1Gb"}"#,
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            ("{\"enable\":tru", "unexpected end of JSON input"),
        ] {
            assert_eq!(from_str_named::<Strategy>(text, &NAMES).unwrap_err().to_string(), error, "{text}");
        }
    }

    /// Go keeps the first type error and decodes on; a value that its own type refuses ends that.
    #[test]
    fn of_several_errors_the_one_that_go_reports_is_reported() {
        for (text, error) in [
            (
                r#"{"small":"a","enable":1,"cpuPercent":[]}"#,
                "json: cannot unmarshal string into Go struct field GoStrategy.small of type int32",
            ),
            (
                r#"{"names":["a",{"b":1},5],"small":"a"}"#,
                "json: cannot unmarshal object into Go struct field GoStrategy.names of type string",
            ),
            (
                r#"{"nested":[],"small":"a"}"#,
                "json: cannot unmarshal array into Go struct field GoStrategy.nested of type Nested",
            ),
            (
                r#"{"nested":{"y":1},"small":"a","nested":{"x":"b"}}"#,
                "json: cannot unmarshal string into Go struct field GoStrategy.small of type int32",
            ),
            (
                r#"{"small":"a","limit":"1Gb","enable":1}"#,
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                r#"{"small":"a","wait":5,"limit":"1Gb"}"#,
                "json: cannot unmarshal number into Go struct field GoStrategy.wait of type string",
            ),
            (
                r#"{"small":"a","share":true,"wait":5}"#,
                "json: cannot unmarshal bool into Go struct field GoStrategy.share of type int32",
            ),
        ] {
            assert_eq!(from_str_named::<Strategy>(text, &NAMES).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn a_value_that_another_one_replaces_is_not_checked() {
        assert_eq!(decode(r#"{"cpuPercent":"a","cpuPercent":2}"#).cpu_percent, Some(2));
    }

    #[test]
    fn a_type_without_a_value_for_null_is_refused_in_gos_words_too() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Whole {
            part: Part,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Part {
            x: i64,
        }
        let error = from_str::<Whole>(r#"{"part":5}"#).unwrap_err().to_string();
        assert_eq!(error, "json: cannot unmarshal number into Go struct field Whole.part of type Part");
    }
}
