//! Messages of the hook server and of NRI between JSON and their wire format.
//!
//! Written without the types of the program, so that a wrong field number there is a difference here.

use serde_json::{Map, Value, json};

use crate::messages::{Holds, fields};

/// The wire type of numbers.
const VARINT: u64 = 0;
/// The wire type of texts, messages and maps.
const BYTES: u64 = 2;

/// Encodes a message; members that it does not have are left out.
pub fn encode(message: &str, object: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, number, holds) in fields(message) {
        let Some(value) = object.get(name) else { continue };
        let items = || value.as_array().map(Vec::as_slice).unwrap_or_default();
        match holds {
            Holds::Text => {
                if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
                    delimited(&mut bytes, *number, text.as_bytes());
                }
            }
            Holds::Number => {
                let amount = value.as_i64().unwrap_or_else(|| i64::from(value == true));
                if amount != 0 {
                    varint(&mut bytes, number << 3 | VARINT);
                    varint(&mut bytes, amount.cast_unsigned());
                }
            }
            Holds::Map => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let mut entry = Vec::new();
                    delimited(&mut entry, 1, key.as_bytes());
                    delimited(&mut entry, 2, value.as_str().unwrap_or_default().as_bytes());
                    delimited(&mut bytes, *number, &entry);
                }
            }
            Holds::Texts => {
                for text in items() {
                    delimited(&mut bytes, *number, text.as_str().unwrap_or_default().as_bytes());
                }
            }
            Holds::Message(inner) => delimited(&mut bytes, *number, &encode(inner, value)),
            Holds::Messages(inner) => {
                for item in items() {
                    delimited(&mut bytes, *number, &encode(inner, item));
                }
            }
        }
    }
    bytes
}

/// Decodes a message; fields that are not in the table are left out.
///
/// # Errors
///
/// The bytes are not a message; the text says where.
pub fn decode(message: &str, bytes: &[u8]) -> Result<Value, String> {
    let mut object = Map::new();
    for (number, part) in parts(bytes)? {
        let Some((name, _, holds)) = fields(message).iter().find(|(_, known, _)| *known == number) else { continue };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| format!("{message}.{name}: not UTF-8"));
        let mismatch = || format!("{message}.{name}: another wire type");
        match (holds, part) {
            (Holds::Number, Part::Number(number)) => _ = object.insert((*name).to_owned(), json!(number.cast_signed())),
            (Holds::Text, Part::Bytes(bytes)) => _ = object.insert((*name).to_owned(), json!(text(bytes)?)),
            (Holds::Message(inner), Part::Bytes(bytes)) => _ = object.insert((*name).to_owned(), decode(inner, bytes)?),
            (Holds::Map, Part::Bytes(bytes)) => {
                let (mut key, mut value) = (String::new(), String::new());
                for (number, part) in parts(bytes)? {
                    match (number, part) {
                        (1, Part::Bytes(bytes)) => key = text(bytes)?,
                        (2, Part::Bytes(bytes)) => value = text(bytes)?,
                        _ => {}
                    }
                }
                object.entry(*name).or_insert_with(|| json!({}))[key] = json!(value);
            }
            (Holds::Texts | Holds::Messages(_), Part::Bytes(bytes)) => {
                let item = if let Holds::Messages(inner) = holds { decode(inner, bytes)? } else { json!(text(bytes)?) };
                if let Value::Array(items) = object.entry(*name).or_insert_with(|| json!([])) {
                    items.push(item);
                }
            }
            _ => return Err(mismatch()),
        }
    }
    Ok(Value::Object(object))
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn delimited(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(bytes, number << 3 | BYTES);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message: their numbers and contents.
fn parts(bytes: &[u8]) -> Result<Vec<(u64, Part<'_>)>, String> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        let part = match tag & 7 {
            VARINT => Part::Number(take_varint(&mut rest)?),
            BYTES => {
                let length = take_varint(&mut rest)? as usize;
                let (content, after) = rest.split_at_checked(length).ok_or("a field ends too early")?;
                rest = after;
                Part::Bytes(content)
            }
            other => return Err(format!("wire type {other} of field {}", tag >> 3)),
        };
        parts.push((tag >> 3, part));
    }
    Ok(parts)
}

fn take_varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, after) = rest.split_first().ok_or("a number ends too early")?;
        *rest = after;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded_as_protobuf_does() {
        let request =
            json!({"pod_meta": {"name": "a"}, "labels": {"k": "v"}, "resources": {"cpu_quota": -1, "cpu_shares": 300}});
        let bytes = encode("PodSandboxHookRequest", &request);
        let wanted = [
            &[0x0a, 3, 0x0a, 1, b'a'][..],
            &[0x1a, 6, 0x0a, 1, b'k', 0x12, 1, b'v'],
            &[0x3a, 14, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x18, 0xac, 2],
        ];
        assert_eq!(bytes, wanted.concat());
        assert_eq!(decode("PodSandboxHookRequest", &bytes).unwrap(), request);
    }

    #[test]
    fn lists_and_nested_messages_come_back() {
        let answer = json!({"adjust": {"env": [{"key": "A", "value": "1"}, {"key": "B", "value": "2"}],
            "linux": {"resources": {"cpu": {"shares": {"value": 2}}, "unified": {"a": "b"}}}}, "update": [{}]});
        assert_eq!(decode("CreateContainerResponse", &encode("CreateContainerResponse", &answer)).unwrap(), answer);
        assert!(decode("CreateContainerResponse", &[0x0a, 9, 1]).is_err());
        assert!(decode("NriInt", &[0x0a, 1, 0]).unwrap_err().contains("another wire type"));
    }
}
