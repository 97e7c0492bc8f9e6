//! Built-in kinds as Go's decoder reads them and its encoder writes them again.
//!
//! Types are checked with Go's messages, unknown fields are dropped, empty lists and maps vanish, structs that Go never
//! omits appear, quantities and times take their canonical form.

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use koord_resource::Quantity;
use serde_json::{Map, Value, json};

use super::go_types;
use crate::builtins::{BuiltinType, Shape, definition_name};

const QUANTITY_RULE: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Nesting that no honest object reaches.
const DEPTH_MAX: usize = 64;

/// Times that are values, not pointers, in Go: they are written as `null` when they are not set.
const ZERO_TIMES: &[(&str, &[&str])] = &[
    ("PodCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("NodeCondition", &["lastHeartbeatTime", "lastTransitionTime"]),
    ("DeploymentCondition", &["lastUpdateTime", "lastTransitionTime"]),
    ("ReplicaSetCondition", &["lastTransitionTime"]),
    ("StatefulSetCondition", &["lastTransitionTime"]),
    ("DaemonSetCondition", &["lastTransitionTime"]),
    ("JobCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("NamespaceCondition", &["lastTransitionTime"]),
    ("PersistentVolumeClaimCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("Condition", &["lastTransitionTime"]),
    ("CustomResourceDefinitionCondition", &["lastTransitionTime"]),
    ("Event", &["eventTime", "firstTimestamp", "lastTimestamp", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"]),
    ("EventSeries", &["lastObservedTime"]),
    ("ContainerStateRunning", &["startedAt"]),
    ("ContainerStateTerminated", &["startedAt", "finishedAt"]),
];

/// Strings, numbers and booleans that are values in Go and left out when they are zero. Those not listed are pointers,
/// or are written always.
const OMITTED_WHEN_ZERO: &[&str] = &[
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "unschedulable",
    "publishNotReadyAddresses",
    "minReadySeconds",
    "observedGeneration",
    "nodeName",
    "hostname",
    "subdomain",
    "priorityClassName",
    "serviceAccountName",
    "serviceAccount",
    "generateName",
    "selfLink",
    "initialDelaySeconds",
    "globalDefault",
    "description",
    "paused",
    "subPath",
    "workingDir",
    "hostPort",
    "message",
    "reason",
    "podIP",
    "hostIP",
    "caBundle",
    "preserveUnknownFields",
];

/// What a decoded object leaves to be said.
#[derive(Debug, Default)]
pub(super) struct Decoding {
    /// Where in the path keys of maps stand.
    keys: Vec<std::ops::Range<usize>>,
    path: String,
    depth: usize,
}

impl Decoding {
    /// Reads an object of a built-in kind in place.
    pub(super) fn object(&mut self, node: &BuiltinType, kind: &str, object: &mut Value) -> Result<(), String> {
        self.walk(node, kind, object)
    }

    fn walk(&mut self, node: &BuiltinType, owner: &str, value: &mut Value) -> Result<(), String> {
        if self.depth > DEPTH_MAX {
            return Err("exceeded max depth".to_owned());
        }
        let name = match &node.shape {
            Shape::Named(named) => named.name.as_ref(),
            _ => "",
        };
        let resolved = node.resolve();
        match &resolved.shape {
            Shape::Any | Shape::Named(_) => Ok(()),
            Shape::Object(fields) => {
                let struct_name = if name.is_empty() { owner } else { last_part(name) };
                match value {
                    Value::Object(map) => {
                        map.retain(|name, _| fields.contains_key(name.as_str()));
                        for (name, field) in fields {
                            self.field(struct_name, name, field, &resolved.required, map)?;
                        }
                        Ok(())
                    }
                    other => Err(self.mismatch(other, owner, &format!("v1.{struct_name}"))),
                }
            }
            Shape::Map(values) => match value {
                Value::Object(map) => {
                    for (key, value) in map.iter_mut() {
                        if value.is_null() && matches!(values.resolve().shape, Shape::String) {
                            *value = json!("");
                        }
                        let is_leaf =
                            !matches!(values.resolve().shape, Shape::Object(_) | Shape::Map(_) | Shape::List(_));
                        if is_leaf {
                            self.walk(values, owner, value)?;
                        } else {
                            self.below_key(key, |decoding| decoding.walk(values, owner, value))?;
                        }
                    }
                    Ok(())
                }
                other => Err(self.mismatch(other, owner, &format!("map[string]{}", go_type(values)))),
            },
            Shape::List(items) => match value {
                Value::Array(list) => {
                    for item in list.iter_mut() {
                        if item.is_null() {
                            // Go leaves the place as it was made.
                            match items.resolve().shape {
                                Shape::Object(_) => *item = json!({}),
                                Shape::String => *item = json!(""),
                                Shape::Integer => *item = json!(0),
                                _ => {}
                            }
                        }
                        self.deeper(|decoding| decoding.walk(items, owner, item))?;
                    }
                    Ok(())
                }
                other => Err(self.mismatch(other, owner, &format!("[]{}", go_type(items)))),
            },
            Shape::Boolean if value.is_boolean() => Ok(()),
            Shape::Number if value.is_number() => Ok(()),
            Shape::Integer => self.integer(resolved, owner, value),
            Shape::String => self.string(resolved, name, owner, value),
            Shape::Quantity => quantity(value),
            Shape::IntOrString if value.is_string() => Ok(()),
            Shape::IntOrString if value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => Ok(()),
            Shape::Boolean => Err(self.mismatch(value, owner, "bool")),
            Shape::Number => Err(self.mismatch(value, owner, "float64")),
            Shape::IntOrString => Err(self.mismatch(value, owner, "int32")),
        }
    }

    fn field(
        &mut self,
        owner: &str,
        name: &str,
        field: &BuiltinType,
        required: &[Box<str>],
        map: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if map.get(name).is_some_and(Value::is_null) {
            map.remove(name);
        }
        if let Some(value) = map.get_mut(name) {
            self.below(name, |decoding| decoding.walk(field, owner, value))?;
            if let (Value::String(text), Some(Value::String(default))) = (&mut *value, &field.default)
                && text.is_empty()
            {
                text.clone_from(default);
            }
            let is_required = required.iter().any(|known| known.as_ref() == name);
            let vanishes = match &*value {
                // Emptied managedFields mean that nobody owns anything from now on.
                Value::Array(list) => list.is_empty() && !is_required && name != "managedFields",
                Value::Object(fields) => {
                    fields.is_empty() && !is_required && matches!(field.resolve().shape, Shape::Map(_))
                }
                Value::String(text) => text.is_empty() && field.default.is_none() && is_omitted_when_zero(name),
                Value::Bool(false) => field.default.is_none() && is_omitted_when_zero(name),
                Value::Number(number) => {
                    number.as_i64() == Some(0) && field.default.is_none() && is_omitted_when_zero(name)
                }
                _ => false,
            };
            if vanishes {
                map.remove(name);
            }
        }
        if !map.contains_key(name) {
            if is_zero_time(owner, name) {
                map.insert(name.to_owned(), Value::Null);
            } else if let Some(default) = &field.default {
                let mut value = default.clone();
                if value.is_object() {
                    self.below(name, |decoding| decoding.walk(field, owner, &mut value))?;
                }
                map.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn integer(&self, node: &BuiltinType, owner: &str, value: &mut Value) -> Result<(), String> {
        let go = if node.format.as_deref() == Some("int32") { "int32" } else { "int64" };
        let fits = |number: i64| go == "int64" || i32::try_from(number).is_ok();
        if value.as_i64().is_some_and(fits) {
            return Ok(());
        }
        // A whole number may be written with a fraction of zero.
        if let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
            && fits(number as i64)
        {
            *value = json!(number as i64);
            return Ok(());
        }
        Err(self.mismatch(value, owner, go))
    }

    fn string(&self, node: &BuiltinType, name: &str, owner: &str, value: &mut Value) -> Result<(), String> {
        let Value::String(text) = value else {
            let go = if node.format.as_deref() == Some("byte") { "[]uint8" } else { "string" };
            return Err(self.mismatch(value, owner, go));
        };
        match node.format.as_deref() {
            Some("byte") => {
                check_base64(text)?;
                *text = canonical_base64(text);
                Ok(())
            }
            Some("date-time") if text.is_empty() => Ok(()),
            Some("date-time") => {
                let is_micro = name.ends_with("MicroTime");
                *value = Value::String(canonical_time(text, is_micro)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn below<T>(&mut self, name: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = self.deeper(visit);
        self.path.truncate(length);
        result
    }

    /// The entry of a map: errors name the fields of structs alone.
    fn below_key<T>(&mut self, key: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.path.len();
        self.keys.push(start..start + key.len() + usize::from(start > 0));
        let result = self.below(key, visit);
        self.keys.pop();
        result
    }

    fn deeper<T>(&mut self, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let result = visit(self);
        self.depth -= 1;
        result
    }

    fn mismatch(&self, value: &Value, owner: &str, go: &str) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if go.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let go = go_types::named(owner, self.path.rsplit('.').next().unwrap_or_default(), go).unwrap_or(go);
        let mut path = self.path.clone();
        self.keys.iter().rev().for_each(|key| path.replace_range(key.clone(), ""));
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {go}")
    }
}

fn is_zero_time(owner: &str, name: &str) -> bool {
    ZERO_TIMES.iter().any(|(known, fields)| *known == owner && fields.contains(&name))
}

fn is_omitted_when_zero(name: &str) -> bool {
    OMITTED_WHEN_ZERO.contains(&name)
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

fn go_type(node: &BuiltinType) -> String {
    if let Shape::Named(named) = &node.shape
        && matches!(node.resolve().shape, Shape::Object(_))
    {
        let mut parts = named.name.rsplit('.');
        let kind = parts.next().unwrap_or_default();
        return format!("{}.{kind}", parts.next().unwrap_or_default());
    }
    match &node.resolve().shape {
        Shape::Boolean => "bool".to_owned(),
        Shape::Integer if node.format.as_deref() == Some("int32") => "int32".to_owned(),
        Shape::Integer => "int64".to_owned(),
        Shape::Number => "float64".to_owned(),
        Shape::List(items) => format!("[]{}", go_type(items)),
        Shape::Map(values) => format!("map[string]{}", go_type(values)),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        _ => "string".to_owned(),
    }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(QUANTITY_RULE.to_owned()),
    };
    let quantity: Quantity = text.parse().map_err(|_| QUANTITY_RULE.to_owned())?;
    *value = Value::String(quantity.to_string());
    Ok(())
}

/// Base64 as Go reads it, four letters at a time; a mistake is named by its place, or by that of an unfinished four.
pub(crate) fn check_base64(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    let corrupt = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let is_break = |byte: u8| matches!(byte, b'\n' | b'\r');
    let skip = |at: usize| at + bytes[at..].iter().take_while(|byte| is_break(**byte)).count();
    let (mut at, mut letters) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'=' if letters < 2 => return corrupt(at),
            b'=' => {
                let mut end = skip(at + 1);
                if letters == 2 {
                    match bytes.get(end) {
                        None => return corrupt(bytes.len()),
                        Some(b'=') => end = skip(end + 1),
                        Some(_) => return corrupt(end - 1),
                    }
                }
                return if end < bytes.len() { corrupt(end) } else { Ok(()) };
            }
            _ if is_break(byte) => {}
            b'+' | b'/' => letters = (letters + 1) % 4,
            _ if byte.is_ascii_alphanumeric() => letters = (letters + 1) % 4,
            _ => return corrupt(at),
        }
        at += 1;
    }
    if letters == 0 { Ok(()) } else { corrupt(at - letters) }
}

/// Base64 as Go writes what it read: without line breaks, and without bits after the last byte.
fn canonical_base64(text: &str) -> String {
    const LENIENT: GeneralPurpose =
        GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    LENIENT.decode(bytes).map_or_else(|_| text.to_owned(), |bytes| LENIENT.encode(bytes))
}

fn canonical_time(text: &str, is_micro: bool) -> Result<String, String> {
    if is_micro {
        // Six digits, no more and no fewer.
        let rest = text.get(19..).unwrap_or_default();
        let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        if text.len() > 19 && digits != 6 {
            return Err(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {rest:?} as \".000000\""
            ));
        }
    }
    let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let time: Timestamp =
        text.parse().map_err(|_| format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))?;
    if is_micro {
        let mut out = String::new();
        let printer = DateTimePrinter::new().precision(Some(6));
        printer.print_timestamp(&time, &mut out).map_err(|error| error.to_string())?;
        Ok(out)
    } else {
        Ok(crate::environment::time_text(time))
    }
}

/// The type of a built-in kind.
pub(super) fn kind(group: &str, version: &str, kind: &str) -> Option<&'static BuiltinType> {
    crate::builtins::definition(&definition_name(group, version, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(kind_name: &str, mut object: Value) -> Result<Value, String> {
        Decoding::default().object(kind("", "v1", kind_name).unwrap(), kind_name, &mut object)?;
        Ok(object)
    }

    #[test]
    fn base64_mistakes_have_gos_places() {
        for (text, at) in
            [("v", 0), ("vvv", 0), ("AAAAv", 4), ("AAAAvv=", 7), ("v===", 1), ("AA=A", 2), ("vv==x", 4), ("!", 0)]
        {
            assert_eq!(check_base64(text), Err(format!("illegal base64 data at input byte {at}")), "{text}");
        }
        assert_eq!(check_base64("AA\nA="), Ok(()));
        assert_eq!(check_base64("vv=="), Ok(()));
    }

    #[test]
    fn types_are_checked_with_gos_words() {
        for (object, message) in [
            (
                json!({"spec": {"containers": "x"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"containers": [{"name": 5}]}}),
                "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
            ),
            (
                json!({"spec": {"containers": [{"ports": [{"protocol": 6}]}]}}),
                "json: cannot unmarshal number into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol",
            ),
            (
                json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 2_147_483_648_u32}}}]}}),
                "json: cannot unmarshal number 2147483648 into Go struct field HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
            ),
            (
                json!({"spec": {"priority": "high"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
            ),
        ] {
            assert_eq!(decoded("Pod", object).unwrap_err(), message);
        }
        assert_eq!(
            decoded("ConfigMap", json!({"binaryData": {"k": "***"}})).unwrap_err(),
            "illegal base64 data at input byte 0"
        );
    }

    #[test]
    fn values_take_their_canonical_form() {
        let node =
            decoded("Node", json!({"spec": {"bogus": 1}, "status": {"capacity": {"cpu": 2, "memory": "1024Ki"}}}))
                .unwrap();
        assert_eq!(node["status"]["capacity"], json!({"cpu": "2", "memory": "1Mi"}));
        assert_eq!(node["spec"].get("bogus"), None);
        let secret = decoded("Secret", json!({"data": {"a": "AGK=", "b": "aGk\n="}})).unwrap();
        assert_eq!(secret["data"], json!({"a": "AGI=", "b": "aGk="}));
        let pod =
            decoded("Pod", json!({"spec": {"containers": [{"name": "c", "ports": [{"protocol": ""}]}]}})).unwrap();
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        let map = decoded("ConfigMap", json!({"metadata": {"labels": {}}, "data": {"k": null}})).unwrap();
        assert_eq!(map, json!({"metadata": {}, "data": {"k": ""}}));
    }

    #[test]
    fn structs_that_go_never_omits_appear() {
        let pod = decoded("Pod", json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
        assert_eq!(
            pod,
            json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}})
        );
    }
}
