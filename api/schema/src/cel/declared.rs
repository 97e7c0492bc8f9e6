//! What a schema declares to CEL: the types of values, how large they may grow, and how small they may be.

use std::{collections::BTreeMap, sync::Arc};

use super::types::{Object, Type};
use crate::{AdditionalProperties, Schema, SchemaType, cel_name::escape};

/// The most that one request may carry; what a schema does not bound is bounded by this.
pub(super) const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// Without its quotes.
const TEXT_BYTES_MAX: u64 = REQUEST_BYTES_MAX - 2;
/// The longest times and durations in JSON, and the shortest.
const TIME_BYTES_MAX: u64 = 32;
const TIME_BYTES_MIN: u64 = 21;
const DURATION_BYTES_MIN: u64 = 3;
const DATE_BYTES: u64 = 12;

/// What CEL knows about the values of a schema.
#[derive(Debug)]
pub(super) struct Declared {
    shape: Shape,
    /// The longest text, list or map. Nothing where the size of values does not vary.
    pub elements_max: u64,
    /// The fewest bytes that a value takes in JSON.
    pub bytes_min: u64,
}

#[derive(Debug)]
enum Shape {
    Scalar(Type),
    List(Arc<Declared>),
    Map { keys: Arc<Declared>, values: Arc<Declared> },
    Object(BTreeMap<String, Arc<Declared>>),
}

impl Declared {
    /// What a schema declares; `None` where CEL cannot see its values at all. `resource`: apiVersion, kind and the names
    /// in metadata are implied.
    pub(super) fn of(schema: &Schema, resource: bool) -> Option<Arc<Declared>> {
        if schema.int_or_string {
            let elements_max = schema.max_length.map_or(TEXT_BYTES_MAX, bytes_of_letters);
            return Some(scalar(Type::Dyn, elements_max, 1));
        }
        let inner = |schema: &Schema| Declared::of(schema, schema.embedded_resource);
        Some(match schema.type_? {
            SchemaType::Boolean => scalar(Type::Bool, 0, 4),
            SchemaType::Integer => scalar(Type::Int, 0, 1),
            SchemaType::Number => scalar(Type::Double, 0, 1),
            SchemaType::String => of_string(schema),
            SchemaType::Array => {
                let items = inner(schema.items.as_deref()?)?;
                let elements_max = schema.max_items.unwrap_or(TEXT_BYTES_MAX / (items.bytes_min + 1));
                Arc::new(Declared { shape: Shape::List(items), elements_max, bytes_min: 2 })
            }
            SchemaType::Object => match &schema.additional_properties {
                Some(AdditionalProperties::Schema(values)) => {
                    let values = inner(values)?;
                    // A key, quotes, colon and comma come with each value.
                    let elements_max = schema.max_properties.unwrap_or(TEXT_BYTES_MAX / (values.bytes_min + 6));
                    // How long keys are plays no part.
                    let keys = scalar(Type::String, 0, 2);
                    Arc::new(Declared { shape: Shape::Map { keys, values }, elements_max, bytes_min: 2 })
                }
                _ => of_object(schema, resource),
            },
        })
    }

    /// The type of the values.
    pub(super) fn type_(self: &Arc<Self>) -> Type {
        match &self.shape {
            Shape::Scalar(type_) => type_.clone(),
            Shape::List(items) => Type::list(items.type_()),
            Shape::Map { keys, values } => Type::map(keys.type_(), values.type_()),
            Shape::Object(_) => Type::Object(Object(Arc::clone(self))),
        }
    }

    /// The declaration of a field as CEL names it.
    pub(super) fn field(&self, name: &str) -> Option<&Arc<Declared>> {
        match &self.shape {
            Shape::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The declaration of the items of a list, or of the values of a map.
    pub(super) fn elements(&self) -> Option<&Arc<Declared>> {
        match &self.shape {
            Shape::List(elements) | Shape::Map { values: elements, .. } => Some(elements),
            _ => None,
        }
    }

    /// The declaration of the keys of a map.
    pub(super) fn keys(&self) -> Option<&Arc<Declared>> {
        match &self.shape {
            Shape::Map { keys, .. } => Some(keys),
            _ => None,
        }
    }
}

fn scalar(type_: Type, elements_max: u64, bytes_min: u64) -> Arc<Declared> {
    Arc::new(Declared { shape: Shape::Scalar(type_), elements_max, bytes_min })
}

fn of_string(schema: &Schema) -> Arc<Declared> {
    match schema.format.as_deref() {
        Some("byte") => scalar(Type::Bytes, schema.max_length.unwrap_or(TEXT_BYTES_MAX), 2),
        Some("duration") => scalar(Type::Duration, TIME_BYTES_MAX, DURATION_BYTES_MIN),
        Some("date") => scalar(Type::Timestamp, DATE_BYTES, DATE_BYTES),
        Some("date-time") => scalar(Type::Timestamp, TIME_BYTES_MAX, TIME_BYTES_MIN),
        _ => {
            let bounded = schema.max_length.map(bytes_of_letters);
            let longest = || schema.enum_.iter().filter_map(|value| value.as_str()).map(|text| text.len() as u64).max();
            let of_enum = || (!schema.enum_.is_empty()).then(|| longest().unwrap_or_default());
            scalar(Type::String, bounded.or_else(of_enum).unwrap_or(TEXT_BYTES_MAX), 2)
        }
    }
}

/// A letter takes up to four bytes.
fn bytes_of_letters(letters: u64) -> u64 {
    letters.saturating_mul(4)
}

/// Whether a resource declares what is implied of every resource, so that its own declarations count.
fn declares_its_names(schema: &Schema) -> bool {
    let is = |schema: &Schema, field: &str, type_: SchemaType| {
        schema.properties.get(field).is_some_and(|field| field.type_ == Some(type_))
    };
    let has_names =
        |metadata: &Schema| ["name", "generateName"].iter().all(|field| is(metadata, field, SchemaType::String));
    ["kind", "apiVersion"].iter().all(|field| is(schema, field, SchemaType::String))
        && is(schema, "metadata", SchemaType::Object)
        && schema.properties.get("metadata").is_some_and(has_names)
}

/// What can be read of every resource.
fn implied_fields() -> BTreeMap<String, Arc<Declared>> {
    let text = || scalar(Type::String, TEXT_BYTES_MAX, 2);
    let names = ["name", "generateName"].map(|field| (field.to_owned(), text()));
    let metadata = Arc::new(Declared { shape: Shape::Object(names.into()), elements_max: 0, bytes_min: 2 });
    [("kind", text()), ("apiVersion", text()), ("metadata", metadata)]
        .map(|(field, declared)| (field.to_owned(), declared))
        .into()
}

fn of_object(schema: &Schema, resource: bool) -> Arc<Declared> {
    let implied = if resource && !declares_its_names(schema) { implied_fields() } else { BTreeMap::new() };
    let mut fields = BTreeMap::new();
    let mut bytes_min = 2;
    let declared = schema.properties.iter().filter(|(field, _)| !implied.contains_key(*field));
    let declared = declared.filter_map(|(field, of_field)| {
        let declared = Declared::of(of_field, of_field.embedded_resource)?;
        Some((field, of_field.default.is_some(), declared))
    });
    let implied = implied.iter().map(|(field, declared)| (field, false, Arc::clone(declared)));
    for (field, has_default, declared) in declared.chain(implied) {
        // The server fills in defaults.
        if schema.required.contains(field) && !has_default {
            bytes_min += field.len() as u64 + 4 + declared.bytes_min;
        }
        if let Some(escaped) = escape(field) {
            fields.insert(escaped, declared);
        }
    }
    Arc::new(Declared { shape: Shape::Object(fields), elements_max: 0, bytes_min })
}
