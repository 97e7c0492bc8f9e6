//! Protobuf request bodies, as kubectl sends them for built-in kinds; answers are always JSON.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine;
use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde_json::{Map, Value, json};

use crate::builtins::{definition_name, split_group_version};

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";
/// Nesting that no honest object reaches.
const DEPTH_MAX: usize = 64;

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It does not start as it must.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// It ends too early, or its numbers make no sense.
    #[error("unexpected EOF")]
    Malformed,
    /// Its kind is not known in this form.
    #[error("{0} is not read as protobuf; send JSON")]
    UnknownKind(String),
}

#[derive(Clone, Debug)]
struct Field {
    json: &'static str,
    repeated: bool,
    map: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    String,
    Bytes,
    Bool,
    Int,
    Double,
    Message(&'static str),
}

type Message = BTreeMap<u64, Field>;

fn messages() -> &'static BTreeMap<&'static str, Message> {
    static MESSAGES: OnceLock<BTreeMap<&'static str, Message>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let lines = include_str!("protobuf/fields.txt").lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, fields) = line.split_once(' ').unwrap_or((line, ""));
                (name, fields.split(' ').filter_map(field).collect())
            })
            .collect()
    })
}

fn field(text: &'static str) -> Option<(u64, Field)> {
    let mut parts = text.splitn(3, ':');
    let (tag, json, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let (repeated, map) = (kind.starts_with('*'), kind.starts_with('%'));
    let kind = match kind.trim_start_matches(['*', '%']) {
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "double" => Kind::Double,
        message => Kind::Message(message.strip_prefix('@')?),
    };
    Some((tag.parse().ok()?, Field { json, repeated, map, kind }))
}

/// The JSON object that a body holds, with `apiVersion` and `kind`.
pub fn to_json(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader(envelope);
    while let Some((tag, wire)) = reader.next()? {
        match (tag, wire) {
            (1, Wire::Bytes(bytes)) => {
                let mut type_meta = Reader(bytes);
                while let Some((tag, wire)) = type_meta.next()? {
                    match (tag, wire) {
                        (1, Wire::Bytes(text)) => api_version = String::from_utf8_lossy(text).into_owned(),
                        (2, Wire::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = split_group_version(&api_version);
    // Delete options say the group of what they delete; the type is the same everywhere.
    let full = match kind.as_str() {
        "DeleteOptions" => "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions".to_owned(),
        kind => definition_name(group, version, kind),
    };
    let name = full.strip_prefix("io.k8s.").unwrap_or(&full);
    if !messages().contains_key(name) {
        return Err(ProtobufError::UnknownKind(format!("{api_version}, Kind={kind}")));
    }
    let mut object = message(name, raw, 0)?;
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(api_version));
        fields.insert("kind".to_owned(), json!(kind));
    }
    Ok(object)
}

/// One message as JSON; those with a form of their own in JSON take it.
fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let known = messages().get(name).filter(|_| depth < DEPTH_MAX).ok_or(ProtobufError::Malformed)?;
    let mut fields = Map::new();
    let mut reader = Reader(bytes);
    while let Some((tag, wire)) = reader.next()? {
        let Some(field) = known.get(&tag) else { continue };
        if field.map {
            let (key, value) = entry(field.kind, &wire, depth)?;
            let map = fields.entry(field.json).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            continue;
        }
        let value = scalar(field.kind, &wire, depth)?;
        if field.repeated {
            let list = fields.entry(field.json).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(value);
            }
        } else if field.json == "-" {
            fields.extend(value.as_object().cloned().unwrap_or_default());
        } else if value != "" && !value.is_null() {
            fields.insert(field.json.to_owned(), value);
        }
    }
    Ok(own_form(name, fields))
}

fn own_form(name: &str, mut fields: Map<String, Value>) -> Value {
    let number = |field: &str| fields.get(field).and_then(Value::as_i64).unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => fields.remove("string").unwrap_or_else(|| json!("0")),
        "IntOrString" if number("type") == 0 => json!(number("intVal")),
        "IntOrString" => fields.remove("strVal").unwrap_or_else(|| json!("")),
        // The zero time is an absent one.
        "Time" | "MicroTime" if fields.is_empty() || number("seconds") == -62_135_596_800 => Value::Null,
        "Time" => time(number("seconds"), 0, None),
        // Go reads nothing else than six digits.
        "MicroTime" => time(number("seconds"), number("nanos"), Some(6)),
        "ExtraValue" | "Verbs" => fields.remove("items").unwrap_or_else(|| json!([])),
        "FieldsV1" | "RawExtension" | "JSON" => {
            let raw = fields.values().next().and_then(Value::as_str).unwrap_or_default();
            let text = base64::engine::general_purpose::STANDARD.decode(raw).unwrap_or_default();
            serde_json::from_slice(&text).unwrap_or(Value::Null)
        }
        // Go writes numbers that are 0 and leaves them out of JSON.
        "ObjectMeta" if number("generation") == 0 => {
            fields.remove("generation");
            Value::Object(fields)
        }
        _ => Value::Object(fields),
    }
}

fn time(seconds: i64, nanos: i64, digits: Option<u8>) -> Value {
    let nanos = i32::try_from(nanos).unwrap_or_default();
    let printer = DateTimePrinter::new().precision(digits);
    Timestamp::new(seconds, nanos).map_or(Value::Null, |time| json!(printer.timestamp_to_string(&time)))
}

fn scalar(kind: Kind, wire: &Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (kind, wire) {
        (Kind::String, Wire::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        (Kind::Bytes, Wire::Bytes(bytes)) => json!(base64::engine::general_purpose::STANDARD.encode(bytes)),
        (Kind::Bool, Wire::Number(number)) => json!(*number != 0),
        (Kind::Int, Wire::Number(number)) => json!(number.cast_signed()),
        (Kind::Double, Wire::Fixed(bits)) => json!(f64::from_bits(*bits)),
        (Kind::Message(name), Wire::Bytes(bytes)) => message(name, bytes, depth + 1)?,
        _ => return Err(ProtobufError::Malformed),
    })
}

fn entry(kind: Kind, wire: &Wire<'_>, depth: usize) -> Result<(String, Value), ProtobufError> {
    let Wire::Bytes(bytes) = wire else { return Err(ProtobufError::Malformed) };
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader(bytes);
    while let Some((tag, wire)) = reader.next()? {
        match (tag, &wire) {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => value = Some(scalar(kind, wire, depth)?),
            _ => {}
        }
    }
    let empty = if matches!(kind, Kind::String | Kind::Bytes) { json!("") } else { json!({}) };
    Ok((key, value.unwrap_or(empty)))
}

/// A value as it stands on the wire.
enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

// === impl Reader ===

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Fixed(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| ProtobufError::Malformed)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Malformed)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| ProtobufError::Malformed)?;
                Wire::Fixed(u64::from(u32::from_le_bytes(bytes)))
            }
            _ => return Err(ProtobufError::Malformed),
        };
        Ok(Some((key >> 3, wire)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_pb::api::coordination::v1::{Lease, LeaseSpec};
    use k8s_pb::api::core::v1::{Namespace, Secret};
    use k8s_pb::api::networking::v1::{
        HttpIngressRuleValue, Ingress, IngressRule, IngressRuleValue, IngressSpec, IngressTls,
    };
    use k8s_pb::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
    use prost::Message as _;

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let part = |tag: u8, bytes: &[u8]| [&[tag << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
        let type_meta = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
        [MAGIC, &part(1, &type_meta), &part(2, raw)].concat()
    }

    #[test]
    fn a_body_is_the_object_that_json_would_be() {
        let labels = [("a".to_owned(), "b".to_owned())].into_iter().collect();
        let metadata = ObjectMeta { name: Some("x".to_owned()), labels, ..ObjectMeta::default() };
        let namespace = Namespace { metadata: Some(metadata.clone()), ..Namespace::default() };
        let expected =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "labels": {"a": "b"}}});
        assert_eq!(to_json(&body("v1", "Namespace", &namespace.encode_to_vec())).unwrap(), expected);

        let data = [("k".to_owned(), b"v".to_vec())].into_iter().collect();
        let secret = Secret { metadata: Some(metadata), data, ..Secret::default() };
        let found = to_json(&body("v1", "Secret", &secret.encode_to_vec())).unwrap();
        assert_eq!(found["data"], json!({"k": "dg=="}));
    }

    #[test]
    fn a_time_with_microseconds_has_six_digits() {
        for (nanos, expected) in [(299_530_000, "299530"), (0, "000000"), (1_000, "000001"), (999_999_999, "999999")] {
            let time = MicroTime { seconds: Some(86_400), nanos: Some(nanos) };
            let spec = LeaseSpec { renew_time: Some(time), ..LeaseSpec::default() };
            let lease = Lease { spec: Some(spec), ..Lease::default() };
            let found = to_json(&body("coordination.k8s.io/v1", "Lease", &lease.encode_to_vec())).unwrap();
            assert_eq!(found["spec"]["renewTime"], format!("1970-01-02T00:00:00.{expected}Z"));
        }
    }

    #[test]
    fn what_go_embeds_stands_in_json_where_its_fields_are() {
        let rule = IngressRule {
            host: Some("h".to_owned()),
            ingress_rule_value: Some(IngressRuleValue { http: Some(HttpIngressRuleValue::default()) }),
        };
        let spec = IngressSpec { rules: vec![rule], tls: vec![IngressTls::default()], ..IngressSpec::default() };
        let ingress = Ingress { spec: Some(spec), ..Ingress::default() };
        let found = to_json(&body("networking.k8s.io/v1", "Ingress", &ingress.encode_to_vec())).unwrap();
        assert_eq!(found["spec"], json!({"rules": [{"host": "h", "http": {}}], "tls": [{}]}));
    }

    #[test]
    fn every_message_that_stands_in_another_is_known() {
        for (name, fields) in messages() {
            for field in fields.values() {
                let Kind::Message(inner) = field.kind else { continue };
                assert!(messages().contains_key(inner), "{inner}, which stands in {name}, cannot be read");
            }
        }
    }

    #[test]
    fn broken_bodies_are_errors() {
        assert_eq!(to_json(b"{}"), Err(ProtobufError::Magic));
        let whole = body("v1", "Namespace", &[0x0a, 0x03, 0x0a, 0x01, 0x78]);
        assert!(to_json(&whole).is_ok());
        assert_eq!(to_json(&whole[..whole.len() - 1]), Err(ProtobufError::Malformed));
        assert!(matches!(to_json(&body("v1", "Gizmo", &[])), Err(ProtobufError::UnknownKind(_))));
    }
}
