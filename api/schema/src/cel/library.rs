//! Functions and values of expressions that the evaluator's libraries lack, or have otherwise.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, Value as CelValue,
    extractors::{Arguments, This},
    objects::{Key, Map as CelMap, Opaque, OptionalValue},
};

use super::{
    constant::to_bool,
    macros::{ENTRIES, INSERT, INSERT_NAMESPACE},
};
use crate::{names, pattern, structural::formats};

/// What functions give.
type Answer = Result<CelValue, ExecutionError>;

/// Adds the functions and values to a context.
pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("matches", matches);
    context.add_function("bool", bool_of);
    context.add_function("dyn", |This(value): This<CelValue>| -> Answer { Ok(value) });
    context.add_function("type", |This(value): This<CelValue>| -> Answer { Ok(type_value(type_name(&value))) });
    context.add_function(ENTRIES, entries);
    context.add_function(&format!("{INSERT_NAMESPACE}.{INSERT}"), insert);
    context.add_function("optional.unwrap", present);
    context.add_function("unwrapOpt", present);
    context.add_function("validate", validate);
    context.add_function("format.named", |name: Arc<String>| -> Answer {
        let format = FORMATS.iter().find(|format| format.name == *name);
        Ok(optional(format.map(|format| CelValue::Opaque(Arc::new(*format)))))
    });
    for format in FORMATS {
        let value = move || -> Answer { Ok(CelValue::Opaque(Arc::new(format))) };
        context.add_function(&format!("format.{}", format.name), value);
    }
    for name in ["bool", "bytes", "double", "int", "uint", "string", "list", "map", "null_type", "type"] {
        context.add_variable_from_value(name, type_value(name));
    }
    let times = ["Duration", "Timestamp"].map(|name| (name, type_value(&format!("{PROTOBUF}.{name}"))));
    context.add_variable_from_value("google", map([("protobuf", map(times))]));
}

/// The namespace of the types of times.
const PROTOBUF: &str = "google.protobuf";

fn map<const N: usize>(entries: [(&str, CelValue); N]) -> CelValue {
    let entries = entries.map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    CelValue::Map(CelMap { map: Arc::new(entries.into()) })
}

fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// `matches` means RE2, as `pattern` does.
#[allow(clippy::needless_pass_by_value, reason = "the registry of functions hands over owned arguments")]
fn matches(This(text): This<Arc<String>>, expression: Arc<String>) -> Result<bool, ExecutionError> {
    let compiled = pattern::compile(&expression).map_err(|error| ExecutionError::function_error("matches", error))?;
    Ok(compiled.is_match(&text))
}

fn bool_of(This(value): This<CelValue>) -> Answer {
    match &value {
        CelValue::Bool(_) => Ok(value),
        CelValue::String(text) => {
            let value = to_bool(text).ok_or_else(|| ExecutionError::function_error("bool", "no bool"))?;
            Ok(CelValue::Bool(value))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// A type as a value.
#[derive(Debug, PartialEq, Eq)]
struct TypeValue(String);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

fn type_value(name: &str) -> CelValue {
    CelValue::Opaque(Arc::new(TypeValue(name.to_owned())))
}

fn type_name(value: &CelValue) -> &str {
    match value {
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Function(..) => "function",
        CelValue::Int(_) => "int",
        CelValue::UInt(_) => "uint",
        CelValue::Float(_) => "double",
        CelValue::String(_) => "string",
        CelValue::Bytes(_) => "bytes",
        CelValue::Bool(_) => "bool",
        CelValue::Duration(_) => "google.protobuf.Duration",
        CelValue::Timestamp(_) => "google.protobuf.Timestamp",
        CelValue::Opaque(value) => value.runtime_type_name(),
        CelValue::Null => "null_type",
    }
}

fn of_key(key: &Key) -> CelValue {
    match key {
        Key::Int(key) => CelValue::Int(*key),
        Key::Uint(key) => CelValue::UInt(*key),
        Key::Bool(key) => CelValue::Bool(*key),
        Key::String(key) => CelValue::String(Arc::clone(key)),
    }
}

fn to_key(value: &CelValue) -> Result<Key, ExecutionError> {
    Ok(match value {
        CelValue::Int(key) => Key::Int(*key),
        CelValue::UInt(key) => Key::Uint(*key),
        CelValue::Bool(key) => Key::Bool(*key),
        CelValue::String(key) => Key::String(Arc::clone(key)),
        _ => return Err(ExecutionError::NoSuchOverload),
    })
}

/// The pairs of index and item, or of key and value.
fn entries(This(value): This<CelValue>) -> Answer {
    let pair = |key, value: &CelValue| CelValue::List(Arc::new(vec![key, value.clone()]));
    let pairs = match &value {
        CelValue::List(items) => {
            items.iter().zip(0_i64..).map(|(item, index)| pair(CelValue::Int(index), item)).collect()
        }
        CelValue::Map(map) => map.map.iter().map(|(key, value)| pair(of_key(key), value)).collect(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(CelValue::List(Arc::new(pairs)))
}

/// A map with one entry more, or with those of another map.
#[allow(clippy::needless_pass_by_value, reason = "the registry of functions hands over owned arguments")]
fn insert(arguments: Arguments) -> Answer {
    let (map, added): (&CelMap, HashMap<Key, CelValue>) = match arguments.0.as_slice() {
        [CelValue::Map(map), CelValue::Map(added)] => (map, (*added.map).clone()),
        [CelValue::Map(map), key, value] => (map, HashMap::from([(to_key(key)?, value.clone())])),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let mut entries = (*map.map).clone();
    for (key, value) in added {
        if entries.contains_key(&key) {
            let detail = format!("insert failed: key {key} already exists");
            return Err(ExecutionError::function_error(INSERT, detail));
        }
        entries.insert(key, value);
    }
    Ok(CelValue::Map(CelMap { map: Arc::new(entries) }))
}

/// The values of optional items that have one.
#[allow(clippy::unnecessary_wraps, reason = "the registry of functions takes results")]
fn present(This(list): This<Arc<Vec<CelValue>>>) -> Answer {
    let value = |item: &CelValue| match item {
        CelValue::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => optional.value().cloned(),
            None => Some(item.clone()),
        },
        other => Some(other.clone()),
    };
    Ok(CelValue::List(Arc::new(list.iter().filter_map(value).collect())))
}

/// A format of texts by its name.
#[derive(Clone, Copy, Debug)]
struct Format {
    name: &'static str,
    wrong: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl Opaque for Format {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

const FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", wrong: names::dns1123_label },
    Format { name: "dns1123LabelPrefix", wrong: |text| names::dns1123_label(&prefix(text)) },
    Format { name: "dns1123Subdomain", wrong: names::dns1123_subdomain },
    Format { name: "dns1123SubdomainPrefix", wrong: |text| names::dns1123_subdomain(&prefix(text)) },
    Format { name: "dns1035Label", wrong: names::dns1035_label },
    Format { name: "dns1035LabelPrefix", wrong: |text| names::dns1035_label(&prefix(text)) },
    Format { name: "qualifiedName", wrong: names::qualified_name },
    Format { name: "labelValue", wrong: names::label_value },
    Format { name: "uri", wrong: |text| holds("uri", text, "invalid URI for request") },
    Format { name: "uuid", wrong: |text| holds("uuid", text, "does not match the UUID format") },
    Format { name: "byte", wrong: |text| holds("byte", text, "invalid base64") },
    Format { name: "date", wrong: |text| holds("date", text, "invalid date") },
    Format { name: "datetime", wrong: |text| holds("date-time", text, "invalid datetime") },
];

/// A prefix of names may end with a dash; what follows makes it a name.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-').and_then(|rest| rest.char_indices().next_back().map(|(last, _)| &rest[..last])) {
        Some(rest) => format!("{rest}a"),
        None => text.to_owned(),
    }
}

fn holds(format: &str, text: &str, otherwise: &str) -> Vec<String> {
    if formats::holds(format, text) { Vec::new() } else { vec![otherwise.to_owned()] }
}

/// What is wrong with a text in a format; nothing where it holds.
#[allow(clippy::needless_pass_by_value, reason = "the registry of functions hands over owned arguments")]
fn validate(This(format): This<CelValue>, text: Arc<String>) -> Answer {
    let CelValue::Opaque(format) = &format else { return Err(ExecutionError::NoSuchOverload) };
    let format = format.downcast_ref::<Format>().ok_or(ExecutionError::NoSuchOverload)?;
    let wrong = (format.wrong)(&text);
    let wrong = wrong.into_iter().map(|message| CelValue::String(Arc::new(message))).collect::<Vec<_>>();
    Ok(optional((!wrong.is_empty()).then(|| CelValue::List(Arc::new(wrong)))))
}
